//! Statements that mean harm: each is answered, and so is the next one.

use crate::harness::Home;

/// Asks each, and then a harmless one in the same session. Some take longer to plan than anybody waits: they are answered by the
/// time limit.
fn survived(statements: &[(&str, String)]) {
    let home = Home::new();
    for (what, statement) in statements {
        let script = format!("{statement}\n;\nSELECT 'still here' AS answer;\n");
        let answer = home
            .run_with(&["repl", "--format", "json", "--on-error", "continue", "--execution-timeout", "5s"], &script);
        assert!(
            answer.out.ends_with("{\"answer\":\"still here\"}\n"),
            "{what}: {} {}",
            answer.out.chars().take(500).collect::<String>(),
            answer.err.chars().take(2_000).collect::<String>()
        );
    }
}

#[test]
fn texts_that_are_long_deep_or_strange() {
    survived(&[
        ("a literal of 1 MB", format!("SELECT length('{}')", "x".repeat(1_000_000))),
        ("20,000 ORs", format!("SELECT 1 WHERE {}", vec!["1 = 2"; 20_000].join(" OR "))),
        ("2,000 plusses", format!("SELECT {}", vec!["1"; 2_001].join(" + "))),
        ("500 parentheses", format!("SELECT {}1{}", "(".repeat(500), ")".repeat(500))),
        ("100,000 parentheses", format!("SELECT {}", "(".repeat(100_000))),
        ("control characters", "SELECT '\u{1}\u{7f}\u{202e}' AS \"\u{1b}[31m\"".to_owned()),
        ("no statement", "nonsense ' \" `".replace(['\'', '"', '`'], " ")),
        ("two statements in a subquery's place", "SELECT (DELETE FROM t)".to_owned()),
    ]);
}

#[test]
fn ways_out_are_closed() {
    let home = Home::new();
    home.file("secret.csv", "password\nhunter2\n");
    let secret = home.path().join("secret.csv").display().to_string();
    let out = home.path().join("out.csv").display().to_string();
    for statement in [
        format!("SELECT * FROM '{secret}'"),
        format!("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{secret}'; SELECT * FROM t"),
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'; SELECT * FROM t".to_owned(),
        format!("COPY (SELECT 1) TO '{out}'"),
        "SET datafusion.runtime.memory_limit = '100G'".to_owned(),
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'http://169.254.169.254/latest/'; SELECT * FROM t".to_owned(),
    ] {
        let answer = home.run_with(&["repl", "--on-error", "continue"], &statement);
        assert_eq!(answer.code, 1, "{statement}: {}", answer.out);
        assert!(!answer.out.contains("hunter2") && !answer.out.contains("root:"), "{statement}");
    }
    assert!(!std::path::Path::new(&out).exists());
}

#[test]
fn ids_may_be_anything_short() {
    let home = Home::new();
    for session in ["a/b", "it's \"quoted\"", "../../x", "line\nbreak", "🦀", "-", "*"] {
        let runner = home.serve(&[&format!("--session={session}")]);
        let asked = home.run(&["submit", "--format", "csv", &format!("--session={session}"), "SELECT 1 AS one"]);
        assert_eq!(asked.ok(), "one\n1\n", "{session}");
        assert_eq!(runner.stops().code, 0, "{session}");
    }
    let long = "x".repeat(600);
    let answer = home.run(&["submit", "--session", &long, "SELECT 1"]);
    assert_eq!(answer.code, 2);
    assert!(answer.err.contains("an id has at most 512 bytes, this one has 600"), "{}", answer.err);
}
