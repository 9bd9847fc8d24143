//! What a journal holds and a new worker cannot do again: who needs it gets the reason, everybody else an answer.

use firesteel_session::journal::Entry;

use crate::bench::Bench;

fn entry(text: &str) -> String {
    format!(r#"{{"v":1,"text":"{text}"}}"#)
}

/// Journals something that an older or a newer program wrote, and begins with a new worker.
fn found(bench: &Bench, entry: String) {
    let mut journal = bench.journal.lock().unwrap();
    journal.append(Entry::new(entry));
    journal.taint();
}

#[tokio::test]
async fn a_table_whose_file_is_gone_is_missed_by_what_needs_it_only() {
    let bench = Bench::new().file("sub/x.csv", "a\n1\n").file("t.csv", "a\n2\n");
    let create = "CREATE EXTERNAL TABLE e STORED AS CSV LOCATION 'sub/x.csv' OPTIONS ('format.has_header' 'true')";
    bench.ok(create).await;
    bench.ok("CREATE VIEW v AS SELECT a + 1 AS b FROM e").await;
    bench.ok("CREATE VIEW w AS SELECT a FROM t").await;
    bench.ok("PREPARE p AS SELECT b FROM v").await;
    std::fs::remove_file(bench.data().join("sub/x.csv")).unwrap();
    bench.journal.lock().unwrap().taint();
    let gone = "`e` could not be made again from the session's journal: there is no file or folder `sub/x.csv`; make it anew, or DROP it";
    let view = format!("`v` could not be made again from the session's journal: {gone}; make it anew, or DROP it");
    assert_eq!(bench.fails("SELECT * FROM e").await, format!("ANALYSIS {gone}"));
    assert_eq!(bench.fails("DESCRIBE v").await, format!("ANALYSIS {view}"));
    assert_eq!(
        bench.fails("EXECUTE p").await,
        format!(
            "ANALYSIS the prepared statement `p` could not be made again from the session's journal: {view}; PREPARE it anew"
        )
    );
    assert_eq!(bench.ok("SELECT * FROM w").await, "a: Int64\n2\n", "what needs none of it is as it was");
    assert_eq!(
        bench.ok("SELECT table_name FROM information_schema.columns WHERE table_schema = 'default' ORDER BY 1").await,
        "table_name: Utf8\nt\nw\n"
    );
    bench.ok("DROP VIEW v").await;
    bench.ok("DEALLOCATE p").await;
    std::fs::write(bench.data().join("sub/x.csv"), "a\n5\n").unwrap();
    bench.ok(create).await;
    assert_eq!(bench.ok("SELECT * FROM e").await, "a: Int64\n5\n");
    bench.journal.lock().unwrap().taint();
    assert_eq!(bench.ok("SELECT * FROM e").await, "a: Int64\n5\n", "made anew is in the journal, too");
    assert_eq!(bench.fails("SELECT * FROM v").await.split(';').next(), Some("ANALYSIS there is no table `v`"));
}

#[tokio::test]
async fn a_setting_that_no_longer_applies_stops_queries_until_it_is_set_or_given_up() {
    let bench = Bench::new();
    bench.ok("SET datafusion.execution.batch_size = 100").await;
    found(&bench, entry("SET datafusion.execution.batch_size = 99999999"));
    let why = "ANALYSIS the setting `datafusion.execution.batch_size` could not be set again from the session's journal: \
               `datafusion.execution.batch_size` may be 1 to 65536, not 99999999; \
               SET it anew, or RESET datafusion.execution.batch_size";
    assert_eq!(bench.fails("SELECT 1").await, why);
    assert_eq!(bench.fails("SET datafusion.execution.batch_size").await, why);
    assert_eq!(bench.ok("SHOW DATABASES").await, "namespace: Utf8\ndefault\n");
    bench.ok("SET datafusion.execution.batch_size = 200").await;
    assert_eq!(bench.ok("SELECT 1").await, "1: Int32\n1\n");
    bench.journal.lock().unwrap().taint();
    assert_eq!(bench.ok("SELECT 1").await, "1: Int32\n1\n", "the later entry settles the earlier");

    for give_up in ["RESET some.key.of.old", "RESET"] {
        found(&bench, entry("SET some.key.of.old = x"));
        assert_eq!(
            bench.fails("SELECT 1").await,
            "ANALYSIS the setting `some.key.of.old` could not be set again from the session's journal: \
             the setting `some.key.of.old` may not be changed by a statement; SET shows those that may be; \
             SET it anew, or RESET some.key.of.old"
        );
        bench.ok(give_up).await;
        assert_eq!(bench.ok("SELECT 1").await, "1: Int32\n1\n", "{give_up}");
    }
    assert_eq!(
        bench.fails("RESET some.key.of.old").await,
        "NOT_ALLOWED the setting `some.key.of.old` may not be changed by a statement; SET shows those that may be",
        "what was not lost is not given up"
    );
}

#[tokio::test]
async fn an_entry_that_nobody_can_read_stops_queries() {
    for (entry, why) in [
        (r#"{"v":3,"do":"something"}"#, "its format is 3, this program knows 2"),
        ("[]", "it has no format"),
        (r#"{"v":1,"text":7}"#, "it is not of format 1, as it says"),
    ] {
        let bench = Bench::new();
        bench.ok("CREATE VIEW v AS SELECT 1 AS a").await;
        found(&bench, entry.to_owned());
        assert_eq!(
            bench.fails("SELECT a FROM v").await,
            format!(
                "ANALYSIS the session's journal holds an entry that this program cannot read: {why}; \
                 let the version that wrote it serve the session, or begin another session"
            )
        );
    }
}

#[tokio::test]
async fn what_takes_back_something_that_is_gone_is_no_loss() {
    let bench = Bench::new();
    for text in ["DROP VIEW v", "DEALLOCATE p", "RESET some.key.of.old", "USE other"] {
        found(&bench, entry(text));
    }
    assert_eq!(bench.ok("SELECT 1").await, "1: Int32\n1\n");
}

#[tokio::test]
async fn what_was_made_under_a_name_is_made_again_whatever_has_the_name_since() {
    let bench = Bench::new().file("t.csv", "a\n1\n");
    bench.ok("CREATE VIEW v AS SELECT 1 AS a").await;
    bench.ok("CREATE VIEW IF NOT EXISTS w AS SELECT 2 AS a").await;
    bench.ok("CREATE VIEW IF NOT EXISTS t AS SELECT 3 AS a").await;
    assert_eq!(bench.ok("SELECT a FROM t").await, "a: Int64\n1\n", "the file was there");
    std::fs::rename(bench.data().join("t.csv"), bench.data().join("v.csv")).unwrap();
    std::fs::copy(bench.data().join("v.csv"), bench.data().join("w.csv")).unwrap();
    bench.journal.lock().unwrap().taint();
    assert_eq!(bench.ok("SELECT v.a, w.a AS b FROM v, w").await, "a: Int64 | b: Int64\n1 | 2\n");
    assert_eq!(bench.fails("SELECT a FROM t").await, "ANALYSIS there is no table `t`; did you mean `v`?");
}

#[tokio::test]
async fn what_undoes_all_of_an_earlier_define_has_its_key() {
    let bench = Bench::new();
    let zone = Some("set datafusion.execution.time_zone");
    for (text, key) in [
        ("SET spark.sql.session.timeZone = +02:00", zone),
        ("SET TIME ZONE 'UTC'", zone),
        ("RESET datafusion.execution.time_zone", zone),
        ("SET spark.sql.join.preferSortMergeJoin = true", Some("set datafusion.optimizer.prefer_hash_join")),
        ("USE mys3", Some("use")),
        ("RESET", None),
        ("CREATE VIEW v AS SELECT 1 AS a", None),
        ("DROP VIEW IF EXISTS v", None),
        ("PREPARE p AS SELECT 1", None),
    ] {
        let entry = bench.plan(text).await.unwrap().entry().expect("a define has an entry");
        assert_eq!(entry.key.as_deref(), key, "{text}");
    }
    for n in 1..=100 {
        bench.ok(&format!("SET datafusion.execution.batch_size = {n}")).await;
    }
    bench.journal.lock().unwrap().taint();
    assert_eq!(
        bench.ok("SET datafusion.execution.batch_size").await,
        "key: Utf8 | value: Utf8\ndatafusion.execution.batch_size | 100\n"
    );
}
