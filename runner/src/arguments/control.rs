//! The grammar of `serve` and `admin`: how a control plane is told what it is.

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, Command, value_parser};

use super::{SERVER, conf, settings};
use crate::problem::EXIT_CODES;

fn option(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help_heading("Control plane").help(help)
}

fn number(name: &'static str, default: &'static str, help: &'static str) -> Arg {
    option(name, "NUMBER", help)
        .value_parser(value_parser!(u32).range(1..))
        .default_value(default)
        .hide_short_help(true)
}

/// What a control plane is told, whatever it does: how jobs are started, and how much there may be.
fn plane(command: Command) -> Command {
    settings(command, SERVER)
        .arg(
            option(
                "launcher",
                "KIND",
                "How jobs are started: one process for all sessions, one a session, or by EMR Serverless' API",
            )
            .value_parser(PossibleValuesParser::new(["shared-process", "process", "emr-serverless"]))
            .default_value("shared-process"),
        )
        .arg(option(
            "jobs-dir",
            "DIR",
            "Where the folders of jobs are, with their logs [default: beside the default store]",
        ))
        .arg(
            option(
                "emr-application",
                "ID",
                "EMR Serverless: the application that jobs are started in, unless a request names another",
            )
            .hide_short_help(true),
        )
        .arg(option("emr-role", "ARN", "EMR Serverless: the role that jobs run as").hide_short_help(true))
        .arg(
            option("emr-entry-point", "URI", "EMR Serverless: the jar with the job's class")
                .default_value("firesteel-shim.jar")
                .hide_short_help(true),
        )
        .arg(
            option(
                "emr-endpoint",
                "URL",
                "EMR Serverless: where its API is [default: https://emr-serverless.REGION.amazonaws.com]",
            )
            .hide_short_help(true),
        )
        .arg(number("max-queue", "15", "Statements that wait or run in one session"))
        .arg(number("max-statements", "1000", "Statements that wait or run in all sessions"))
        .arg(number("max-sessions", "1000", "Sessions that have not ended"))
        .arg(number("max-user-sessions", "100", "Sessions of one user that have not ended"))
        .arg(
            option(
                "max-user-statements",
                "NUMBER",
                "Statements of one user that wait or run in all sessions; 0: any number",
            )
            .value_parser(value_parser!(u32))
            .default_value("0")
            .hide_short_help(true),
        )
        .arg(conf())
}

pub fn admin() -> Command {
    let wait = || {
        option("wait", "TIME", "How long statements that wait or run may go on before that [default: 30min]")
            .default_value("30min")
    };
    let application = option("application", "ID", "The application that the sessions' new jobs are launched in");
    Command::new("admin")
        .about("Drains all sessions, or moves them to another application; broken off, it is run again and goes on")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            plane(Command::new("drain"))
                .about("Has all sessions take no more statements, and ends each when those that it has are done")
                .arg(wait()),
        )
        .subcommand(
            plane(Command::new("migrate"))
                .about("Drains all sessions of other applications, then goes on with each in this one, with its views, settings and what waits")
                .arg(application.required(true))
                .arg(wait()),
        )
}

pub fn serve() -> Command {
    plane(Command::new("serve"))
        .about("Serves the control plane: allocates sessions, launches jobs, answers OpenSearch's async query API and others")
        .long_about(
            "Serves the control plane: allocates sessions, launches jobs, watches them and answers clients.\n\n\
             With nothing configured it is a whole system on one machine: a SQLite file, one runner as a child process, the APIs on \
             127.0.0.1. All settings of the store, the engine, results and times are the jobs', too.",
        )
        .after_help(EXIT_CODES)
        .arg(option("listen", "HOST:PORT", "Where the APIs are served; elsewhere than on this machine, with --users only").default_value("127.0.0.1:9400"))
        .arg(option("users", "FILE", "Who may ask: a JSON array of {user, role, token, password}; roles are owner, viewer, admin"))
        .arg(option("tls-cert", "FILE", "The APIs are served over TLS by this certificate and those that vouch for it, as PEM").requires("tls-key"))
        .arg(option("tls-key", "FILE", "Its private key, as PEM").requires("tls-cert"))
        .arg(
            Arg::new("csrf-protection")
                .long("csrf-protection")
                .action(ArgAction::SetTrue)
                .help_heading("Control plane")
                .hide_short_help(true)
                .help("Changes through Livy's API need the header X-Requested-By"),
        )
        .arg(option("rate", "NUMBER", "Requests a second that one caller may send; 0: any number").value_parser(value_parser!(u64)).default_value("0").hide_short_help(true))
        .arg(option("instance", "NAME", "What this replica is called, the same after a restart [default: the machine's name and the port]").hide_short_help(true))
        .arg(option("watch-every", "TIME", "Between looks at all sessions [default: 5s]").hide_short_help(true))
        .arg(option("stale-after", "TIME", "A session without a heartbeat for so long is looked into [default: 15min]").hide_short_help(true))
        .arg(
            option("recover", "NUMBER", "A session that failed is recovered by itself, at most so often; 0: only when asked")
                .value_parser(value_parser!(u32))
                .default_value("0"),
        )
        .arg(number("recover-rate", "60", "Sessions recovered by themselves in a minute"))
}
