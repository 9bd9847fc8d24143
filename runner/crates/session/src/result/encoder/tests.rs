//! Every Arrow type in its JSON form, and the peer's reader reading it back.

use std::sync::Arc;

use arrow_array::builder::{
    FixedSizeBinaryBuilder, Int32Builder, ListBuilder, MapBuilder, StringBuilder, StringDictionaryBuilder,
};
use arrow_array::types::{Int8Type, Int32Type, IntervalDayTime, IntervalMonthDayNano};
use arrow_array::*;
use arrow_schema::{DataType, Field, Fields, Schema, UnionFields};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

/// `column_name data_type` of each column, then one line a row.
fn rendered(batch: &RecordBatch) -> String {
    let mut encoder = Encoder::new(&batch.schema()).expect("every type has a form");
    let mut text = String::new();
    for column in encoder.columns() {
        text += &format!("{:?} {}\n", column.name, column.data_type);
    }
    encoder.encode(batch, &mut |row| text += &format!("{row}\n")).expect("the batch is of that schema");
    text
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let fields: Vec<Field> =
        columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true)).collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("columns of one length")
}

fn check(array: impl Array + 'static, expected: Expect) {
    expected.assert_eq(&rendered(&batch(vec![("c", Arc::new(array))])));
}

/// Several arrays, each as a result of its own.
fn check_all(arrays: Vec<ArrayRef>, expected: Expect) {
    let text: String = arrays.into_iter().map(|array| rendered(&batch(vec![("c", array)]))).collect();
    expected.assert_eq(&text);
}

#[test]
fn booleans_and_integers() {
    check_all(
        vec![
            Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])),
            Arc::new(Int8Array::from(vec![i8::MIN])),
            Arc::new(Int16Array::from(vec![i16::MIN])),
            Arc::new(Int32Array::from(vec![i32::MIN])),
            Arc::new(Int64Array::from(vec![i64::MIN])),
            Arc::new(UInt8Array::from(vec![u8::MAX])),
            Arc::new(UInt16Array::from(vec![u16::MAX])),
            Arc::new(UInt32Array::from(vec![u32::MAX])),
            Arc::new(UInt64Array::from(vec![u64::MAX])),
            Arc::new(NullArray::new(1)),
        ],
        expect![[r#"
            "c" boolean
            {"c":true}
            {}
            {"c":false}
            "c" byte
            {"c":-128}
            "c" short
            {"c":-32768}
            "c" integer
            {"c":-2147483648}
            "c" long
            {"c":-9223372036854775808}
            "c" short
            {"c":255}
            "c" integer
            {"c":65535}
            "c" long
            {"c":4294967295}
            "c" decimal(20,0)
            {"c":18446744073709551615}
            "c" string
            {}
        "#]],
    );
}

