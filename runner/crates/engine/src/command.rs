//! Spark's commands that are no queries: SET, RESET, USE, SHOW, DESCRIBE. Read from tokens, since sqlparser has other forms.

use datafusion::sql::sqlparser::tokenizer::Token;
use firesteel_model::{Code, Failure, Stage};

use crate::dialect::Text;

/// A command.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// `SET`: every setting.
    Settings,
    /// `SET k`.
    Setting(String),
    /// `SET k = v`.
    Set(String, String),
    /// `RESET k`, `RESET`.
    Reset(Option<String>),
    /// `USE [c.]s`, or the name of a catalog.
    Use(Vec<String>),
    /// `SHOW CATALOGS`.
    Catalogs,
    /// `SHOW DATABASES [IN c] [LIKE p]`.
    Databases(Option<String>, Option<String>),
    /// `SHOW TABLES [IN s] [LIKE p]`; only views.
    Tables { within: Vec<String>, like: Option<String>, views: bool },
    /// `SHOW COLUMNS IN t [IN s]`.
    Columns(Vec<String>),
    /// `SHOW FUNCTIONS [LIKE p]`.
    Functions(Option<String>),
    /// `DESCRIBE [TABLE] [EXTENDED] t`.
    Describe { table: Vec<String>, extended: bool },
    /// `DESCRIBE [QUERY] q`: the text of the query.
    DescribeQuery(usize),
}

struct Cursor<'a> {
    tokens: Vec<&'a Token>,
    at: usize,
}

impl Cursor<'_> {
    fn word(&self) -> Option<&str> {
        match self.tokens.get(self.at)? {
            Token::Word(w) => Some(&w.value),
            _ => None,
        }
    }

    fn eat(&mut self, words: &[&str]) -> bool {
        let found = matches!(self.tokens.get(self.at), Some(Token::Word(w)) if w.quote_style.is_none() && words.iter().any(|x| w.value.eq_ignore_ascii_case(x)));
        self.at += usize::from(found);
        found
    }

    fn name(&mut self) -> Result<Vec<String>, Failure> {
        let mut parts = Vec::new();
        loop {
            parts.push(self.word().ok_or_else(|| self.wrong("a name"))?.to_owned());
            self.at += 1;
            if self.tokens.get(self.at) != Some(&&Token::Period) {
                return Ok(parts);
            }
            self.at += 1;
        }
    }

    fn within(&mut self) -> Result<Vec<String>, Failure> {
        if self.eat(&["IN", "FROM"]) { self.name() } else { Ok(Vec::new()) }
    }

    fn like(&mut self) -> Result<Option<String>, Failure> {
        let like = self.eat(&["LIKE"]);
        match self.tokens.get(self.at) {
            Some(Token::SingleQuotedString(s) | Token::DoubleQuotedString(s)) => {
                self.at += 1;
                Ok(Some(s.clone()))
            }
            _ if like => Err(self.wrong("a pattern in quotes")),
            _ => Ok(None),
        }
    }

    fn wrong(&self, expected: &str) -> Failure {
        let found = self.tokens.get(self.at).map_or("the end of the statement".to_owned(), |t| t.to_string());
        Failure::new(
            Code::Syntax,
            Stage::Plan,
            format!("expected {expected}, found {}", found.chars().take(60).collect::<String>()),
        )
    }

    fn end(self, command: Command) -> Result<Option<Command>, Failure> {
        if self.at < self.tokens.len() { Err(self.wrong("the end of the statement")) } else { Ok(Some(command)) }
    }
}

