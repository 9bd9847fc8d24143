//! Where one statement ends and the next begins.

/// Collects lines and gives out statements: text up to a `;` that stands neither in quotes nor in a comment.
#[derive(Debug, Default)]
pub struct Splitter {
    pending: String,
    inside: Inside,
    /// The pending text has more than white space and comments.
    something: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Inside {
    #[default]
    Nothing,
    /// Text, in which a backslash takes the next character along, or a name; ends at the same character.
    Quotes(char),
    /// `-- …`
    Line,
    /// `/* … */`, which nests.
    Block(u32),
}

impl Splitter {
    /// Takes more text, and gives the statements that it ends.
    pub fn push(&mut self, text: &str) -> Vec<String> {
        let mut ended = Vec::new();
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            if self.inside == Inside::Nothing && c == ';' {
                ended.extend(self.take());
                continue;
            }
            self.pending.push(c);
            self.inside = match self.inside {
                Inside::Nothing => match c {
                    '\'' | '"' | '`' => Inside::Quotes(c),
                    '-' if chars.peek() == Some(&'-') => Inside::Line,
                    '/' if chars.peek() == Some(&'*') => {
                        self.pending.extend(chars.next());
                        Inside::Block(1)
                    }
                    _ => Inside::Nothing,
                },
                // A doubled quote ends and begins again, which comes to the same.
                Inside::Quotes(quote) if c == quote => Inside::Nothing,
                Inside::Quotes(quote) if c == '\\' && quote != '`' => {
                    self.pending.extend(chars.next());
                    Inside::Quotes(quote)
                }
                Inside::Line if c == '\n' => Inside::Nothing,
                Inside::Block(depth) if c == '*' && chars.peek() == Some(&'/') => {
                    self.pending.extend(chars.next());
                    if depth == 1 { Inside::Nothing } else { Inside::Block(depth - 1) }
                }
                Inside::Block(depth) if c == '/' && chars.peek() == Some(&'*') => {
                    self.pending.extend(chars.next());
                    Inside::Block(depth + 1)
                }
                inside => inside,
            };
            let comment = matches!(self.inside, Inside::Line | Inside::Block(_))
                || (self.inside == Inside::Nothing && self.pending.ends_with("*/"));
            self.something |= !comment && !c.is_whitespace();
        }
        ended
    }

    /// Nothing is pending but white space and comments that have ended.
    pub fn is_empty(&self) -> bool {
        !self.something && !matches!(self.inside, Inside::Block(_) | Inside::Quotes(_))
    }

    /// The statement that no `;` ended.
    pub fn rest(&mut self) -> Option<String> {
        self.inside = Inside::Nothing;
        self.take()
    }

    fn take(&mut self) -> Option<String> {
        let text = std::mem::take(&mut self.pending);
        std::mem::take(&mut self.something).then(|| text.trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> (Vec<String>, Option<String>) {
        let mut splitter = Splitter::default();
        // Line by line, as they come.
        let statements = text.split_inclusive('\n').flat_map(|line| splitter.push(line)).collect();
        (statements, splitter.rest())
    }

    #[test]
    fn a_semicolon_in_quotes_or_comments_ends_nothing() {
        for (text, statements, rest) in [
            ("SELECT 1; SELECT 2;", vec!["SELECT 1", "SELECT 2"], None),
            ("SELECT 1", vec![], Some("SELECT 1")),
            ("SELECT ';''; ' ; x", vec!["SELECT ';''; '"], Some("x")),
            ("SELECT \";\", `;` ;", vec!["SELECT \";\", `;`"], None),
            ("SELECT 1 -- one; two\n, 2;", vec!["SELECT 1 -- one; two\n, 2"], None),
            ("SELECT /* ; /* ; */ ; */ 1;", vec!["SELECT /* ; /* ; */ ; */ 1"], None),
            (";; ;\n-- nothing\n/* nothing; */ ;", vec![], None),
            ("-- it's a comment\nSELECT 1;", vec!["-- it's a comment\nSELECT 1"], None),
            ("SELECT 'two\nlines;';", vec!["SELECT 'two\nlines;'"], None),
            ("SELECT 4-2, 4/2;", vec!["SELECT 4-2, 4/2"], None),
            (r"SELECT 'it\'s; x\\'; SELECT `\`;", vec![r"SELECT 'it\'s; x\\'", r"SELECT `\`"], None),
            ("SELECT '/*'; SELECT '--';", vec!["SELECT '/*'", "SELECT '--'"], None),
        ] {
            let (found, left) = split(text);
            assert_eq!(found, statements, "{text}");
            assert_eq!(left.as_deref(), rest, "{text}");
        }
    }

    #[test]
    fn it_knows_whether_a_statement_is_pending() {
        for (text, empty) in [
            ("", true),
            (" \n", true),
            ("-- x", true),
            ("/* x", false),
            ("/* x */", true),
            ("SELECT", false),
            ("SELECT 1;", true),
            ("'", false),
        ] {
            let mut splitter = Splitter::default();
            splitter.push(text);
            assert_eq!(splitter.is_empty(), empty, "{text}");
        }
    }
}
