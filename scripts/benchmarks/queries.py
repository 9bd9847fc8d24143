"""The SQL of the figures, over a table `big` of 10 million rows."""

MAKE_BIG = """COPY (SELECT value AS id, value % 1000 AS k, 0 AS one, (value * 7919) % 10000019 AS v,
  concat('name ', (value * 31) % 100003) AS name FROM generate_series(1, 10000000)) TO '{file}' STORED AS PARQUET"""

GROUP_BY = "SELECT name, count(*) AS n, sum(v) AS total, avg(id) AS mean FROM big GROUP BY name ORDER BY n DESC, name LIMIT 10"

TEN_MILLION_ROWS = "SELECT id, k, v, name FROM big"

# A billion rows, read from the file a hundred times.
_MANY = "(" + " UNION ALL ".join(["SELECT * FROM big"] * 100) + ")"

CANCELLED = {
    "planning": "SELECT count(*) FROM " + ", ".join(f"big b{n}" for n in range(60)) + " WHERE "
                + " AND ".join(f"(b{n}.id = b{n + 1}.id OR b{n}.v < b{n + 1}.v)" for n in range(59)),
    "scan": f"SELECT sum(v % 7) FROM {_MANY}",
    "regex filter": f"SELECT count(*) FROM {_MANY} WHERE regexp_like(name, '(a|e|1|3)+.*9$')",
    "cross join": "SELECT sum(a.v * b.v) FROM big a, big b",
    "nested-loop join": "SELECT count(*) FROM big a JOIN big b ON a.v < b.k * 3",
    "skewed hash join": "SELECT count(*) FROM big a JOIN big b ON a.one = b.one AND a.v <> b.v",
    "aggregate": f"SELECT count(*) FROM (SELECT name, k, count(*) FROM {_MANY} GROUP BY name, k)",
    "distinct": f"SELECT count(DISTINCT v) FROM {_MANY}",
    "sort": f"SELECT id, v, name FROM {_MANY} ORDER BY name, v",
    "window": f"SELECT max(r) FROM (SELECT sum(v) OVER (PARTITION BY k ORDER BY id) AS r FROM {_MANY})",
    "recursive query": "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 1000000000) SELECT max(n) FROM r",
    "result writing": f"SELECT * FROM {_MANY}",
}

# What operators and functions spend their time on; for the comparison of build profiles.
KERNELS = [
    GROUP_BY,
    "SELECT k, count(*), sum(v), min(id), max(id) FROM big GROUP BY k",
    "SELECT sum(length(CAST(v AS VARCHAR))) FROM big",
    "SELECT sum((v * 3 + id) % 7) FROM big WHERE v % 5 <> 2 AND k < 900",
    "SELECT id, v, name FROM big ORDER BY v DESC, id LIMIT 1000",
    "SELECT max(r) FROM (SELECT row_number() OVER (ORDER BY v, id) AS r FROM big WHERE k < 300)",
    "SELECT count(*) FROM big a JOIN big b ON a.id = b.v WHERE a.k < 500",
    "SELECT count(DISTINCT v) FROM big",
    "SELECT count(*) FROM big WHERE upper(substr(name, 6, 3)) LIKE '%9%'",
    "SELECT count(*) FROM big WHERE regexp_like(name, '(1|3)+.*9$')",
    "SELECT max(r) FROM (SELECT sum(v) OVER (PARTITION BY k ORDER BY id) AS r FROM big)",
    "SELECT stddev(v), corr(v, id) FROM big",
]
