//! Packs the program's relative relocations where its C library can read them (glibc 2.36 and later): 6 MB less to load and to touch.
//!
//! The library of the machine that builds decides, as it does for the symbols that a program asks for: build on the oldest
//! system that is to run it.

use std::process::Command;

/// The first glibc that reads `DT_RELR`.
const PACKED_SINCE: (u32, u32) = (2, 36);

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let of = |name: &str| std::env::var(name).unwrap_or_default();
    let native = of("HOST") == of("TARGET");
    let gnu = of("CARGO_CFG_TARGET_OS") == "linux" && of("CARGO_CFG_TARGET_ENV") == "gnu";
    if native && gnu && glibc().is_some_and(|version| version >= PACKED_SINCE) {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Which glibc is here, as `getconf` says: `glibc 2.36`.
fn glibc() -> Option<(u32, u32)> {
    let out = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(out.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
