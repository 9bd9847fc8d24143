//! The text as tokens, each with its place.

use crate::problem::{Problem, shortened};

/// What a token is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A name or keyword without quotes.
    Word(String),
    /// A name in back-ticks.
    Quoted(String),
    /// A text in either quote, without its escapes.
    Text(String),
    /// Digits.
    Integer(String),
    /// A number with a point or an exponent.
    Decimal(String),
    /// An operator or a bracket.
    Symbol(&'static str),
    /// Behind the last.
    End,
}

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// Where it begins, in bytes.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
}

/// The longer ones first.
const SYMBOLS: &[&str] = &[
    "==", "!=", "<>", "<=", ">=", "|", ",", "(", ")", "[", "]", "=", "<", ">", "+", "-", "*", "/", "%", ".", ":", ";",
    "?", "!", "{", "}", "^", "~", "&", "#", "\\",
];

/// Splits a text; comments and white space are gone, the last token is [`Kind::End`].
///
/// # Errors
/// A text, name or comment without end, or a character that begins nothing.
pub fn tokens(text: &str) -> Result<Vec<Token>, Problem> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        if c.is_whitespace() {
            at += c.len_utf8();
            continue;
        }
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        }
        if let Some(comment) = rest.strip_prefix("/*") {
            let Some(end) = comment.find("*/") else {
                return Err(Problem::new(at, "the comment has no end; expected */"));
            };
            at += end + 4;
            continue;
        }
        let (kind, length) = match c {
            '\'' | '"' => quoted(rest, c, at).map(|(s, n)| (Kind::Text(s), n))?,
            '`' => quoted(rest, c, at).map(|(s, n)| (Kind::Quoted(s), n))?,
            '0'..='9' => number(rest),
            c if begins_word(c) => {
                let n = rest.find(|c| !continues_word(c)).unwrap_or(rest.len());
                (Kind::Word(rest[..n].to_owned()), n)
            }
            _ => match SYMBOLS.iter().find(|s| rest.starts_with(**s)) {
                Some(symbol) => (Kind::Symbol(symbol), symbol.len()),
                None => {
                    return Err(Problem::new(
                        at,
                        format!("`{c}` begins nothing here; put a name in back-ticks and a text in quotes"),
                    ));
                }
            },
        };
        out.push(Token { kind, start: at, end: at + length });
        at += length;
    }
    out.push(Token { kind: Kind::End, start: text.len(), end: text.len() });
    Ok(out)
}

fn begins_word(c: char) -> bool {
    c.is_alphabetic() || matches!(c, '_' | '@' | '$')
}

fn continues_word(c: char) -> bool {
    begins_word(c) || c.is_alphanumeric()
}

/// A doubled quote stands for one. A backslash escapes itself and quotes only, so that `'\d+'` is the pattern it looks like.
fn quoted(rest: &str, quote: char, at: usize) -> Result<(String, usize), Problem> {
    let mut out = String::new();
    let mut chars = rest.char_indices().skip(1).peekable();
    while let Some((n, c)) = chars.next() {
        let next = chars.peek().map(|(_, c)| *c);
        if c == quote {
            if next != Some(quote) {
                return Ok((out, n + quote.len_utf8()));
            }
            chars.next();
        } else if c == '\\' && quote != '`' && matches!(next, Some('\\' | '\'' | '"')) {
            chars.next();
            out.extend(next);
            continue;
        }
        out.push(c);
    }
    let what = if quote == '`' { "name in back-ticks" } else { "text" };
    Err(Problem::new(
        at,
        format!(
            "the {what} has no end; expected {quote} behind {}",
            shortened(rest.lines().next().unwrap_or_default())
        ),
    ))
}

fn number(rest: &str) -> (Kind, usize) {
    let digits = |s: &str| s.find(|c: char| !c.is_ascii_digit()).unwrap_or(s.len());
    let mut end = digits(rest);
    let mut decimal = false;
    if rest[end..].starts_with('.') {
        let fraction = digits(&rest[end + 1..]);
        if fraction > 0 {
            end += 1 + fraction;
            decimal = true;
        }
    }
    if let Some(exponent) = rest[end..].strip_prefix(['e', 'E']) {
        let sign = usize::from(exponent.starts_with(['+', '-']));
        let power = digits(&exponent[sign..]);
        // `2e` may be a unit.
        if power > 0 && !exponent[sign + power..].starts_with(continues_word) {
            end += 1 + sign + power;
            decimal = true;
        }
    }
    let text = rest[..end].to_owned();
    (if decimal { Kind::Decimal(text) } else { Kind::Integer(text) }, end)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;

    fn kinds(text: &str) -> Vec<Kind> {
        let mut all: Vec<Kind> = tokens(text).unwrap().into_iter().map(|t| t.kind).collect();
        assert_eq!(all.pop(), Some(Kind::End));
        all
    }

    #[test]
    fn texts_names_and_numbers_are_read_with_their_escapes() {
        let text = |s: &str| vec![Kind::Text(s.to_owned())];
        assert_eq!(kinds(r"'it''s'"), text("it's"));
        assert_eq!(kinds(r#""a ""b"" 'c'""#), text(r#"a "b" 'c'"#));
        assert_eq!(kinds(r"'\d+\\d\'\n'"), text(r"\d+\d'\n"));
        assert_eq!(kinds("`a b``c`"), [Kind::Quoted("a b`c".into())]);
        assert_eq!(kinds("1.5e3"), [Kind::Decimal("1.5e3".into())]);
        assert_eq!(kinds("15m"), [Kind::Integer("15".into()), Kind::Word("m".into())]);
        assert_eq!(kinds("2e"), [Kind::Integer("2".into()), Kind::Word("e".into())]);
        assert_eq!(kinds("@timestamp"), [Kind::Word("@timestamp".into())]);
    }

    #[test]
    fn comments_are_white_space() {
        assert_eq!(kinds("a // b\n /* c\n d */ | "), [Kind::Word("a".into()), Kind::Symbol("|")]);
    }

    #[test]
    fn what_has_no_end_is_told_with_its_beginning() {
        for (text, at, message) in [
            ("a = 'b", 4, "the text has no end; expected ' behind 'b"),
            ("`b", 0, "the name in back-ticks has no end; expected ` behind `b"),
            ("a /* b", 2, "the comment has no end; expected */"),
            ("a § b", 2, "`§` begins nothing here; put a name in back-ticks and a text in quotes"),
        ] {
            assert_eq!(tokens(text).unwrap_err(), Problem::new(at, message));
        }
    }
}
