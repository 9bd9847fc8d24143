//! What PPL means: the cases of `plugins/ppl/tests/cases`, from query to rows, by the plugin that is in the program. Their SQL is compared with the
//! translation by that crate's own tests; here the rows are compared. `UPDATE_EXPECT=1` writes the rows anew.

use std::fmt::Write;
use std::path::Path;

use firesteel_plugin_host::bundled::OnDemand;

use crate::bench::Bench;

#[tokio::test]
async fn the_cases_of_ppl_give_their_rows() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins/ppl/tests");
    let tables = folder.join("tables");
    let cache = tempfile::tempdir().unwrap();
    let own = OnDemand::new(&["ppl".into()], vec![cache.path().join("compiled")]);
    let bench = Bench::on_demand(own, |settings| {
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
            // Under its title.
            let query = text.split_once('\n').map_or("", |(_, query)| query);
            let (zone, query) = match query.strip_prefix("zone: ") {
                Some(rest) => rest.split_once('\n').unwrap(),
                None => ("UTC", query),
            };
            bench.ok(&format!("SET spark.sql.session.timezone = '{zone}'")).await;
            let rows = bench.run_in("ppl", query).await;
            if sql.starts_with("error: ") {
                assert!(crate::bench::error(&rows.expect_err(text)).starts_with("SYNTAX "), "{text}");
                continue;
            }
            // A plan names the machine's folders.
            if sql.starts_with("EXPLAIN") {
                assert!(rows.is_ok_and(|rows| rows.ends_with("plugin | ppl 0.1.0: ppl to sql\n")), "{text}");
                continue;
            }
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

#[tokio::test]
async fn ppl_is_compiled_and_loaded_when_the_first_statement_needs_it_and_not_before() {
    let cache = tempfile::tempdir().unwrap();
    let compiled = cache.path().join("compiled");
    let files = || -> usize {
        let folders = std::fs::read_dir(&compiled).unwrap().map(|f| f.unwrap().path());
        folders.map(|folder| std::fs::read_dir(folder).unwrap().count()).sum()
    };
    let own = OnDemand::new(&["ppl".into()], vec![compiled.clone()]);
    let bench = Bench::on_demand(own, |_| {}).file("t.csv", "a,b\n1,x\n2,y\n");
    assert_eq!(bench.ok("SELECT a FROM t WHERE b = 'y'").await, "a: Int64\n2\n");
    let worker = bench.pid().await;
    assert_eq!(files(), 0, "SQL needs none");
    let klingon = crate::bench::error(&bench.run_in("pl", "source=t").await.unwrap_err());
    assert_eq!(klingon, "UNKNOWN_LANGUAGE there is no language `pl`; did you mean `ppl`?");
    assert_eq!(bench.run_in("PPL", "source=t | where b = 'y' | fields a").await.unwrap(), "a: Int64\n2\n");
    assert_eq!(files(), 1);
    assert_eq!(bench.pid().await, worker, "the worker is the same");
    let wrong = crate::bench::error(&bench.run_in("ppl", "source=t | wher a = 1").await.unwrap_err());
    assert_eq!(wrong, "SYNTAX there is no command `wher` at line 1, column 12; did you mean `where`?");
}
