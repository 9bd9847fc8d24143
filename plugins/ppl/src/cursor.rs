//! A place among the tokens, and what every parser asks of it.

use crate::lexer::{self, Kind, Token};
use crate::problem::{Problem, shortened};

/// How deep brackets, functions and subqueries may nest; each level costs stack, and a guest has little.
const DEEPEST: usize = 40;

/// The tokens of a text, and the next of them.
pub struct Cursor<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

impl<'a> Cursor<'a> {
    /// At the beginning of a text.
    ///
    /// # Errors
    /// The text has no tokens.
    pub fn new(text: &'a str) -> Result<Cursor<'a>, Problem> {
        Ok(Cursor { text, tokens: lexer::tokens(text)?, at: 0, depth: 0 })
    }

    /// The next token.
    pub fn peek(&self) -> &Token {
        self.ahead(0)
    }

    /// The nth token behind the next.
    pub fn ahead(&self, n: usize) -> &Token {
        &self.tokens[(self.at + n).min(self.tokens.len() - 1)]
    }

    /// Takes the next token.
    pub fn next(&mut self) -> Token {
        let token = self.peek().clone();
        if token.kind != Kind::End {
            self.at += 1;
        }
        token
    }

    /// Where the next token begins.
    pub fn start(&self) -> usize {
        self.peek().start
    }

    /// Where the last token that was taken ends.
    pub fn end(&self) -> usize {
        self.at.checked_sub(1).map_or(0, |n| self.tokens[n].end)
    }

    /// Where the cursor is, to go back to.
    pub fn mark(&self) -> usize {
        self.at
    }

    /// Goes back.
    pub fn back(&mut self, mark: usize) {
        self.at = mark;
    }

    /// The text from a place to the end of the last token that was taken.
    pub fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.end()).unwrap_or_default()
    }

    /// Whether nothing is between the last token and the next.
    pub fn adjoins(&self) -> bool {
        self.at > 0 && self.end() == self.start()
    }

    /// Whether the nth token from here is this symbol.
    pub fn symbol_ahead(&self, n: usize, symbol: &str) -> bool {
        matches!(&self.ahead(n).kind, Kind::Symbol(s) if *s == symbol)
    }

    /// Whether the next token is this symbol.
    pub fn is(&self, symbol: &str) -> bool {
        self.symbol_ahead(0, symbol)
    }

    /// Whether the nth token from here is this word, in any case.
    pub fn word_ahead(&self, n: usize, word: &str) -> bool {
        matches!(&self.ahead(n).kind, Kind::Word(w) if w.eq_ignore_ascii_case(word))
    }

    /// Whether the next token is this word.
    pub fn is_word(&self, word: &str) -> bool {
        self.word_ahead(0, word)
    }

    /// Takes a symbol, if it is next.
    pub fn eat(&mut self, symbol: &str) -> bool {
        let found = self.is(symbol);
        self.at += usize::from(found);
        found
    }

    /// Takes a word, if it is next.
    pub fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.at += usize::from(found);
        found
    }

    /// Takes a symbol.
    ///
    /// # Errors
    /// Another token is next.
    pub fn expect(&mut self, symbol: &str, purpose: &str) -> Result<(), Problem> {
        if self.eat(symbol) { Ok(()) } else { Err(self.wrong(&format!("`{symbol}` {purpose}"))) }
    }

    /// Takes a word.
    ///
    /// # Errors
    /// Another token is next.
    pub fn expect_word(&mut self, word: &str) -> Result<(), Problem> {
        if self.eat_word(word) { Ok(()) } else { Err(self.wrong(&format!("`{word}`"))) }
    }

    /// Whether the bracket that opens here has a comma in it, outside of brackets of its own.
    pub fn list_ahead(&self) -> bool {
        let mut open = 0;
        for token in &self.tokens[self.at..] {
            match token.kind {
                Kind::Symbol("(" | "[") => open += 1,
                Kind::Symbol(")" | "]") => open -= 1,
                Kind::Symbol(",") if open == 1 => return true,
                _ => {}
            }
            if open == 0 {
                break;
            }
        }
        false
    }

    /// Whether a command ends here.
    pub fn ends(&self) -> bool {
        matches!(self.peek().kind, Kind::End | Kind::Symbol("|" | "]" | ";"))
    }

    /// "expected …, found …" at the next token.
    pub fn wrong(&self, expected: &str) -> Problem {
        let token = self.peek();
        let found = match &token.kind {
            Kind::End => "end of the text".to_owned(),
            _ => format!("`{}`", shortened(&self.text[token.start..token.end])),
        };
        Problem { expected: vec![expected.to_owned()], ..Problem::new(token.start, format!("unexpected {found}")) }
    }

    /// Goes one level deeper.
    ///
    /// # Errors
    /// It is too deep already.
    pub fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T, Problem>) -> Result<T, Problem> {
        if self.depth == DEEPEST {
            return Err(Problem::new(
                self.start(),
                format!("this nests deeper than {DEEPEST} levels; take it apart with `eval`"),
            ));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// A whole number.
    ///
    /// # Errors
    /// Another token is next, or it is too large.
    pub fn integer(&mut self, what: &str) -> Result<u64, Problem> {
        match &self.peek().kind {
            Kind::Integer(digits) => match digits.parse() {
                Ok(number) if number <= i64::MAX as u64 => {
                    self.at += 1;
                    Ok(number)
                }
                _ => Err(Problem::new(self.start(), format!("{what} is too large; the largest is {}", i64::MAX))),
            },
            _ => Err(self.wrong(what)),
        }
    }

    /// `true` or `false`, in quotes or not.
    ///
    /// # Errors
    /// Another token is next.
    pub fn boolean(&mut self, option: &str) -> Result<bool, Problem> {
        let (Kind::Word(word) | Kind::Text(word)) = &self.peek().kind else {
            return Err(self.wrong(&format!("true or false for `{option}`")));
        };
        let value = match word.to_ascii_lowercase().as_str() {
            "true" | "t" => true,
            "false" | "f" => false,
            _ => return Err(self.wrong(&format!("true or false for `{option}`"))),
        };
        self.at += 1;
        Ok(value)
    }

    /// Takes `option =`, if it is next.
    pub fn option(&mut self, option: &str) -> bool {
        let found = self.is_word(option) && self.symbol_ahead(1, "=");
        self.at += if found { 2 } else { 0 };
        found
    }

    /// A text in quotes.
    ///
    /// # Errors
    /// Another token is next.
    pub fn text(&mut self, what: &str) -> Result<String, Problem> {
        match &self.peek().kind {
            Kind::Text(text) => {
                let text = text.clone();
                self.at += 1;
                Ok(text)
            }
            _ => Err(self.wrong(what)),
        }
    }
}
