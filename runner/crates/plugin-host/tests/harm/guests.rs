//! Plugins as small as can be: core modules in text, made into components. No toolchain is needed for them.

#![allow(dead_code, reason = "two test programs write guests, each other ones")]

use std::fmt::Write as _;
use std::path::Path;

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// Where the description's parts are in a guest's memory.
const DESCRIPTION: u32 = 1024;
/// Where a guest may write its answers.
pub const ANSWER: u32 = 8192;
/// Where memory begins that is given away.
const HEAP: u32 = 16384;

/// A guest that is being written.
#[derive(Clone)]
pub struct Guest {
    name: String,
    languages: Vec<&'static str>,
    policy: bool,
    functions: Vec<Function>,
    http: Vec<&'static str>,
    directories: Vec<(&'static str, u8)>,
    writes: bool,
    /// Memory in pages of 64 KiB: how much there is, and the most.
    pages: (u32, u32),
    bodies: Vec<(&'static str, String)>,
    more: String,
}

/// A function: its name, kind (scalar, aggregate, table), parameters, value and state.
pub type Function = (&'static str, u8, &'static [&'static str], &'static str, &'static [&'static str]);

/// What each interface exports: the function, its parameters and result in core types.
const EXPORTS: &[(&str, &str, &str)] = &[
    ("handler", "handle", "i32 i32 i32 i32 i32 i32 i32 i32 > i32"),
    ("functions", "scalar", "i32 i32 i32 i32 > i32"),
    ("functions", "accumulate", "i32 i32 i32 i32 i32 i32 i32 i32 i32 > i32"),
    ("functions", "merge", "i32 i32 i32 i32 i32 i32 i32 i32 i32 > i32"),
    ("functions", "evaluate", "i32 i32 i32 i32 > i32"),
    ("functions", "plan", "i32 i32 i32 > i32"),
    ("functions", "produce", "i32 i32 i32 i32 i32 i32 > i32"),
    ("policy", "decide", "i32 i32 i32 i32 > i32"),
    ("results", "begin", "i32 i32 > i32"),
    ("results", "change", "i32 i32 i32 i32 i32 i64 > i32"),
    ("events", "notify", "i32 i32 i32 i32 i32 i32 i32 i32 i32 i64 i64 >"),
];

impl Guest {
    /// A guest that is asked for nothing and traps if it is asked nonetheless.
    pub fn new(name: &str) -> Guest {
        Guest {
            name: name.to_owned(),
            languages: Vec::new(),
            policy: false,
            functions: Vec::new(),
            http: Vec::new(),
            directories: Vec::new(),
            writes: false,
            pages: (16, 65_536),
            bodies: Vec::new(),
            more: String::new(),
        }
    }

    pub fn languages(mut self, languages: &[&'static str]) -> Guest {
        self.languages = languages.to_vec();
        self
    }

    pub fn policy(mut self) -> Guest {
        self.policy = true;
        self
    }

    pub fn functions(mut self, functions: &[Function]) -> Guest {
        self.functions = functions.to_vec();
        self
    }

    pub fn asks(mut self, http: &[&'static str], directories: &[(&'static str, u8)], writes: bool) -> Guest {
        (self.http, self.directories, self.writes) = (http.to_vec(), directories.to_vec(), writes);
        self
    }

    pub fn pages(mut self, pages: u32) -> Guest {
        self.pages.0 = pages;
        self
    }

    /// What an export does; else it traps.
    pub fn body(mut self, export: &'static str, code: impl Into<String>) -> Guest {
        self.bodies.push((export, code.into()));
        self
    }

    /// More of the module: globals, functions, a start function.
    pub fn more(mut self, text: &str) -> Guest {
        self.more.push_str(text);
        self
    }

    /// The module's text.
    pub fn text(&self) -> String {
        let body = |name: &str| {
            let found = self.bodies.iter().find(|(export, _)| *export == name);
            found.map_or("unreachable".to_owned(), |(_, code)| code.clone())
        };
        let mut exports = String::new();
        for (interface, name, types) in EXPORTS {
            let (parameters, result) = types.split_once('>').unwrap();
            let result = if result.trim().is_empty() { String::new() } else { format!("(result{result})") };
            writeln!(
                exports,
                r#"(func (export "firesteel:plugin/{interface}@0.1.0#{name}") (param {parameters}) {result} {})"#,
                body(name)
            )
            .unwrap();
        }
        let describe = self
            .bodies
            .iter()
            .find(|(export, _)| *export == "describe")
            .map_or_else(|| format!("i32.const {DESCRIPTION}"), |(_, code)| format!("{code} i32.const {DESCRIPTION}"));
        let (pages, most) = self.pages;
        format!(
            r#"(module
              (import "firesteel:plugin/log@0.1.0" "write" (func $log (param i32 i32 i32)))
              (import "firesteel:plugin/catalog@0.1.0" "columns" (func $columns (param i32 i32 i32)))
              (import "firesteel:plugin/session@0.1.0" "set" (func $set (param i32 i32 i32 i32 i32 i32)))
              (import "firesteel:plugin/random@0.1.0" "next" (func $random (result i64)))
              (memory (export "memory") {pages} {most})
              (global $heap (mut i32) (i32.const {HEAP}))
              (data (i32.const {DESCRIPTION}) "{}")
              (func $give (export "cabi_realloc") (param $old i32) (param $had i32) (param $align i32) (param $size i32) (result i32)
                (local $at i32)
                global.get $heap local.get $align i32.add i32.const 1 i32.sub
                i32.const 0 local.get $align i32.sub i32.and local.tee $at
                local.get $size i32.add global.set $heap
                block
                  global.get $heap memory.size i32.const 16 i32.shl i32.le_u br_if 0
                  local.get $size i32.const 16 i32.shr_u i32.const 1 i32.add memory.grow
                  i32.const -1 i32.ne br_if 0
                  unreachable
                end
                local.get $at)
              ;; All that was given is taken back before the next call.
              (func $free global.get $mark global.set $heap)
              (global $mark i32 (i32.const {HEAP}))
              (func (export "firesteel:plugin/manifest@0.1.0#describe") (result i32) {describe})
              {exports}
              {}
            )"#,
            escaped(&self.description()),
            self.more,
        )
    }

    /// The component.
    pub fn component(&self) -> Vec<u8> {
        encode(&self.text(), "plugin").unwrap()
    }

    /// `result<description, string>` as the canonical ABI stores it, and behind it what it points to.
    fn description(&self) -> Vec<u8> {
        let mut image = Image { base: DESCRIPTION, bytes: vec![0; 68] };
        let at = |field: usize| 4 + field;
        image.text(at(0), &self.name);
        image.text(at(8), "1.0.0");
        image.text(at(16), "a guest of the tests");
        image.texts(at(24), &self.languages);
        image.bytes[at(32)] = u8::from(self.policy);
        let functions = image.list(at(36), self.functions.len(), 44);
        for (n, (name, kind, parameters, returns, state)) in self.functions.iter().enumerate() {
            let f = functions + 44 * n;
            image.text(f, name);
            image.bytes[f + 8] = *kind;
            let named = image.list(f + 12, parameters.len(), 16);
            for (p, data_type) in parameters.iter().enumerate() {
                image.text(named + 16 * p, "x");
                image.text(named + 16 * p + 8, data_type);
            }
            image.text(f + 24, returns);
            image.texts(f + 36, state);
        }
        image.texts(at(44), &self.http);
        let directories = image.list(at(52), self.directories.len(), 12);
        for (n, (name, mode)) in self.directories.iter().enumerate() {
            image.text(directories + 12 * n, name);
            image.bytes[directories + 12 * n + 8] = *mode;
        }
        image.bytes[at(60)] = u8::from(self.writes);
        image.bytes
    }
}

/// A core module in text as a component for a world of the interface.
pub fn encode(text: &str, world: &str) -> Result<Vec<u8>, String> {
    let mut module = wat::parse_str(text).map_err(|e| e.to_string())?;
    let mut resolve = Resolve::default();
    let wit = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|folder| folder.join("plugins/wit/0.1.0"))
        .find(|folder| folder.is_dir())
        .unwrap();
    let (package, _) = resolve.push_dir(&wit).map_err(|e| e.to_string())?;
    let world = resolve.select_world(&[package], Some(world)).map_err(|e| e.to_string())?;
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).map_err(|e| e.to_string())?;
    let encoder = ComponentEncoder::default().validate(true).module(&module).map_err(|e| format!("{e:?}"))?;
    let mut encoder = encoder;
    encoder.encode().map_err(|e| format!("{e:?}"))
}

