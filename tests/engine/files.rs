//! Files that are not what they seem: pipes, links that lead out, damaged content, names that are there twice.

use crate::bench::Bench;

#[tokio::test]
async fn a_pipe_or_a_link_that_leads_out_is_no_table_and_no_place() {
    let bench = Bench::new().file("t.csv", "a\n1\n").file("plain/x.csv", "a\n1\n").file("parts/note.txt", "");
    let made = std::process::Command::new("mkfifo").arg(bench.data().join("pipe.csv")).status();
    assert!(made.is_ok_and(|status| status.success()));
    let outside = bench.dir.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("s.parquet"), "hush").unwrap();
    std::os::unix::fs::symlink(&outside, bench.data().join("plain/out")).unwrap();
    std::os::unix::fs::symlink(&outside, bench.data().join("gone")).unwrap();
    std::os::unix::fs::symlink(outside.join("s.parquet"), bench.data().join("parts/s.parquet")).unwrap();
    assert_eq!(bench.fails("SELECT * FROM pipe").await, "ANALYSIS there is no table `pipe`; there is `parts`, `t`");
    assert_eq!(bench.fails("SELECT * FROM gone").await, "ANALYSIS there is no table `gone`; there is `parts`, `t`");
    let external = |place: &str| format!("CREATE EXTERNAL TABLE x (a INT) STORED AS CSV LOCATION '{place}'");
    assert_eq!(
        bench.fails(&external("pipe.csv")).await,
        "NOT_ALLOWED `pipe.csv` is a pipe, a socket or a device; a table is a file or a folder"
    );
    assert_eq!(
        bench.fails(&external("plain/")).await,
        "NOT_ALLOWED `plain/` holds `out`, which leads out of what may be read or is no file; take it out, or name a folder without it"
    );
    assert_eq!(
        bench.fails("SELECT * FROM parts").await,
        "NOT_ALLOWED the folder `parts` holds `s.parquet`, which leads out of what may be read or is no file; take it out"
    );
    assert_eq!(bench.ok("SELECT * FROM t").await, "a: Int64\n1\n");
}

#[tokio::test]
async fn a_damaged_file_is_named() {
    let mut late = "n\n".to_owned() + &"1\n".repeat(20_000);
    late.push_str("x\n");
    let bench = Bench::new()
        .file("bad.parquet", "no parquet at all")
        .file("ragged.csv", "a,b\n1,2\n3\n")
        .file("mixed.json", "{\"a\":1}\n[1]\n")
        .file("late.csv", late);
    for (table, file) in [("bad", "bad.parquet"), ("ragged", "ragged.csv"), ("mixed", "mixed.json"), ("late", "late")] {
        let told = bench.fails(&format!("SELECT * FROM {table}")).await;
        assert!(told.starts_with(&format!("EXECUTION `{file}` cannot be read: ")), "{told}");
        assert!(told.ends_with("; repair the file, or take it out of the data folder"), "{told}");
    }
}

#[tokio::test]
async fn a_csv_file_that_has_a_column_twice_is_told() {
    let bench = Bench::new()
        .file("t.csv", "a,\"b,c\",a\r\n1,2,3\r\n")
        .file("u.csv", "a,A\n1,1\n")
        .file("v.tsv", "x\tx\n1\t2\n");
    for (table, column) in [("t", "a"), ("v", "x")] {
        assert_eq!(
            bench.fails(&format!("SELECT * FROM {table}")).await,
            format!(
                "EXECUTION the first line of the file of `{table}` has the column `{column}` twice; give one of them another name"
            )
        );
    }
    assert_eq!(bench.ok("SELECT * FROM u").await, "a: Int64 | A: Int64\n1 | 1\n");
}
