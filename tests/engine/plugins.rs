//! Query plugins in a real worker: what they do to statements, and what becomes of a statement whose plugin does what it must not.

use std::path::Path;
use std::time::Duration;

use expect_test::expect;
use firesteel_engine::PluginSet;
use firesteel_plugin_host::shelf::Shelf;
use firesteel_session::ports::Engine;

use crate::bench::{Bench, collect, error, request};
use crate::guests::{Guest, LOOP, answer};

/// A worker with these plugins, each with what the operator wrote about it.
fn bench(plugins: &[(&Guest, &str)]) -> Bench {
    let shelf = tempfile::tempdir().unwrap();
    let set = shelved(shelf.path(), plugins);
    let bench = Bench::with(|settings| settings.plugins = set);
    // The code lies there.
    std::mem::forget(shelf);
    bench
}

fn shelved(folder: &Path, plugins: &[(&Guest, &str)]) -> PluginSet {
    let shelf = Shelf::new(folder);
    for (n, (guest, settings)) in plugins.iter().enumerate() {
        shelf.put(&format!("p{n}"), &guest.component(), Some(settings)).unwrap();
    }
    let program = Path::new(env!("CARGO_BIN_EXE_firesteel"));
    let ready = shelf.ready(program, Duration::from_secs(60)).unwrap();
    PluginSet {
        plugins: ready.specs,
        reads: ready.reads,
        writes: ready.writes,
        network: ready.network,
        on_demand: Vec::new(),
    }
}

/// A handler of the language `shout` that answers every statement with one of SQL.
fn shout(sql: &str) -> Guest {
    let (at, length) = (64, u32::try_from(sql.len()).unwrap());
    let data = format!("(data (i32.const 64) \"{sql}\") (data (i32.const 900) \"sql\")");
    Guest::new("shout").languages(&["shout"]).more(&data).body("handle", answer(&[1, at, length, 900, 3, 0, 0]))
}

async fn run(bench: &Bench, lang: &str, text: &str) -> Result<String, String> {
    let journal = bench.journal.lock().unwrap().clone();
    let plan = bench.engine.plan(&journal, &request(lang, text)).await.map_err(|e| error(&e))?;
    collect(plan.run().await.map_err(|e| error(&e))?).await.map_err(|e| error(&e))
}

#[tokio::test]
async fn a_statement_in_a_plugins_language_is_rewritten_and_run_and_explain_names_the_plugin() {
    let guest = shout("SELECT 1 + 1 AS two");
    let bench = bench(&[(&guest, "")]);
    assert_eq!(run(&bench, "shout", "TWO!").await.unwrap(), "two: Int64\n2\n");
    assert_eq!(bench.ok("SELECT 3 AS three").await, "three: Int32\n3\n");
    assert_eq!(
        run(&bench, "shut", "TWO!").await.unwrap_err(),
        "UNKNOWN_LANGUAGE there is no language `shut`; did you mean `shout`?"
    );
    let explained = shout("EXPLAIN SELECT 1 AS one");
    let bench = self::bench(&[(&explained, "")]);
    let text = run(&bench, "shout", "ONE?").await.unwrap();
    assert!(text.ends_with("plugin | shout 1.0.0: shout to sql\n"), "{text}");
}

