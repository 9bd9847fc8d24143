//! The command line: its grammar, made of the table of settings, and what it says.

mod control;
mod plugin;

use clap::builder::{PossibleValuesParser, StyledStr};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use clap_complete::Shell;

use crate::conf::keys::{Group, KEYS, Key};
use crate::conf::{Configuration, launch, values};
use crate::problem::{EXIT_CODES, JOB_EXIT_CODES, Problem};

const ABOUT: &str = "Runs SQL and PPL statements from an OpenSearch index, or from a SQLite file, on DataFusion";

const EXAMPLES: &str = "\
Examples:
  firesteel repl                                   ask the sample data
  firesteel repl --data ./logs                     ask the files of a folder
  firesteel serve --data ./logs                    answer clients over HTTP on 127.0.0.1:9400, on a SQLite file
  firesteel run --data ./logs                      serve statements that others submit, on a SQLite file
  firesteel submit 'SELECT count(*) FROM airports' submit one and wait for its result
  firesteel run --store http://localhost:9200 --session s1 --data-source mys3
  firesteel status                                 sessions and their statements";

const JOB: &[Group] = &Group::ALL;
const CLIENT: &[Group] = &[Group::Store, Group::Session, Group::Logs];
const SERVER: &[Group] = &[Group::Store, Group::Session, Group::Engine, Group::Results, Group::Times, Group::Logs];
const PROMPT: &[Group] = &[Group::Engine, Group::Results, Group::Times, Group::Logs];

/// The option of a file that holds the arguments.
const ARGUMENTS_FILE: &str = "arguments-file";

/// The words that a command line may begin with.
const COMMANDS: &[&str] = &[
    "serve",
    "admin",
    "run",
    "repl",
    "submit",
    "status",
    "plugin",
    "completions",
    "man",
    "worker",
    "plugin-compile",
    "help",
];

/// The whole grammar.
#[must_use]
pub fn grammar() -> Command {
    Command::new("firesteel")
        .version(env!("CARGO_PKG_VERSION"))
        .about(ABOUT)
        .after_help(format!("{EXAMPLES}\n\n{EXIT_CODES}"))
        .arg_required_else_help(true)
        .subcommand_required(true)
        .disable_help_subcommand(true)
        .subcommand(control::serve())
        .subcommand(control::admin())
        .subcommand(run())
        .subcommand(repl())
        .subcommand(submit())
        .subcommand(status())
        .subcommand(plugin::plugin())
        .subcommand(
            Command::new("completions")
                .about("Prints completions for a shell")
                .arg(Arg::new("shell").required(true).value_parser(value_parser!(Shell)).help("The shell")),
        )
        .subcommand(Command::new("man").about("Prints the manual page, for `man -l -`"))
        .subcommand(Command::new("worker").hide(true))
        .subcommand(Command::new("plugin-compile").hide(true))
}

fn run() -> Command {
    settings(Command::new("run"), JOB)
        .about("Serves a session: takes its statements in order, runs them, writes their results")
        .long_about(
            "Serves a session: takes its statements in order, runs them, writes their results.\n\n\
             Started as a control plane starts a Spark job (`--class org.apache.spark.sql.FlintREPL --conf …`), with or without the \
             word `run`, it does the same.",
        )
        .after_help(format!(
            "Every option is a key of --conf, too: --heartbeat 20s is --conf firesteel.heartbeat=20s.\n\n{JOB_EXIT_CODES}"
        ))
        .arg(
            Arg::new("class")
                .long("class")
                .value_name("CLASS")
                .help_heading("Launch contract")
                .help("The Spark job whose place this takes: …FlintREPL (a session) or …FlintJob (one statement)"),
        )
        .arg(
            Arg::new("submit-parameters")
                .long("submit-parameters")
                .value_name("TEXT")
                .help_heading("Launch contract")
                .hide_short_help(true)
                .help("All that in one argument, as control planes write it"),
        )
        .arg(
            Arg::new(ARGUMENTS_FILE)
                .long(ARGUMENTS_FILE)
                .value_name("FILE")
                .help_heading("Launch contract")
                .hide_short_help(true)
                .help("All arguments, from a file: a JSON array of texts; a command line is for everybody on this machine to see"),
        )
        .arg(
            Arg::new("positional")
                .value_name("[QUERY] RESULT_INDEX")
                .num_args(0..)
                .help_heading("Launch contract")
                .hide_short_help(true)
                .help("The result index, or a batch job's statement and the result index"),
        )
}

