//! Functions, literals and casts as Spark has them.

use crate::bench::Bench;

/// Each expression's value.
async fn check(bench: &Bench, pairs: &[(&str, &str)]) {
    for (expr, value) in pairs {
        let table = bench.ok(&format!("SELECT {expr} AS x")).await;
        assert_eq!(table.split_once('\n').map(|(_, rows)| rows), Some(format!("{value}\n").as_str()), "{expr}");
    }
}

#[tokio::test]
async fn patterns_of_dates_are_javas() {
    let bench = Bench::new();
    let t = "timestamp '2024-03-05 14:07:09.123'";
    let pairs = [
        (format!("date_format({t}, 'yyyy-MM-dd HH:mm')"), "2024-03-05 14:07"),
        (format!("date_format({t}, 'd.M.yy h:mm a')"), "5.3.24 2:07 PM"),
        (format!("date_format({t}, \"EEE EEEE D MMM MMMM\")"), "Tue Tuesday 65 Mar March"),
        (format!("date_format({t}, \"yyyy-MM-dd'T'HH:mm:ss.SSS\")"), "2024-03-05T14:07:09.123"),
        ("date_format('2024-03-05 01:02:03', 'HH')".into(), "01"),
        ("date_format(DATE '2024-03-05', 'yyyy')".into(), "2024"),
        ("to_date('05/03/2024', 'dd/MM/yyyy')".into(), "2024-03-05"),
        ("to_timestamp('05.03.2024 14:07', 'dd.MM.yyyy HH:mm')".into(), "2024-03-05T14:07:00"),
        ("unix_timestamp('1970-01-02', 'yyyy-MM-dd')".into(), "86400"),
        ("unix_timestamp('1970-01-01 00:00:05')".into(), "5"),
        ("from_unixtime(5)".into(), "1970-01-01 00:00:05"),
        ("from_unixtime(86400, 'dd/MM')".into(), "02/01"),
    ];
    for (expr, value) in &pairs {
        check(&bench, &[(expr, value)]).await;
    }
    let told = bench.fails("SELECT date_format(now(), 'yyyy ww')").await;
    assert!(told.contains("the pattern `yyyy ww` holds `ww`, which is not supported"), "{told}");
}

#[tokio::test]
async fn literals_and_patterns_are_sparks() {
    let bench = Bench::new();
    check(
        &bench,
        &[
            (r"'abc' LIKE 'a\_c'", "false"),
            (r"'a_c' LIKE 'a\_c'", "true"),
            (r"'a%c' LIKE 'a\%c'", "true"),
            (r"'abc' LIKE 'a\%c'", "false"),
            ("1e300", "1e300"),
            ("0.1e0", "0.1"),
            ("'a' 'b'", "ab"),
            ("1L", "1"),
            ("1S + 0", "1"),
            ("1.5D", "1.5"),
            ("1.5BD", "1.5"),
        ],
    )
    .await;
    for (text, head) in [
        ("SELECT 1e300 AS x", "x: Float64"),
        ("SELECT 1.5D AS x", "x: Float64"),
        ("SELECT 1S AS x", "x: Int16"),
        ("SELECT 1Y AS x", "x: Int8"),
        ("SELECT 1L AS x", "x: Int64"),
        ("SELECT 1.5F AS x", "x: Float32"),
        ("SELECT 'a' 'b'", "ab: Utf8"),
    ] {
        let table = bench.ok(text).await;
        assert_eq!(table.lines().next(), Some(head), "{text}");
    }
}

#[tokio::test]
async fn timestamps_count_seconds_and_have_spark_s_years() {
    let bench = Bench::new().file("n.csv", "n\n1\n");
    check(
        &bench,
        &[
            ("cast(timestamp '1970-01-01 00:00:01' as bigint)", "1"),
            ("cast(timestamp '1970-01-01 00:00:01.5' as double)", "1.5"),
            ("cast(1 as timestamp)", "1970-01-01T00:00:01"),
            ("cast(cast(1 as bigint) as timestamp)", "1970-01-01T00:00:01"),
            ("timestamp '0001-01-01 00:00:00'", "0001-01-01T00:00:00"),
            ("timestamp '9999-12-31 23:59:59'", "9999-12-31T23:59:59"),
            ("cast('0001-01-01' as timestamp)", "0001-01-01T00:00:00"),
            ("cast('12.7' as int)", "12"),
            ("cast('-12.7' as bigint)", "-12"),
        ],
    )
    .await;
    let told = bench.ok("SELECT n FROM n WHERE cast(n AS timestamp) > timestamp '1970-01-01 00:00:00'").await;
    assert_eq!(told, "n: Int64\n1\n");
    assert_eq!(
        bench.ok("SELECT cast(n AS timestamp) AS t FROM n GROUP BY 1").await.lines().nth(1),
        Some("1970-01-01T00:00:01")
    );
}

