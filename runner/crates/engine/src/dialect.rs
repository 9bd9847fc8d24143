//! Spark's SQL as text: its tokens, its escapes, and names that do not care about case.

use std::any::TypeId;
use std::collections::HashMap;

use datafusion::sql::parser::{DFParserBuilder, Statement};
use datafusion::sql::sqlparser::ast::Expr;
use datafusion::sql::sqlparser::dialect::{Dialect, SparkSqlDialect};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};
use firesteel_model::{Code, Failure, Stage};

use crate::failures::{self, Limits};
use crate::tokens;

/// How deep a statement may nest. Each level costs stack: [`crate::Settings::stack`] must hold them.
pub const NESTING: usize = 1000;

/// Spark's dialect as sqlparser has it, and the backslash escapes that it lacks.
#[derive(Debug)]
pub struct Spark;

impl Dialect for Spark {
    fn dialect(&self) -> TypeId {
        SparkSqlDialect.dialect()
    }
    fn supports_string_literal_backslash_escape(&self) -> bool {
        true
    }
    /// A pattern of LIKE keeps its `\_` and `\%`.
    fn ignores_wildcard_escapes(&self) -> bool {
        true
    }
    fn supports_string_literal_concatenation(&self) -> bool {
        true
    }
    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        SparkSqlDialect.is_delimited_identifier_start(ch)
    }
    fn is_identifier_start(&self, ch: char) -> bool {
        SparkSqlDialect.is_identifier_start(ch)
    }
    fn is_identifier_part(&self, ch: char) -> bool {
        SparkSqlDialect.is_identifier_part(ch)
    }
    fn supports_filter_during_aggregation(&self) -> bool {
        true
    }
    fn supports_group_by_expr(&self) -> bool {
        true
    }
    fn supports_group_by_with_modifier(&self) -> bool {
        true
    }
    fn supports_lambda_functions(&self) -> bool {
        true
    }
    fn supports_select_wildcard_except(&self) -> bool {
        true
    }
    fn supports_struct_literal(&self) -> bool {
        true
    }
    fn supports_nested_comments(&self) -> bool {
        true
    }
    fn supports_create_table_using(&self) -> bool {
        true
    }
    fn supports_long_type_as_bigint(&self) -> bool {
        true
    }
    fn supports_values_as_table_factor(&self) -> bool {
        true
    }
    fn require_interval_qualifier(&self) -> bool {
        true
    }
    fn supports_bang_not_operator(&self) -> bool {
        true
    }
    fn supports_table_sample_before_alias(&self) -> bool {
        true
    }
    fn supports_from_first_select(&self) -> bool {
        true
    }
    fn supports_select_item_multi_column_alias(&self) -> bool {
        true
    }
    fn supports_cte_without_as(&self) -> bool {
        true
    }
    fn supports_map_literal_with_angle_brackets(&self) -> bool {
        true
    }
    fn parse_infix(&self, parser: &mut Parser, expr: &Expr, precedence: u8) -> Option<Result<Expr, ParserError>> {
        SparkSqlDialect.parse_infix(parser, expr, precedence)
    }
}

/// A statement as tokens.
#[derive(Clone)]
pub struct Text(Vec<TokenWithSpan>);

impl Text {
    /// Splits a text into tokens.
    ///
    /// # Errors
    /// `Syntax`: a string or comment without end. `Empty`: nothing but comments.
    pub fn read(text: &str, limits: Limits) -> Result<Text, Failure> {
        let tokens = Tokenizer::new(&Spark, text)
            .tokenize_with_location()
            .map_err(|e| failures::failure(&ParserError::from(e).into(), Stage::Plan, limits))?;
        let text = Text(tokens::adapted(tokens));
        if text.significant().all(|t| *t == Token::SemiColon) {
            return Err(Failure::new(
                Code::Empty,
                Stage::Accept,
                "the statement is empty; write a query, such as SELECT 1",
            ));
        }
        Ok(text)
    }

    /// The tokens without white space and comments.
    pub fn significant(&self) -> impl Iterator<Item = &Token> {
        self.0.iter().map(|t| &t.token).filter(|t| !matches!(t, Token::Whitespace(_) | Token::EOF))
    }