#[tokio::test]
async fn a_plugins_function_is_a_function_of_sql() {
    // Returns the column that it was given: its values and validity are 32 bytes at the argument's place.
    let same = "i32.const 8192 i32.const 0 i32.store8
        i32.const 8196 local.get 1 i32.const 32 memory.copy i32.const 8192";
    let guest = Guest::new("guest").functions(&[("same", 0, &["Int64"], "Int64", &[])]).body("scalar", same);
    let bench = bench(&[(&guest, "")]).file("t.csv", "a,b\n1,x\n,y\n3,z\n");
    bench
        .check(
            "SELECT same(a) AS s, same(a + 1) + 1 AS t FROM t",
            expect![[r#"
        s: Int64 | t: Int64
        1 | 3
        NULL | NULL
        3 | 5
    "#]],
        )
        .await;
    bench
        .check(
            "SELECT count(*) AS n FROM t WHERE same(a) > 1",
            expect![[r#"
        n: Int64
        1
    "#]],
        )
        .await;
    let fault = bench.fails("SELECT same(b, b) FROM t").await;
    assert!(fault.contains("`same` takes no (") && fault.contains("there is `same(Int64)`"), "{fault}");
    let explained = bench.ok("EXPLAIN SELECT same(a) FROM t").await;
    assert!(explained.ends_with("plugin | guest 1.0.0: function same\n"), "{explained}");
}

/// Hides `secret`, masks `name` and shows only rows of which `a` is above 1, of every table.
fn policy() -> Guest {
    let texts = [("name", 64), ("'***'", 80), ("a > 1", 96), ("secret", 112)];
    let mut data = String::new();
    for (text, at) in texts {
        data += &format!("(data (i32.const {at}) \"{text}\")");
    }
    // The mask is at 200, the list of hidden names at 300.
    let word = |at: u32, value: u32| format!("i32.const {at} i32.const {value} i32.store ");
    let mask = word(200, 64) + &word(204, 4) + &word(208, 80) + &word(212, 5);
    let hidden = word(300, 112) + &word(304, 6);
    let code = format!("{mask}{hidden}{}", answer(&[0, 200, 1, 1, 96, 5, 300, 1]));
    Guest::new("guard").policy().more(&data).body("decide", code)
}

#[tokio::test]
async fn a_policy_holds_whatever_a_statement_does() {
    let guest = policy();
    let table = "a,name,secret\n1,ann,s1\n2,bob,s2\n3,cid,s3\n";
    let bench = bench(&[(&guest, "")]).file("people.csv", table);
    let shown = "a: Int64 | name: Utf8\n2 | ***\n3 | ***\n";
    assert_eq!(bench.ok("SELECT * FROM people ORDER BY a").await.replace("Utf8View", "Utf8"), shown);
    for (text, rows) in [
        ("SELECT substr(name, 1, 1) AS s FROM people AS p WHERE p.a = 2", "*\n"),
        ("SELECT count(*) AS n FROM people", "2\n"),
        ("SELECT count(*) AS n FROM people WHERE name = 'bob'", "0\n"),
        ("SELECT x.name AS n FROM people x JOIN people y ON x.a = y.a WHERE y.a = 3", "***\n"),
        ("SELECT max(n) AS m FROM (SELECT name AS n FROM people) t", "***\n"),
        ("WITH c AS (SELECT a FROM people) SELECT min(a) AS m FROM c", "2\n"),
        ("SELECT (SELECT max(name) FROM people) AS m", "***\n"),
        ("SELECT count(*) AS n FROM people WHERE 10 / (a - 1) > 0", "2\n"),
    ] {
        let table = bench.ok(text).await;
        assert_eq!(table.split_once('\n').unwrap().1, rows, "{text}");
    }
    bench.ok("CREATE VIEW v AS SELECT name, a FROM people").await;
    assert_eq!(bench.ok("SELECT max(name) AS m, min(a) AS a FROM v").await.split_once('\n').unwrap().1, "*** | 2\n");
    assert!(bench.fails("SELECT secret FROM people").await.contains("secret"));
    assert!(!bench.ok("DESCRIBE people").await.contains("secret"));
    let explained = bench.ok("EXPLAIN SELECT name FROM people WHERE name = 'ann'").await;
    assert!(explained.contains("PolicyExec: guard 1.0.0"), "{explained}");
    assert!(explained.contains("plugin | guard 1.0.0: policy for people"), "{explained}");
}

/// As [`policy`], of tables alone whose name begins with `p`.
fn policy_of_p() -> Guest {
    let texts = [("name", 64), ("'***'", 80), ("a > 1", 96), ("secret", 112)];
    let data: String = texts.iter().map(|(text, at)| format!("(data (i32.const {at}) \"{text}\")")).collect();
    let word = |at: u32, value: u32| format!("i32.const {at} i32.const {value} i32.store ");
    let mask = word(200, 64) + &word(204, 4) + &word(208, 80) + &word(212, 5);
    let hidden = word(300, 112) + &word(304, 6);
    // The last of the three parts of the table's name; 112 is `p`.
    let other = "local.get 0 i32.load offset=16 i32.load8_u i32.const 112 i32.ne";
    let code =
        format!("{other} if {} return end {mask}{hidden}{}", answer(&[0; 8]), answer(&[0, 200, 1, 1, 96, 5, 300, 1]));
    Guest::new("guard").policy().more(&data).body("decide", code)
}

#[tokio::test]
async fn the_files_of_a_table_with_a_policy_are_read_by_no_other_name() {
    let guest = policy_of_p();
    let table = "a,name,secret\n1,ann,s1\n2,bob,s2\n3,cid,s3\n";
    let bench = bench(&[(&guest, "")]).file("people.csv", table).file("towns.csv", "a,town\n1,Bonn\n");
    std::os::unix::fs::symlink(bench.data().join("people.csv"), bench.data().join("alias.csv")).unwrap();
    let refused = |name: &str| {
        format!(
            "NOT_ALLOWED `{name}` reads files of the table `people`, which a plugin's policy decides about; read `people` itself"
        )
    };
    bench.ok("CREATE EXTERNAL TABLE other STORED AS CSV LOCATION 'people.csv'").await;
    bench.ok("CREATE EXTERNAL TABLE named (x INT, y VARCHAR, z VARCHAR) STORED AS CSV LOCATION 'people.csv'").await;
    bench
        .ok("CREATE OR REPLACE EXTERNAL TABLE pets (a INT, b VARCHAR, c VARCHAR) STORED AS CSV LOCATION 'people.csv'")
        .await;
    for name in ["other", "named", "pets", "alias"] {
        assert_eq!(bench.fails(&format!("SELECT * FROM {name}")).await, refused(name));
        assert_eq!(bench.fails(&format!("EXPLAIN SELECT count(*) FROM {name}")).await, refused(name));
        assert_eq!(bench.fails(&format!("CREATE VIEW v AS SELECT * FROM {name}")).await, refused(name));
    }
    assert_eq!(bench.ok("SELECT count(*) AS n FROM people").await, "n: Int64\n2\n");
    assert_eq!(bench.ok("SELECT count(*) AS n FROM towns").await, "n: Int64\n1\n");
    bench.ok("CREATE EXTERNAL TABLE free STORED AS CSV LOCATION 'towns.csv'").await;
    assert_eq!(bench.ok("SELECT count(*) AS n FROM free").await, "n: Int64\n1\n");
}

#[tokio::test]
async fn a_plugin_that_loops_fails_its_statement_and_the_same_worker_answers_the_next() {
    let guest = Guest::new("slow").languages(&["slow"]).body("handle", LOOP);
    let bench = bench(&[(&guest, "[limits]\ntime = 200\n")]);
    bench.ok("SELECT 1 AS a").await;
    let worker = bench.pid().await;
    assert_eq!(
        run(&bench, "slow", "anything").await.unwrap_err(),
        "PLUGIN_LIMIT plugin slow 1.0.0: limit `time`: a call took longer than 200 ms; the operator may raise `limits.time`"
    );
    bench.ok("SELECT 1 AS a").await;
    assert_eq!(bench.pid().await, worker, "the process is the same");
}

#[tokio::test]
async fn plugins_are_replaced_between_statements() {
    let bench = Bench::new();
    assert!(run(&bench, "shout", "TWO!").await.is_err());
    bench.ok("SET datafusion.execution.batch_size = 100").await;
    let shelf = tempfile::tempdir().unwrap();
    let guest = shout("SELECT 1 + 1 AS two");
    bench.engine.pool().replace_plugins(shelved(shelf.path(), &[(&guest, "")]));
    assert_eq!(run(&bench, "shout", "TWO!").await.unwrap(), "two: Int64\n2\n");
    bench.engine.pool().replace_plugins(PluginSet::default());
    assert!(run(&bench, "shout", "TWO!").await.is_err());
    assert!(bench.ok("SET datafusion.execution.batch_size").await.contains("100"), "the session is the same");
}

#[tokio::test]
async fn a_plugin_that_asks_for_more_than_it_was_granted_keeps_every_statement_from_running() {
    let guest = Guest::new("guest").languages(&["shout"]).asks(&["api.example.org"], &[], false);
    let bench = bench(&[(&guest, "")]);
    let fault = bench.fails("SELECT 1").await;
    assert!(fault.contains("guest 1.0.0 asks for what is not granted: http = [\"api.example.org\"]"), "{fault}");
}
