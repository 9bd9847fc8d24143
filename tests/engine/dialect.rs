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
    bench.check("SELECT 1, 1, 'a', \"b\", NULL, true", expect![[""]]).await;
    bench.check("SELECT 1 + 2, -3, count(*), sum(amount), max(`Id`) AS m FROM sales", expect![[""]]).await;
    bench.check("SELECT CAST(id AS STRING), id IS NULL, upper(region) FROM sales WHERE id = 1", expect![[""]]).await;
    bench.check("SELECT *, id, id AS Id FROM sales WHERE id = 1", expect![[""]]).await;
    bench.check("SELECT a.id, b.id FROM sales a JOIN sales b ON a.id = b.id WHERE a.id = 2", expect![[""]]).await;
    bench.check("SELECT * FROM (SELECT count(*) FROM sales)", expect![[""]]).await;
    bench.check("SELECT `a.b` FROM (SELECT 1 AS `a.b`)", expect![[""]]).await;
    bench.check("SELECT 1 AS `` UNION ALL SELECT 2", expect![[""]]).await;
}

#[tokio::test]
async fn names_do_not_care_about_case() {
    let bench = bench();
    bench.check("SELECT ID, rEGION AS Where_ FROM SALES WHERE `iD` = 1 ORDER BY WHERE_", expect![[""]]).await;
    bench.check("WITH Big AS (SELECT REGION, SUM(AMOUNT) AS Total FROM sales GROUP BY region) SELECT big.total FROM BIG ORDER BY TOTAL DESC", expect![[""]]).await;
    bench.check("SELECT s.ID FROM MyS3.Default.sales AS S WHERE S.id = 3", expect![[""]]).await;
    bench.check("SELECT count(*) FROM `mys3`.`default`.`Sales`", expect![[""]]).await;
}

#[tokio::test]
async fn division_never_cuts_and_never_fails() {
    let bench = bench();
    bench.check("SELECT 7 / 2, 7 DIV 2, 7 % 4, 1 / 0, 1 % 0, 1 DIV 0, 1.5 / 0, id / 2 FROM sales WHERE id = 1", expect![[""]]).await;
}

#[tokio::test]
async fn strings_have_backslash_escapes_and_either_quote() {
    let bench = bench();
    bench.check(r#"SELECT 'it\'s', "a 'b'", 'a\tb', 'x''y'"#, expect![[""]]).await;
    bench.check("SELECT id FROM sales WHERE region = \"south\"", expect![[""]]).await;
}

#[tokio::test]
async fn functions_of_spark_are_there_and_win() {
    let bench = bench();
    bench
        .check("SELECT sha2('abc', 256) AS s, date_add(DATE '2024-01-30', 2) AS d, if(1 > 2, 'a', 'b') AS i, concat('a', 1) AS c, hex(255) AS h", expect![[""]])
        .await;
    bench.check("SELECT array(1, 2)[0] AS a, size(array(1, 2)) AS n, nvl(NULL, 'x') AS v, pmod(-7, 3) AS p", expect![[""]]).await;
    bench.check("SELECT EXTRACT(YEAR FROM DATE '2024-05-06') AS y, substring('hello', 2, 3) AS s, length('abc') AS l", expect![[""]]).await;
}

#[tokio::test]
async fn nulls_come_first_as_in_spark() {
    let bench = bench();
    bench.check("SELECT a FROM (VALUES (2), (NULL), (1)) AS t(a) ORDER BY a", expect![[""]]).await;
    bench.check("SELECT a FROM (VALUES (2), (NULL), (1)) AS t(a) ORDER BY a DESC", expect![[""]]).await;
}

#[tokio::test]
async fn mistakes_name_the_place_and_the_nearest() {
    let bench = bench();
    for (text, message) in [
        ("SELECT\n  FROM sales WHERE", ""),
        ("SELEC 1", ""),
        ("SELECT amonut FROM sales", ""),
        ("SELECT x FROM salez", ""),
        ("SELECT x FROM nowhere.default.sales", ""),
        ("SELECT x FROM mys3.defualt.sales", ""),
        ("SELECT uper('x')", ""),
        ("SELECT sum(region) + DATE '2024-01-01' FROM sales", ""),
        ("SELECT id FROM sales GROUP BY region", ""),
        ("SELECT a.id FROM sales a JOIN sales b ON true WHERE id = 1", ""),
    ] {
        assert_eq!(bench.fails(text).await, message, "{text}");
    }
}
