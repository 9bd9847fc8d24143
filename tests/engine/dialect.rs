//! SQL as Spark has it: names, operators, functions, columns that may repeat.

use expect_test::expect;

use crate::bench::Bench;

fn bench() -> Bench {
    Bench::new().file("Sales.csv", "Id,Region,amount\n1,north,2.5\n2,south,3\n3,north,4\n")
}

#[tokio::test]
async fn columns_have_sparks_names_and_may_repeat() {
    let bench = bench();
    bench.check("SELECT 1", expect![["1: Int32\n1\n"]]).await;
    bench
        .check(
            "SELECT 1, 1, 'a', \"b\", NULL, true",
            expect![[r#"
        1: Int32 | 1: Int32 | a: Utf8 | b: Utf8 | NULL: Null | true: Boolean
        1 | 1 | a | b | NULL | true
    "#]],
        )
        .await;
    bench
        .check(
            "SELECT 1 + 2, -3, count(*), sum(amount), max(`Id`) AS m FROM sales",
            expect![[r#"
        (1 + 2): Int64 | -3: Int32 | count(1): Int64 | sum(amount): Float64 | m: Int64
        3 | -3 | 3 | 9.5 | 3
    "#]],
        )
        .await;
    bench
        .check(
            "SELECT CAST(id AS STRING), id IS NULL, upper(region) FROM sales WHERE id = 1",
            expect![[r#"
        CAST(Id AS STRING): LargeUtf8 | (Id IS NULL): Boolean | upper(Region): Utf8
        1 | false | NORTH
    "#]],
        )
        .await;
    bench
        .check(
            "SELECT *, id, id AS Id FROM sales WHERE id = 1",
            expect![[r#"
        Id: Int64 | Region: Utf8 | amount: Float64 | Id: Int64 | Id: Int64
        1 | north | 2.5 | 1 | 1
    "#]],
        )
        .await;
    bench
        .check(
            "SELECT a.id, b.id FROM sales a JOIN sales b ON a.id = b.id WHERE a.id = 2",
            expect![[r#"
        Id: Int64 | Id: Int64
        2 | 2
    "#]],
        )
        .await;
    bench
        .check(
            "SELECT * FROM (SELECT count(*) FROM sales)",
            expect![[r#"
        count(1): Int64
        3
    "#]],
        )
        .await;
    bench
        .check(
            "SELECT `a.b` FROM (SELECT 1 AS `a.b`)",
            expect![[r#"
        a.b: Int64
        1
    "#]],
        )
        .await;
    bench
        .check(
            "SELECT 1 AS `` UNION ALL SELECT 2 ORDER BY 1",
            expect![[r#"
        : Int32
        1
        2
    "#]],
        )
        .await;
}

#[tokio::test]
async fn names_do_not_care_about_case() {
    let bench = bench();
    bench
        .check(
            "SELECT ID, rEGION AS Where_ FROM SALES WHERE `iD` = 1 ORDER BY WHERE_",
            expect![[r#"
        Id: Int64 | Where_: Utf8
        1 | north
    "#]],
        )
        .await;
    bench.check("WITH Big AS (SELECT REGION, SUM(AMOUNT) AS Total FROM sales GROUP BY region) SELECT big.total FROM BIG ORDER BY TOTAL DESC", expect![[r#"
        Total: Float64
        6.5
        3.0
    "#]]).await;
    bench
        .check(
            "SELECT s.ID FROM MyS3.Default.sales AS S WHERE S.id = 3",
            expect![[r#"
        Id: Int64
        3
    "#]],
        )
        .await;
    bench
        .check(
            "SELECT count(*) FROM `mys3`.`default`.`Sales`",
            expect![[r#"
        count(1): Int64
        3
    "#]],
        )
        .await;
}

#[tokio::test]
async fn division_never_cuts_and_never_fails() {
    let bench = bench();
    bench.check("SELECT 7 / 2, 7 DIV 2, 7 % 4, 1 / 0, 1 % 0, 1 DIV 0, 1.5 / 0, id / 2 FROM sales WHERE id = 1", expect![[r#"
        (7 / 2): Float64 | (7 div 2): Int64 | (7 % 4): Int64 | (1 / 0): Float64 | (1 % 0): Int64 | (1 div 0): Int64 | (1.5 / 0): Decimal128(6, 5) | (Id / 2): Float64
        3.5 | 3 | 3 | NULL | NULL | NULL | NULL | 0.5
    "#]]).await;
}

#[tokio::test]
async fn strings_have_backslash_escapes_and_either_quote() {
    let bench = bench();
    bench
        .check(
            r#"SELECT 'it\'s', "a 'b'", 'a\tb', 'x''y'"#,
            expect![[r#"
        it's: Utf8 | a 'b': Utf8 | a	b: Utf8 | x'y: Utf8
        it's | a 'b' | a	b | x'y
    "#]],
        )
        .await;
    bench
        .check(
            "SELECT id FROM sales WHERE region = \"south\"",
            expect![[r#"
        Id: Int64
        2
    "#]],
        )
        .await;
}

#[tokio::test]
async fn functions_of_spark_are_there_and_win() {
    let bench = bench();
    bench
        .check("SELECT sha2('abc', 256) AS s, date_add(DATE '2024-01-30', 2) AS d, if(1 > 2, 'a', 'b') AS i, concat('a', 1) AS c, hex(255) AS h", expect![[r#"
            s: Utf8 | d: Date32 | i: Utf8 | c: Utf8 | h: Utf8
            ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad | 2024-02-01 | b | a1 | FF
        "#]])
        .await;
    bench
        .check(
            "SELECT array(1, 2)[0] AS a, size(array(1, 2)) AS n, nvl(NULL, 'x') AS v, pmod(-7, 3) AS p",
            expect![[r#"
        a: Int64 | n: Int32 | v: LargeUtf8 | p: Int64
        1 | 2 | x | 2
    "#]],
        )
        .await;
    bench
        .check(
            "SELECT EXTRACT(YEAR FROM DATE '2024-05-06') AS y, substring('hello', 2, 3) AS s, length('abc') AS l",
            expect![[r#"
        y: Int32 | s: Utf8 | l: Int32
        2024 | ell | 3
    "#]],
        )
        .await;
}

#[tokio::test]
async fn range_has_sparks_column() {
    let bench = bench();
    bench
        .check(
            "SELECT id, r.ID + 1 AS next FROM range(3) AS r ORDER BY id",
            expect![[r#"
        id: Int64 | next: Int64
        0 | 1
        1 | 2
        2 | 3
    "#]],
        )
        .await;
    bench
        .check(
            "SELECT sum(id) AS s FROM range(1, 10, 2)",
            expect![[r#"
        s: Int64
        25
    "#]],
        )
        .await;
}

#[tokio::test]
async fn nulls_come_first_as_in_spark() {
    let bench = bench();
    bench
        .check(
            "SELECT a FROM (VALUES (2), (NULL), (1)) AS t(a) ORDER BY a",
            expect![[r#"
        a: Int64
        NULL
        1
        2
    "#]],
        )
        .await;
    bench
        .check(
            "SELECT a FROM (VALUES (2), (NULL), (1)) AS t(a) ORDER BY a DESC",
            expect![[r#"
        a: Int64
        2
        1
        NULL
    "#]],
        )
        .await;
}

#[tokio::test]
async fn mistakes_name_the_place_and_the_nearest() {
    let bench = bench();
    for (text, message) in [
        ("SELECT\n  FROM sales WHERE", expect!["SYNTAX expected an expression, found FROM at line 2, column 8"]),
        ("SELEC 1", expect!["SYNTAX expected an SQL statement, found SELEC at line 1, column 1"]),
        ("SELECT amonut FROM sales", expect!["ANALYSIS there is no column `amonut`; did you mean `amount`?"]),
        ("SELECT x FROM salez", expect!["ANALYSIS there is no table `salez`; did you mean `Sales`?"]),
        ("SELECT x FROM nowhere.default.sales", expect!["ANALYSIS there is no catalog `nowhere`; there is `mys3`"]),
        (
            "SELECT x FROM mys3.defualt.sales",
            expect!["ANALYSIS there is no database `defualt`; did you mean `default`?"],
        ),
        ("SELECT uper('x')", expect!["ANALYSIS invalid function 'uper'. Did you mean 'upper'?"]),
        (
            "SELECT sum(region) + DATE '2024-01-01' FROM sales",
            expect![
                "ANALYSIS internal error: Function 'sum' failed to match any signature, errors: Error during planning: Function 'sum' requires Decimal, but received String (DataType: Utf8).,Error during planning: Function 'sum' requires UInt64, but received String (DataType: Utf8).,Error during planning: Function 'sum' requires Int64, but received String (DataType: Utf8).,Error during planning: Function 'sum' requires Float64, but received String (DataType: Utf8).,Error during planning: Function 'sum' requires Duration, but received String (DataType: Utf8).,Error during planning: Function 'sum' requires Interval, but received String (DataType: Utf8)"
            ],
        ),
        (
            "SELECT id FROM sales GROUP BY region",
            expect![[
                r#"ANALYSIS column in SELECT must be in GROUP BY or an aggregate function: While expanding wildcard, column "sales.Id" must appear in the GROUP BY clause or must be part of an aggregate function, currently only "sales.Region" appears in the SELECT clause satisfies this requirement"#
            ]],
        ),
        (
            "SELECT a.id FROM sales a JOIN sales b ON true WHERE id = 1",
            expect![[r#"ANALYSIS ambiguous reference to unqualified field "Id""#]],
        ),
    ] {
        message.assert_eq(&bench.fails(text).await);
    }
}
