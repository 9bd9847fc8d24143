//! Texts that are meant to break something are answered: with rows, or with a reason, and the next one too.

use crate::bench::{Bench, error};

fn texts() -> Vec<(&'static str, String)> {
    let nested = |open: &str, n: usize, inner: &str, close: &str| open.repeat(n) + inner + &close.repeat(n);
    vec![
        ("a literal of a megabyte", format!("SELECT '{}'", "x".repeat(1 << 20))),
        ("a name of a megabyte", format!("SELECT `{}`", "x".repeat(1 << 20))),
        ("20,000 ORs", format!("SELECT 1 WHERE {}1 = 2", "1 = 2 OR ".repeat(20_000))),
        ("20,000 ORs of a column", format!("SELECT * FROM t WHERE {}a = 1", "a = 2 OR ".repeat(20_000))),
        ("2,000 +", format!("SELECT {}1", "1 + ".repeat(2_000))),
        ("2,000 + of a column", format!("SELECT {}a FROM t", "a + ".repeat(2_000))),
        ("2,000 nested +", format!("SELECT {}", nested("1 + (", 2_000, "1", ")"))),
        ("500 parentheses", format!("SELECT {}", nested("(", 500, "1", ")"))),
        ("50,000 parentheses", format!("SELECT {}", nested("(", 50_000, "1", ")"))),
        ("500 subqueries", nested("SELECT * FROM (", 500, "SELECT 1", ")")),
        ("200 functions", format!("SELECT {}", nested("abs(", 200, "1", ")"))),
        ("500 CASEs", format!("SELECT {}", nested("CASE WHEN true THEN ", 500, "1", " END"))),
        ("5,000 NOTs", format!("SELECT {}true", "NOT ".repeat(5_000))),
        ("5,000 minus signs", format!("SELECT {}1", "- ".repeat(5_000))),
        ("200 arrays", format!("SELECT {}", nested("array(", 200, "1", ")"))),
        ("500 unions", format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(500))),
        ("5,000 columns", format!("SELECT {}1", "a, ".repeat(5_000) + "1 + ") + " FROM t"),
        (
            "60 joins",
            format!(
                "SELECT 1 FROM t t0{}",
                (1..60).map(|n| format!(" JOIN t t{n} ON t0.a = t{n}.a")).collect::<String>()
            ),
        ),
        ("a repeat of a terabyte", "SELECT length(repeat('x', 1000000000000))".into()),
        ("a list of a billion", "SELECT generate_series(1, 1000000000)".into()),
        ("control characters", "SELECT '\u{0}\u{1}\u{7f}\u{202e}', 'é😀'".into()),
        ("a name with a mark", "SELECT 1 AS `a\u{1}b`".into()),
        ("nothing but quotes", "''''\"\"``".into()),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_text_is_answered_and_so_is_the_next() {
    let bench = Bench::new().file("t.csv", "a\n1\n");
    for (name, text) in texts() {
        let said = match bench.run(&text).await {
            Ok(table) => format!("{} bytes", table.len()),
            Err(e) => error(&e),
        };
        eprintln!("{name}: {}", said.chars().take(200).collect::<String>());
        assert!(!said.starts_with("died") && !said.starts_with("INTERNAL"), "{name}: {said}");
        assert_eq!(bench.ok("SELECT 1").await, "1: Int32\n1\n", "after {name}");
    }
}

#[tokio::test]
async fn what_must_be_answered_is() {
    let bench = Bench::new().file("t.csv", "a\n1\n");
    let texts = texts();
    for wanted in ["a literal of a megabyte", "20,000 ORs", "20,000 ORs of a column", "2,000 +", "500 parentheses"] {
        let (_, text) = texts.iter().find(|(name, _)| *name == wanted).unwrap();
        bench.ok(text).await;
    }
}
