//! Calls that never end, take too much, or answer with what is no answer.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use arrow_array::{ArrayRef, Float64Array, Int64Array};
use firesteel_plugin_host::limits::Limits;
use firesteel_session::ports::plugins::{Plugin, Surroundings, Verdict};

use crate::desk::{Desk, asked, fault, given, load, load_with, still_answers};
use crate::guests::{ANSWER, Guest, LOOP, answer};

fn around(desk: &Arc<Desk>) -> Arc<dyn Surroundings> {
    Arc::<Desk>::clone(desk)
}

/// Does what `code` says for a text of more than 8 bytes, and passes on all other statements.
fn handler(code: &str) -> Guest {
    let pass = answer(&[0]);
    Guest::new("guest")
        .languages(&["sql"])
        .body("handle", format!("call $free local.get 1 i32.const 9 i32.ge_u if {code} end {pass}"))
}

const LONG: &str = "SELECT 'what it is about'";

#[test]
fn a_handler_that_loops_is_stopped_and_the_next_statement_is_answered() {
    let (plugin, desk) = (load(&handler(LOOP).component()), Desk::new());
    for _ in 0..3 {
        assert_eq!(
            fault(|| plugin.handle(&around(&desk), &asked(LONG))),
            "plugin guest 1.0.0: limit `time`: a call took longer than 200 ms; the operator may raise `limits.time`"
        );
        still_answers(&plugin, &desk);
    }
    assert_eq!(desk.taken.load(Ordering::SeqCst), 0, "what it held is the statement's no more");
}

#[test]
fn a_loop_on_every_second_call_of_an_instance_is_stopped_each_time() {
    let guest = Guest::new("guest").languages(&["sql"]).more("(global $calls (mut i32) (i32.const 0))").body(
        "handle",
        format!(
            "call $free global.get $calls i32.const 1 i32.add global.set $calls
             global.get $calls i32.const 2 i32.eq if {LOOP} end {}",
            answer(&[0])
        ),
    );
    let (plugin, desk) = (load(&guest.component()), Desk::new());
    for _ in 0..3 {
        still_answers(&plugin, &desk);
        let fault = fault(|| plugin.handle(&around(&desk), &asked(LONG)));
        assert!(fault.contains("limit `time`"), "{fault}");
    }
}

#[test]
fn a_function_that_loops_goes_on_until_its_statement_is_stopped() {
    let guest = Guest::new("guest").functions(&[("spin", 0, &["Int64"], "Int64", &[])]).body("scalar", LOOP);
    let (plugin, desk) = (load(&guest.component()), Desk::new());
    let rows: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            desk.stopped.store(true, Ordering::SeqCst);
        });
        assert_eq!(
            fault(|| plugin.scalar(&around(&desk), 0, std::slice::from_ref(&rows), 3)),
            "plugin guest 1.0.0: the statement was stopped"
        );
    });
}

#[test]
fn memory_ends_at_the_limit() {
    let grow = "(loop $more i32.const 1 memory.grow i32.const -1 i32.ne br_if $more) unreachable";
    let (plugin, desk) = (load(&handler(grow).component()), Desk::new());
    assert_eq!(
        fault(|| plugin.handle(&around(&desk), &asked(LONG))),
        "plugin guest 1.0.0: limit `memory`: it wanted more than 64 MiB; the operator may raise `limits.memory`"
    );
    still_answers(&plugin, &desk);
    assert_eq!(desk.taken.load(Ordering::SeqCst), 0);
}

#[test]
fn four_gibibytes_at_once_are_not_to_be_had_either() {
    let grow = "i32.const 65000 memory.grow i32.const -1 i32.eq if unreachable end";
    let (plugin, desk) = (load(&handler(grow).component()), Desk::new());
    let fault = fault(|| plugin.handle(&around(&desk), &asked(LONG)));
    assert!(fault.contains("limit `memory`"), "{fault}");
    let large = Guest::new("guest").languages(&["sql"]).pages(2_000);
    let refused = load_with(&large.component(), given()).err().unwrap().to_string();
    assert!(refused.contains("limit `memory`: it wanted more than 64 MiB"), "{refused}");
}

#[test]
fn a_guests_memory_is_a_part_of_the_statements() {
    let grow = "(loop $more i32.const 16 memory.grow i32.const -1 i32.ne br_if $more) unreachable";
    let plugin = load(&handler(grow).component());
    let desk = Arc::new(Desk { memory: Some(8 << 20), ..Desk::default() });
    assert_eq!(
        fault(|| plugin.handle(&around(&desk), &asked(LONG))),
        "plugin guest 1.0.0: it wanted 1 MiB more than the statement's memory has left (setting `memory`)"
    );
    still_answers(&plugin, &desk);
    assert_eq!(desk.taken.load(Ordering::SeqCst), 0);
}

