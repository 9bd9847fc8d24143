//! The grammar of `plugin`: how query plugins are made, tried and put where a runner loads them.

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, Command, value_parser};

const CASES: &str = "\
Runs a plugin's cases, without a store: statements, and what becomes of them. Exit code 1: one came out otherwise.

A file has any number of cases:

  == a title
  lang: hello              (default: the plugin's first language, else sql)
  set: KEY = VALUE         (as SET has it; any number)
  the statement
  -- sql                   (at least one of these three)
  what handlers made of it
  -- rows
  its columns, and its rows, with | between
  -- error
  its message";

/// `firesteel plugin …`.
pub fn plugin() -> Command {
    let file = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).value_name(value).value_parser(value_parser!(std::path::PathBuf)).help(help)
    };
    let folder = || {
        file("plugins", "DIR", "The folder of plugins, as the runner's --plugins has it")
            .long("plugins")
            .env("FIRESTEEL_PLUGINS")
            .required(true)
    };
    let section = || file("settings", "FILE", "Its order, config, grants and limits, in TOML").long("settings");
    let component = || {
        file("file", "FILE", "The component, or the name of one that is in this program: ppl, masking").required(true)
    };
    let tables = |help: &'static str| file("data", "DIR", help).long("data").action(ArgAction::Append);
    Command::new("plugin")
        .about("Makes query plugins, tries them, and puts them where a runner loads them")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("new")
                .about("Writes a new plugin: a project in Rust that builds, with the SDK inside")
                .arg(file("name", "NAME", "Its name, and the folder's; a path may stand before it").required(true))
                .arg(
                    Arg::new("lang")
                        .long("lang")
                        .value_name("NAME")
                        .value_parser(PossibleValuesParser::new(["rust"]))
                        .default_value("rust")
                        .help("What it is written in"),
                ),
        )
        .subcommand(
            Command::new("run")
                .about("Runs one statement with a plugin, without a store: what handlers make of it, its result, and the plugin's log")
                .arg(component())
                .arg(Arg::new("statement").value_name("STATEMENT").required(true).help("The statement"))
                .arg(Arg::new("lang").long("lang").value_name("NAME").help("Its language [default: the plugin's first, else sql]"))
                .arg(tables("A folder whose files are tables"))
                .arg(section()),
        )
        .subcommand(
            Command::new("test")
                .about("Runs a plugin's cases, without a store: statements, and what becomes of them")
                .long_about(CASES)
                .arg(component())
                .arg(file("cases", "DIR", "The folder of the cases, *.txt").long("cases").default_value("tests/cases"))
                .arg(tables("A folder whose files are tables [default: tests/tables, if it is there]"))
                .arg(section()),
        )
        .subcommand(
            Command::new("build")
                .about("Makes a component of the core module that a compiler made")
                .arg(
                    file("module", "MODULE", "The core module, with the interface inside, as the SDK puts it there")
                        .required(true),
                )
                .arg(
                    file("out", "FILE", "The component [default: MODULE with the ending .component.wasm]")
                        .short('o')
                        .long("out"),
                ),
        )
        .subcommand(
            Command::new("check")
                .about("Says what a component is, does and asks for, and whether this program can load it")
                .arg(component())
                .arg(section()),
        )
        .subcommand(
            Command::new("add")
                .about("Compiles a plugin and puts it into the folder; a runner picks it up between statements")
                .arg(component())
                .arg(section())
                .arg(folder()),
        )
        .subcommand(Command::new("list").about("Lists the plugins of a folder in the order of the chain").arg(folder()))
        .subcommand(
            Command::new("remove")
                .about("Takes a plugin out of the folder, with its settings")
                .arg(Arg::new("name").value_name("NAME").required(true).help("Its name"))
                .arg(folder()),
        )
}
