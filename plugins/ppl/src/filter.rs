//! What stands beside `source=`: words to look for, and fields compared with values that need no quotes.

use crate::ast::{Expr, Name};
use crate::catalog::Type;
use crate::cursor::Cursor;
use crate::expression::{comparison, name, sum};
use crate::lexer::Kind;
use crate::pipeline::Pipeline;
use crate::problem::Problem;
use crate::sql::{Sql, sql};
use crate::time::Relative;
use crate::value::{Value, as_text};

/// A choice among rows.
#[derive(Debug)]
pub enum Filter {
    /// All of these.
    All(Vec<Filter>),
    /// One of these.
    Any(Vec<Filter>),
    /// Not this, nor unknown.
    Not(Box<Filter>),
    /// A field compared with a value.
    Field(Name, &'static str, Term),
    /// A field that has one of these values.
    Among(Name, Vec<Term>),
    /// `earliest=`, `latest=`: of `@timestamp`.
    Time(usize, bool, Relative),
    /// Words that some field of text has.
    Words(String),
    /// As in `where`.
    Expr(Expr),
}

/// A value.
#[derive(Debug)]
pub enum Term {
    /// In quotes or not.
    Text(String, usize),
    /// A number, or what is calculated.
    Expr(Expr),
}

const COMPARISONS: &[(&str, &str)] =
    &[("==", "="), ("=", "="), ("!=", "<>"), ("<>", "<>"), ("<=", "<="), (">=", ">="), ("<", "<"), (">", ">")];

type Stop = fn(&Cursor<'_>, usize) -> bool;

/// Reads a filter up to where `stop` is true.
///
/// # Errors
/// There is none.
pub fn read(c: &mut Cursor<'_>, stop: Stop) -> Result<Filter, Problem> {
    c.deeper(|c| all(c, stop))
}

fn all(c: &mut Cursor<'_>, stop: Stop) -> Result<Filter, Problem> {
    let mut terms = vec![any(c, stop)?];
    while !c.ends() && !c.is(")") && !stop(c, 0) {
        c.eat_word("and");
        terms.push(any(c, stop)?);
    }
    Ok(if terms.len() == 1 { terms.remove(0) } else { Filter::All(terms) })
}

/// OR binds closer than AND here.
fn any(c: &mut Cursor<'_>, stop: Stop) -> Result<Filter, Problem> {
    let mut terms = vec![not(c, stop)?];
    while c.eat_word("or") {
        terms.push(not(c, stop)?);
    }
    Ok(if terms.len() == 1 { terms.remove(0) } else { Filter::Any(terms) })
}

fn not(c: &mut Cursor<'_>, stop: Stop) -> Result<Filter, Problem> {
    if c.eat_word("not") {
        return Ok(Filter::Not(Box::new(c.deeper(|c| not(c, stop))?)));
    }
    primary(c, stop)
}

fn operates(c: &Cursor<'_>) -> bool {
    COMPARISONS.iter().any(|(s, _)| c.is(s))
        || ["+", "/", "%"].iter().any(|s| c.is(s))
        || ["in", "like", "ilike", "between", "is", "regexp"].iter().any(|w| c.is_word(w))
        || c.is_word("not") && ["in", "like", "ilike", "between", "regexp"].iter().any(|w| c.word_ahead(1, w))
}

fn primary(c: &mut Cursor<'_>, stop: Stop) -> Result<Filter, Problem> {
    let mark = c.mark();
    if c.is("[") || c.is_word("exists") && c.symbol_ahead(1, "[") || c.is("(") && c.list_ahead() {
        return Ok(Filter::Expr(comparison(c)?));
    }
    if c.is("(") {
        c.next();
        let inner = read(c, stop);
        if inner.is_err() || !c.eat(")") || operates(c) {
            c.back(mark);
            return match comparison(c) {
                Ok(expr) => Ok(Filter::Expr(expr)),
                Err(problem) => Err(inner.err().unwrap_or(problem)),
            };
        }
        return inner;
    }
    for (word, earliest) in [("earliest", true), ("latest", false)] {
        if c.is_word(word) && c.symbol_ahead(1, "=") {
            let at = c.start();
            c.next();
            c.next();
            let (place, written) = match c.peek().kind.clone() {
                Kind::Text(text) => {
                    c.next();
                    (c.end(), text)
                }
                _ => bare(c, "a time")?,
            };
            if c.eat("(") {
                c.expect(")", "behind `now(`")?;
            }
            return Ok(Filter::Time(at, earliest, Relative::read(&written, place.min(c.start()))?));
        }
    }
    if matches!(c.peek().kind, Kind::Word(_) | Kind::Quoted(_)) {
        if c.symbol_ahead(1, "(") && matches!(c.peek().kind, Kind::Word(_)) {
            return Ok(Filter::Expr(comparison(c)?));
        }
        let field = name(c, "a field")?;
        if let Some((_, op)) = COMPARISONS.iter().find(|(s, _)| c.is(s)) {
            c.next();
            return Ok(Filter::Field(field, op, term(c)?));
        }
        let negated = c.is_word("not") && c.word_ahead(1, "in");
        if (c.is_word("in") || negated) && c.symbol_ahead(1 + usize::from(negated), "(") {
            if negated {
                c.next();
            }
            c.next();
            c.next();
            let mut terms = vec![term(c)?];
            while c.eat(",") {
                terms.push(term(c)?);
            }
            c.expect(")", "or `,`")?;
            let among = Filter::Among(field, terms);
            return Ok(if negated { Filter::Not(Box::new(among)) } else { among });
        }
        let operates = operates(c);
        c.back(mark);
        if operates {
            return Ok(Filter::Expr(comparison(c)?));
        }
    }
    if let Kind::Text(text) = c.peek().kind.clone() {
        c.next();
        return Ok(Filter::Words(text));
    }
    bare(c, "a word to look for, or a field and a value").map(|(_, text)| Filter::Words(text))
}

/// What stands together without a space: `ERR-401`, `log_*`, `10.0.0.1`, `-7d@d`.
fn bare(c: &mut Cursor<'_>, what: &str) -> Result<(usize, String), Problem> {
    let at = c.start();
    loop {
        match c.peek().kind {
            Kind::Word(_)
            | Kind::Integer(_)
            | Kind::Decimal(_)
            | Kind::Symbol("-" | "*" | "?" | "." | "+" | ":" | "/") => c.next(),
            _ => return Err(c.wrong(what)),
        };
        let more = matches!(
            c.peek().kind,
            Kind::Word(_) | Kind::Integer(_) | Kind::Decimal(_) | Kind::Symbol("-" | "*" | "?" | "." | "+" | ":" | "/")
        );
        if !(more && c.adjoins()) {
            return Ok((at, c.since(at).to_owned()));
        }
    }
}

fn term(c: &mut Cursor<'_>) -> Result<Term, Problem> {
    let at = c.start();
    if let Kind::Text(text) = c.peek().kind.clone() {
        c.next();
        return Ok(Term::Text(text, at));
    }
    if c.is("[") || c.is("(") || c.symbol_ahead(1, "(") {
        return Ok(Term::Expr(sum(c)?));
    }
    let mark = c.mark();
    let (_, text) = bare(c, "a value")?;
    let end = c.mark();
    // A number is one if nothing else is in it.
    if text.trim_start_matches(['-', '+']).bytes().all(|b| b.is_ascii_digit() || b == b'.')
        || ["true", "false", "null"].contains(&text.as_str())
    {
        c.back(mark);
        if let Ok(expr) = sum(c)
            && c.mark() == end
        {
            return Ok(Term::Expr(expr));
        }
        c.back(mark);
        bare(c, "a value")?;
    }
    Ok(Term::Text(text, at))
}

impl Filter {
    /// The expressions in it.
    pub fn expressions(&self) -> Vec<&Expr> {
        match self {
            Filter::All(all) | Filter::Any(all) => all.iter().flat_map(Filter::expressions).collect(),
            Filter::Not(inner) => inner.expressions(),
            Filter::Field(_, _, Term::Expr(expr)) | Filter::Expr(expr) => vec![expr],
            Filter::Among(_, terms) => {
                terms.iter().filter_map(|t| if let Term::Expr(e) = t { Some(e) } else { None }).collect()
            }
            Filter::Field(_, _, Term::Text(..)) | Filter::Time(..) | Filter::Words(_) => Vec::new(),
        }
    }

    /// Its SQL.
    ///
    /// # Errors
    /// A name in it is none, or its types do not fit.
    pub fn condition(&self, rows: &Pipeline<'_>) -> Result<Sql, Problem> {
        let join = |all: &[Filter], between| -> Result<Sql, Problem> {
            let all: Vec<Sql> = all.iter().map(|f| f.condition(rows)).collect::<Result<_, _>>()?;
            Ok(sql!("({})", Sql::join(&all, between)))
        };
        match self {
            Filter::All(all) => join(all, " AND "),
            Filter::Any(all) => join(all, " OR "),
            Filter::Not(inner) => Ok(sql!("(NOT coalesce({}, false))", inner.condition(rows)?)),
            Filter::Expr(expr) => rows.condition(expr),
            Filter::Field(field, op, term) => compared(rows, field, op, term),
            Filter::Among(field, terms) => {
                let all: Vec<Sql> = terms.iter().map(|t| compared(rows, field, "=", t)).collect::<Result<_, _>>()?;
                Ok(sql!("({})", Sql::join(&all, " OR ")))
            }
            Filter::Time(at, earliest, bound) => {
                let time = rows.field(&Name { parts: vec!["@timestamp".to_owned()], at: *at })?;
                let (time, bound) = rows.aligned(time, bound.value(rows));
                Ok(if *earliest {
                    sql!("({} >= {})", time.sql, bound.sql)
                } else {
                    sql!("({} <= {})", time.sql, bound.sql)
                })
            }
            Filter::Words(words) => {
                let regex = Sql::text(&wordly(words));
                let all: Vec<Sql> = rows
                    .visible()
                    .filter(|c| c.data_type == Type::Text)
                    .map(|c| sql!("coalesce(regexp_like({}, {}), false)", c.sql(), regex))
                    .collect();
                Ok(if all.is_empty() { sql!("false") } else { sql!("({})", Sql::join(&all, " OR ")) })
            }
        }
    }
}

fn compared(rows: &Pipeline<'_>, field: &Name, op: &'static str, term: &Term) -> Result<Sql, Problem> {
    let value = rows.field(field)?;
    let other = match term {
        Term::Expr(expr) => rows.value(expr)?,
        Term::Text(text, _) if text.contains(['*', '?']) && matches!(op, "=" | "<>") => {
            let like = sql!("{} LIKE {}", as_text(&value), Sql::text(&wild(text)));
            return Ok(if op == "=" { sql!("({})", like) } else { sql!("(NOT ({}))", like) });
        }
        Term::Text(text, at) => match value.data_type {
            Type::Integer | Type::Number => match text.trim().parse::<f64>() {
                Ok(number) if number.is_finite() => {
                    Value::new(sql!("CAST({} AS DOUBLE)", Sql::text(text.trim())), Type::Number)
                }
                _ => {
                    return Err(Problem::new(
                        *at,
                        format!("the field `{}` is a number; expected one here", field.text()),
                    ));
                }
            },
            Type::Boolean => Value::new(sql!("CAST({} AS BOOLEAN)", Sql::text(text)), Type::Boolean),
            _ => Value::new(Sql::text(text), Type::Text),
        },
    };
    let (a, b) = rows.aligned(value, other);
    Ok(crate::value::compare(&a, op, &b))
}

/// `*` and `?` as LIKE has them.
fn wild(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '*' => out.push('%'),
            '?' => out.push('_'),
            '%' | '_' | '\\' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

/// A regular expression for words in any case, not inside of others.
fn wordly(text: &str) -> String {
    let text = text.trim();
    let word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let mut out = String::from("(?i)");
    if word(text.chars().next()) {
        out.push_str(r"\b");
    }
    for c in text.chars() {
        match c {
            '*' => out.push_str(r"\w*"),
            '?' => out.push_str(r"\w"),
            c if c.is_whitespace() => out.push_str(r"\s+"),
            c if c.is_ascii_punctuation() && c != '_' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    if word(text.chars().next_back()) {
        out.push_str(r"\b");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_patterns_keep_what_they_say() {
        assert_eq!(wordly("error (42) x*"), r"(?i)\berror\s+\(42\)\s+x\w*");
        assert_eq!(wild(r"50%_*\?"), r"50\%\_%\\_");
        assert!(matches!(
            Cursor::new("-5").and_then(|mut c| term(&mut c)),
            Ok(Term::Expr(Expr { kind: crate::ast::Kind::Negative(_), .. }))
        ));
        assert!(
            matches!(Cursor::new("ERR-401").and_then(|mut c| term(&mut c)), Ok(Term::Text(t, 0)) if t == "ERR-401")
        );
        assert!(
            matches!(Cursor::new("10.0.0.1").and_then(|mut c| term(&mut c)), Ok(Term::Text(t, 0)) if t == "10.0.0.1")
        );
    }
}
