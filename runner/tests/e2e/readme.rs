//! The commands of README and of the pages do what they say.

use crate::harness::{Home, finish, repository};
use crate::opensearch::url;

/// The fenced `console` blocks of a page, as scripts: a command begins with `$ `, its further lines don't.
fn scripts(page: &str) -> Vec<String> {
    let page = std::fs::read_to_string(repository().join(page)).expect("a page");
    let blocks = page.split("\n```console\n").skip(1).map(|rest| rest.split("\n```").next().unwrap_or_default());
    blocks
        .map(|block| block.lines().map(|line| format!("{}\n", line.strip_prefix("$ ").unwrap_or(line))).collect())
        .collect()
}

fn run(script: &str, url: Option<&str>) -> String {
    let home = Home::new();
    let binaries =
        std::path::Path::new(env!("CARGO_BIN_EXE_firesteel")).parent().expect("in a folder").display().to_string();
    let mut shell = home.program("bash");
    shell.args(["-euo", "pipefail", "-c", &format!("trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{script}")]);
    shell.current_dir(repository()).env("PATH", format!("{binaries}:{}", std::env::var("PATH").unwrap_or_default()));
    if let Some(url) = url {
        shell.env("OPENSEARCH_URL", url);
    }
    let answer = finish(shell, "");
    assert_eq!(answer.code, 0, "{script}\n{}\n{}", answer.out, answer.err);
    answer.out
}

#[test]
fn the_commands_that_need_nothing() {
    let scripts: Vec<String> =
        scripts("README.md").into_iter().filter(|script| !script.contains("OPENSEARCH_URL")).collect();
    assert!(scripts.len() >= 2, "README begins with commands");
    let out: String = scripts.iter().map(|script| run(script, None)).collect();
    assert!(out.contains("3376") || out.contains("3,376"), "the airports are counted: {out}");
    assert!(out.contains("│ 263 │ AK"), "PPL is translated by its plugin: {out}");
}

#[test]
fn the_control_plane_s_commands() {
    let scripts = scripts("docs/control-plane.md");
    assert_eq!(scripts.len(), 1);
    // A port that another test may have.
    let script =
        scripts[0].replace("serve ", "serve --listen 127.0.0.1:19471 --inactivity 2s ").replace(":9400", ":19471");
    let out = run(&script, None);
    assert!(out.contains("[[\"Boston\"]]") && out.contains("\"state\":\"running\""), "{out}");
}

#[test]
fn the_commands_that_need_an_opensearch() {
    let Some(url) = url() else { return };
    for script in scripts("README.md").iter().filter(|script| script.contains("OPENSEARCH_URL")) {
        // A second run would find its session ended.
        let own = format!("{:x}", std::process::id());
        let script = script.replace("demo", &format!("demo-{own}")).replace("hello-1", &format!("hello-{own}"));
        assert!(run(&script, Some(&url)).contains("Boston"));
    }
}

#[test]
fn the_sample_queries_are_answered() {
    let readme = std::fs::read_to_string(repository().join("README.md")).expect("README.md");
    for block in readme.split("\n```sql\n").skip(1).map(|rest| rest.split("\n```").next().unwrap_or_default()) {
        let out = Home::new().ask(block).ok();
        assert_eq!(out.matches("rows)").count() + out.matches("row)").count(), block.matches(';').count(), "{out}");
        assert!(!out.contains("(0 rows)"), "{out}");
    }
}
