//! The names that Spark gives to columns without one, and names that may repeat.
//!
//! DataFusion names `1` as `Int64(1)` and takes no name twice. So each select item gets the alias that Spark would
//! show; one that is taken already gets it with a mark and a number behind, which [`shown`] cuts off.

use std::collections::HashSet;
use std::fmt::Write;
use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, CastKind, DataType, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Query, SelectItem, SetExpr,
    UnaryOperator, Value, VisitMut, VisitorMut,
};

use crate::balance::balance;
use crate::spark;

/// What separates a name from what makes it unique. No name of a user's holds it.
const MARK: char = '\u{1}';
/// The longest name made of an expression, in bytes.
const LONGEST: usize = 256;
/// The deepest expression that is written out in a name.
const DEEPEST: usize = 64;

/// The name as the user sees it.
pub fn shown(name: &str) -> &str {
    name.split(MARK).next().unwrap_or_default()
}

/// Names every select item of a statement, and [balances](balance()) what is in it.
pub fn name(statement: &mut Statement) {
    if let Statement::Explain(explain) = statement {
        return name(&mut explain.statement);
    }
    if let Statement::Statement(statement) = statement {
        if let ast::Statement::Query(query) = statement.as_mut() {
            selects(&mut query.body, &mut |select| select.projection.iter_mut().for_each(narrow));
        }
        let _ = VisitMut::visit(statement.as_mut(), &mut Namer);
    }
}

/// Spark's functions that take an `int` and nothing wider: its whole numbers are `int`s, DataFusion's are not.
const TAKE_INT: &[&str] = &[
    "add_months",
    "bit_get",
    "date_add",
    "date_sub",
    "dateadd",
    "elt",
    "factorial",
    "getbit",
    "make_date",
    "make_dt_interval",
    "make_interval",
    "shiftleft",
    "shiftright",
    "shiftrightunsigned",
    "slice",
    "space",
    "width_bucket",
];

struct Namer;

