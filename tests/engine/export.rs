//! `COPY … TO` the folder that the operator opened.

use std::fs;
use std::path::{Path, PathBuf};

use firesteel_model::Kind;

use crate::bench::Bench;

fn bench() -> Bench {
    let bench = Bench::with(|settings| {
        let folder = settings.data[0].with_file_name("export");
        fs::create_dir(&folder).unwrap();
        settings.export = Some(folder);
    });
    bench.file("t.csv", "a,Name\n1,x\n2,y\n")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[tokio::test]
async fn each_execution_adds_a_file() {
    let bench = bench();
    let copy = "COPY (SELECT a, name FROM t ORDER BY a) TO 'daily/t' STORED AS CSV";
    let plan = bench.plan(copy).await.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((plan.kind(), plan.entry()), (Kind::Write, None));
    drop(plan);
    let folder = bench.dir.path().join("export/daily/t");
    assert!(!folder.exists(), "a plan writes nothing");
    for n in 1..=2 {
        assert_eq!(bench.ok(copy).await, "count: UInt64\n2\n");
        assert_eq!(files(&folder).len(), n);
    }
    for file in files(&folder) {
        assert_eq!(fs::read_to_string(file).unwrap(), "a,Name\n1,x\n2,y\n");
    }
    for format in ["parquet", "JSON", "ARROW"] {
        bench.ok(&format!("COPY (SELECT * FROM t) TO '{format}/' STORED AS {format}")).await;
        assert_eq!(files(&bench.dir.path().join("export").join(format)).len(), 1, "{format}");
    }
}

#[tokio::test]
async fn nothing_else_is_written() {
    let bench = bench();
    for (text, message) in [
        (
            "COPY (SELECT 1) TO '/tmp/x' STORED AS CSV",
            "NOT_ALLOWED `/tmp/x` is not below the folder that may be written into; name a folder in it, as in 'daily/sales'",
        ),
        (
            "COPY (SELECT 1) TO '../data/x' STORED AS CSV",
            "NOT_ALLOWED `../data/x` is not below the folder that may be written into; name a folder in it, as in 'daily/sales'",
        ),
        (
            "COPY t TO 'x' STORED AS CSV",
            "NOT_SUPPORTED COPY of a table by its name is not supported here; write COPY (query) TO 'folder' STORED AS PARQUET|CSV|JSON|ARROW",
        ),
        (
            "COPY (SELECT 1) TO 'x.csv'",
            "NOT_SUPPORTED COPY without STORED AS, or in another format is not supported here; write COPY (query) TO 'folder' STORED AS PARQUET|CSV|JSON|ARROW",
        ),
        (
            "EXPLAIN ANALYZE COPY (SELECT 1) TO 'x' STORED AS CSV",
            "NOT_ALLOWED EXPLAIN of anything but a query is not allowed here; allowed are queries, EXPLAIN, SHOW, DESCRIBE, SET, USE, views, external tables, functions and prepared statements",
        ),
        ("COPY (SELECT * FROM nowhere) TO 'x' STORED AS CSV", "ANALYSIS there is no table `nowhere`; there is `t`"),
    ] {
        assert_eq!(bench.fails(text).await, message, "{text}");
    }
    assert_eq!(files(&bench.dir.path().join("export")), Vec::<PathBuf>::new());
}
