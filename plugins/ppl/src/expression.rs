//! Reads expressions.

use std::rc::Rc;

use crate::ast::{Expr, Kind, Name, Pattern, Target, Temporal, Unit};
use crate::cursor::Cursor;
use crate::lexer::Kind as Token;
use crate::problem::Problem;
use crate::query;

type Read = Result<Expr, Problem>;

/// Words that begin no expression and are no names without back-ticks.
const RESERVED: &[&str] = &["and", "or", "xor", "in", "like", "ilike", "between", "by", "as", "else", "is", "regexp"];

fn reserved(word: &str) -> bool {
    RESERVED.iter().any(|w| w.eq_ignore_ascii_case(word))
}

fn next_is_reserved(c: &Cursor<'_>) -> bool {
    matches!(&c.peek().kind, Token::Word(word) if reserved(word))
}

/// Operators of a comparison, and SQL's.
const COMPARISONS: &[(&str, &str)] =
    &[("==", "="), ("=", "="), ("!=", "<>"), ("<>", "<>"), ("<=", "<="), (">=", ">="), ("<", "<"), (">", ">")];

/// Reads an expression.
///
/// # Errors
/// There is none.
pub fn expression(c: &mut Cursor<'_>) -> Read {
    c.deeper(any)
}

fn made(c: &Cursor<'_>, at: usize, kind: Kind) -> Expr {
    Expr { kind, at, written: c.since(at).to_owned() }
}

/// Terms with the same word between them.
fn terms(c: &mut Cursor<'_>, word: &str, term: fn(&mut Cursor<'_>) -> Read, join: fn(Vec<Expr>) -> Kind) -> Read {
    let at = c.start();
    let first = term(c)?;
    if !c.is_word(word) {
        return Ok(first);
    }
    let mut all = vec![first];
    while c.eat_word(word) {
        all.push(term(c)?);
    }
    Ok(made(c, at, join(all)))
}

fn any(c: &mut Cursor<'_>) -> Read {
    terms(c, "or", xor, Kind::Any)
}

fn xor(c: &mut Cursor<'_>) -> Read {
    let at = c.start();
    let mut left = all(c)?;
    while c.eat_word("xor") {
        let right = all(c)?;
        left = made(c, at, Kind::Xor(Box::new(left), Box::new(right)));
    }
    Ok(left)
}

fn all(c: &mut Cursor<'_>) -> Read {
    terms(c, "and", not, Kind::All)
}

fn not(c: &mut Cursor<'_>) -> Read {
    let at = c.start();
    if c.eat_word("not") {
        let inner = c.deeper(not)?;
        return Ok(made(c, at, Kind::Not(Box::new(inner))));
    }
    comparison(c)
}

/// A condition without AND and OR.
///
/// # Errors
/// There is none.
pub fn comparison(c: &mut Cursor<'_>) -> Read {
    let at = c.start();
    if c.is("(") && c.list_ahead() {
        return row(c);
    }
    let left = sum(c)?;
    if let Some((_, op)) = COMPARISONS.iter().find(|(written, _)| c.is(written)) {
        c.next();
        let right = sum(c)?;
        return Ok(made(c, at, Kind::Compare(Box::new(left), op, Box::new(right))));
    }
    if c.eat_word("is") {
        let negated = c.eat_word("not");
        c.expect_word("null")?;
        let kind = Kind::IsNull(Box::new(left));
        return Ok(negate(c, at, kind, negated));
    }
    let negated = c.is_word("not") && ["in", "like", "ilike", "between", "regexp"].iter().any(|w| c.word_ahead(1, w));
    if negated {
        c.next();
    }
    let kind = if c.eat_word("in") {
        membership(c, vec![left])?
    } else if c.eat_word("between") {
        let low = sum(c)?;
        c.expect_word("and")?;
        Kind::Between(Box::new(left), Box::new(low), Box::new(sum(c)?))
    } else if c.is_word("like") || c.is_word("ilike") {
        let cased = c.is_word("like");
        c.next();
        Kind::Like { text: Box::new(left), pattern: Box::new(sum(c)?), cased }
    } else if c.eat_word("regexp") {
        Kind::Regexp(Box::new(left), Box::new(sum(c)?))
    } else {
        return Ok(left);
    };
    Ok(negate(c, at, kind, negated))
}

fn negate(c: &Cursor<'_>, at: usize, kind: Kind, negated: bool) -> Expr {
    let inner = made(c, at, kind);
    if negated { made(c, at, Kind::Not(Box::new(inner))) } else { inner }
}

/// `(a, b) IN [ … ]`.
fn row(c: &mut Cursor<'_>) -> Read {
    let at = c.start();
    c.next();
    let mut values = vec![c.deeper(sum)?];
    while c.eat(",") {
        values.push(c.deeper(sum)?);
    }
    c.expect(")", "or `,`")?;
    let negated = c.eat_word("not");
    c.expect_word("in")?;
    if !c.is("[") {
        return Err(c.wrong("a subquery in `[ ]`"));
    }
    let kind = membership(c, values)?;
    Ok(negate(c, at, kind, negated))
}

