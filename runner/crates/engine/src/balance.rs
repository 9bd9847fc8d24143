//! Long chains of AND and OR, as trees that are wide instead of deep.
//!
//! The parser hangs 20,000 ORs from each other; DataFusion then asks each for the type of all below it, which takes a
//! minute. As a balanced tree it takes milliseconds, and means the same: both operators are associative.

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Value};

/// Chains shorter than this stay as they are written.
const LONG: usize = 32;

/// Balances the chain that begins here.
pub fn balance(expr: &mut Expr) {
    let Expr::BinaryOp { op: op @ (BinaryOperator::And | BinaryOperator::Or), .. } = expr else { return };
    let op = op.clone();
    if length(expr, &op) < LONG {
        return;
    }
    let mut parts = Vec::new();
    let mut rest = std::mem::replace(expr, Expr::Value(Value::Null.with_empty_span()));
    loop {
        match rest {
            Expr::BinaryOp { left, op: found, right } if found == op => {
                parts.push(*right);
                rest = *left;
            }
            first => {
                parts.push(first);
                break;
            }
        }
    }
    parts.reverse();
    *expr = tree(parts, &op);
}

fn length(mut expr: &Expr, op: &BinaryOperator) -> usize {
    let mut n = 1;
    while let Expr::BinaryOp { left, op: found, .. } = expr
        && found == op
        && n < LONG
    {
        n += 1;
        expr = left;
    }
    n
}

fn tree(mut level: Vec<Expr>, op: &BinaryOperator) -> Expr {
    while level.len() > 1 {
        let mut next = Vec::with_capacity(level.len().div_ceil(2));
        let mut parts = level.into_iter();
        while let Some(left) = parts.next() {
            next.push(match parts.next() {
                // In parentheses, so that it is the same when it is written out and read again.
                Some(right) => Expr::Nested(Box::new(Expr::BinaryOp {
                    left: Box::new(left),
                    op: op.clone(),
                    right: Box::new(right),
                })),
                None => left,
            });
        }
        level = next;
    }
    level.pop().expect("a chain has a part")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;

    fn parsed(text: &str) -> Expr {
        Parser::new(&GenericDialect {}).try_with_sql(text).unwrap().parse_expr().unwrap()
    }

    fn depth(expr: &Expr) -> usize {
        match expr {
            Expr::BinaryOp { left, right, .. } => 1 + depth(left).max(depth(right)),
            Expr::Nested(e) => depth(e),
            _ => 0,
        }
    }

    #[test]
    fn a_long_chain_becomes_wide_and_keeps_its_order() {
        let names: Vec<String> = (0..1000).map(|n| format!("a{n}")).collect();
        let mut expr = parsed(&names.join(" OR "));
        assert_eq!(depth(&expr), 999);
        balance(&mut expr);
        assert_eq!(depth(&expr), 10);
        let text = expr.to_string().replace(['(', ')'], "");
        assert_eq!(text, names.join(" OR "));
    }

    #[test]
    fn other_operators_and_short_chains_stay() {
        for text in ["a OR b AND c", "a + b + c"] {
            let mut expr = parsed(text);
            balance(&mut expr);
            assert_eq!(expr.to_string(), text);
        }
    }
}
