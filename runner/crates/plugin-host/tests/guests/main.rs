//! Real guests, as they are checked in: the bundled plugins, and an example of each kind. `scripts/plugins check` compares them with their sources.

#![allow(clippy::unwrap_used, reason = "tests")]

mod desk;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use firesteel_session::ports::plugins::{Event, Grouped, Plugin, Position, Rejection, Surroundings, Verdict};

use desk::{Desk, asked, load};

#[test]
fn every_guest_is_small_and_says_what_it_is() {
    let mut labels = Vec::new();
    for name in ["ppl", "masking", "notes", "distance", "geomean", "fibonacci", "underscore", "numbered", "tally"] {
        let config = r#"{"rules": [{"table": "*", "columns": ["phone"], "mask": "keep-last-2"}]}"#;
        let (guest, bytes) = load(name, config);
        assert!(bytes < 600_000, "{name} has {bytes} bytes, and is in the binary");
        labels.push(guest.about().label());
    }
    let expected = "ppl 0.1.0, masking 0.1.0, notes 0.1.0, distance 0.1.0, geomean 0.1.0, fibonacci 0.1.0, underscore 0.1.0, numbered 0.1.0, tally 0.1.0";
    assert_eq!(labels.join(", "), expected);
}

#[test]
fn ppl_becomes_sql_or_is_told_where_it_is_wrong() {
    let (ppl, _) = load("ppl", "{}");
    let around = Desk::around("Europe/Berlin");
    let handle = |text: &str| ppl.handle(&around, &asked("ppl", text));
    let Ok(Verdict::Rewrite { text, language, origins }) =
        handle("source=calls | where at > '2024-01-01' | stats count() by span(at, 1d) as day")
    else {
        panic!("it is not rewritten")
    };
    assert_eq!(language, "sql");
    let local = "to_local_time((`at` AT TIME ZONE 'Europe/Berlin'))";
    let sql = format!(
        "SELECT count(*) AS `count()`, date_trunc('day', {local}) AS `day` FROM `calls` \
         WHERE (`at` > (CAST('2024-01-01' AS TIMESTAMP) AT TIME ZONE 'Europe/Berlin')) AND (`at` IS NOT NULL) GROUP BY date_trunc('day', {local})"
    );
    assert_eq!(text.0, sql);
    let place = origins.iter().rev().find(|o| o.at as usize <= sql.find("`at` >").unwrap()).unwrap().position;
    assert_eq!(place, Position { line: 1, column: 22 });
    let Ok(Verdict::Reject(rejection)) = handle("source=calls |\n  where phne = '1'") else {
        panic!("it is not rejected")
    };
    let expected = Rejection {
        message: "there is no field `phne`".into(),
        position: Some(Position { line: 2, column: 9 }),
        nearest: Some("phone".into()),
        ..Rejection::default()
    };
    assert_eq!(rejection, expected);
    // As deep as it goes, and deeper: the guest's stack holds.
    for (depth, fits) in [(35, true), (5_000, false)] {
        let text = format!("source=calls | where {}seconds{} > 1", "abs(".repeat(depth), ")".repeat(depth));
        assert_eq!(matches!(handle(&text), Ok(Verdict::Rewrite { .. })), fits, "{depth}");
        assert!(handle(&text).is_ok(), "{depth}");
        let text = format!(
            "source=calls | where seconds in {}source=calls{}",
            "[source=calls | where seconds in ".repeat(depth.min(2_000) / 2),
            "| fields seconds ]".repeat(depth.min(2_000) / 2)
        );
        assert!(handle(&text).is_ok(), "{depth}");
    }
}

#[test]
fn masking_decides_by_its_configuration() {
    let config = r#"{"rules": [{"table": "calls", "columns": ["phone"], "mask": "hash", "rows": "seconds > 0"}]}"#;
    let (masking, _) = load("masking", config);
    let decision = masking
        .decide(&Desk::around("UTC"), &["mys3".into(), "default".into(), "calls".into()], &desk::calls())
        .unwrap();
    assert_eq!(
        decision.masks,
        [("phone".to_owned(), "CASE WHEN `phone` IS NOT NULL THEN sha2(`phone`, CAST(256 AS INT)) END".to_owned())]
    );
    assert_eq!(decision.filter.unwrap(), "(seconds > 0)");
    let other = masking.decide(&Desk::around("UTC"), &["other".into()], &desk::calls()).unwrap();
    assert_eq!(other, Default::default());
}