#[tokio::test]
async fn everyday_functions_are_there() {
    let bench = Bench::new();
    check(
        &bench,
        &[
            ("log(10)", "2.302585092994046"),
            ("log(2, 8)", "3.0"),
            ("year('2024-03-05')", "2024"),
            ("month(DATE '2024-03-05')", "3"),
            ("day(timestamp '2024-03-05 14:07:09')", "5"),
            ("dayofmonth('2024-03-05')", "5"),
            ("dayofweek('2024-03-05')", "3"),
            ("dayofyear('2024-03-05')", "65"),
            ("quarter('2024-03-05')", "1"),
            ("weekofyear('2024-03-05')", "10"),
            ("hour('2024-03-05 14:07:09')", "14"),
            ("minute('2024-03-05 14:07:09')", "7"),
            ("second('2024-03-05 14:07:09')", "9"),
            ("regexp_replace('aaa', 'a', 'b')", "bbb"),
            ("array_remove(array(1, 2, 1), 1)", "[2]"),
            ("isnull(NULL)", "true"),
            ("isnotnull(1)", "true"),
            ("split('a,b', ',')[1]", "b"),
            (r"split('a.b', '\\.')[0]", "a"),
            ("split('a|b', '[|]')[1]", "b"),
            ("int('7') + 1", "8"),
            ("float('1.5')", "1.5"),
            ("double('1.5')", "1.5"),
            ("string(7)", "7"),
            ("bigint('7')", "7"),
            ("date('2024-03-05')", "2024-03-05"),
            ("'abc' RLIKE '^a.c$'", "true"),
            ("'abc' REGEXP 'x'", "false"),
            ("'abc' NOT RLIKE 'x'", "true"),
            ("date_add('2024-01-30', 2)", "2024-02-01"),
            ("date_sub('2024-01-30', 2)", "2024-01-28"),
            ("datediff('2024-01-30', '2024-01-28')", "2"),
            ("last_day('2024-02-05')", "2024-02-29"),
            ("add_months('2024-01-31', 1)", "2024-02-29"),
        ],
    )
    .await;
    assert_eq!(
        bench.ok("SELECT count(DISTINCT a, b) FROM (VALUES (1, 'x'), (1, 'x'), (1, 'y'), (2, NULL)) AS t(a, b)").await,
        "count(DISTINCT a, b): Int64\n2\n"
    );
    assert_eq!(bench.ok("SELECT explode(array(1, 2))").await, "col: Int64\n1\n2\n");
}

#[tokio::test]
async fn a_limit_takes_the_first_rows_of_an_ordered_subquery() {
    let bench = Bench::new();
    for text in [
        "SELECT * FROM (SELECT id FROM range(0, 9) ORDER BY id DESC) LIMIT 2",
        "SELECT id FROM (SELECT id, id % 3 AS m FROM range(0, 9) ORDER BY id DESC) AS t LIMIT 2",
        "WITH t AS (SELECT id FROM range(0, 9) ORDER BY id DESC) SELECT * FROM t LIMIT 2",
    ] {
        assert_eq!(bench.ok(text).await, "id: Int64\n8\n7\n", "{text}");
    }
}

#[tokio::test]
async fn what_sounds_alike_is_sparks() {
    let bench = Bench::new().file("t.csv", "t,d,f\n2024-03-05T14:07:09.120,12345678.5,0.5\n");
    check(
        &bench,
        &[
            ("array_position(array(1, 2), 2)", "2"),
            ("array_position(array(1, 2), 3)", "0"),
            ("array_position(array(1, 2), NULL)", "NULL"),
            ("extract(second FROM timestamp '2024-03-05 14:07:09.123456')", "9.123456"),
            ("extract(SECONDS FROM timestamp '2024-03-05 14:07:09')", "9.000000"),
            ("date_part('second', timestamp '2024-03-05 14:07:09.5')", "9.500000"),
            ("extract(minute FROM timestamp '2024-03-05 14:07:09.5')", "7"),
            ("initcap('x-y zED äb')", "X-y Zed Äb"),
            ("cast(timestamp '2024-03-05 14:07:09' AS string)", "2024-03-05 14:07:09"),
            ("string(timestamp '2024-03-05 14:07:09.120')", "2024-03-05 14:07:09.12"),
            ("cast(1e10 AS string)", "1.0E10"),
            ("cast(1.5D AS string)", "1.5"),
            ("try_cast(1e-4 AS string)", "1.0E-4"),
            ("cast(cast(0.1 AS float) AS string)", "0.1"),
            ("concat('at ', cast(timestamp '2024-03-05 14:07:09' AS string))", "at 2024-03-05 14:07:09"),
        ],
    )
    .await;
    let sql = "SELECT cast(t AS string) AS t, cast(d AS string) AS d, cast(f AS string) || '!' AS f FROM t";
    assert_eq!(
        bench.ok(sql).await,
        "t: LargeUtf8 | d: LargeUtf8 | f: LargeUtf8\n2024-03-05 14:07:09.12 | 1.23456785E7 | 0.5!\n"
    );
}
