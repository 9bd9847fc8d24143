//! Components that are no plugins, ask for too much, or loop before they are one.

use firesteel_plugin_host::grants::Grants;
use firesteel_plugin_host::load::Given;

use crate::desk::{MACHINE, given, load, load_with};
use crate::guests::{Guest, LOOP, encode};

fn refused(component: &[u8]) -> String {
    load_with(component, given()).err().expect("it must not be loaded").to_string()
}

#[test]
fn a_start_function_or_a_description_that_loops_refuses_the_load() {
    let time = "guest.wasm: limit `time`: a call took longer than 200 ms; the operator may raise `limits.time`";
    let start = Guest::new("guest").more(&format!("(func $start {LOOP}) (start $start)"));
    assert_eq!(refused(&start.component()), format!("plugin {time}"));
    assert_eq!(refused(&Guest::new("guest").body("describe", LOOP).component()), format!("plugin {time}"));
    load(&Guest::new("guest").component());
}

#[test]
fn what_is_no_component_or_no_plugin_is_told_apart() {
    assert_eq!(MACHINE.compile(b"hello").err().unwrap(), "it is no WebAssembly component: it begins with other bytes");
    let module = wat::parse_str("(module)").unwrap();
    assert_eq!(
        MACHINE.compile(&module).err().unwrap(),
        "it is a core module and no component: `firesteel plugin build` makes one of it"
    );
    let component = wat::parse_str("(component)").unwrap();
    assert_eq!(
        refused(&component),
        "guest.wasm: it does not export `firesteel:plugin/manifest`, so it is a component but no plugin"
    );
    let strange = wat::parse_str(r#"(component (import "other:host/files" (instance)))"#).unwrap();
    assert!(refused(&strange).contains("does not export"));
}

#[test]
fn a_description_must_be_borne_out_by_the_exports() {
    // Says that it handles a language, and is made for the world of functions.
    let text =
        Guest::new("guest").languages(&["sql"]).text().replace("firesteel:plugin/handler@0.1.0#handle", "unused");
    let text: String = text
        .lines()
        .filter(|l| !["policy", "results", "events"].iter().any(|i| l.contains(&format!("plugin/{i}@"))))
        .map(|l| format!("{l}\n"))
        .collect();
    let component = encode(&text, "function-library").unwrap();
    assert_eq!(
        refused(&component),
        "guest.wasm: by its description it must export `firesteel:plugin/handler@0.1.0`, and it does not, or with other types"
    );
}

#[test]
fn a_plugin_for_a_newer_interface_is_told_what_this_program_has() {
    let newer = wat::parse_str(r#"(component (instance $i) (export "firesteel:plugin/manifest@0.2.0" (instance $i)))"#)
        .unwrap();
    assert_eq!(
        refused(&newer),
        "guest.wasm: it was built for version 0.2.0 of the interface, this program has 0.1.0: use a newer Firesteel, or build it with the SDK for 0.1.0"
    );
}

#[test]
fn names_and_types_of_a_description_are_looked_at() {
    assert!(refused(&Guest::new("Guest!").component()).contains("its name is `Guest!`; a name has lower-case letters"));
    let function = |f| Guest::new("guest").functions(&[f]).component();
    assert_eq!(
        refused(&function(("f", 0, &["Int65"], "Int64", &[]))),
        "guest.wasm: its function `f`: `Int65` is no Arrow type"
    );
    assert!(refused(&function(("a b", 0, &[], "Int64", &[]))).contains("its function `a b`: a name has"));
    assert!(
        refused(&function(("f", 1, &["Int64"], "Int64", &[]))).contains("an aggregate function has columns of state")
    );
}

#[test]
fn asking_for_more_than_is_granted_refuses_the_load() {
    let asks = Guest::new("guest").asks(&["api.example.org"], &[("data", 1)], true).component();
    assert_eq!(
        refused(&asks),
        "plugin guest 1.0.0 asks for what is not granted: http = [\"api.example.org\"], \
         directories.data = { path = \"…\", mode = \"write\" }, writes = true; who trusts it adds that to its `grants`"
    );
    let grants: Grants = serde_json::from_str(
        r#"{"http": ["api.example.org"], "directories": {"data": {"path": "/tmp", "mode": "write"}}, "writes": true}"#,
    )
    .unwrap();
    load_with(&asks, Given { grants, ..given() }).unwrap();
}