fn repl() -> Command {
    settings(Command::new("repl"), PROMPT)
        .about("Asks the files of a folder: a prompt, or statements from standard input")
        .long_about(
            "Asks the files of a folder: a prompt, or, where standard input is no terminal, statements from there, separated by `;`.\n\n\
             Each statement goes the whole way: it becomes a document in an embedded store, a session's loop claims it, runs it \
             and writes its result, which is what you see.",
        )
        .after_help(format!("In the prompt, \\? explains what else there is.\n\n{EXIT_CODES}"))
        .arg(lang())
        .arg(format("table"))
        .arg(
            Arg::new("on-error")
                .long("on-error")
                .value_name("WHAT")
                .value_parser(PossibleValuesParser::new(["stop", "continue"]))
                .default_value("stop")
                .help("After a statement that failed, where standard input is no terminal"),
        )
        .arg(conf())
}

fn submit() -> Command {
    settings(Command::new("submit"), CLIENT)
        .about("Submits a statement and waits for its result")
        .after_help(format!(
            "Examples:\n  firesteel submit 'SELECT 1'\n  firesteel submit --format csv - < report.sql > report.csv\n  \
             id=$(firesteel submit --no-wait 'SELECT 1'); firesteel submit --cancel $id\n\n{EXIT_CODES}"
        ))
        .arg(
            Arg::new("statement")
                .value_name("SQL")
                .required_unless_present("cancel")
                .allow_hyphen_values(true)
                .help("The statement; - reads it from standard input"),
        )
        .arg(Arg::new("no-wait").long("no-wait").action(ArgAction::SetTrue).help("Print its query id and go"))
        .arg(
            Arg::new("cancel")
                .long("cancel")
                .value_name("ID")
                .conflicts_with_all(["statement", "no-wait", "timeout", "format", "lang"])
                .help("Cancel the statement of this query id or statement id"),
        )
        .arg(lang())
        .arg(
            Arg::new("timeout")
                .long("timeout")
                .value_name("TIME")
                .help("Cancel the statement when it has taken so long, waiting included"),
        )
        .arg(format("table"))
        .arg(conf())
}

fn status() -> Command {
    settings(Command::new("status"), CLIENT)
        .about("Shows sessions and their last statements")
        .after_help(EXIT_CODES)
        .arg(
            Arg::new("format")
                .long("format")
                .value_name("FORMAT")
                .value_parser(PossibleValuesParser::new(["table", "json"]))
                .default_value("table")
                .help("How they are written; json is one object a line"),
        )
        .arg(
            Arg::new("limit")
                .long("limit")
                .value_name("NUMBER")
                .value_parser(value_parser!(u16).range(1..=1000))
                .default_value("20")
                .help("How many of each at most"),
        )
        .arg(Arg::new("queries").long("queries").action(ArgAction::SetTrue).help("Show the statements' texts, too"))
        .arg(conf())
}

fn lang() -> Arg {
    let help = "The language of statements: sql, ppl, or one of a plugin's";
    Arg::new("lang").long("lang").value_name("NAME").default_value("sql").help(help)
}

fn format(default: &'static str) -> Arg {
    Arg::new("format")
        .long("format")
        .value_name("FORMAT")
        .value_parser(PossibleValuesParser::new(["table", "json", "csv", "arrow"]))
        .default_value(default)
        .help("How results are written; json is one object a line, its nulls left out; arrow is an IPC stream")
}

fn conf() -> Arg {
    Arg::new("conf")
        .long("conf")
        .value_name("KEY=VALUE")
        .action(ArgAction::Append)
        .hide_short_help(true)
        .help("Sets what an option sets: --conf firesteel.store=…")
}

