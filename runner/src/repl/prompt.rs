//! The prompt: lines with editing and history, several to a statement.

use std::path::PathBuf;

use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Completer, Config, Editor, Helper, Highlighter, Hinter};

use super::split::Splitter;
use crate::ambient;
use crate::problem::Problem;

/// What the user did.
#[derive(Debug)]
pub enum Entered {
    /// One or more statements, or a command.
    Text(String),
    /// Ctrl-C: the line is gone.
    Cleared,
    /// Ctrl-D.
    End,
}

/// A prompt with a history.
pub struct Prompt {
    editor: Editor<Statements, FileHistory>,
    history: PathBuf,
}

impl Prompt {
    /// A prompt on this terminal.
    ///
    /// # Errors
    /// The terminal's.
    pub fn new() -> Result<Prompt, Problem> {
        let config = Config::builder().auto_add_history(false).max_history_size(10_000).map_err(failed)?.build();
        let mut editor = Editor::with_config(config).map_err(failed)?;
        editor.set_helper(Some(Statements));
        let history = ambient::data_folder().join("history");
        // The first time there is none.
        let _ = editor.load_history(&history);
        Ok(Prompt { editor, history })
    }

    /// Waits for what the user enters.
    ///
    /// # Errors
    /// The terminal's.
    pub fn next(&mut self) -> Result<Entered, Problem> {
        match self.editor.readline("firesteel> ") {
            Ok(text) => {
                if !text.trim().is_empty() {
                    let _ = self.editor.add_history_entry(text.trim_end());
                }
                Ok(Entered::Text(text))
            }
            Err(ReadlineError::Interrupted) => Ok(Entered::Cleared),
            Err(ReadlineError::Eof) => Ok(Entered::End),
            Err(error) => Err(failed(error)),
        }
    }
}

impl Drop for Prompt {
    fn drop(&mut self) {
        if let Some(folder) = self.history.parent() {
            let _ = std::fs::create_dir_all(folder);
        }
        if let Err(error) = self.editor.save_history(&self.history) {
            tracing::warn!(%error, "the history cannot be kept");
        }
    }
}

fn failed(error: ReadlineError) -> Problem {
    Problem::Other(format!("the prompt: {error}"))
}

#[derive(Completer, Helper, Highlighter, Hinter)]
struct Statements;

impl Validator for Statements {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if is_complete(context.input()) { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

/// A command is one line; a statement ends with its `;`.
fn is_complete(input: &str) -> bool {
    if input.trim_start().starts_with('\\') || is_goodbye(input) {
        return true;
    }
    let mut splitter = Splitter::default();
    splitter.push(input);
    splitter.is_empty()
}

/// What people type to leave.
pub fn is_goodbye(input: &str) -> bool {
    matches!(input.trim().trim_end_matches(';').to_ascii_lowercase().as_str(), "exit" | "quit")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enter_ends_what_is_complete_and_continues_what_is_not() {
        for (input, complete) in [
            ("SELECT 1", false),
            ("SELECT 1\n;", true),
            ("SELECT 'a;", false),
            ("\\d table", true),
            ("", true),
            ("Quit", true),
            ("SELECT 1; SELECT 2", false),
            ("-- only a comment", true),
        ] {
            assert_eq!(is_complete(input), complete, "{input}");
        }
    }
}
