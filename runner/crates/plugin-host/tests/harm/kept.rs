//! Compiled code that is not what it was, files that are too large, and compiling that does not end.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use firesteel_plugin_host::cache::{Cache, Code, hash};
use firesteel_plugin_host::load::LoadError;
use firesteel_plugin_host::plugin::Loaded;
use firesteel_plugin_host::{compile, component};

use crate::desk::{Desk, MACHINE, given, still_answers};
use crate::guests::{Guest, answer};

/// A folder of compiled code, and the plugin whose code is in it.
struct Kept {
    folder: tempfile::TempDir,
    cache: Cache,
    source: Vec<u8>,
    code: Code,
}

fn opened(folder: &Path, compatibility: &str) -> Cache {
    Cache::open(folder, compatibility.to_owned()).unwrap()
}

fn private() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
    folder
}

fn kept() -> Kept {
    let folder = private();
    let source = Guest::new("guest").languages(&["sql"]).body("handle", answer(&[0])).component();
    let cache = opened(folder.path(), &component::compatibility().unwrap());
    let code = cache.put(&hash(&source), &component::compile(&source).unwrap()).unwrap();
    Kept { folder, cache, source, code }
}

impl Kept {
    fn found(&self) -> Option<Code> {
        self.cache.find(&hash(&self.source))
    }

    /// What was found wrong is gone, and the plugin's code, compiled anew, is loaded and answers.
    fn compiled_anew(&self) {
        assert_eq!(self.found(), None);
        assert!(!self.code.path.exists() && !self.code.path.is_symlink(), "what does not check out is removed");
        self.cache.put(&hash(&self.source), &component::compile(&self.source).unwrap()).unwrap();
        answers(&self.found().expect("it was compiled anew"));
    }
}

fn answers(code: &Code) {
    let component = MACHINE.revive(code).unwrap();
    let desk = Desk::new();
    let around: std::sync::Arc<dyn firesteel_session::ports::plugins::Surroundings> = Desk::new();
    let plugin: Result<Loaded, LoadError> = Loaded::load(&MACHINE, &component, "guest", given(), &around);
    still_answers(&plugin.unwrap(), &desk);
}

#[test]
fn code_that_is_as_it_was_made_is_found_and_answers() {
    let kept = kept();
    assert_eq!(kept.found().as_ref(), Some(&kept.code));
    answers(&kept.code);
}

#[test]
fn code_that_was_cut_short_is_compiled_anew() {
    let kept = kept();
    File::options().write(true).open(&kept.code.path).unwrap().set_len(kept.code.length / 2).unwrap();
    kept.compiled_anew();
}

#[test]
fn code_of_which_one_byte_is_another_is_compiled_anew() {
    let kept = kept();
    let mut bytes = fs::read(&kept.code.path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&kept.code.path, bytes).unwrap();
    kept.compiled_anew();
}

#[test]
fn code_of_another_version_of_the_engine_is_compiled_anew() {
    let kept = kept();
    let later = opened(kept.folder.path(), "0123456789abcdef");
    assert_eq!(later.find(&hash(&kept.source)), None);
    assert!(!kept.code.path.exists());
    kept.compiled_anew();
}

#[test]
fn code_that_others_may_have_put_there_is_compiled_anew() {
    // Others may write to it.
    let kept = self::kept();
    fs::set_permissions(&kept.code.path, Permissions::from_mode(0o666)).unwrap();
    kept.compiled_anew();
    // It has a name elsewhere, by which it may be written to.
    let kept = self::kept();
    let elsewhere = private();
    fs::hard_link(&kept.code.path, elsewhere.path().join("other")).unwrap();
    kept.compiled_anew();
    // It only leads elsewhere.
    let kept = self::kept();
    let elsewhere = private();
    let other = elsewhere.path().join("other");
    fs::rename(&kept.code.path, &other).unwrap();
    symlink(&other, &kept.code.path).unwrap();
    kept.compiled_anew();
    assert!(other.exists(), "what it led to is nobody's business");
}

#[test]
fn a_folder_that_others_may_write_to_keeps_no_code() {
    let folder = private();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
    let refused = Cache::open(folder.path(), "x".into()).unwrap_err();
    assert_eq!(
        refused,
        format!(
            "{}: others may use it: compiled code is kept only where nobody else can write; name another folder",
            folder.path().display()
        )
    );
    let linked = private();
    let link = linked.path().join("link");
    symlink(private().path(), &link).unwrap();
    assert!(Cache::open(&link, "x".into()).is_err());
}

#[test]
fn code_that_is_changed_after_it_was_checked_is_not_run() {
    let kept = kept();
    let checked = kept.found().unwrap();
    let bytes = fs::read(&checked.path).unwrap();
    // Put in its place, with the same length.
    fs::remove_file(&checked.path).unwrap();
    fs::write(&checked.path, &bytes).unwrap();
    fs::set_permissions(&checked.path, Permissions::from_mode(0o600)).unwrap();
    let refused = MACHINE.revive(&checked).expect_err("it must not be run").to_string();
    assert!(refused.ends_with("it was changed since it was checked"), "{refused}");
    // Whoever looks again reads what it holds.
    answers(&kept.found().unwrap());
}

#[test]
fn a_module_of_200_mb_is_refused() {
    let folder = private();
    let file = folder.path().join("large.wasm");
    fs::write(&file, b"\0asm\x0d\0\x01\0").unwrap();
    File::options().write(true).open(&file).unwrap().set_len(200_000_000).unwrap();
    assert_eq!(
        component::read(&file).unwrap_err(),
        format!("{}: limit `module`: a plugin's file has at most 64 MiB", file.display())
    );
}

#[test]
fn compiling_that_takes_longer_than_the_limit_is_ended() {
    let folder = private();
    let cache = opened(folder.path(), &component::compatibility().unwrap());
    // In place of the program that compiles: one that never answers.
    let program = folder.path().join("slow");
    fs::write(&program, "#!/bin/sh\nexec /bin/sleep 60\n").unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o700)).unwrap();
    #[expect(clippy::disallowed_methods, reason = "how long it takes is what is tested")]
    let began = Instant::now();
    let source = Guest::new("guest").component();
    assert_eq!(
        compile::code(&cache, &source, &program, Duration::from_millis(300)).unwrap_err(),
        "limit `compile`: it was not compiled within 0.3 s; make it smaller, or raise --compile-time"
    );
    assert!(began.elapsed() < Duration::from_secs(5), "took {:?}", began.elapsed());
    assert_eq!(cache.find(&hash(&source)), None);
}
