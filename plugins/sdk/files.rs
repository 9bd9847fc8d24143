//! What `firesteel plugin new NAME` writes: the new plugin's own files, and beside them this crate and the interface, so that the plugin builds
//! with nothing but Rust, for the version of the runner that made it.
//!
//! In a file's text `{{name}}` stands for the plugin's name, `{{crate}}` for that of its crate's library, with `_` for `-`, and `{{sdk}}` for the way to
//! this crate, which is `firesteel/sdk`.

/// Paths in the new plugin's folder, and texts with the three words in them.
pub const TEMPLATE: &[(&str, &str)] = &[
    ("Cargo.toml", include_str!("template/Cargo.toml")),
    ("README.md", include_str!("template/README.md")),
    ("src/lib.rs", include_str!("template/src/lib.rs")),
    ("tests/cases/hello.txt", include_str!("template/tests/cases/hello.txt")),
];

/// Paths in the new plugin's folder, and texts to write as they are.
pub const SDK: &[(&str, &str)] = &[
    ("firesteel/sdk/Cargo.toml", include_str!("Cargo.toml")),
    ("firesteel/sdk/src/column.rs", include_str!("src/column.rs")),
    ("firesteel/sdk/src/events.rs", include_str!("src/events.rs")),
    ("firesteel/sdk/src/export.rs", include_str!("src/export.rs")),
    ("firesteel/sdk/src/function.rs", include_str!("src/function.rs")),
    ("firesteel/sdk/src/guest.rs", include_str!("src/guest.rs")),
    ("firesteel/sdk/src/handler.rs", include_str!("src/handler.rs")),
    ("firesteel/sdk/src/host.rs", include_str!("src/host.rs")),
    ("firesteel/sdk/src/lib.rs", include_str!("src/lib.rs")),
    ("firesteel/sdk/src/plugin.rs", include_str!("src/plugin.rs")),
    ("firesteel/sdk/src/policy.rs", include_str!("src/policy.rs")),
    ("firesteel/sdk/src/results.rs", include_str!("src/results.rs")),
    ("firesteel/sdk/src/schema.rs", include_str!("src/schema.rs")),
    ("firesteel/sdk/src/testing.rs", include_str!("src/testing.rs")),
    ("firesteel/wit/0.1.0/host.wit", include_str!("../wit/0.1.0/host.wit")),
    ("firesteel/wit/0.1.0/package.wit", include_str!("../wit/0.1.0/package.wit")),
    ("firesteel/wit/0.1.0/plugin.wit", include_str!("../wit/0.1.0/plugin.wit")),
    ("firesteel/wit/0.1.0/types.wit", include_str!("../wit/0.1.0/types.wit")),
];