fn membership(c: &mut Cursor<'_>, mut left: Vec<Expr>) -> Result<Kind, Problem> {
    if c.is("[") {
        return Ok(Kind::InQuery(left, Rc::new(query::subquery(c)?)));
    }
    c.expect("(", "or a subquery in `[ ]`")?;
    let mut values = vec![expression(c)?];
    while c.eat(",") {
        values.push(expression(c)?);
    }
    c.expect(")", "or `,`")?;
    let Some(first) = left.pop() else { return Err(c.wrong("a value")) };
    Ok(Kind::Among(Box::new(first), values))
}

/// Operators of one level, from left to right.
fn chain(c: &mut Cursor<'_>, operators: &[&'static str], term: fn(&mut Cursor<'_>) -> Read) -> Read {
    let at = c.start();
    let first = term(c)?;
    let mut rest = Vec::new();
    while let Some(op) = operators.iter().find(|op| c.is(op)) {
        c.next();
        rest.push((*op, term(c)?));
    }
    if rest.is_empty() { Ok(first) } else { Ok(made(c, at, Kind::Chain(Box::new(first), rest))) }
}

/// An expression without comparisons.
///
/// # Errors
/// There is none.
pub fn sum(c: &mut Cursor<'_>) -> Read {
    chain(c, &["+", "-"], |c| chain(c, &["*", "/", "%"], signed))
}

fn signed(c: &mut Cursor<'_>) -> Read {
    let at = c.start();
    if c.eat("-") {
        let inner = c.deeper(signed)?;
        return Ok(made(c, at, Kind::Negative(Box::new(inner))));
    }
    c.eat("+");
    primary(c)
}

fn primary(c: &mut Cursor<'_>) -> Read {
    let at = c.start();
    let kind = match c.peek().kind.clone() {
        Token::Text(text) => {
            c.next();
            Kind::Text(text)
        }
        Token::Integer(digits) | Token::Decimal(digits) => {
            let whole = matches!(c.next().kind, Token::Integer(_));
            let suffix = ["d", "f"].iter().any(|s| c.is_word(s)) && c.adjoins();
            if suffix {
                c.next();
                Kind::Double(digits)
            } else if whole && digits.len() <= 38 {
                Kind::Integer(digits)
            } else {
                Kind::Decimal(digits)
            }
        }
        Token::Symbol("(") => {
            c.next();
            let inner = expression(c)?;
            c.expect(")", "or an operator")?;
            return Ok(Expr { at, ..inner });
        }
        Token::Symbol("[") => Kind::Scalar(Rc::new(query::subquery(c)?)),
        // LIKE is a function too.
        Token::Word(word)
            if c.symbol_ahead(1, "(") && (!reserved(&word) || word.to_ascii_lowercase().ends_with("like")) =>
        {
            call(c, &word.to_ascii_lowercase())?
        }
        Token::Word(word) => match word.to_ascii_lowercase().as_str() {
            "exists" if c.symbol_ahead(1, "[") => {
                c.next();
                Kind::Exists(Rc::new(query::subquery(c)?))
            }
            word @ ("true" | "false") if !c.symbol_ahead(1, ".") => {
                c.next();
                Kind::Boolean(word == "true")
            }
            "null" => {
                c.next();
                Kind::Null
            }
            "interval" if !matches!(c.ahead(1).kind, Token::Symbol(_) | Token::End) => {
                c.next();
                let value = primary(c)?;
                let unit = unit(c)?;
                Kind::Interval(Box::new(value), unit)
            }
            word @ ("date" | "time" | "timestamp") if matches!(c.ahead(1).kind, Token::Text(_)) => {
                c.next();
                let text = c.text("a text")?;
                let what = match word {
                    "date" => Temporal::Date,
                    "time" => Temporal::Time,
                    _ => Temporal::Timestamp,
                };
                Kind::Temporal(what, text)
            }
            word if reserved(word) => return Err(c.wrong("a value")),
            _ => Kind::Name(name(c, "a value")?),
        },
        Token::Quoted(_) => Kind::Name(name(c, "a value")?),
        Token::Symbol(_) | Token::End => return Err(c.wrong("a value")),
    };
    Ok(made(c, at, kind))
}

fn unit(c: &mut Cursor<'_>) -> Result<Unit, Problem> {
    let found = match &c.peek().kind {
        Token::Word(word) => Unit::named(word),
        _ => None,
    };
    let Some(unit) = found else {
        return Err(c.wrong("a unit: MICROSECOND, SECOND, MINUTE, HOUR, DAY, WEEK, MONTH, QUARTER or YEAR"));
    };
    c.next();
    Ok(unit)
}