#[test]
fn notes_are_kept_in_the_session() {
    let (notes, _) = load("notes", "{}");
    let around = Desk::around("UTC");
    for note in ["add one", "add it's two"] {
        assert!(matches!(notes.handle(&around, &asked("notes", note)), Ok(Verdict::Answer(_))));
    }
    let Ok(Verdict::Answer(all)) = notes.handle(&around, &asked("notes", "list")) else { panic!("no answer") };
    let texts: Vec<&str> = all.column(0).as_string::<i32>().iter().flatten().collect();
    assert_eq!(texts, ["one", "it's two"]);
}

#[test]
fn functions_take_batches() {
    let around = Desk::around("UTC");
    let (distance, _) = load("distance", "{}");
    let texts = |all: &[&str]| Arc::new(StringArray::from(all.to_vec())) as ArrayRef;
    let far = distance.scalar(&around, 0, &[texts(&["kitten", "a"]), texts(&["sitting", "a"])], 2).unwrap();
    assert_eq!(far.as_primitive::<Int64Type>().values(), &[3, 0]);
    let numbers = |all: Vec<i64>| Arc::new(Int64Array::from(all)) as ArrayRef;
    let fault = distance.scalar(&around, 1, &[numbers(vec![1, i64::MAX]), numbers(vec![1, 2])], 2).unwrap_err();
    let message = "plugin distance 0.1.0: 9223372036854775807 * 2 + 1 is too large for 64 bits (row 1 of its batch)";
    assert_eq!(fault.to_string(), message);

    let (geomean, _) = load("geomean", "{}");
    let new: Vec<ArrayRef> = vec![Arc::new(Float64Array::new_null(2)), Arc::new(Int64Array::new_null(2))];
    let x: ArrayRef = Arc::new(Float64Array::from(vec![2.0, 3.0, 8.0]));
    let state =
        geomean.accumulate(&around, 0, Grouped { state: &new, groups: 2, group: &[0, 1, 0], columns: &[x] }).unwrap();
    let state = geomean.merge(&around, 0, Grouped { state: &new, groups: 2, group: &[0, 1], columns: &state }).unwrap();
    let means = geomean.evaluate(&around, 0, &state, 2).unwrap();
    let means = means.as_primitive::<Float64Type>();
    assert!((means.value(0) - 4.0).abs() < 1e-9 && (means.value(1) - 3.0).abs() < 1e-9, "{means:?}");

    let (fibonacci, _) = load("fibonacci", "{}");
    let upto = [numbers(vec![60])];
    let schema = fibonacci.plan(&around, 0, &upto).unwrap();
    let (first, next) = fibonacci.produce(&around, 0, &upto, &schema, None).unwrap();
    let (second, end) = fibonacci.produce(&around, 0, &upto, &schema, next.as_deref()).unwrap();
    assert_eq!((first.num_rows(), second.num_rows(), end), (50, 11, None));
    assert_eq!(second.column(1).as_primitive::<Int64Type>().value(10), 1_548_008_755_920);
}

#[test]
fn policies_hooks_and_listeners_are_asked() {
    let desk = Desk::new("UTC");
    let around: Arc<dyn Surroundings> = desk.clone();
    let (underscore, _) = load("underscore", "{}");
    let schema =
        Arc::new(Schema::new(vec![Field::new("_id", DataType::Int64, true), Field::new("a", DataType::Int64, true)]));
    assert_eq!(underscore.decide(&around, &["t".into()], &schema).unwrap().hidden, ["_id"]);

    let (numbered, _) = load("numbered", "{}");
    let batch = RecordBatch::try_from_iter([("a", Arc::new(StringArray::from(vec!["x", "y"])) as ArrayRef)]).unwrap();
    let schema = numbered.begin(&around, &batch.schema()).unwrap().unwrap();
    let (changed, last) = numbered.change(&around, &batch, &schema, 40).unwrap();
    assert_eq!(changed.column(0).as_primitive::<Int64Type>().values(), &[41, 42]);
    assert!(!last);

    let (tally, _) = load("tally", "{}");
    let ended =
        Event::StatementEnded { language: "sql".into(), kind: Some("read"), failure: None, rows: 3, milliseconds: 12 };
    tally.notify(&around, &ended).unwrap();
    assert_eq!(desk.lines(), ["Info: statement 1 (0 so far failed): sql, success, 3 rows, 12 ms"]);
}
