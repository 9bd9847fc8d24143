//! What PPL means: the cases of `plugins/ppl/tests/cases`, from query to rows. Their SQL is compared with the translation by that crate's own
//! tests; here it is run, and the rows compared. `UPDATE_EXPECT=1` writes the rows anew.

use std::fmt::Write;
use std::path::Path;

use crate::bench::Bench;

#[tokio::test]
async fn the_cases_of_ppl_give_their_rows() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins/ppl/tests");
    let tables = folder.join("tables");
    let bench = Bench::with(|settings| {
        settings.catalog = "local".into();
        settings.data = vec![tables];
    });
    let mut count = 0;
    let mut files: Vec<_> = std::fs::read_dir(folder.join("cases")).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    for path in files {
        let before = std::fs::read_to_string(&path).unwrap();
        let mut parts = before.trim_end().split("\n== ");
        let mut after = parts.next().unwrap().trim_end().to_owned() + "\n";
        for case in parts {
            let case = case.split("\n-- rows\n").next().unwrap().trim_end();
            let (text, sql) = case.split_once("\n-- sql\n").unwrap();
            writeln!(after, "\n== {case}").unwrap();
            // A plan names the machine's folders.
            if sql.starts_with("error: ") || sql.starts_with("EXPLAIN") {
                continue;
            }
            let zone = text.lines().find_map(|line| line.strip_prefix("zone: ")).unwrap_or("UTC");
            bench.ok(&format!("SET spark.sql.session.timezone = '{zone}'")).await;
            let rows = bench.run(sql).await;
            let rows = rows.unwrap_or_else(|e| panic!("{text}\n{sql}\n{}", crate::bench::error(&e)));
            // The types of columns are the SQL's matter, and not PPL's.
            let (columns, rows) = rows.split_once('\n').unwrap();
            let names: Vec<&str> =
                columns.split(" | ").map(|c| c.rsplit_once(": ").map_or(c, |(name, _)| name)).collect();
            writeln!(after, "-- rows\n{}", names.join(" | ")).unwrap();
            // An empty line would be lost.
            rows.lines().for_each(|row| writeln!(after, "{}", if row.is_empty() { "''" } else { row }).unwrap());
            count += 1;
        }
        let after = after.trim_end().to_owned() + "\n";
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(&path, after).unwrap();
        } else {
            assert!(after == before, "{} has other rows; see what UPDATE_EXPECT=1 changes", path.display());
        }
    }
    assert!(count > 150, "only {count} cases were found");
}
