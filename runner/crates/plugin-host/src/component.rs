//! Components: what is no component is told apart, and what is one is compiled, or was.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use wasmtime::Engine;
use wasmtime::component::Component;

use crate::cache::Code;
use crate::limits::size;
use crate::machine::{Machine, config};

/// The largest file that is taken for a plugin, in bytes.
pub const LARGEST: u64 = 64 << 20;

/// Reads a plugin's file.
///
/// # Errors
/// It cannot be read, or is too large; the message names it.
pub fn read(path: &Path) -> Result<Vec<u8>, String> {
    let at = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let file = File::open(path).map_err(|e| at(&e))?;
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|e| at(&e))?;
    if bytes.len() as u64 > LARGEST {
        return Err(at(&format!("limit `module`: a plugin's file has at most {}", size(LARGEST))));
    }
    looks(&bytes).map_err(|why| at(&why))?;
    Ok(bytes)
}

/// What the first bytes tell.
fn looks(bytes: &[u8]) -> Result<(), String> {
    match bytes {
        [0, b'a', b's', b'm', 0x0d, 0, 1, 0, ..] => Ok(()),
        [0, b'a', b's', b'm', 1, 0, 0, 0, ..] => {
            Err("it is a core module and no component: `firesteel plugin build` makes one of it".into())
        }
        _ => Err("it is no WebAssembly component: it begins with other bytes".into()),
    }
}

/// Compiles a component for this machine, to be kept.
///
/// # Errors
/// It is none.
pub fn compile(bytes: &[u8]) -> Result<Vec<u8>, String> {
    looks(bytes)?;
    let engine = Engine::new(&config(false)).map_err(|e| e.to_string())?;
    engine.precompile_component(bytes).map_err(|e| format!("it cannot be compiled: {}", e.root_cause()))
}

/// What compiled code depends on beside its source: the version and settings of what compiled it, and the processor.
///
/// # Errors
/// Nothing can be compiled here.
pub fn compatibility() -> Result<String, String> {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let engine = Engine::new(&config(false)).map_err(|e| e.to_string())?;
    let mut hasher = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    std::env::consts::ARCH.hash(&mut hasher);
    Ok(format!("{:016x}", hasher.finish()))
}

impl Machine {
    /// Compiles a component here and now: for tests and tools, never on a statement's path.
    ///
    /// # Errors
    /// It is none.
    pub fn compile(&self, bytes: &[u8]) -> Result<Component, String> {
        looks(bytes)?;
        Component::from_binary(self.engine(), bytes).map_err(|e| format!("it cannot be compiled: {}", e.root_cause()))
    }

    /// Takes code that was compiled before.
    ///
    /// # Errors
    /// The file is not the one that was checked, or not for this machine.
    #[expect(
        unsafe_code,
        reason = "the file is ours alone: `Code::check` sees to owner, mode and length, `Cache::find` to the content"
    )]
    pub fn revive(&self, code: &Code) -> Result<Component, String> {
        code.check()?;
        // SAFETY: wasmtime made this file, in a process of this program, and nobody else could write to it since.
        unsafe { Component::deserialize_file(self.engine(), &code.path) }
            .map_err(|e| format!("{}: {}", code.path.display(), e.root_cause()))
    }
}
