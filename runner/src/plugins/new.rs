//! `firesteel plugin new`: a project that builds, with the SDK and the interface inside.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use crate::problem::Problem;

#[path = "../../../plugins/sdk/files.rs"]
mod files;

/// Writes a new project into the folder `at`, whose name is the plugin's.
///
/// # Errors
/// The name is no plugin's, the folder is there already, or cannot be written.
pub fn new(at: &Path) -> Result<ExitCode, Problem> {
    let name = at.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || name.len() > 63 || !name.chars().all(good) {
        let near: String = name.to_lowercase().chars().map(|c| if good(c) { c } else { '-' }).take(63).collect();
        let near = near.trim_matches(|c: char| !c.is_ascii_lowercase());
        let hint = if near.is_empty() { String::new() } else { format!("; did you mean `{near}`?") };
        return Err(Problem::usage(format!(
            "`{name}` is no name of a plugin: it has lower-case letters, digits and `-`, at most 63, and begins with a letter{hint}"
        )));
    }
    if at.exists() {
        return Err(Problem::usage_with(
            format!("{} is there already, and nothing is overwritten", at.display()),
            "take another name, or remove it",
        ));
    }
    let own = files::TEMPLATE.iter().map(|(path, text)| {
        (
            *path,
            text.replace("{{name}}", &name)
                .replace("{{crate}}", &name.replace('-', "_"))
                .replace("{{sdk}}", "firesteel/sdk"),
        )
    });
    for (path, text) in own.chain(files::SDK.iter().map(|(path, text)| (*path, (*text).to_owned()))) {
        let path = at.join(path);
        let wrong = |e: io::Error| Problem::Other(format!("{}: {e}", path.display()));
        std::fs::create_dir_all(path.parent().unwrap_or(at)).map_err(wrong)?;
        std::fs::write(&path, text).map_err(wrong)?;
    }
    let (shown, module) = (at.display(), name.replace('-', "_"));
    writeln!(
        io::stdout(),
        "{shown} is a plugin that says hello. Next:\n\
         \x20 cd {shown}\n\
         \x20 cargo test\n\
         \x20 cargo build --release --target wasm32-unknown-unknown\n\
         \x20 firesteel plugin build target/wasm32-unknown-unknown/release/{module}.wasm -o {name}.wasm\n\
         \x20 firesteel plugin check {name}.wasm\n\
         \x20 firesteel plugin run {name}.wasm world\n\
         \x20 firesteel plugin test {name}.wasm"
    )?;
    Ok(ExitCode::SUCCESS)
}