#[test]
fn floats_are_numbers_or_the_names_of_what_is_none() {
    check_all(
        vec![
            Arc::new(Float16Array::from(vec![Some(half(1.5)), None])),
            Arc::new(Float32Array::from(vec![0.1, f32::MAX, f32::NAN])),
            Arc::new(Float64Array::from(vec![
                0.1,
                -0.0,
                1e300,
                5e-324,
                1e16,
                f64::NAN,
                f64::INFINITY,
                f64::NEG_INFINITY,
            ])),
        ],
        expect![[r#"
            "c" float
            {"c":1.5}
            {}
            "c" float
            {"c":0.1}
            {"c":3.4028235e38}
            {"c":"NaN"}
            "c" double
            {"c":0.1}
            {"c":-0.0}
            {"c":1e300}
            {"c":5e-324}
            {"c":1e16}
            {"c":"NaN"}
            {"c":"Infinity"}
            {"c":"-Infinity"}
        "#]],
    );
}

fn half(value: f32) -> <arrow_array::types::Float16Type as ArrowPrimitiveType>::Native {
    <arrow_array::types::Float16Type as ArrowPrimitiveType>::Native::from_f32(value)
}

#[test]
fn decimals_are_numbers_with_every_digit() {
    check_all(
        vec![
            Arc::new(Decimal32Array::from(vec![-12_345]).with_precision_and_scale(9, 2).expect("fits")),
            Arc::new(Decimal64Array::from(vec![5]).with_precision_and_scale(18, 3).expect("fits")),
            Arc::new(
                Decimal128Array::from(vec![Some(i128::from(i64::MAX) * 10_000_000_000), None])
                    .with_precision_and_scale(38, 10)
                    .expect("fits"),
            ),
            Arc::new(Decimal128Array::from(vec![123]).with_precision_and_scale(5, -2).expect("fits")),
            Arc::new(Decimal256Array::from(vec![wide()]).with_precision_and_scale(76, 0).expect("fits")),
        ],
        expect![[r#"
            "c" decimal(9,2)
            {"c":-123.45}
            "c" decimal(18,3)
            {"c":0.005}
            "c" decimal(38,10)
            {"c":9223372036854775807.0000000000}
            {}
            "c" decimal(7,0)
            {"c":12300}
            "c" decimal(76,0)
            {"c":1234567890123456789012345678901234567890123456789012345678901234567890}
        "#]],
    );
}

fn wide() -> <arrow_array::types::Decimal256Type as ArrowPrimitiveType>::Native {
    "1234567890123456789012345678901234567890123456789012345678901234567890".parse().expect("a number")
}

#[test]
fn text_and_binary() {
    let mut fixed = FixedSizeBinaryBuilder::new(2);
    fixed.append_value([0, 255]).expect("two bytes");
    fixed.append_null();
    check_all(
        vec![
            Arc::new(StringArray::from(vec![Some("it's \"quoted\" \\ \n \u{0} \u{2028} é 🦀"), Some(""), None])),
            Arc::new(LargeStringArray::from(vec!["large"])),
            Arc::new(StringViewArray::from(vec!["short", "longer than twelve bytes"])),
            Arc::new(BinaryArray::from(vec![b"".as_slice(), b"\x00\xff", b"abc"])),
            Arc::new(LargeBinaryArray::from(vec![b"abcd".as_slice()])),
            Arc::new(BinaryViewArray::from(vec![b"abcd".as_slice()])),
            Arc::new(fixed.finish()),
        ],
        expect![[r#"
            "c" string
            {"c":"it\u0027s \"quoted\" \\ \n \u0000   é 🦀"}
            {"c":""}
            {}
            "c" string
            {"c":"large"}
            "c" string
            {"c":"short"}
            {"c":"longer than twelve bytes"}
            "c" binary
            {"c":""}
            {"c":"AP8="}
            {"c":"YWJj"}
            "c" binary
            {"c":"YWJjZA=="}
            "c" binary
            {"c":"YWJjZA=="}
            "c" binary
            {"c":"AP8="}
            {}
        "#]],
    );
}

#[test]
fn dates_times_and_lengths_of_time() {
    check_all(
        vec![
            Arc::new(Date32Array::from(vec![Some(19_782), None, Some(i32::MAX)])),
            Arc::new(Date64Array::from(vec![1_709_164_800_000])),
            Arc::new(TimestampSecondArray::from(vec![1_709_208_000])),
            Arc::new(TimestampMillisecondArray::from(vec![1_709_208_000_123])),
            Arc::new(TimestampMicrosecondArray::from(vec![1_709_208_000_123_456]).with_timezone("America/New_York")),
            Arc::new(TimestampNanosecondArray::from(vec![1_709_208_000_123_456_789]).with_timezone("+02:00")),
            Arc::new(Time32SecondArray::from(vec![45_296])),
            Arc::new(Time32MillisecondArray::from(vec![45_296_007])),
            Arc::new(Time64MicrosecondArray::from(vec![45_296_000_007])),
            Arc::new(Time64NanosecondArray::from(vec![45_296_000_000_007])),
            Arc::new(DurationSecondArray::from(vec![90])),
            Arc::new(DurationMillisecondArray::from(vec![1_500])),
            Arc::new(DurationMicrosecondArray::from(vec![-1])),
            Arc::new(DurationNanosecondArray::from(vec![0])),
            Arc::new(IntervalYearMonthArray::from(vec![14])),
            Arc::new(IntervalDayTimeArray::from(vec![IntervalDayTime::new(3, 500)])),
            Arc::new(IntervalMonthDayNanoArray::from(vec![IntervalMonthDayNano::new(1, -2, 3)])),
        ],
        expect![[r#"
            "c" date
            {"c":"2024-02-29"}
            {}
            {"c":"+5881580-07-11"}
            "c" date
            {"c":"2024-02-29"}
            "c" timestamp
            {"c":"2024-02-29T12:00:00.000Z"}
            "c" timestamp
            {"c":"2024-02-29T12:00:00.123Z"}
            "c" timestamp
            {"c":"2024-02-29T12:00:00.123456Z"}
            "c" timestamp
            {"c":"2024-02-29T12:00:00.123456789Z"}
            "c" string
            {"c":"12:34:56"}
            "c" string
            {"c":"12:34:56.007"}
            "c" string
            {"c":"12:34:56.000007"}
            "c" string
            {"c":"12:34:56.000000007"}
            "c" string
            {"c":"PT90S"}
            "c" string
            {"c":"PT1.5S"}
            "c" string
            {"c":"PT-0.000001S"}
            "c" string
            {"c":"PT0S"}
            "c" string
            {"c":"P14M"}
            "c" string
            {"c":"P3DT0.5S"}
            "c" string
            {"c":"P1M-2DT0.000000003S"}
        "#]],
    );
}

#[test]
fn lists_keep_their_nulls() {
    let values = vec![Some(vec![Some(1), None, Some(3)]), None, Some(vec![])];
    let mut large = arrow_array::builder::LargeListBuilder::new(Int32Builder::new());
    let mut view = arrow_array::builder::ListViewBuilder::new(Int32Builder::new());
    let mut large_view = arrow_array::builder::LargeListViewBuilder::new(Int32Builder::new());
    let mut nested = ListBuilder::new(ListBuilder::new(StringBuilder::new()));
    nested.values().values().append_value("it's");
    nested.values().append(true);
    nested.values().append_null();
    nested.append(true);
    for builder in [0, 1, 2] {
        for value in [Some(7), None] {
            match builder {
                0 => large.values().append_option(value),
                1 => view.values().append_option(value),
                _ => large_view.values().append_option(value),
            }
        }
    }
    large.append(true);
    view.append(true);
    large_view.append(true);
    check_all(
        vec![
            Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(values.clone())),
            Arc::new(large.finish()),
            Arc::new(view.finish()),
            Arc::new(large_view.finish()),
            Arc::new(FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>(
                vec![Some(vec![Some(1), None]), None],
                2,
            )),
            Arc::new(nested.finish()),
            Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(values).slice(1, 2)),
        ],
        expect![[r#"
            "c" array
            {"c":[1,null,3]}
            {}
            {"c":[]}
            "c" array
            {"c":[7,null]}
            "c" array
            {"c":[7,null]}
            "c" array
            {"c":[7,null]}
            "c" array
            {"c":[1,null]}
            {}
            "c" array
            {"c":[["it\u0027s"],null]}
            "c" array
            {}
            {"c":[]}
        "#]],
    );
}

#[test]
fn a_struct_leaves_nulls_out_and_repeats_no_name() {
    let fields = Fields::from(vec![
        Field::new("a", DataType::Int32, true),
        Field::new("a", DataType::Float64, true),
        Field::new("it's", DataType::Utf8, true),
    ]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from(vec![Some(1), None, Some(3)])),
        Arc::new(Float64Array::from(vec![Some(f64::NAN), None, Some(3.0)])),
        Arc::new(StringArray::from(vec![Some("x"), None, Some("y")])),
    ];
    let nulls = vec![true, true, false].into();
    check(
        StructArray::new(fields, columns, Some(nulls)),
        expect![[r#"
        "c" struct
        {"c":{"a":1,"a_1":"NaN","it\u0027s":"x"}}
        {"c":{}}
        {}
    "#]],
    );
}

#[test]
fn a_map_keeps_its_nulls_and_every_key_is_a_string_of_its_own() {
    let mut text = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    for (key, value) in [("k", Some(1)), ("k", Some(2)), ("k_1", None), ("it's", Some(4))] {
        text.keys().append_value(key);
        text.values().append_option(value);
    }
    text.append(true).expect("as many keys as values");
    text.append(false).expect("none");
    let mut numbers = MapBuilder::new(None, Int32Builder::new(), StringBuilder::new());
    numbers.keys().append_value(7);
    numbers.values().append_value("seven");
    numbers.append(true).expect("as many keys as values");
    check_all(
        vec![Arc::new(text.finish()), Arc::new(numbers.finish())],
        expect![[r#"
        "c" map
        {"c":{"k":1,"k_2":2,"k_1":null,"it\u0027s":4}}
        {}
        "c" map
        {"c":{"7":"seven"}}
    "#]],
    );
}

#[test]
fn dictionaries_and_runs_are_their_values() {
    let mut dictionary = StringDictionaryBuilder::<Int8Type>::new();
    dictionary.append_value("a");
    dictionary.append_null();
    dictionary.append_value("a");
    let values = Int32Array::from(vec![Some(5), None]);
    let null_value = DictionaryArray::<Int8Type>::new(Int8Array::from(vec![0, 1, 0]), Arc::new(values.clone()));
    let no_values = DictionaryArray::<Int8Type>::new(
        Int8Array::from(vec![None, None]),
        Arc::new(Int32Array::from(Vec::<i32>::new())),
    );
    let runs = RunArray::<Int32Type>::try_new(&Int32Array::from(vec![2, 3]), &values).expect("ends rise");
    check_all(
        vec![
            Arc::new(dictionary.finish()),
            Arc::new(null_value),
            Arc::new(no_values),
            Arc::new(runs.slice(1, 2)),
            Arc::new(runs),
        ],
        expect![[r#"
            "c" string
            {"c":"a"}
            {}
            {"c":"a"}
            "c" integer
            {"c":5}
            {}
            {"c":5}
            "c" integer
            {}
            {}
            "c" integer
            {"c":5}
            {}
            "c" integer
            {"c":5}
            {"c":5}
            {}
        "#]],
    );
}

#[test]
fn a_union_is_text() {
    let fields =
        UnionFields::try_new([1, 4], [Field::new("i", DataType::Int32, true), Field::new("s", DataType::Utf8, true)])
            .expect("two ids");
    let children: Vec<ArrayRef> =
        vec![Arc::new(Int32Array::from(vec![Some(7), None])), Arc::new(StringArray::from(vec!["it's"]))];
    let dense =
        UnionArray::try_new(fields, vec![1, 4, 1].into(), Some(vec![0, 0, 1].into()), children).expect("consistent");
    check(
        dense,
        expect![[r#"
        "c" string
        {"c":"7"}
        {"c":"it\u0027s"}
        {}
    "#]],
    );
}

#[test]
fn column_names_may_be_anything() {
    let one = || Arc::new(Int32Array::from(vec![1])) as ArrayRef;
    let none = Arc::new(Int32Array::from(vec![None])) as ArrayRef;
    let columns =
        vec![("", one()), ("a", one()), ("a", one()), ("a_1", one()), ("count(*)", none), ("it's a \"b\".c", one())];
    expect![[r#"
        "" integer
        "a" integer
        "a_2" integer
        "a_1" integer
        "count(*)" integer
        "it's a \"b\".c" integer
        {"":1,"a":1,"a_2":1,"a_1":1,"it\u0027s a \"b\".c":1}
    "#]]
    .assert_eq(&rendered(&batch(columns)));
}

#[test]
fn a_result_without_columns_has_rows_all_the_same() {
    let options = RecordBatchOptions::new().with_row_count(Some(2));
    let batch = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options).expect("no columns");
    expect![[r#"
        {}
        {}
    "#]]
    .assert_eq(&rendered(&batch));
}

#[test]
fn a_batch_of_another_schema_is_refused() {
    let one = batch(vec![("a", Arc::new(Int32Array::from(vec![1])))]);
    let mut encoder = Encoder::new(&Arc::new(Schema::empty())).expect("no columns");
    let failure = encoder.encode(&one, &mut |_| panic!("no row")).expect_err("another schema");
    assert_eq!(failure.message, "a batch has 1 columns, its schema 0");
}

/// What the peer's reader does with a row: every apostrophe is a quotation mark to it, a repeated key or a null an error.
fn peer_reads(row: &str) -> Map<String, Value> {
    let text = row.replace('\'', "\"");
    let Value::Object(object) = serde_json::from_str(&text).expect("JSON") else { panic!("an object") };
    assert!(!object.values().any(Value::is_null), "no explicit null: {text}");
    object
}

proptest! {
    #[test]
    fn the_peers_reader_gets_every_value_back(
        names in proptest::collection::vec(any::<String>(), 1..6),
        rows in proptest::collection::vec(proptest::collection::vec(proptest::option::of(any::<String>()), 6), 0..8),
    ) {
        let columns: Vec<(&str, ArrayRef)> = names.iter().enumerate().map(|(n, name)| {
            let values: StringArray = rows.iter().map(|row| row[n].as_deref()).collect();
            (name.as_str(), Arc::new(values) as ArrayRef)
        }).collect();
        let batch = batch(columns);
        let mut encoder = Encoder::new(&batch.schema()).expect("text");
        let keys: Vec<String> = encoder.columns().iter().map(|c| c.name.clone()).collect();
        let mut written = Vec::new();
        encoder.encode(&batch, &mut |row| written.push(row)).expect("its schema");
        prop_assert_eq!(written.len(), rows.len());
        for (text, row) in written.iter().zip(&rows) {
            let read = peer_reads(text);
            let mut present = 0;
            for (n, key) in keys.iter().enumerate() {
                prop_assert_eq!(read.get(key).cloned(), row[n].as_ref().map(|v| json!(v)));
                present += usize::from(row[n].is_some());
            }
            prop_assert_eq!(read.len(), present);
        }
    }

    #[test]
    fn floats_read_back_as_they_were(value in any::<f64>()) {
        let mut text = String::new();
        let batch = batch(vec![("v", Arc::new(Float64Array::from(vec![value])))]);
        Encoder::new(&batch.schema()).expect("numbers").encode(&batch, &mut |row| text = row).expect("its schema");
        match &peer_reads(&text)["v"] {
            // The text itself, for serde_json's own reading of a float may be off by a digit.
            Value::Number(_) => {
                let number: f64 = text["{\"v\":".len()..text.len() - 1].parse().expect("a number");
                prop_assert_eq!(number.to_bits(), value.to_bits());
            }
            other => prop_assert!(!value.is_finite() && other.is_string(), "{}", other),
        }
    }
}
