//! What a worker gives up before it reads anything of a user's: new privileges, core dumps, and files that are not listed.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
    RulesetStatus, path_beneath_rules,
};

use crate::settings::Settings;

/// What the machine needs to tell this process about itself.
const OF_THE_SYSTEM: &[&str] = &[
    "/proc/self",
    "/sys/fs/cgroup",
    "/sys/devices/system/cpu",
    "/usr/share/zoneinfo",
    "/etc/localtime",
    "/dev/null",
    "/dev/urandom",
];
/// What name resolution and TLS read; only with stores on the network.
const OF_THE_NETWORK: &[&str] =
    &["/etc", "/run/systemd/resolve", "/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/share", "/usr/local/share"];

/// Gives up what this platform offers to give up; what it does not offer is not missed. Before any thread is started.
/// Returns whether files are fenced in.
pub fn enter(settings: &Settings, spill: &Path) -> bool {
    let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
    let _ = rustix::process::setrlimit(rustix::process::Resource::Core, none);
    if !settings.low_privileges {
        return false;
    }
    let _ = rustix::thread::set_no_new_privs(true);
    fence(settings, spill).unwrap_or(false)
}

fn fence(settings: &Settings, spill: &Path) -> Result<bool, RulesetError> {
    let abi = ABI::V5;
    let networked = !settings.stores.is_empty() || settings.plugins.network;
    let network: &[&str] = if networked { OF_THE_NETWORK } else { &[] };
    let read = AccessFs::from_read(abi) & !AccessFs::Execute;
    let mut paths: Vec<PathBuf> = OF_THE_SYSTEM.iter().chain(network).map(PathBuf::from).collect();
    paths.extend(settings.data.iter().cloned());
    paths.extend(settings.plugins.reads.iter().cloned());
    if networked {
        paths.extend(["SSL_CERT_FILE", "SSL_CERT_DIR"].iter().filter_map(std::env::var_os).map(PathBuf::from));
    }
    let written = settings.export.iter().chain(&settings.plugins.writes).map(PathBuf::as_path).chain([spill]);
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(abi))?
        .create()?
        .add_rules(path_beneath_rules(paths, read))?
        .add_rules(path_beneath_rules(written, AccessFs::from_all(abi) & !AccessFs::Execute))?
        .restrict_self()?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use std::fs;

    use super::*;

    /// On a thread of its own: only that thread gives up what it has.
    #[test]
    fn what_is_not_listed_is_out_of_reach_where_the_kernel_offers_it() {
        let dir = tempfile::tempdir().unwrap();
        let [data, export, spill, other] = ["data", "export", "spill", "other"].map(|name| dir.path().join(name));
        for folder in [&data, &export, &spill, &other] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("file"), "x").unwrap();
        }
        let settings = Settings { data: vec![data.clone()], export: Some(export.clone()), ..Settings::default() };
        let told = std::thread::spawn(move || {
            let fenced = enter(&settings, &spill);
            let can = [
                fs::read(data.join("file")).is_ok(),
                fs::write(data.join("new"), "x").is_ok(),
                fs::write(spill.join("new"), "x").is_ok(),
                fs::write(export.join("new"), "x").is_ok(),
                fs::read(other.join("file")).is_ok(),
                fs::read("/etc/passwd").is_ok(),
            ];
            (fenced, can)
        })
        .join()
        .unwrap();
        assert!(told == (true, [true, false, true, true, false, false]) || !told.0, "{told:?}");
    }
}