impl VisitorMut for Namer {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        selects(&mut query.body, &mut |select| {
            name_items(&mut select.projection);
            spark::grouping(&mut select.group_by);
        });
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        balance(expr);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        spark::rewrite(expr);
        if let Expr::Function(f) = expr
            && let FunctionArguments::List(args) = &mut f.args
            && TAKE_INT.contains(&f.name.to_string().to_lowercase().as_str())
        {
            for arg in &mut args.args {
                if let FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) = arg
                    && whole(e, 0)
                {
                    *e = int(e);
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// Each select of a body; a query in parentheses is visited by itself.
fn selects(body: &mut SetExpr, each: &mut impl FnMut(&mut ast::Select)) {
    match body {
        SetExpr::Select(select) => each(select),
        SetExpr::SetOperation { left, right, .. } => {
            selects(left, each);
            selects(right, each);
        }
        _ => {}
    }
}

fn name_items(items: &mut [SelectItem]) {
    let wild = items.iter().any(|i| matches!(i, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)));
    let mut taken = HashSet::new();
    for (n, item) in items.iter_mut().enumerate() {
        let (name, plain) = match item {
            SelectItem::UnnamedExpr(e @ (Expr::Identifier(_) | Expr::CompoundIdentifier(_))) => (text(e), true),
            SelectItem::UnnamedExpr(e) => (text(e), false),
            SelectItem::ExprWithAlias { alias, .. } => (alias.value.clone(), false),
            _ => continue,
        };
        let fresh = taken.insert(name.to_lowercase());
        if fresh && plain && !wild {
            continue;
        }
        // Beside a `*`, a column by its own name would be there twice.
        let unique = if fresh && !(plain && wild) { name } else { format!("{name}{MARK}{n}") };
        let alias = Ident::with_quote('`', unique);
        match item {
            SelectItem::UnnamedExpr(expr) => {
                *item = SelectItem::ExprWithAlias { expr: std::mem::replace(expr, null()), alias }
            }
            SelectItem::ExprWithAlias { alias: old, .. } => *old = alias,
            _ => {}
        }
    }
}

fn null() -> Expr {
    Expr::Value(Value::Null.with_empty_span())
}

/// A whole number in the statement's own result is an `int` where it fits, as Spark has it.
fn narrow(item: &mut SelectItem) {
    let (expr, alias) = match item {
        SelectItem::UnnamedExpr(e) => {
            let name = text(e);
            (e, Some(name))
        }
        SelectItem::ExprWithAlias { expr, .. } => (expr, None),
        _ => return,
    };
    if !whole(expr, 0) {
        return;
    }
    let expr = int(expr);
    match (item, alias) {
        (SelectItem::ExprWithAlias { expr: e, .. }, _) => *e = expr,
        (item, name) => {
            *item = SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('`', name.unwrap_or_default()) }
        }
    }
}

fn int(expr: &mut Expr) -> Expr {
    let expr = Box::new(std::mem::replace(expr, null()));
    Expr::Cast { kind: CastKind::Cast, expr, data_type: DataType::Int(None), array: false, format: None }
}

fn whole(expr: &Expr, depth: usize) -> bool {
    match expr {
        Expr::Value(v) => matches!(&v.value, Value::Number(n, false) if n.to_string().parse::<i32>().is_ok()),
        Expr::Nested(e) | Expr::UnaryOp { op: UnaryOperator::Minus, expr: e } if depth < DEEPEST => whole(e, depth + 1),
        _ => false,
    }
}

/// The name of an expression.
pub fn text(expr: &Expr) -> String {
    let mut out = Short(String::new());
    // It stops by an error when the name is long enough.
    let _ = write_expr(&mut out, expr, 0);
    out.0
}

struct Short(String);

impl Write for Short {
    fn write_str(&mut self, s: &str) -> std::fmt::Result {
        let room = LONGEST - self.0.len().min(LONGEST);
        let cut = s.floor_char_boundary(room.min(s.len()));
        self.0.push_str(&s[..cut]);
        if cut < s.len() { Err(std::fmt::Error) } else { Ok(()) }
    }
}

fn write_expr(out: &mut Short, expr: &Expr, depth: usize) -> std::fmt::Result {
    if depth > DEEPEST {
        return out.write_str("…");
    }
    let depth = depth + 1;
    match expr {
        Expr::Identifier(ident) => out.write_str(&ident.value),
        Expr::CompoundIdentifier(parts) if depth == 1 => out.write_str(parts.last().map_or("", |p| &p.value)),
        Expr::CompoundIdentifier(parts) => list(out, ".", parts, |out, p| out.write_str(&p.value)),
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(s) | Value::DoubleQuotedString(s) => out.write_str(s),
            Value::Null => out.write_str("NULL"),
            Value::Boolean(b) => write!(out, "{b}"),
            other => write!(out, "{other}"),
        },
        Expr::Nested(inner) => write_expr(out, inner, depth),
        Expr::BinaryOp { left, op, right } => {
            out.write_char('(')?;
            write_expr(out, left, depth)?;
            match op {
                ast::BinaryOperator::MyIntegerDivide => out.write_str(" div ")?,
                op => write!(out, " {op} ")?,
            }
            write_expr(out, right, depth)?;
            out.write_char(')')
        }
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } if matches!(**expr, Expr::Value(_)) => {
            out.write_char('-')?;
            write_expr(out, expr, depth)
        }
        Expr::UnaryOp { op, expr } => {
            write!(out, "({op} ")?;
            write_expr(out, expr, depth)?;
            out.write_char(')')
        }
        Expr::IsNull(e) => wrapped(out, e, " IS NULL", depth),
        Expr::IsNotNull(e) => wrapped(out, e, " IS NOT NULL", depth),
        Expr::Cast { expr, data_type, kind, .. } => {
            out.write_str(if *kind == CastKind::TryCast { "TRY_CAST(" } else { "CAST(" })?;
            write_expr(out, expr, depth)?;
            write!(out, " AS {})", data_type.to_string().to_uppercase())
        }
        Expr::Case { operand, conditions, else_result, .. } => {
            out.write_str("CASE ")?;
            if let Some(operand) = operand {
                write_expr(out, operand, depth)?;
                out.write_char(' ')?;
            }
            for when in conditions {
                out.write_str("WHEN ")?;
                write_expr(out, &when.condition, depth)?;
                out.write_str(" THEN ")?;
                write_expr(out, &when.result, depth)?;
                out.write_char(' ')?;
            }
            if let Some(e) = else_result {
                out.write_str("ELSE ")?;
                write_expr(out, e, depth)?;
                out.write_char(' ')?;
            }
            out.write_str("END")
        }
        // One argument, one row an element: Spark names the column so.
        Expr::Function(f) if depth == 1 && ["explode", "explode_outer"].contains(&f.name.to_string().as_str()) => {
            out.write_str("col")
        }
        Expr::Function(f) if f.over.is_none() && f.filter.is_none() && f.within_group.is_empty() => {
            write!(out, "{}(", f.name.to_string().to_lowercase())?;
            if let FunctionArguments::List(args) = &f.args {
                if args.duplicate_treatment == Some(ast::DuplicateTreatment::Distinct) {
                    out.write_str("DISTINCT ")?;
                }
                list(out, ", ", &args.args, |out, arg| match arg {
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => write_expr(out, e, depth),
                    FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => out.write_char('1'),
                    other => write!(out, "{other}"),
                })?;
            }
            out.write_char(')')
        }
        Expr::Subquery(_) => out.write_str("scalarsubquery()"),
        other => write!(out, "{other}"),
    }
}

fn wrapped(out: &mut Short, expr: &Expr, behind: &str, depth: usize) -> std::fmt::Result {
    out.write_char('(')?;
    write_expr(out, expr, depth)?;
    write!(out, "{behind})")
}

fn list<T>(
    out: &mut Short,
    between: &str,
    items: &[T],
    mut each: impl FnMut(&mut Short, &T) -> std::fmt::Result,
) -> std::fmt::Result {
    for (n, item) in items.iter().enumerate() {
        if n > 0 {
            out.write_str(between)?;
        }
        each(out, item)?;
    }
    Ok(())
}
