//! A plugin's author: a project to begin with, statements and cases tried without a store.

use crate::harness::{Home, repository};

fn notes() -> String {
    repository().join("plugins/examples/built/notes.wasm").display().to_string()
}

#[test]
fn a_new_plugin_is_a_whole_project_and_overwrites_nothing() {
    let home = Home::new();
    let at = home.path().join("my-plugin");
    let told = home.run(&["plugin", "new", &at.display().to_string()]).ok();
    assert!(told.contains("firesteel plugin run my-plugin.wasm world"), "{told}");
    let read = |file: &str| std::fs::read_to_string(at.join(file)).expect("it was written");
    assert!(read("Cargo.toml").contains("name = \"my-plugin\"\n"));
    assert!(read("README.md").contains("release/my_plugin.wasm -o my-plugin.wasm"));
    assert!(read("firesteel/sdk/src/lib.rs").starts_with("//!"));
    for file in ["Cargo.toml", "README.md", "src/lib.rs", "tests/cases/hello.txt"] {
        assert!(!read(file).contains("{{"), "{file}");
    }
    let again = home.run(&["plugin", "new", &at.display().to_string()]);
    assert_eq!(again.code, 2);
    assert!(again.err.contains("is there already, and nothing is overwritten"), "{}", again.err);
    let wrong = home.run(&["plugin", "new", &home.path().join("My_Plugin").display().to_string()]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.contains("did you mean `my-plugin`?"), "{}", wrong.err);
}

#[test]
fn a_statement_is_tried_and_what_the_plugin_makes_of_it_is_shown() {
    let home = Home::new();
    home.file("tables/cities.csv", "city,people\nUlm,130\nBonn,330\n");
    let data = home.path().join("tables").display().to_string();
    let sql =
        home.run(&["plugin", "run", "ppl", "source=cities | where people > 200 | fields city", "--data", &data]).ok();
    assert!(sql.starts_with("ppl becomes sql:\nSELECT"), "{sql}");
    assert!(sql.contains("Bonn") && !sql.contains("Ulm"), "{sql}");
    let answered = home.run(&["plugin", "run", &notes(), "add one"]).ok();
    assert!(answered.starts_with("the plugin answers it, with 1 rows\n") && answered.contains("one"), "{answered}");
    let plain = home.run(&["plugin", "run", &notes(), "SELECT 7 AS seven", "--lang", "sql"]).ok();
    assert!(plain.starts_with("the statement is run as it is\n") && plain.contains("seven"), "{plain}");
    let refused = home.run(&["plugin", "run", &notes(), "remove all"]);
    assert_ne!(refused.code, 0);
    assert!(refused.err.contains("there is no command `remove`"), "{}", refused.err);
}

#[test]
fn cases_say_what_came_out_otherwise_and_the_exit_code_tells() {
    let home = Home::new();
    home.file("tables/cities.csv", "city,people\nUlm,130\nBonn,330\n");
    let (data, cases) = (home.path().join("tables"), home.path().join("cases"));
    let test = || {
        let (data, cases) = (data.display().to_string(), cases.display().to_string());
        home.run(&["plugin", "test", "ppl", "--cases", &cases, "--data", &data])
    };
    let good = "== one city\nsource=cities | where people > 200 | fields city\n-- rows\ncity\nBonn\n\n\
                == SQL goes on\nlang: sql\nSELECT 1 AS one\n-- sql\nSELECT 1 AS one\n-- rows\none\n1\n";
    home.file("cases/a.txt", good);
    assert_eq!(test().ok(), "2 passed, 0 failed\n");
    home.file("cases/b.txt", "== wrong\nsource=cities | fields city | head 1\n-- rows\ncity\nBonn\n");
    let failed = test();
    assert_eq!(failed.code, 1);
    assert!(
        failed.out.contains("b.txt: wrong\n-- rows, expected:\ncity\nBonn\n-- rows, got:\ncity\nUlm\n"),
        "{}",
        failed.out
    );
    assert!(failed.out.ends_with("2 passed, 1 failed\n"), "{}", failed.out);
    let none = home.run(&["plugin", "test", "ppl", "--cases", &data.display().to_string()]);
    assert!(none.code == 2 && none.err.contains("there are no cases"), "{}", none.err);
}
