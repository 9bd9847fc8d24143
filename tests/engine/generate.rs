//! Rows made of lists and maps, samples, and the clauses that say where rows are computed, as Spark has them.

use crate::bench::Bench;

fn bench() -> Bench {
    Bench::new()
        .file("sales.csv", "id,region,amount\n1,north,2.5\n2,south,3\n3,north,4\n")
        .file("people.json", "{\"name\":\"Ann\",\"tags\":[\"a\",\"b\"],\"home\":{\"zip\":1}}\n{\"name\":\"Bob\",\"tags\":[],\"home\":{\"zip\":2}}\n")
}

#[tokio::test]
async fn each_clause_gives_sparks_rows_under_sparks_names() {
    let bench = bench();
    for (query, table) in [
        ("SELECT name, t FROM people LATERAL VIEW explode(tags) x AS t", "name: Utf8 | t: Utf8\nAnn | a\nAnn | b\n"),
        (
            "SELECT name, x.t FROM people LATERAL VIEW OUTER explode(tags) x AS t ORDER BY name, t",
            "name: Utf8 | t: Utf8\nAnn | a\nAnn | b\nBob | NULL\n",
        ),
        (
            "SELECT p.name, v.* FROM people p LATERAL VIEW posexplode(p.tags) v LIMIT 5",
            "name: Utf8 | pos: Int32 | col: Utf8\nAnn | 0 | a\nAnn | 1 | b\n",
        ),
        ("SELECT explode(map('a', 1, 'b', 2))", "key: Utf8 | value: Int64\na | 1\nb | 2\n"),
        ("SELECT posexplode(array('x', 'y')) AS (p, v)", "p: Int32 | v: Utf8\n0 | x\n1 | y\n"),
        ("SELECT inline(array(struct(1, 'a'), struct(2, 'b')))", "col1: Int64 | col2: Utf8\n1 | a\n2 | b\n"),
        ("SELECT stack(2, 1, 2, 3)", "col0: Int64 | col1: Int64\n1 | 2\n3 | NULL\n"),
        ("SELECT explode(sort_array(collect_list(id))) FROM sales", "col: Int64\n1\n2\n3\n"),
        ("SELECT s.id FROM sales TABLESAMPLE (2 ROWS) s", "id: Int64\n1\n2\n"),
        ("SELECT count(*) AS n FROM sales TABLESAMPLE (100 PERCENT)", "n: Int64\n3\n"),
        ("SELECT count(*) AS n FROM sales TABLESAMPLE (BUCKET 4 OUT OF 4)", "n: Int64\n3\n"),
        ("SELECT region FROM sales DISTRIBUTE BY region SORT BY region", "region: Utf8\nnorth\nnorth\nsouth\n"),
        ("SELECT id FROM sales CLUSTER BY id", "id: Int64\n1\n2\n3\n"),
        (
            "SELECT region, count(*) FROM sales GROUP BY region HAVING count(*) > 0 DISTRIBUTE BY region SORT BY region DESC",
            "region: Utf8 | count(1): Int64\nsouth | 1\nnorth | 2\n",
        ),
        ("SELECT home.zip, p.home.zip + 1 FROM people p", "zip: Int64 | (home.zip + 1): Int64\n1 | 2\n2 | 3\n"),
        ("FROM sales SELECT id LIMIT 1", "id: Int64\n1\n"),
        ("SELECT col1 FROM VALUES (1, 'a')", "col1: Int64\n1\n"),
        ("SELECT id FROM sales MINUS SELECT 1 ORDER BY id", "id: Int64\n2\n3\n"),
        (
            "SELECT 1 != 2, !true, ~1, id IN (1, 2), id BETWEEN 1 AND 2, region LIKE 'n%', region RLIKE 'n', 'a' || 'b' FROM sales LIMIT 1",
            "(NOT (1 = 2)): Boolean | (NOT true): Boolean | ~1: Int64 | (id IN (1, 2)): Boolean | ((id >= 1) AND (id <= 2)): Boolean | region LIKE n%: Boolean | RLIKE(region, n): Boolean | concat(a, b): Utf8\ntrue | false | -2 | true | true | true | true | ab\n",
        ),
        (
            "SELECT sqrt(4), row_number() OVER (ORDER BY id), sum(amount) OVER () FROM sales LIMIT 1",
            "SQRT(4): Float64 | row_number() OVER (ORDER BY id ASC NULLS FIRST ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW): UInt64 | sum(amount) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING): Float64\n2.0 | 1 | 9.5\n",
        ),
    ] {
        assert_eq!(bench.ok(query).await, table, "{query}");
    }
}

#[tokio::test]
async fn what_cannot_be_sampled_or_made_rows_of_is_told() {
    let bench = bench();
    for (query, message) in [
        ("SELECT * FROM sales TABLESAMPLE (200 PERCENT)", "TABLESAMPLE takes a share of 0 to 100 percent"),
        ("SELECT * FROM sales TABLESAMPLE (10 PERCENT) REPEATABLE (1)", "TABLESAMPLE … REPEATABLE is not supported"),
        ("SELECT * FROM sales LATERAL VIEW explode(id) v", "explode takes an array or a map, not Int64"),
        ("SELECT * FROM sales LATERAL VIEW upper(region) v", "LATERAL VIEW or TABLE of this function is not supported"),
        ("SELECT posexplode(tags) AS (a, b, c) FROM people", "posexplode makes 2 columns here, not 3"),
    ] {
        let told = bench.fails(query).await;
        assert!(told.contains(message), "{query}: {told}");
    }
}