/// Reads a command; None if the statement is none.
///
/// # Errors
/// `Syntax`: it begins as one.
pub fn read(text: &Text, raw: &str) -> Result<Option<Command>, Failure> {
    let mut tokens: Vec<&Token> = text.significant().collect();
    while tokens.last() == Some(&&Token::SemiColon) {
        tokens.pop();
    }
    let mut c = Cursor { tokens, at: 0 };
    if c.tokens.contains(&&Token::SemiColon) {
        return Ok(None);
    }
    if c.eat(&["SET"]) {
        return set(c, text, raw);
    }
    if c.eat(&["RESET"]) {
        let key = if c.at < c.tokens.len() { Some(c.name()?.join(".")) } else { None };
        return c.end(Command::Reset(key));
    }
    if c.eat(&["USE"]) {
        if c.tokens.len() > 2 {
            c.eat(&["CATALOG", "DATABASE", "SCHEMA", "NAMESPACE"]);
        }
        let name = c.name()?;
        return c.end(Command::Use(name));
    }
    if c.eat(&["SHOW"]) {
        return show(c);
    }
    if c.eat(&["DESC", "DESCRIBE"]) {
        if matches!(c.tokens.get(c.at), Some(Token::LParen)) || c.tokens.get(c.at).is_some_and(|t| is_query(t)) {
            return Ok(Some(Command::DescribeQuery(1)));
        }
        if c.tokens.len() > 2 && c.eat(&["QUERY"]) {
            return Ok(Some(Command::DescribeQuery(2)));
        }
        if c.tokens.len() > 2 {
            c.eat(&["TABLE"]);
        }
        let extended = c.tokens.len() > 2 && c.eat(&["EXTENDED", "FORMATTED"]);
        let table = c.name()?;
        return c.end(Command::Describe { table, extended });
    }
    Ok(None)
}

fn is_query(token: &Token) -> bool {
    matches!(token, Token::Word(w) if w.quote_style.is_none() && ["SELECT", "WITH", "VALUES"].iter().any(|k| w.value.eq_ignore_ascii_case(k)))
}

fn show(mut c: Cursor<'_>) -> Result<Option<Command>, Failure> {
    if c.eat(&["CATALOGS"]) {
        return c.end(Command::Catalogs);
    }
    if c.eat(&["DATABASES", "SCHEMAS", "NAMESPACES"]) {
        let within = c.within()?;
        let like = c.like()?;
        return c.end(Command::Databases(within.into_iter().next(), like));
    }
    for (word, views) in [("TABLES", false), ("VIEWS", true)] {
        if c.eat(&[word]) {
            let within = c.within()?;
            let like = c.like()?;
            return c.end(Command::Tables { within, like, views });
        }
    }
    if c.eat(&["COLUMNS"]) {
        let mut table = c.within()?;
        if table.is_empty() {
            return Err(c.wrong("IN and a table's name"));
        }
        let mut schema = c.within()?;
        schema.append(&mut table);
        return c.end(Command::Columns(schema));
    }
    let _ = c.eat(&["USER", "SYSTEM", "ALL"]);
    if c.eat(&["FUNCTIONS"]) {
        let like = c.like()?;
        return c.end(Command::Functions(like));
    }
    Err(c.wrong("CATALOGS, DATABASES, TABLES, VIEWS, COLUMNS or FUNCTIONS"))
}

/// A value is everything behind the `=`, as Spark takes it, without quotes around it.
fn set(mut c: Cursor<'_>, text: &Text, raw: &str) -> Result<Option<Command>, Failure> {
    if c.at == c.tokens.len()
        || (c.tokens.len() == 3
            && c.tokens[1] == &Token::Minus
            && matches!(c.tokens[2], Token::Word(w) if w.value.eq_ignore_ascii_case("v")))
    {
        return Ok(Some(Command::Settings));
    }
    if matches!(c.word(), Some(word) if word.eq_ignore_ascii_case("TIME")) && c.tokens.len() > 3 {
        c.at += 1;
        if c.eat(&["ZONE"]) {
            let value = match c.tokens.get(c.at) {
                Some(Token::SingleQuotedString(s) | Token::DoubleQuotedString(s)) => s.clone(),
                _ => return Err(c.wrong("a time zone in quotes")),
            };
            c.at += 1;
            return c.end(Command::Set("spark.sql.session.timezone".into(), value));
        }
        c.at -= 1;
    }
    let key = c.name()?.join(".").to_lowercase();
    match c.tokens.get(c.at) {
        None => Ok(Some(Command::Setting(key))),
        Some(Token::Eq) => {
            let value = if c.at + 1 < c.tokens.len() { text.behind(raw, c.at) } else { "" };
            let quoted = ['\'', '"'].iter().find_map(|q| value.strip_prefix(*q)?.strip_suffix(*q));
            Ok(Some(Command::Set(key, quoted.unwrap_or(value).to_owned())))
        }
        Some(_) => Err(c.wrong("= and a value")),
    }
}

