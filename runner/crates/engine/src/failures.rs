//! DataFusion's errors in the words that a user sees: a code, a place, and what to do.

use datafusion::common::utils::datafusion_strsim::levenshtein;
use datafusion::common::{DataFusionError, SchemaError};
use datafusion::sql::sqlparser::parser::ParserError;
use firesteel_model::{Code, Failure, Stage};

/// The most bytes of a message: it may quote the statement, and a statement may be a megabyte.
const MESSAGE_BYTES: usize = 2000;

/// What the operator set, for messages that name a limit.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes.
    pub memory_pool: u64,
    /// Bytes.
    pub spill: u64,
}

/// Marks an error of ours that passes through DataFusion: it comes out as it went in.
#[derive(Debug)]
pub struct Carried(pub Failure);

impl std::fmt::Display for Carried {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Carried {}

/// Sends a failure through DataFusion.
pub fn carry(failure: Failure) -> DataFusionError {
    DataFusionError::External(Box::new(Carried(failure)))
}

/// The failure that a user is told of.
pub fn failure(error: &DataFusionError, stage: Stage, limits: Limits) -> Failure {
    if let Some(carried) = carried(error) {
        return carried;
    }
    let root = root(error);
    if spilled_too_much(error) {
        let text = format!(
            "the statement spilled more than {} (setting `spill_limit`); read fewer rows at once, or raise the limit",
            size(limits.spill)
        );
        return Failure::new(Code::Spill, stage, text);
    }
    let (code, text) = match root {
        DataFusionError::SQL(e, note) => (Code::Syntax, syntax(e, note.as_deref())),
        DataFusionError::SchemaError(e, _) => (Code::Analysis, schema(e)),
        DataFusionError::Plan(text) | DataFusionError::Configuration(text) => (Code::Analysis, text.clone()),
        DataFusionError::NotImplemented(text) => (Code::Unsupported, text.clone()),
        DataFusionError::ResourcesExhausted(_) => (
            Code::Memory,
            format!(
                "the statement needed more memory than its pool has ({}, setting `memory_pool`); read fewer rows or columns at once, or raise the limit",
                size(limits.memory_pool)
            ),
        ),
        DataFusionError::Internal(text) => (Code::Internal, text.clone()),
        DataFusionError::ExecutionJoin(e) if e.is_panic() => {
            (Code::Internal, "the statement met a fault of the engine (a panic)".into())
        }
        DataFusionError::Execution(text) => (Code::Execution, text.clone()),
        other => (Code::Execution, other.strip_backtrace()),
    };
    Failure::new(code, stage, tidy(&text))
}

/// The same, of a query that reads these tables: it says which of them has the wrong file.
pub fn reading(error: &DataFusionError, limits: Limits, tables: &[String]) -> Failure {
    use datafusion::arrow::error::ArrowError;
    let mut failure = failure(error, Stage::Execute, limits);
    let of_file = match root(error) {
        DataFusionError::ParquetError(_) => true,
        DataFusionError::ArrowError(inner, _) => match inner.as_ref() {
            ArrowError::CsvError(_) | ArrowError::JsonError(_) | ArrowError::ParquetError(_) => true,
            ArrowError::ParseError(text) => text.starts_with("Error while parsing value"),
            _ => false,
        },
        _ => false,
    };
    if of_file && !tables.is_empty() {
        failure.message = tidy(&damaged(&tables.join("` or `"), &failure.message));
    }
    failure
}

/// What to do about a file that is not as its name says.
pub fn damaged(file: &str, why: &str) -> String {
    format!("`{file}` cannot be read: {why}; repair the file, or take it out of the data folder")
}

fn carried(error: &DataFusionError) -> Option<Failure> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(e) = cause {
        if let Some(carried) = e.downcast_ref::<Carried>() {
            return Some(carried.0.clone());
        }
        cause = match e.downcast_ref::<DataFusionError>() {
            Some(DataFusionError::External(inner)) => Some(inner.as_ref()),
            Some(DataFusionError::ObjectStore(inner)) => Some(inner.as_ref()),
            Some(DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner)) => Some(inner.as_ref()),
            Some(DataFusionError::Shared(inner)) => Some(inner.as_ref()),
            _ => e.source(),
        };
    }
    None
}

/// The limit is met while Arrow writes, so it comes as an input/output error of any depth.
fn spilled_too_much(error: &DataFusionError) -> bool {
    let marked = |text: &str| text.contains("datafusion.runtime.max_temp_directory_size");
    match root(error) {
        DataFusionError::ResourcesExhausted(text) => marked(text),
        DataFusionError::ArrowError(inner, _) => marked(&inner.to_string()),
        DataFusionError::IoError(inner) => marked(&inner.to_string()),
        _ => false,
    }
}

/// The error below context, diagnostics, sharing and collections.
fn root(error: &DataFusionError) -> &DataFusionError {
    match error {
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => root(inner),
        DataFusionError::Shared(inner) => root(inner),
        DataFusionError::Collection(errors) => errors.first().map_or(error, root),
        DataFusionError::External(inner) => inner.downcast_ref::<DataFusionError>().map_or(error, root),
        DataFusionError::ArrowError(inner, _) => match inner.as_ref() {
            datafusion::arrow::error::ArrowError::ExternalError(inner) => {
                inner.downcast_ref::<DataFusionError>().map_or(error, root)
            }
            _ => error,
        },
        other => other,
    }
}