fn call(c: &mut Cursor<'_>, name: &str) -> Result<Kind, Problem> {
    c.next();
    c.next();
    match name {
        "case" => return case(c),
        "cast" => {
            let value = expression(c)?;
            c.expect_word("as")?;
            let target = target(c)?;
            c.expect(")", "behind the type")?;
            return Ok(Kind::Cast(Box::new(value), target));
        }
        "position" => {
            let part = sum(c)?;
            c.expect_word("in")?;
            let text = sum(c)?;
            c.expect(")", "behind the text")?;
            return Ok(Kind::Call("locate".into(), vec![part, text]));
        }
        "extract" => {
            let at = c.start();
            let Token::Word(part) = c.next().kind else {
                return Err(Problem::new(at, "expected a part of a date or time, such as YEAR"));
            };
            let part = made(c, at, Kind::Text(part.to_ascii_lowercase()));
            c.expect_word("from")?;
            let value = expression(c)?;
            c.expect(")", "behind the value")?;
            return Ok(Kind::Call(name.to_owned(), vec![part, value]));
        }
        _ => {}
    }
    let mut args = Vec::new();
    if matches!(name, "timestampadd" | "timestampdiff" | "get_format")
        && let Token::Word(word) = c.peek().kind.clone()
    {
        let at = c.start();
        c.next();
        args.push(made(c, at, Kind::Text(word.to_ascii_lowercase())));
        c.expect(",", "behind the unit")?;
    }
    if !c.is(")") {
        args.push(expression(c)?);
        while c.eat(",") {
            args.push(expression(c)?);
        }
    }
    c.expect(")", "or `,`")?;
    Ok(Kind::Call(name.to_owned(), args))
}

fn case(c: &mut Cursor<'_>) -> Result<Kind, Problem> {
    let mut arms = Vec::new();
    loop {
        let condition = expression(c)?;
        c.expect(",", "and a value behind the condition")?;
        arms.push((condition, expression(c)?));
        if !c.eat(",") {
            break;
        }
    }
    let otherwise = if c.eat_word("else") { Some(Box::new(expression(c)?)) } else { None };
    c.expect(")", "or `else`")?;
    Ok(Kind::Case(arms, otherwise))
}

fn target(c: &mut Cursor<'_>) -> Result<Target, Problem> {
    const TARGETS: &[(&str, Target)] = &[
        ("int", Target::Integer),
        ("integer", Target::Integer),
        ("long", Target::Long),
        ("float", Target::Float),
        ("double", Target::Double),
        ("string", Target::Text),
        ("boolean", Target::Boolean),
        ("date", Target::Date),
        ("time", Target::Time),
        ("timestamp", Target::Timestamp),
    ];
    let at = c.start();
    let Token::Word(word) = &c.peek().kind else { return Err(c.wrong("a type")) };
    let Some((_, target)) = TARGETS.iter().find(|(name, _)| word.eq_ignore_ascii_case(name)) else {
        return Err(Problem::no_such(at, "type", word, TARGETS.iter().map(|(name, _)| *name)));
    };
    c.next();
    Ok(*target)
}

/// Reads a name with its dots.
///
/// # Errors
/// There is none.
pub fn name(c: &mut Cursor<'_>, what: &str) -> Result<Name, Problem> {
    let at = c.start();
    let mut parts = Vec::new();
    loop {
        match c.peek().kind.clone() {
            Token::Word(part) | Token::Quoted(part) => parts.push(part),
            Token::Integer(part) if !parts.is_empty() => parts.push(part),
            _ => return Err(c.wrong(what)),
        }
        c.next();
        if !(c.is(".") && c.adjoins()) {
            return Ok(Name { parts, at });
        }
        c.next();
    }
}

/// Reads a field's name: a name that is no reserved word.
///
/// # Errors
/// There is none.
pub fn field(c: &mut Cursor<'_>) -> Result<Name, Problem> {
    if next_is_reserved(c) {
        return Err(c.wrong("a field"));
    }
    name(c, "a field")
}

/// Reads a name that may hold `*`.
///
/// # Errors
/// There is none.
pub fn pattern(c: &mut Cursor<'_>) -> Result<Pattern, Problem> {
    let at = c.start();
    let mut text = String::new();
    if next_is_reserved(c) {
        return Err(c.wrong("a field"));
    }
    loop {
        match &c.peek().kind {
            Token::Word(part) | Token::Quoted(part) => text.push_str(part),
            Token::Integer(part) if !text.is_empty() => text.push_str(part),
            Token::Symbol(s @ ("*" | ".")) if *s == "*" || !text.is_empty() => text.push_str(s),
            _ => return Err(c.wrong("a field")),
        }
        c.next();
        let more =
            matches!(c.peek().kind, Token::Word(_) | Token::Quoted(_) | Token::Integer(_) | Token::Symbol("*" | "."));
        if !(more && c.adjoins()) {
            return Ok(Pattern { text, at });
        }
    }
}

/// Reads fields with commas between them; where `spaced`, spaces do.
///
/// # Errors
/// There is none.
pub fn fields(c: &mut Cursor<'_>, spaced: bool) -> Result<Vec<Name>, Problem> {
    let mut all = vec![field(c)?];
    while c.eat(",") || spaced && matches!(c.peek().kind, Token::Word(_) | Token::Quoted(_)) && !next_is_reserved(c) {
        all.push(field(c)?);
    }
    Ok(all)
}