/// The options of these groups, and `--conf` where a command has no other.
fn settings(mut command: Command, groups: &[Group]) -> Command {
    if groups == JOB {
        command = command.arg(conf().help_heading("Launch contract"));
    }
    for key in KEYS.iter().filter(|key| groups.contains(&key.group)) {
        let Some(option) = key.option else { continue };
        let default = if key.default.is_empty() { String::new() } else { format!(" [default: {}]", key.default) };
        let arg = Arg::new(option)
            .long(option)
            .help(format!("{}{default}", key.what))
            .help_heading(key.group.heading())
            .hide_short_help(!key.common);
        command = command.arg(if key.value.is_empty() {
            arg.action(ArgAction::SetTrue)
        } else {
            let action = if key.list { ArgAction::Append } else { ArgAction::Set };
            arg.value_name(key.value).action(action).allow_hyphen_values(true)
        });
    }
    command
}

/// Reads a command line. A launcher's job id makes any line that names no command a job.
///
/// # Errors
/// What clap says, and the nearest command where it is none that was named.
pub fn parse(arguments: Vec<String>, launched: bool) -> Result<ArgMatches, clap::Error> {
    grammar().try_get_matches_from(normal(arguments, launched)).map_err(|mut error| {
        let said = match error.get(ContextKind::InvalidSubcommand) {
            Some(ContextValue::String(said)) if error.kind() == ErrorKind::InvalidSubcommand => said.clone(),
            _ => return error,
        };
        if error.get(ContextKind::SuggestedSubcommand).is_none() {
            let grammar = grammar();
            let names = grammar.get_subcommands().filter(|c| !c.is_hide_set()).map(Command::get_name);
            let alike = |name: &str| strsim::jaro_winkler(name, &said);
            if let Some(nearest) = names.max_by(|a, b| alike(a).total_cmp(&alike(b))) {
                let tip = format!("the nearest subcommand is '{nearest}'; a job's result index follows the word run, or --class or --conf");
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
            }
        }
        error
    })
}

/// The arguments of `run`, where they are in a file.
///
/// # Errors
/// The file cannot be read, or holds something else.
pub fn from_file(mut arguments: Vec<String>) -> Result<Vec<String>, Problem> {
    let Some([run, option, file]) = arguments.get(1..) else { return Ok(arguments) };
    if run != "run" || option.strip_prefix("--") != Some(ARGUMENTS_FILE) {
        return Ok(arguments);
    }
    let text = std::fs::read_to_string(file)
        .map_err(|e| Problem::usage(format!("--{ARGUMENTS_FILE}: `{file}` cannot be read: {e}")))?;
    let more: Vec<String> = serde_json::from_str(&text)
        .map_err(|_| Problem::usage(format!("--{ARGUMENTS_FILE}: `{file}` should hold a JSON array of texts")))?;
    arguments.truncate(2);
    arguments.extend(more);
    Ok(arguments)
}

/// The arguments as the grammar knows them: a submit-parameter string split, a job without the word `run` given it.
#[must_use]
pub fn normal(arguments: Vec<String>, launched: bool) -> Vec<String> {
    let mut arguments = arguments.into_iter();
    let program = arguments.next().unwrap_or_else(|| "firesteel".to_owned());
    let mut rest: Vec<String> = arguments.collect();
    let implied = rest.first().is_some_and(|first| is_job(first, &rest, launched));
    if implied || rest.first().is_some_and(|first| first == "run") {
        let parameters = rest.iter().position(|a| a == "--submit-parameters");
        if let Some(at) = parameters.filter(|at| at + 1 < rest.len()) {
            rest.remove(at);
            // Split below even if it holds a single word.
            rest[at].insert(0, ' ');
        }
        rest = launch::expand(rest);
    }
    let run = implied.then(|| "run".to_owned());
    std::iter::once(program).chain(run).chain(rest).collect()
}

