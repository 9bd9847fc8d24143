"""The statements of a run, by seed: which they are does not hang on what happens to them."""

import random

VIEW, ZONE, RACED = "v{}", "spark.sql.session.timeZone", "datafusion.optimizer.hash_join_single_partition_threshold_rows"


class Statement:
    """What is submitted, and what the user does to it then.

    `kind`: read, define, write. `cancel`: None; `running` or `at once`: it would run for ever, and is cancelled then; a number: cancelled so
    many seconds after it was submitted, unless it has ended. `hangs_on`: for a read that shows a setting which the statement before it
    sets if it is not cancelled: the value then, and the value else. `folder`: where a write writes.
    """

    def __init__(self, kind, query, cancel=None, hangs_on=None, folder=None):
        self.kind, self.query, self.cancel, self.hangs_on, self.folder = kind, query, cancel, hangs_on, folder


def small(r):
    a, b = r.randrange(1000), r.randrange(1000)
    return r.choice([
        f"SELECT {a} AS a, 'it''s {b}' AS b",
        f"SELECT {a} + {b} AS total, NULL AS nothing, array({a}, {b}) AS both",
        f"SELECT iata, name FROM airports WHERE country = 'USA' ORDER BY iata LIMIT {1 + a % 9}",
        f"SELECT state, count(*) AS airports FROM airports GROUP BY state ORDER BY airports DESC, state LIMIT {1 + a % 20}",
        "EXPLAIN SELECT 1 AS one",
    ])


def rows(r, least, most):
    return f"SELECT value AS n, concat('row ', value * {r.randrange(2, 99)}) AS text FROM generate_series(1, {r.randrange(least, most)}) ORDER BY n"


def slow(r):
    return f"SELECT sum(value % {r.randrange(2, 99)}) AS total FROM generate_series(1, {r.randrange(10, 60)} * 1000000)"


def failing(r):
    return r.choice([
        f"SELECT * FROM nowhere_{r.randrange(1000)}",
        f"SELEC {r.randrange(1000)}",
        f"INSERT INTO airports VALUES ({r.randrange(1000)})",
        f"SELECT arrow_cast('x{r.randrange(1000)}', 'Int32') AS n",
        f"SELECT no_such_function({r.randrange(1000)})",
    ])


def write(r, folder):
    many = r.choice([3, 2000, 400_000, 2_000_000])
    return Statement("write", f"COPY (SELECT value AS n FROM generate_series(1, {many})) TO '{folder}' STORED AS CSV", folder=folder)


def session(seed, name, number):
    """The statements of one session, oldest first."""
    r, made, views, prepared, external = random.Random(f"{seed}/{name}"), [], set(), set(), False
    read = lambda query, **more: made.append(Statement("read", query, **more))
    define = lambda query, **more: made.append(Statement("define", query, **more))
    while len(made) < number:
        kind = r.choices(
            ["small", "rows", "paged", "slow", "fail", "zone", "view", "prepared", "external", "hang", "race", "raced define", "write"],
            [20, 8, 5, 12, 8, 7, 10, 4, 3, 5, 5, 4, 10])[0]
        if kind == "small":
            read(small(r))
        elif kind == "rows":
            read(rows(r, 100, 5_000))
        elif kind == "paged":
            read(rows(r, 60_000, 120_000))
        elif kind == "slow":
            read(slow(r))
        elif kind == "fail":
            read(failing(r))
        elif kind == "zone":
            define(f"SET {ZONE} = 'Etc/GMT+{r.randrange(1, 12)}'")
            read(f"SET {ZONE}")
            read("SELECT CAST(arrow_cast(86400 * 365, 'Timestamp(Second, Some(\"UTC\"))') AS TIMESTAMP) AS t")
        elif kind == "view":
            view = VIEW.format(r.randrange(6))
            if view in views and r.random() < 0.4:
                define(f"DROP VIEW {view}")
                views.discard(view)
            else:
                define(f"CREATE OR REPLACE TEMPORARY VIEW {view} AS SELECT {r.randrange(10_000)} AS n, name FROM airports WHERE iata = 'JFK'")
                views.add(view)
            read(f"SELECT * FROM {r.choice([view, VIEW.format(r.randrange(6))])}")
            read("SHOW VIEWS")
        elif kind == "prepared":
            plan = f"p{len(prepared)}"
            prepared.add(plan)
            define(f"PREPARE {plan} AS SELECT $1 + {r.randrange(1000)} AS sum")
            read(f"EXECUTE {r.choice(sorted(prepared))}({r.randrange(1000)})")
        elif kind == "external":
            if not external:
                define("CREATE EXTERNAL TABLE mine STORED AS CSV LOCATION 'airports.csv' OPTIONS ('format.has_header' 'true')")
                external = True
            read("SELECT count(*) AS n FROM mine")
        elif kind == "hang":
            read("SELECT count(*) AS n FROM routes a, routes b, routes c", cancel=r.choice(["running", "running", "at once"]))
        elif kind == "race":
            read(r.choice([slow, small, lambda r: rows(r, 20_000, 60_000)])(r), cancel=r.random() * 0.8)
        elif kind == "raced define":
            before, after = r.randrange(10_000, 100_000), r.randrange(100_000, 1_000_000)
            define(f"SET {RACED} = {before}")
            define(f"SET {RACED} = {after}", cancel=r.random() * 0.4)
            read(f"SET {RACED}", hangs_on=(str(after), str(before)))
        elif kind == "write":
            made.append(write(r, f"{name}-{len(made)}"))
            if r.random() < 0.15:
                made[-1].cancel = r.random() * 0.6
    return made[:number]
