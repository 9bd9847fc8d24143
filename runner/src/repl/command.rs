//! What a line that begins with `\` asks for.

use crate::output::Format;

/// A command to the prompt itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Explain.
    Help,
    /// Leave.
    Quit,
    /// Run this statement, which lists tables or describes one.
    Statement(String),
    /// Show how long statements take, or no longer.
    Timing,
    /// Statements are in this language from now on.
    Lang(String),
    /// Write results so from now on.
    Format(Format),
}

/// What `\?` says.
pub const HELP: &str = "\
A statement ends with ; and may have several lines.
  \\d            the tables
  \\d NAME       the columns of a table
  \\format NAME  results as table, json, csv or arrow
  \\lang NAME     statements are in this language from now on: sql, ppl, or one of a plugin's
  \\timing       show how long statements take, or no longer
  \\q            leave (Ctrl-D, too)
  Ctrl-C        cancel the running statement, or clear the line";

/// Reads a command.
///
/// # Errors
/// It is none; the text says which is the nearest.
pub fn parse(line: &str) -> Result<Command, String> {
    let line = line.trim().trim_end_matches(';');
    let (name, argument) = line.split_once(char::is_whitespace).map_or((line, ""), |(name, rest)| (name, rest.trim()));
    match (name, argument) {
        ("\\?" | "\\h" | "\\help", "") => Ok(Command::Help),
        ("\\q" | "\\quit" | "\\exit", "") => Ok(Command::Quit),
        ("\\timing", "") => Ok(Command::Timing),
        ("\\d", "") => Ok(Command::Statement("SHOW TABLES".to_owned())),
        ("\\d", table) => Ok(Command::Statement(format!("DESCRIBE {table}"))),
        ("\\lang", "") => Err("\\lang takes a language: sql, ppl, or one of a plugin's".to_owned()),
        ("\\lang", name) => Ok(Command::Lang(name.to_owned())),
        ("\\format", name) => Format::parse(name).map(Command::Format).ok_or_else(|| {
            let names: Vec<&str> = Format::NAMES.iter().map(|(name, _)| *name).collect();
            format!("\\format takes one of {}", names.join(", "))
        }),
        (name, _) => {
            let known = ["\\?", "\\q", "\\d", "\\timing", "\\format", "\\lang"];
            let nearest = known
                .into_iter()
                .max_by(|a, b| strsim::jaro_winkler(a, name).total_cmp(&strsim::jaro_winkler(b, name)));
            let name: String = name.chars().filter(|c| !c.is_control()).collect();
            Err(format!("no command {name}; did you mean {}? \\? lists all", nearest.unwrap_or("\\?")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_what_is_none() {
        assert_eq!(parse("\\d"), Ok(Command::Statement("SHOW TABLES".to_owned())));
        assert_eq!(parse("\\d  `a b`;"), Ok(Command::Statement("DESCRIBE `a b`".to_owned())));
        assert_eq!(parse("\\lang ppl;"), Ok(Command::Lang("ppl".to_owned())));
        assert_eq!(parse("\\format csv"), Ok(Command::Format(Format::Csv)));
        assert_eq!(parse("\\format xml"), Err("\\format takes one of table, json, csv, arrow".to_owned()));
        assert_eq!(parse("\\timng"), Err("no command \\timng; did you mean \\timing? \\? lists all".to_owned()));
        assert_eq!(parse(" \\q "), Ok(Command::Quit));
    }
}