/// Whether a line that begins with this word is a job without the word `run`: it has what a launcher gives. Any other word is
/// a command, or one mistyped.
fn is_job(first: &str, all: &[String], launched: bool) -> bool {
    let trimmed = first.trim_start();
    if COMMANDS.contains(&first) || matches!(first, "-h" | "--help" | "-V" | "--version") {
        return false;
    }
    let is_launch = |a: &String| {
        let option = a.trim_start();
        ["--conf", "--class", "--submit-parameters"].iter().any(|known| option.starts_with(known))
    };
    launched || trimmed.starts_with("--") || all.iter().any(is_launch)
}

/// The settings of a command's matches: what `--conf` says, then what the options say.
///
/// # Errors
/// A key is unknown or a value is none of its key's.
fn configuration(
    matches: &ArgMatches,
    groups: &[Group],
    mut configuration: Configuration,
) -> Result<Configuration, Problem> {
    for pair in matches.get_many::<String>("conf").into_iter().flatten() {
        configuration.conf(pair)?;
    }
    for key in KEYS.iter().filter(|key| groups.contains(&key.group)) {
        set(&mut configuration, key, matches)?;
    }
    configuration.settle();
    Ok(configuration)
}

fn set(configuration: &mut Configuration, key: &Key, matches: &ArgMatches) -> Result<(), Problem> {
    let Some(option) = key.option else { return Ok(()) };
    if key.value.is_empty() {
        return if matches.get_flag(option) { configuration.option(key, "true") } else { Ok(()) };
    }
    let mut given = matches.get_many::<String>(option).into_iter().flatten();
    given.try_for_each(|value| {
        if is_option(value) {
            let message = format!("--{option} has no value: `{value}` is the next option");
            return Err(Problem::usage_with(message, format!("--{option} {}", key.value)));
        }
        configuration.option(key, value)
    })
}

/// Whether this is one of our options, and no value that begins as one: a value may be a statement, and begin with a comment.
fn is_option(text: &str) -> bool {
    text.strip_prefix("--").and_then(|rest| rest.split('=').next()).is_some_and(|name| {
        matches!(name, "conf" | "class" | "submit-parameters") || KEYS.iter().any(|key| key.option == Some(name))
    })
}

/// The settings of `run`.
///
/// # Errors
/// A key is unknown or a value is none of its key's.
pub fn of_job(matches: &ArgMatches) -> Result<Configuration, Problem> {
    configuration(matches, JOB, Configuration::default())
}

/// The settings of `serve` and `admin`.
///
/// # Errors
/// A key is unknown or a value is none of its key's.
pub fn of_server(matches: &ArgMatches) -> Result<Configuration, Problem> {
    configuration(matches, SERVER, Configuration::default())
}

/// The settings of `submit` and `status`.
///
/// # Errors
/// A key is unknown or a value is none of its key's.
pub fn of_client(matches: &ArgMatches) -> Result<Configuration, Problem> {
    configuration(matches, CLIENT, Configuration::default())
}

/// The settings of `repl`, over those of `base`.
///
/// # Errors
/// A key is unknown or a value is none of its key's.
pub fn of_prompt(matches: &ArgMatches, base: Configuration) -> Result<Configuration, Problem> {
    configuration(matches, PROMPT, base)
}

/// The time that an option gives, in milliseconds.
///
/// # Errors
/// It is none.
pub fn time(matches: &ArgMatches, option: &str) -> Result<Option<u64>, Problem> {
    let Some(text) = matches.get_one::<String>(option) else { return Ok(None) };
    values::duration(text)
        .map(Some)
        .map_err(|expected| Problem::usage(format!("--{option}: `{text}` is not {expected}")))
}

