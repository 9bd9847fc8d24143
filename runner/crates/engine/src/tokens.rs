//! Where Spark's text and what sqlparser reads differ, token by token: suffixes of numbers, the words behind EXPLAIN, the place of
//! SORT BY and its like, and the end of a LATERAL VIEW.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// The same text, as sqlparser reads it.
pub fn adapted(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let tokens = explained(suffixed(tokens));
    if !tokens.iter().any(|t| word(t, &["HAVING", "LATERAL"])) {
        return tokens;
    }
    ended_views(before_having(tokens))
}

fn word(token: &TokenWithSpan, words: &[&str]) -> bool {
    matches!(&token.token, Token::Word(w) if w.quote_style.is_none() && words.iter().any(|x| w.value.eq_ignore_ascii_case(x)))
}

fn blank(token: &TokenWithSpan) -> bool {
    matches!(token.token, Token::Whitespace(_))
}

/// The next token from `at` on that is no white space.
fn next(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    (at..tokens.len()).find(|i| !blank(&tokens[*i]))
}

/// Numbers with one of Spark's suffixes: `1S`, `1Y`, `1F` are casts, `1D` is as `1e0`, `1BD` as `1`.
fn suffixed(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for token in tokens {
        let number = match (out.last_mut(), &token.token) {
            (Some(TokenWithSpan { token: Token::Number(number, false), span }), Token::Word(suffix))
                if suffix.quote_style.is_none() && span.end == token.span.start =>
            {
                Some((number, suffix.value.to_ascii_uppercase()))
            }
            _ => None,
        };
        let Some((number, suffix)) = number else {
            out.push(token);
            continue;
        };
        let name = match suffix.as_str() {
            "BD" => continue,
            "D" => {
                if !number.contains(['e', 'E']) {
                    number.push_str("e0");
                }
                continue;
            }
            "S" => "smallint",
            "Y" => "tinyint",
            "F" => "float",
            _ => {
                out.push(token);
                continue;
            }
        };
        let spanned = |t| TokenWithSpan { token: t, span: token.span };
        if let Some(number) = out.pop() {
            out.extend([Token::make_keyword("CAST"), Token::LParen].map(spanned));
            out.push(number);
            out.extend([Token::make_keyword("AS"), Token::make_keyword(name), Token::RParen].map(spanned));
        }
    }
    out
}

/// `EXPLAIN EXTENDED` and its like say which plans are shown: both are, always.
fn explained(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let Some(first) = next(&tokens, 0).filter(|i| word(&tokens[*i], &["EXPLAIN"])) else { return tokens };
    if let Some(second) = next(&tokens, first + 1)
        && word(&tokens[second], &["EXTENDED", "FORMATTED", "CODEGEN", "COST"])
        && next(&tokens, second + 1).is_some_and(|third| matches!(tokens[third].token, Token::Word(_) | Token::LParen))
    {
        tokens.remove(second);
    }
    tokens
}

const ORGANIZE: &[&str] = &["CLUSTER", "DISTRIBUTE", "SORT"];
const ENDS: &[&str] = &["ORDER", "LIMIT", "OFFSET", "WINDOW", "UNION", "EXCEPT", "MINUS", "INTERSECT"];

/// Spark has SORT BY and its like behind HAVING, sqlparser before it.
fn before_having(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut having: Vec<Option<usize>> = vec![None];
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at].token {
            Token::LParen => having.push(None),
            Token::RParen => {
                having.pop();
                if having.is_empty() {
                    return tokens;
                }
            }
            Token::SemiColon => having = vec![None],
            _ if word(&tokens[at], &["HAVING"]) => *having.last_mut().unwrap_or(&mut None) = Some(at),
            _ if word(&tokens[at], ORGANIZE) && next(&tokens, at + 1).is_some_and(|n| word(&tokens[n], &["BY"])) => {
                if let Some(Some(place)) = having.last().copied() {
                    let end = end_of_clause(&tokens, at);
                    let clause: Vec<TokenWithSpan> = tokens.drain(at..end).collect();
                    let length = clause.len();
                    tokens.splice(place..place, clause);
                    if let Some(having) = having.last_mut() {
                        *having = Some(place + length);
                    }
                    at = end;
                    continue;
                }
            }
            _ if word(&tokens[at], ENDS) => {
                if let Some(having) = having.last_mut() {
                    *having = None;
                }
            }
            _ => {}
        }
        at += 1;
    }
    tokens
}