    /// The part of the text behind its nth significant token, up to the end of the last that is no semicolon.
    pub fn behind<'a>(&self, raw: &'a str, nth: usize) -> &'a str {
        let mut tokens = self.0.iter().filter(|t| !matches!(t.token, Token::Whitespace(_) | Token::EOF));
        let from = tokens.clone().nth(nth).map_or(0, |t| offset(raw, t.span.end));
        // Not the last token's: tokens may have been moved.
        let ends =
            tokens.by_ref().filter(|t| t.token != Token::SemiColon).map(|t| (t.span.end.line, t.span.end.column));
        let to = ends.max().map_or(raw.len(), |(line, column)| offset(raw, Location::new(line, column)));
        raw.get(from..to).unwrap_or_default().trim()
    }

    /// A parser that stands at the beginning.
    pub fn parser(&self) -> Parser<'static> {
        Parser::new(&Spark).with_recursion_limit(NESTING).with_tokens_with_locations(self.0.clone())
    }

    /// The one statement of the text.
    ///
    /// # Errors
    /// `Syntax`, with line and column; `Refused` for more than one statement.
    pub fn parse(&self, limits: Limits) -> Result<Statement, Failure> {
        let parsed = DFParserBuilder::new(self.0.clone())
            .with_dialect(&Spark)
            .with_recursion_limit(NESTING)
            .build()
            .and_then(|mut parser| parser.parse_statements())
            .map_err(|e| failures::failure(&e, Stage::Plan, limits))?;
        let count = parsed.len();
        let mut parsed = parsed.into_iter();
        match (parsed.next(), count) {
            (Some(statement), 1) => Ok(statement),
            _ => Err(Failure::new(
                Code::Refused,
                Stage::Plan,
                format!("the text holds {count} statements, only one is allowed; submit them one by one"),
            )),
        }
    }

    /// The same text with each name in the spelling that a table has it in, else as an alias has it, else in lower
    /// case: planned with exact names, that is a comparison without case.
    pub fn spelled(&self, known: &Spellings) -> Text {
        let significant: Vec<usize> =
            (0..self.0.len()).filter(|i| !matches!(self.0[*i].token, Token::Whitespace(_) | Token::EOF)).collect();
        let mut aliases: HashMap<String, String> = HashMap::new();
        for pair in significant.windows(2) {
            if let (Token::Word(a), Token::Word(name)) = (&self.0[pair[0]].token, &self.0[pair[1]].token)
                && a.keyword == Keyword::AS
            {
                aliases.entry(name.value.to_lowercase()).or_insert_with(|| name.value.clone());
            }
        }
        let mut tokens = self.0.clone();
        for (place, at) in significant.iter().enumerate() {
            let calls = significant.get(place + 1).is_some_and(|next| self.0[*next].token == Token::LParen);
            if let Token::Word(word) = &mut tokens[*at].token {
                let lower = word.value.to_lowercase();
                word.value = if calls && word.quote_style.is_none() {
                    lower
                } else {
                    known.find(&word.value, &lower).or_else(|| aliases.get(&lower)).cloned().unwrap_or(lower)
                };
            }
        }
        Text(tokens)
    }
}

/// Where a line and column of the tokenizer are in the text, in bytes.
fn offset(raw: &str, at: Location) -> usize {
    let (mut line, mut column) = (1, 1);
    for (offset, c) in raw.char_indices() {
        if (line, column) == (at.line, at.column) {
            return offset;
        }
        if c == '\n' {
            (line, column) = (line + 1, 1);
        } else {
            column += 1;
        }
    }
    raw.len()
}

/// How the columns of the statement's tables are written.
#[derive(Debug, Default)]
pub struct Spellings(HashMap<String, Vec<String>>);

impl Spellings {
    /// Adds a name, and the names of the fields inside it.
    pub fn add(&mut self, field: &arrow_schema::Field) {
        use arrow_schema::DataType;
        let found = self.0.entry(field.name().to_lowercase()).or_default();
        if !found.contains(field.name()) {
            found.push(field.name().clone());
        }
        match field.data_type() {
            DataType::Struct(fields) => fields.iter().for_each(|f| self.add(f)),
            DataType::List(f) | DataType::LargeList(f) | DataType::FixedSizeList(f, _) | DataType::Map(f, _) => {
                self.add(f)
            }
            _ => {}
        }
    }

    fn find(&self, written: &str, lower: &str) -> Option<&String> {
        let found = self.0.get(lower)?;
        found.iter().find(|name| *name == written).or_else(|| found.first())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use arrow_schema::{DataType, Field};

    use super::*;

    const LIMITS: Limits = Limits { memory_pool: 0, spill: 0 };

    #[test]
    fn names_get_the_spelling_of_the_table_or_of_the_alias() {
        let mut known = Spellings::default();
        known.add(&Field::new("OrderId", DataType::Int32, true));
        for (written, spelled) in [
            ("SELECT ORDERID, `orderid` FROM Orders", "SELECT OrderId, `OrderId` FROM orders"),
            ("SELECT SUM(x) AS Total FROM T ORDER BY TOTAL", "SELECT sum(x) AS Total FROM t ORDER BY Total"),
            ("SELECT 'OrderID', \"ORDERID\"", "SELECT 'OrderID', \"ORDERID\""),
        ] {
            let text = Text::read(written, LIMITS).unwrap().spelled(&known);
            assert_eq!(text.parse(LIMITS).unwrap().to_string(), spelled);
        }
    }

    #[test]
    fn nothing_and_too_much_are_told_apart() {
        for (text, code) in
            [("", Code::Empty), (" ; -- x\n;", Code::Empty), ("/* 'a", Code::Syntax), ("SELECT 'a", Code::Syntax)]
        {
            assert_eq!(Text::read(text, LIMITS).map(|_| ()).unwrap_err().code, code, "{text}");
        }
        let two = Text::read("SELECT 1; SELECT 2", LIMITS).unwrap().parse(LIMITS).unwrap_err();
        assert_eq!(
            (two.code, two.message.as_str()),
            (Code::Refused, "the text holds 2 statements, only one is allowed; submit them one by one")
        );
        let bad = Text::read("SELECT\n  FROM WHERE", LIMITS).unwrap().parse(LIMITS).unwrap_err();
        assert!(bad.message.contains("line 2, column"), "{}", bad.message);
    }
}