struct Image {
    base: u32,
    bytes: Vec<u8>,
}

impl Image {
    /// Writes a pointer and a length at `at`, of `count` elements of this size that stand behind. Returns where.
    fn list(&mut self, at: usize, count: usize, size: usize) -> usize {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        let start = self.bytes.len();
        self.bytes.resize(start + count * size, 0);
        let pointer = self.base + u32::try_from(start).unwrap();
        self.bytes[at..at + 4].copy_from_slice(&pointer.to_le_bytes());
        self.bytes[at + 4..at + 8].copy_from_slice(&u32::try_from(count).unwrap().to_le_bytes());
        start
    }

    fn text(&mut self, at: usize, text: &str) {
        let start = self.list(at, text.len(), 1);
        self.bytes[start..start + text.len()].copy_from_slice(text.as_bytes());
    }

    fn texts(&mut self, at: usize, texts: &[&str]) {
        let start = self.list(at, texts.len(), 8);
        for (n, text) in texts.iter().enumerate() {
            self.text(start + 8 * n, text);
        }
    }
}

fn escaped(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "\\{byte:02x}").unwrap();
        text
    })
}

/// Code that stores these words from [`ANSWER`] on, and leaves its address.
pub fn answer(words: &[u32]) -> String {
    let mut code = String::new();
    for (n, word) in words.iter().enumerate() {
        let at = ANSWER + 4 * u32::try_from(n).unwrap();
        write!(code, "i32.const {at} i32.const {} i32.store ", *word as i32).unwrap();
    }
    code + &format!("i32.const {ANSWER}")
}

/// Code that says this and stops here for ever.
pub const LOOP: &str = "(loop $for_ever br $for_ever) unreachable";