/// What clap says about a wrong command line, in this program's form.
#[must_use]
pub fn said(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    format!("firesteel: {}", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &[&str]) -> Vec<String> {
        std::iter::once("firesteel").chain(line.iter().copied()).map(str::to_owned).collect()
    }

    fn normalised(line: &[&str]) -> Vec<String> {
        normal(words(line), false).split_off(1)
    }

    #[test]
    fn the_grammar_is_consistent() {
        grammar().debug_assert();
    }

    #[test]
    fn a_job_needs_no_word_run_and_a_typing_error_is_no_job() {
        for (line, expected) in [
            (vec!["--class", "X", "--conf", "a=b"], vec!["run", "--class", "X", "--conf", "a=b"]),
            (vec!["result_x", "--conf", "a=b"], vec!["run", "result_x", "--conf", "a=b"]),
            (vec!["SELECT 1", "result_x", "--class", "X"], vec!["run", "SELECT 1", "result_x", "--class", "X"]),
            (vec!["result_x", " --class X"], vec!["run", "result_x", "--class", "X"]),
            (vec![" --class X --conf a=b", "index"], vec!["run", "--class", "X", "--conf", "a=b", "index"]),
            (vec!["run", "--submit-parameters", "--class X --name y"], vec!["run", "--class", "X"]),
            (vec!["stauts"], vec!["stauts"]),
            (vec!["foo"], vec!["foo"]),
            (vec!["sumbit", "SELECT 1"], vec!["sumbit", "SELECT 1"]),
            (vec!["submit", "--conf x"], vec!["submit", "--conf x"]),
            (vec!["--help"], vec!["--help"]),
            (vec![], vec![]),
        ] {
            assert_eq!(normalised(&line), expected, "{line:?}");
        }
    }

    #[test]
    fn a_launchers_job_id_makes_it_a_job() {
        for (line, expected) in [
            (vec!["result_x"], vec!["run", "result_x"]),
            (vec!["SELECT 1", "result_x"], vec!["run", "SELECT 1", "result_x"]),
            (vec!["status"], vec!["status"]),
            (vec!["--version"], vec!["--version"]),
        ] {
            assert_eq!(normal(words(&line), true).split_off(1), expected, "{line:?}");
        }
    }

    #[test]
    fn an_option_wins_over_conf_and_of_equals_the_last() {
        let line = [
            "firesteel",
            "run",
            "--heartbeat",
            "2s",
            "--conf",
            "firesteel.heartbeat=1s",
            "--conf",
            "firesteel.poll=1s",
            "--conf",
            "firesteel.poll=3s",
            "--data",
            "a,b",
            "--data",
            "c",
        ];
        let matches = grammar().try_get_matches_from(line).expect("right");
        let settings = of_job(matches.subcommand().expect("run").1).expect("right");
        assert_eq!((settings.policy.heartbeat, settings.policy.poll), (2_000, 3_000));
        assert_eq!(settings.engine.data, [std::path::Path::new("a,b"), std::path::Path::new("c")]);
    }

    #[test]
    fn an_option_is_no_value_of_the_one_before_it() {
        let of = |line: &[&str]| {
            let matches = grammar().try_get_matches_from(words(line)).expect("the grammar's");
            of_job(matches.subcommand().expect("run").1)
        };
        for (line, told) in [
            (["run", "--store", "--session", "x"], "--store has no value: `--session` is the next option"),
            (["run", "--session", "--store=x", "y"], "--session has no value: `--store=x` is the next option"),
            (
                ["run", "--store", "", "y"],
                "--store is empty; it takes http://HOST[:PORT], https://HOST[:PORT] or the path of a file",
            ),
            (["run", "--session", "", "y"], "--session is empty; it takes some text"),
        ] {
            assert_eq!(of(&line).expect_err("no value").to_string(), told);
        }
        let query = of(&["run", "--query", "--store it\nSELECT 1"]).expect("a comment").query;
        assert_eq!(query.as_deref(), Some("--store it\nSELECT 1"));
    }

    #[test]
    fn what_is_misspelt_is_told_with_what_was_meant() {
        let error = parse(words(&["foo"]), false).expect_err("no command");
        assert!(
            said(&error).starts_with("firesteel: unrecognized subcommand 'foo'\n\n  tip: the nearest subcommand is '"),
            "{}",
            said(&error)
        );
        let error = parse(words(&["stauts"]), false).expect_err("no command");
        assert!(
            said(&error).starts_with(
                "firesteel: unrecognized subcommand 'stauts'\n\n  tip: a similar subcommand exists: 'status'"
            ),
            "{}",
            said(&error)
        );
        let error = grammar().try_get_matches_from(["firesteel", "run", "--hartbeat", "1s"]).expect_err("no option");
        assert!(said(&error).contains("'--heartbeat'"), "{}", said(&error));
    }
}