#[test]
fn deep_recursion_meets_the_stack() {
    let guest = handler("call $deeper").more("(func $deeper call $deeper call $deeper)");
    let (plugin, desk) = (load(&guest.component()), Desk::new());
    assert_eq!(
        fault(|| plugin.handle(&around(&desk), &asked(LONG))),
        "plugin guest 1.0.0: limit `stack`: it called itself too deeply, a stack has 1 MiB"
    );
    still_answers(&plugin, &desk);
}

#[test]
fn a_trap_says_what_the_guest_said_last_and_the_log_has_where_it_was() {
    // Level 0 is error; the words are at 64.
    let guest = handler("i32.const 0 i32.const 64 i32.const 9 call $log unreachable")
        .more(r#"(data (i32.const 64) "no luck: \0a")"#);
    let (plugin, desk) = (load(&guest.component()), Desk::new());
    assert_eq!(
        fault(|| plugin.handle(&around(&desk), &asked(LONG))),
        "plugin guest 1.0.0 failed: no luck:  (wasm `unreachable` instruction executed)"
    );
    let lines = desk.lines();
    assert_eq!(lines[0], "Error: no luck: ");
    assert!(lines[1].contains("at wasm backtrace: | 0:"), "{}", lines[1]);
    still_answers(&plugin, &desk);
}

#[test]
fn a_hundred_thousand_traps_in_host_calls_leave_nothing_behind() {
    // The message is outside of its memory.
    let guest = Guest::new("guest")
        .languages(&["sql"])
        .pages(1)
        .body("handle", "i32.const 0 i32.const -8 i32.const 100 call $log unreachable");
    let (plugin, desk) = (load(&guest.component()), Desk::new());
    let around = around(&desk);
    let mut at_first = 0;
    for n in 0..100_000 {
        assert!(plugin.handle(&around, &asked("x")).is_err());
        desk.lines.lock().unwrap().clear();
        if n == 1_000 {
            at_first = resident();
        }
    }
    let grown = resident().saturating_sub(at_first);
    assert!(grown < 16 << 20, "{grown} bytes more than after a thousand");
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap();
    line.trim().strip_suffix("kB").unwrap().trim().parse::<u64>().unwrap() * 1024
}

#[test]
fn a_text_of_a_gibibyte_is_not_even_looked_at() {
    let rewrite = |pointer: u32, length: u32| answer(&[1, pointer, length, ANSWER, 3, 0, 0]);
    let outside = handler(&format!("{} return", rewrite(HEAP, 1 << 30)));
    let (plugin, desk) = (load(&outside.component()), Desk::new());
    let fault_of = |plugin| fault(|| Plugin::handle(plugin, &around(&desk), &asked(LONG)));
    assert_eq!(fault_of(&plugin), "plugin guest 1.0.0 failed: string pointer/length out of bounds of memory");
    still_answers(&plugin, &desk);
    // Inside of its memory, but more than a call may hand over.
    let inside = handler(&format!("i32.const 500 memory.grow drop {} return", rewrite(HEAP, 20 << 20)));
    let plugin = load(&inside.component());
    assert_eq!(
        fault_of(&plugin),
        "plugin guest 1.0.0: limit `result`: it hands over more than 16 MiB at once; the operator may raise `limits.result`"
    );
    still_answers(&plugin, &desk);
    let text = handler(&format!("i32.const 500 memory.grow drop {} return", rewrite(HEAP, 2 << 20)));
    let plugin = load(&text.component());
    assert_eq!(
        fault_of(&plugin),
        "plugin guest 1.0.0: limit `text`: a statement has 2097152 bytes, at most 1 MiB is handled"
    );
}

const HEAP: u32 = 16384;

/// An answer with `fields` columns of one name and type, which all stand at the same place.
fn table(fields: u32, name: &str, data_type: &str) -> Guest {
    let at = 32_768;
    let name_at = at + 20 * fields.max(1);
    let type_at = name_at + u32::try_from(name.len()).unwrap();
    let columns_at = (type_at + u32::try_from(data_type.len()).unwrap()).next_multiple_of(8);
    let mut image = Vec::new();
    for _ in 0..fields {
        let (name, data_type) = (u32::try_from(name.len()).unwrap(), u32::try_from(data_type.len()).unwrap());
        for word in [name_at, name, type_at, data_type, 1] {
            image.extend(word.to_le_bytes());
        }
    }
    image.extend(name.bytes().chain(data_type.bytes()));
    let image: String = image.iter().map(|b| format!("\\{b:02x}")).collect();
    // Columns of type int64 without values.
    let end = columns_at + 32 * fields;
    let code = format!(
        "(local $at i32) i32.const {columns_at} local.set $at
         (block $done (loop $next local.get $at i32.const {end} i32.ge_u br_if $done
           local.get $at i32.const 4 i32.store8
           local.get $at i32.const 32 i32.add local.set $at br $next)) {}",
        answer(&[3, at, fields, 0, columns_at, fields])
    );
    Guest::new("guest")
        .languages(&["sql"])
        .pages(64)
        .more(&format!("(data (i32.const {at}) \"{image}\")"))
        .body("handle", code)
}

#[test]
fn tables_have_only_so_many_columns_so_deep_and_names_so_long() {
    let desk = Desk::new();
    let of = |guest: &Guest| {
        let plugin = load(&guest.component());
        fault(|| plugin.handle(&around(&desk), &asked(LONG)))
    };
    assert_eq!(
        of(&table(10_000, "x", "Int64")),
        "plugin guest 1.0.0: limit `columns`: a table has 10000 columns, the limit is 1000"
    );
    let deep = format!("{}Int64{}", "List(".repeat(10), ")".repeat(10));
    assert_eq!(of(&table(1, "x", &deep)), "plugin guest 1.0.0: limit `nesting`: a type nests more than 8 levels");
    let deeper = format!("{}Int64{}", "List(".repeat(100_000), ")".repeat(100_000));
    assert_eq!(of(&table(1, "x", &deeper)), "plugin guest 1.0.0: limit `nesting`: the name of a type is too long");
    assert_eq!(
        of(&table(1, &"x".repeat(100_000), "Int64")),
        "plugin guest 1.0.0: limit `name`: the name of a column is longer than 255 characters"
    );
    assert_eq!(of(&table(1, "x", "Int65")), "plugin guest 1.0.0 failed: `Int65` is no Arrow type");
    let good = load(&table(3, "x", "Int64").component());
    let Ok(Verdict::Answer(batch)) = good.handle(&around(&desk), &asked(LONG)) else { panic!("no table") };
    assert_eq!((batch.num_columns(), batch.num_rows()), (3, 0));
}

#[test]
fn a_value_of_another_type_or_length_than_declared_fails_the_statement() {
    let guest = Guest::new("guest").functions(&[("f", 0, &["Int64"], "Float64", &[])]);
    let rows: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let desk = Desk::new();
    let of = |layout: u32, length: u32| {
        let plugin = load(&guest.clone().body("scalar", answer(&[0, layout, 16_384, length, 0, 0, 0])).component());
        plugin.scalar(&around(&desk), 0, std::slice::from_ref(&rows), 3)
    };
    assert_eq!(fault(|| of(4, 3)), "plugin guest 1.0.0 failed: a column is in layout `int64`, declared was Float64");
    assert_eq!(fault(|| of(10, 2)), "plugin guest 1.0.0 failed: a column has 2 values, expected were 3");
    let zeros: ArrayRef = Arc::new(Float64Array::from(vec![0.0; 3]));
    // What stands there is where the arguments were put: any numbers.
    assert_eq!(of(10, 3).unwrap().len(), zeros.len());
}

#[test]
fn a_host_call_that_blocks_is_not_waited_for_beyond_the_limit() {
    let guest = handler("i32.const 0 i32.const 0 i32.const 8200 call $columns");
    let plugin = load(&guest.component());
    let desk = Arc::new(Desk { slow: Duration::from_secs(60), ..Desk::default() });
    let fault = fault(|| plugin.handle(&around(&desk), &asked(LONG)));
    assert!(fault.contains("limit `time`"), "{fault}");
    still_answers(&plugin, &desk);
}

#[test]
fn a_flood_of_log_lines_is_counted_and_not_written() {
    let flood = "(local $n i32) (loop $again i32.const 2 i32.const 64 i32.const 3 call $log
        local.get $n i32.const 1 i32.add local.tee $n i32.const 5000 i32.lt_u br_if $again)";
    let guest = Guest::new("guest")
        .languages(&["sql"])
        .more(r#"(data (i32.const 64) "hey")"#)
        .body("handle", format!("{flood} {}", answer(&[0])));
    let (plugin, desk) = (load(&guest.component()), Desk::new());
    still_answers(&plugin, &desk);
    let lines = desk.lines();
    assert_eq!(lines.len(), 101);
    assert_eq!(lines[99], "Info: hey");
    assert_eq!(lines[100], "Warn: limit `log`: 4900 more lines of this call are not written");
}

#[test]
fn the_operator_may_give_more_time_and_less_memory() {
    let limits = Limits { time: 1, memory: 2 << 20, ..Limits::default() };
    let plugin =
        load_with(&handler(LOOP).component(), firesteel_plugin_host::load::Given { limits, ..given() }).unwrap();
    let desk = Desk::new();
    let fault = fault(|| plugin.handle(&around(&desk), &asked(LONG)));
    assert!(fault.contains("longer than 1 ms"), "{fault}");
}