fn syntax(error: &ParserError, note: Option<&str>) -> String {
    match error {
        ParserError::RecursionLimitExceeded => {
            format!("the statement nests too deeply{}", note.unwrap_or_default())
        }
        ParserError::ParserError(text) | ParserError::TokenizerError(text) => text
            .replacen(" at Line: ", " at line ", 1)
            .replacen(", Column: ", ", column ", 1)
            .replacen("Expected: ", "expected ", 1)
            .replacen(", found: ", ", found ", 1),
    }
}

fn schema(error: &SchemaError) -> String {
    match error {
        SchemaError::FieldNotFound { field, valid_fields } => {
            let wanted = field.name.as_str();
            let names: Vec<String> =
                valid_fields.iter().map(|c| c.name.clone()).filter(|n| !n.contains('\u{1}')).collect();
            no_such("column", wanted, &names)
        }
        other => other.to_string(),
    }
}

/// "no column `a`; did you mean `b`?", or what there is.
pub fn no_such(what: &str, wanted: &str, there: &[String]) -> String {
    match nearest(wanted, there) {
        Some(near) => format!("there is no {what} `{wanted}`; did you mean `{near}`?"),
        None if there.is_empty() => format!("there is no {what} `{wanted}`, and no other"),
        None => {
            let more = if there.len() > 10 { ", …" } else { "" };
            let some: Vec<String> = there.iter().take(10).map(|n| format!("`{n}`")).collect();
            format!("there is no {what} `{wanted}`; there is {}{more}", some.join(", "))
        }
    }
}

/// The candidate that a typing mistake may have missed.
pub fn nearest<'a>(wanted: &str, there: &'a [String]) -> Option<&'a String> {
    let wanted = wanted.to_lowercase();
    // Distance is quadratic in the length, and names come from outside.
    if wanted.len() > 100 {
        return None;
    }
    let reach = ((wanted.chars().count() + 1) / 3).max(1);
    there
        .iter()
        .filter(|name| name.len() <= 100)
        .map(|name| (levenshtein(&wanted, &name.to_lowercase()), name))
        .filter(|(distance, _)| *distance <= reach)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// First line only, no boilerplate, lower case, no full stop, not too long.
fn tidy(text: &str) -> String {
    let text = text.split("\n\nbacktrace:").next().unwrap_or_default();
    let text = text.split("\nThis issue was likely caused by a bug").next().unwrap_or_default();
    let text = text.replace(['\n', '\r'], " ").replace('\u{1}', "");
    let text = without_tree(text.trim()).trim_end_matches('.');
    let mut out = String::with_capacity(text.len().min(MESSAGE_BYTES));
    let mut chars = text.chars();
    if let Some(first) = chars.next() {
        let second_is_lower = chars.clone().next().is_some_and(char::is_lowercase);
        // `SELECT` stays, `Cannot` does not.
        if second_is_lower { out.extend(first.to_lowercase()) } else { out.push(first) }
    }
    for c in chars {
        if out.len() > MESSAGE_BYTES {
            out.push('…');
            break;
        }
        out.push(c);
    }
    out
}

/// DataFusion shows what it does not know as Rust's own structures: of such a tree only its name is left.
fn without_tree(text: &str) -> &str {
    let mut from = 0;
    while let Some(at) = text[from..].find(" { ").map(|at| from + at) {
        from = at + 3;
        let field = text[from..].split_once(": ").map_or("", |(field, _)| field);
        let is_field = !field.is_empty() && field.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        // `Function(Function { name: …`: the outermost word names it.
        let start = text[..at].rfind(' ').map_or(0, |space| space + 1);
        let name = text[start..at].split(['(', '[']).next().unwrap_or_default();
        if is_field && name.starts_with(|c: char| c.is_ascii_uppercase()) {
            return &text[..start + name.len()];
        }
    }
    text
}

/// A size as people read it.
pub fn size(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["bytes", "KB", "MB", "GB"] {
        if value < 1024.0 || unit == "GB" {
            return if value.fract() == 0.0 { format!("{value:.0} {unit}") } else { format!("{value:.1} {unit}") };
        }
        value /= 1024.0;
    }
    unreachable!("the last unit returns")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_name_is_answered_with_the_nearest_or_with_what_there_is() {
        let there = ["amount".to_owned(), "region".to_owned()];
        assert_eq!(no_such("column", "ammount", &there), "there is no column `ammount`; did you mean `amount`?");
        assert_eq!(no_such("column", "x", &there), "there is no column `x`; there is `amount`, `region`");
        assert_eq!(no_such("table", "x", &[]), "there is no table `x`, and no other");
    }

    #[test]
    fn sizes_read_well() {
        for (bytes, text) in [(0, "0 bytes"), (1536, "1.5 KB"), (1 << 30, "1 GB"), (1 << 40, "1024 GB")] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn a_message_shows_no_tree() {
        for (text, shown) in [
            (
                "Unsupported ast node Pivot { table: Table { name: x } } in create_relation",
                "unsupported ast node Pivot",
            ),
            ("No: Function(Function { name: ObjectName([]) })", "no: Function"),
            ("there is no column `a { b: c`", "there is no column `a { b: c`"),
        ] {
            assert_eq!(tidy(text), shown);
        }
    }

    #[test]
    fn a_message_is_one_line_and_not_a_megabyte() {
        assert_eq!(tidy("Cannot do\nthat."), "cannot do that");
        assert_eq!(tidy("SQL is fine"), "SQL is fine");
        assert!(tidy(&"é".repeat(1_000_000)).len() < MESSAGE_BYTES + 10);
    }
}