/// Behind the last token of a clause: where another begins, its parenthesis is closed or the statement is over.
fn end_of_clause(tokens: &[TokenWithSpan], from: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(from + 1) {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => return at,
            Token::RParen => depth -= 1,
            Token::SemiColon | Token::EOF if depth == 0 => return at,
            _ if depth == 0 && (word(token, ENDS) || word(token, ORGANIZE)) => return at,
            _ => {}
        }
    }
    tokens.len()
}

/// Behind a LATERAL VIEW without names of columns, sqlparser takes the next word for one: a WHERE before it ends the view.
fn ended_views(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut at = 0;
    while at < tokens.len() {
        if word(&tokens[at], &["LATERAL"])
            && let Some(end) = end_of_view(&tokens, at)
            && let Some(behind) = next(&tokens, end)
            && (word(&tokens[behind], ENDS) || word(&tokens[behind], ORGANIZE))
        {
            let span = tokens[behind].span;
            let space = Token::Whitespace(datafusion::sql::sqlparser::tokenizer::Whitespace::Space);
            let added = [Token::make_keyword("WHERE"), space.clone(), Token::make_keyword("TRUE"), space];
            tokens.splice(behind..behind, added.map(|token| TokenWithSpan { token, span }));
        }
        at += 1;
    }
    tokens
}

/// Behind the name of a LATERAL VIEW that begins at `at`.
fn end_of_view(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    let mut at = next(tokens, at + 1).filter(|i| word(&tokens[*i], &["VIEW"]))? + 1;
    while !matches!(tokens.get(at)?.token, Token::LParen) {
        at += 1;
    }
    let mut depth = 0_usize;
    loop {
        match tokens.get(at)?.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            break;
        }
    }
    let name = next(tokens, at)?;
    matches!(tokens[name].token, Token::Word(_)).then_some(name + 1)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use datafusion::sql::sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::dialect::Spark;

    #[test]
    fn spark_s_text_becomes_what_sqlparser_reads() {
        for (spark, read) in [
            ("SELECT 1S, 2D, 3BD", "SELECT CAST(1ASsmallint), 2e0, 3"),
            ("EXPLAIN EXTENDED SELECT 1", "EXPLAIN  SELECT 1"),
            ("EXPLAIN extended", "EXPLAIN extended"),
            (
                "SELECT a FROM t GROUP BY a HAVING a > f(1) DISTRIBUTE BY a SORT BY a LIMIT 1",
                "SELECT a FROM t GROUP BY a DISTRIBUTE BY a SORT BY a HAVING a > f(1) LIMIT 1",
            ),
            (
                "SELECT * FROM (SELECT a FROM t HAVING 1 CLUSTER BY a) SORT BY a",
                "SELECT * FROM (SELECT a FROM t CLUSTER BY aHAVING 1 ) SORT BY a",
            ),
            ("FROM t LATERAL VIEW f(g(x)) v LIMIT 1", "FROM t LATERAL VIEW f(g(x)) v WHERE TRUE LIMIT 1"),
            ("FROM t LATERAL VIEW f(x) v AS a LIMIT 1", "FROM t LATERAL VIEW f(x) v AS a LIMIT 1"),
            ("FROM t LATERAL VIEW f(x", "FROM t LATERAL VIEW f(x"),
            (") HAVING SORT BY", ") HAVING SORT BY"),
        ] {
            let tokens = adapted(Tokenizer::new(&Spark, spark).tokenize_with_location().unwrap());
            let text: String = tokens.iter().map(|t| t.token.to_string()).collect();
            assert_eq!(text.trim_end_matches("EOF"), read, "{spark}");
        }
    }
}