/// Whether a name fits a pattern of SHOW: `*` any text, `|` either, without case; `%` and `_` as in LIKE too.
pub fn matches(pattern: &str, name: &str) -> bool {
    fn glob(p: &[char], s: &[char]) -> bool {
        let (mut pi, mut si, mut star) = (0, 0, None);
        while si < s.len() {
            match p.get(pi) {
                Some('*' | '%') => {
                    star = Some((pi, si));
                    pi += 1;
                }
                Some(c) if *c == '_' || *c == s[si] => {
                    pi += 1;
                    si += 1;
                }
                _ => match star {
                    Some((sp, ss)) => {
                        pi = sp + 1;
                        si = ss + 1;
                        star = Some((sp, si));
                    }
                    None => return false,
                },
            }
        }
        p[pi..].iter().all(|c| matches!(c, '*' | '%'))
    }
    let name: Vec<char> = name.to_lowercase().chars().collect();
    pattern.to_lowercase().split('|').any(|p| glob(&p.trim().chars().collect::<Vec<_>>(), &name))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;
    use crate::failures::Limits;

    fn of(raw: &str) -> Result<Option<Command>, String> {
        let limits = Limits { memory_pool: 0, spill: 0 };
        read(&Text::read(raw, limits).map_err(|f| f.message)?, raw).map_err(|f| f.message)
    }

    #[test]
    fn commands_are_read_in_all_their_forms() {
        let s = |x: &str| x.to_owned();
        for (raw, command) in [
            ("set", Command::Settings),
            ("SET -v;", Command::Settings),
            ("SET a.B", Command::Setting(s("a.b"))),
            ("SET a.b = 'x y' ;", Command::Set(s("a.b"), s("x y"))),
            ("/* a=b */ SET -- =\n a.b = 'é' -- c=d\n;", Command::Set(s("a.b"), s("é"))),
            ("SET a.b=x=y", Command::Set(s("a.b"), s("x=y"))),
            ("SET TIME ZONE 'UTC'", Command::Set(s("spark.sql.session.timezone"), s("UTC"))),
            ("RESET", Command::Reset(None)),
            ("RESET a.b", Command::Reset(Some(s("a.b")))),
            ("USE x", Command::Use(vec![s("x")])),
            ("USE database `x y`.z", Command::Use(vec![s("x y"), s("z")])),
            ("SHOW SCHEMAS IN c LIKE 'd*'", Command::Databases(Some(s("c")), Some(s("d*")))),
            ("SHOW TABLES", Command::Tables { within: vec![], like: None, views: false }),
            (
                "SHOW TABLES FROM a.b 'x'",
                Command::Tables { within: vec![s("a"), s("b")], like: Some(s("x")), views: false },
            ),
            ("SHOW COLUMNS IN t IN d", Command::Columns(vec![s("d"), s("t")])),
            ("DESC t", Command::Describe { table: vec![s("t")], extended: false }),
            (
                "DESCRIBE TABLE EXTENDED a.b.t",
                Command::Describe { table: vec![s("a"), s("b"), s("t")], extended: true },
            ),
            ("DESC SELECT 1", Command::DescribeQuery(1)),
            ("DESC QUERY SELECT 1", Command::DescribeQuery(2)),
        ] {
            assert_eq!(of(raw), Ok(Some(command)), "{raw}");
        }
        assert_eq!(of("SELECT 1"), Ok(None));
        assert_eq!(
            of("SHOW ME"),
            Err(s("expected CATALOGS, DATABASES, TABLES, VIEWS, COLUMNS or FUNCTIONS, found ME"))
        );
        assert_eq!(of("DESC t u"), Err(s("expected the end of the statement, found u")));
    }

    #[test]
    fn patterns_match_as_in_spark() {
        for (pattern, name, fits) in [
            ("sa*", "Sales", true),
            ("a|s*s", "sales", true),
            ("sale", "sales", false),
            ("%les", "sales", true),
            ("", "x", false),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }
}
