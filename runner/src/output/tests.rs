//! One result in every format.

use expect_test::{Expect, expect};

use super::*;

const PLAIN: Look = Look { width: None, colours: false };

fn column(name: &str, data_type: &str) -> Column {
    Column { name: name.to_owned(), data_type: data_type.to_owned(), label: None }
}

fn print(format: Format, look: Look) -> Vec<u8> {
    let columns =
        [column("n", "decimal(20,2)"), column("text", "string"), column("list", "array"), column("bin", "binary")];
    let mut out = Vec::new();
    let mut printer = printer(format, look, &mut out);
    printer.begin(&columns).expect("memory");
    printer
        .rows(&[
            r#"{"n":12345678901234567.10,"text":"it\u0027s\n\u001b[31m","list":[1,null],"bin":"AP8="}"#.to_owned(),
            r#"{"text":"NULL"}"#.to_owned(),
        ])
        .expect("rows");
    printer.rows(&["{}".to_owned()]).expect("rows");
    printer.end(&Summary { rows: 3, millis: Some(1_234), truncated: false }).expect("memory");
    drop(printer);
    out
}

fn check(format: Format, expected: Expect) {
    expected.assert_eq(&String::from_utf8(print(format, PLAIN)).expect("text"));
}

#[test]
fn a_table_shows_nulls_numbers_and_nothing_that_moves_the_cursor() {
    check(
        Format::Table,
        expect![[r#"
        ┌──────────────────────┬──────────────────┬──────────┬──────┐
        │ n                    │ text             │ list     │ bin  │
        ├──────────────────────┼──────────────────┼──────────┼──────┤
        │ 12345678901234567.10 │ it's\n\u{1b}[31m │ [1,null] │ AP8= │
        │                 NULL │ "NULL"           │ NULL     │ NULL │
        └──────────────────────┴──────────────────┴──────────┴──────┘
        ┌──────┬──────┬──────┬──────┐
        │ n    │ text │ list │ bin  │
        ├──────┼──────┼──────┼──────┤
        │ NULL │ NULL │ NULL │ NULL │
        └──────┴──────┴──────┴──────┘
        (3 rows, 1.2 s)
    "#]],
    );
}

#[test]
fn json_is_the_rows_as_they_are() {
    check(
        Format::Json,
        expect![[r#"
        {"n":12345678901234567.10,"text":"it\u0027s\n\u001b[31m","list":[1,null],"bin":"AP8="}
        {"text":"NULL"}
        {}
    "#]],
    );
}

#[test]
fn csv_has_a_header_and_quotes_what_needs_it() {
    check(
        Format::Csv,
        expect![[r#"
        n,text,list,bin
        12345678901234567.10,"it's
        [31m","[1,null]",AP8=
        ,NULL,,
        ,,,
    "#]],
    );
}

#[test]
fn an_arrow_stream_reads_back_with_every_digit() {
    let bytes = print(Format::Arrow, PLAIN);
    let reader = arrow_ipc::reader::StreamReader::try_new(bytes.as_slice(), None).expect("a stream");
    let batches: Vec<_> = reader.collect::<Result<_, _>>().expect("batches");
    assert_eq!(batches.iter().map(|b| b.num_rows()).sum::<usize>(), 3);
    expect![[r#"
        [PrimitiveArray<Decimal128(20, 2)>
        [
          1234567890123456710,
          null,
        ], StringArray
        [
          "it's\n\u{1b}[31m",
          "NULL",
        ], StringArray
        [
          "[1,null]",
          null,
        ], BinaryArray
        [
          [0, 255],
          null,
        ]]"#]]
    .assert_eq(&format!("{:?}", batches[0].columns()));
}

#[test]
fn on_a_terminal_wide_values_are_cut_and_nulls_dimmed() {
    let look = Look { width: Some(100), colours: true };
    let rows = vec![vec![Some("x".repeat(100)), None]];
    let text = grid(&["a", "b"], &[false, true], rows, look);
    assert!(text.contains(&format!("{}…", "x".repeat(60))), "{text}");
    assert!(text.contains("\u{1b}[2m NULL \u{1b}[0m"), "{text:?}");
    assert!(!grid(&["a"], &[], vec![vec![Some("x".repeat(100))]], PLAIN).contains('…'));
}

#[test]
fn a_result_without_rows_shows_its_columns() {
    let mut out = Vec::new();
    let mut printer = printer(Format::Table, PLAIN, &mut out);
    printer.begin(&[column("a", "long")]).expect("memory");
    printer.rows(&[]).expect("rows");
    printer.end(&Summary::default()).expect("memory");
    drop(printer);
    expect![[r#"
        ┌───┐
        │ a │
        ├───┤
        └───┘
        (0 rows)
    "#]]
    .assert_eq(&String::from_utf8(out).expect("text"));
}

#[test]
fn rows_of_the_peer_are_read_too() {
    let mut out = Vec::new();
    let mut printer = printer(Format::Json, PLAIN, &mut out);
    printer.rows(&["{'1':1}".to_owned()]).expect("rows");
    drop(printer);
    assert_eq!(out, b"{\"1\":1}\n");
}

#[test]
fn lengths_of_time() {
    for (millis, text) in [(7, "7 ms"), (1_250, "1.2 s"), (61_000, "1 min 1 s"), (3_660_000, "1 h 1 min")] {
        assert_eq!(span(millis), text);
    }
}
