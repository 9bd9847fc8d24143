//! An expression as Spark writes it in the name of a column without one.

use std::fmt::Write;

use datafusion::sql::sqlparser::ast::{
    self, AccessExpr, BinaryOperator, CastKind, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    Subscript, TableFactor, TableWithJoins, UnaryOperator, Value, WindowType,
};

/// The longest name made of an expression, in bytes.
const LONGEST: usize = 256;
/// The deepest expression that is written out in a name.
pub const DEEPEST: usize = 64;

/// Functions that Spark writes in capitals.
const CAPITALS: &[&str] = &[
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "cos",
    "cosh",
    "cot",
    "csc",
    "degrees",
    "dense_rank",
    "e",
    "exp",
    "expm1",
    "floor",
    "hypot",
    "log10",
    "log1p",
    "log2",
    "percent_rank",
    "pi",
    "power",
    "radians",
    "rank",
    "sec",
    "signum",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
];
/// Window functions that look at all rows before the current one, whatever the order.
const RANKS: &[&str] = &["dense_rank", "ntile", "percent_rank", "rank", "row_number"];

/// The names by which the columns of a FROM may be called: each table's own, or the one that it is given.
pub fn relations(from: &[TableWithJoins]) -> Vec<String> {
    let mut names = Vec::new();
    for TableWithJoins { relation, joins } in from {
        for table in std::iter::once(relation).chain(joins.iter().map(|join| &join.relation)) {
            match table {
                TableFactor::Table { alias: Some(alias), .. }
                | TableFactor::Derived { alias: Some(alias), .. }
                | TableFactor::Function { alias: Some(alias), .. }
                | TableFactor::UNNEST { alias: Some(alias), .. } => names.push(alias.name.value.to_lowercase()),
                TableFactor::Table { name, .. } => {
                    let last = name.0.last().and_then(|part| part.as_ident());
                    names.extend(last.map(|ident| ident.value.to_lowercase()));
                }
                TableFactor::NestedJoin { table_with_joins, .. } => {
                    names.extend(self::relations(std::slice::from_ref(table_with_joins)));
                }
                _ => {}
            }
        }
    }
    names
}

/// Whether an expression is a column, and no field of one.
pub fn is_column(expr: &Expr, relations: &[String]) -> bool {
    match expr {
        Expr::Identifier(_) => true,
        Expr::CompoundIdentifier(parts) => own(parts, relations).len() == 1,
        _ => false,
    }
}

/// The name of an expression among the columns of a SELECT.
pub fn name(expr: &Expr, relations: &[String]) -> String {
    let mut out = Short { text: String::new(), relations };
    // It stops by an error when the name is long enough.
    let _ = match expr {
        Expr::CompoundIdentifier(parts) => out.write_str(parts.last().map_or("", |p| &p.value)),
        // One argument, one row an element: Spark names the column so.
        Expr::Function(f) if ["explode", "explode_outer"].contains(&f.name.to_string().as_str()) => {
            out.write_str("col")
        }
        other => write_expr(&mut out, other, 0),
    };
    out.text
}

/// A name without the table's.
fn own<'a>(parts: &'a [ast::Ident], relations: &[String]) -> &'a [ast::Ident] {
    let table = |part: &ast::Ident| relations.contains(&part.value.to_lowercase());
    let behind = parts[..parts.len().saturating_sub(1)].iter().position(table).map_or(0, |at| at + 1);
    &parts[behind..]
}

struct Short<'a> {
    text: String,
    relations: &'a [String],
}

impl Write for Short<'_> {
    fn write_str(&mut self, s: &str) -> std::fmt::Result {
        let room = LONGEST - self.text.len().min(LONGEST);
        let cut = s.floor_char_boundary(room.min(s.len()));
        self.text.push_str(&s[..cut]);
        if cut < s.len() { Err(std::fmt::Error) } else { Ok(()) }
    }
}

fn write_expr(out: &mut Short<'_>, expr: &Expr, depth: usize) -> std::fmt::Result {
    if depth > DEEPEST {
        return out.write_str("…");
    }
    let depth = depth + 1;
    match expr {
        Expr::Identifier(ident) => out.write_str(&ident.value),
        Expr::CompoundIdentifier(parts) => {
            let parts = own(parts, out.relations);
            list(out, ".", parts, |out, p| out.write_str(&p.value))
        }
        Expr::CompoundFieldAccess { root, access_chain } => {
            write_expr(out, root, depth)?;
            list(out, "", access_chain, |out, access| match access {
                AccessExpr::Dot(Expr::Identifier(field)) => write!(out, ".{}", field.value),
                AccessExpr::Subscript(Subscript::Index { index }) => {
                    out.write_char('[')?;
                    write_expr(out, index, depth)?;
                    out.write_char(']')
                }
                other => write!(out, "{other}"),
            })
        }
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(s) | Value::DoubleQuotedString(s) => out.write_str(s),
            Value::Null => out.write_str("NULL"),
            Value::Boolean(b) => write!(out, "{b}"),
            other => write!(out, "{other}"),
        },
        Expr::Nested(inner) => write_expr(out, inner, depth),
        Expr::BinaryOp { left, op: BinaryOperator::NotEq, right } => negated(out, true, |out| {
            out.write_char('(')?;
            pair(out, left, " = ", right, depth)?;
            out.write_char(')')
        }),
        Expr::BinaryOp { left, op: BinaryOperator::StringConcat, right } => {
            out.write_str("concat(")?;
            pair(out, left, ", ", right, depth)?;
            out.write_char(')')
        }
        Expr::BinaryOp { left, op, right } => {
            let between = match op {
                BinaryOperator::MyIntegerDivide => " div ".to_owned(),
                op => format!(" {op} "),
            };
            out.write_char('(')?;
            pair(out, left, &between, right, depth)?;
            out.write_char(')')
        }
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } if matches!(**expr, Expr::Value(_)) => {
            out.write_char('-')?;
            write_expr(out, expr, depth)
        }
        Expr::UnaryOp { op: UnaryOperator::BitwiseNot, expr } => {
            out.write_char('~')?;
            write_expr(out, expr, depth)
        }
        Expr::UnaryOp { op: UnaryOperator::Not | UnaryOperator::BangNot, expr } => {
            negated(out, true, |out| write_expr(out, expr, depth))
        }
        Expr::UnaryOp { op, expr } => {
            write!(out, "({op} ")?;
            write_expr(out, expr, depth)?;
            out.write_char(')')
        }
        Expr::IsNull(e) => wrapped(out, e, " IS NULL", depth),
        Expr::IsNotNull(e) => wrapped(out, e, " IS NOT NULL", depth),
        Expr::InList { expr, list: items, negated: not } => negated(out, *not, |out| {
            out.write_char('(')?;
            write_expr(out, expr, depth)?;
            out.write_str(" IN (")?;
            list(out, ", ", items, |out, e| write_expr(out, e, depth))?;
            out.write_str("))")
        }),
        Expr::InSubquery { expr, negated: not, .. } => {
            negated(out, *not, |out| wrapped(out, expr, " IN (listquery())", depth))
        }
        Expr::Exists { negated: not, .. } => negated(out, *not, |out| out.write_str("exists()")),
        Expr::Between { expr, negated: not, low, high } => negated(out, *not, |out| {
            out.write_str("((")?;
            pair(out, expr, " >= ", low, depth)?;
            out.write_str(") AND (")?;
            pair(out, expr, " <= ", high, depth)?;
            out.write_str("))")
        }),
        Expr::Like { negated: not, expr, pattern, any: false, .. } => {
            negated(out, *not, |out| pair(out, expr, " LIKE ", pattern, depth))
        }
        Expr::ILike { negated: not, expr, pattern, any: false, .. } => {
            negated(out, *not, |out| called(out, "ilike", &[expr, pattern], depth))
        }
        Expr::RLike { negated: not, expr, pattern, .. } => {
            negated(out, *not, |out| called(out, "RLIKE", &[expr, pattern], depth))
        }
        Expr::Cast { expr, data_type, kind, .. } => {
            out.write_str(if *kind == CastKind::TryCast { "TRY_CAST(" } else { "CAST(" })?;
            write_expr(out, expr, depth)?;
            write!(out, " AS {})", data_type.to_string().to_uppercase())
        }
        Expr::Extract { field, expr, .. } => {
            write!(out, "extract({field} FROM ")?;
            write_expr(out, expr, depth)?;
            out.write_char(')')
        }
        Expr::Interval(interval) => match (&interval.leading_field, &interval.last_field) {
            (Some(field), None) => {
                out.write_str("INTERVAL '")?;
                write_expr(out, &interval.value, depth)?;
                write!(out, "' {}", field.to_string().trim_end_matches('S'))
            }
            _ => write!(out, "{interval}"),
        },
        Expr::Ceil { expr, .. } => called(out, "CEIL", &[expr], depth),
        Expr::Floor { expr, .. } => called(out, "FLOOR", &[expr], depth),
        Expr::Position { expr, r#in } => {
            out.write_str("locate(")?;
            pair(out, expr, ", ", r#in, depth)?;
            out.write_str(", 1)")
        }
        Expr::Substring { expr, substring_from: Some(from), substring_for, shorthand, .. } => {
            out.write_str(if *shorthand { "substr(" } else { "substring(" })?;
            pair(out, expr, ", ", from, depth)?;
            match substring_for {
                Some(length) => {
                    out.write_str(", ")?;
                    write_expr(out, length, depth)?;
                }
                None => write!(out, ", {}", i32::MAX)?,
            }
            out.write_char(')')
        }
        Expr::Trim { trim_where, trim_what, expr, trim_characters: None } => {
            match (trim_where, trim_what) {
                (None, None) => return called(out, "trim", &[expr], depth),
                (place, what) => {
                    write!(out, "TRIM({} ", place.map_or("BOTH".to_owned(), |p| p.to_string()))?;
                    if let Some(what) = what {
                        write_expr(out, what, depth)?;
                        out.write_char(' ')?;
                    }
                    out.write_str("FROM ")?;
                }
            }
            write_expr(out, expr, depth)?;
            out.write_char(')')
        }
        Expr::Struct { values, .. } => {
            out.write_str("struct(")?;
            list(out, ", ", values, |out, e| write_expr(out, e, depth))?;
            out.write_char(')')
        }
        Expr::Named { expr, name } => {
            write_expr(out, expr, depth)?;
            write!(out, " AS {}", name.value)
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
        Expr::Function(f) if f.within_group.is_empty() => function(out, f, depth),
        Expr::Subquery(_) => out.write_str("scalarsubquery()"),
        other => write!(out, "{other}"),
    }
}

fn function(out: &mut Short<'_>, function: &Function, depth: usize) -> std::fmt::Result {
    let name = function.name.to_string().to_lowercase();
    let args = match &function.args {
        FunctionArguments::List(list) => list.args.as_slice(),
        _ => &[],
    };
    match (name.as_str(), args) {
        ("isnull", [FunctionArg::Unnamed(FunctionArgExpr::Expr(e))]) => return wrapped(out, e, " IS NULL", depth),
        ("isnotnull", [FunctionArg::Unnamed(FunctionArgExpr::Expr(e))]) => {
            return wrapped(out, e, " IS NOT NULL", depth);
        }
        _ => {}
    }
    let shown = if CAPITALS.contains(&name.as_str()) { name.to_uppercase() } else { name.clone() };
    let conditional = name == "if";
    out.write_str(if conditional { "(IF" } else { &shown })?;
    // Those without an argument list are written with one.
    out.write_char('(')?;
    if let FunctionArguments::List(arguments) = &function.args {
        if arguments.duplicate_treatment == Some(ast::DuplicateTreatment::Distinct) {
            out.write_str("DISTINCT ")?;
        }
        list(out, ", ", args, |out, arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => write_expr(out, e, depth),
            FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => out.write_char('1'),
            other => write!(out, "{other}"),
        })?;
    }
    out.write_str(if conditional { "))" } else { ")" })?;
    if let Some(filter) = &function.filter {
        out.write_str(" FILTER (WHERE ")?;
        write_expr(out, filter, depth)?;
        out.write_char(')')?;
    }
    match &function.over {
        Some(WindowType::WindowSpec(spec)) => window(out, &name, spec, depth),
        Some(WindowType::NamedWindow(window)) => write!(out, " OVER {window}"),
        None => Ok(()),
    }
}

/// What a window function looks at, with what Spark adds where nothing is said.
fn window(out: &mut Short<'_>, name: &str, spec: &ast::WindowSpec, depth: usize) -> std::fmt::Result {
    out.write_str(" OVER (")?;
    if !spec.partition_by.is_empty() {
        out.write_str("PARTITION BY ")?;
        list(out, ", ", &spec.partition_by, |out, e| write_expr(out, e, depth))?;
        out.write_char(' ')?;
    }
    if !spec.order_by.is_empty() {
        out.write_str("ORDER BY ")?;
        list(out, ", ", &spec.order_by, |out, by| {
            write_expr(out, &by.expr, depth)?;
            let ascending = by.options.asc.unwrap_or(true);
            let first = by.options.nulls_first.unwrap_or(ascending);
            out.write_str(if ascending { " ASC" } else { " DESC" })?;
            out.write_str(if first { " NULLS FIRST" } else { " NULLS LAST" })
        })?;
        out.write_char(' ')?;
    }
    match &spec.window_frame {
        Some(frame) => {
            let end = frame.end_bound.as_ref().map_or("CURRENT ROW".to_owned(), |end| end.to_string());
            write!(out, "{} BETWEEN {} AND {end})", frame.units, frame.start_bound)
        }
        None if RANKS.contains(&name) => out.write_str("ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"),
        None if spec.order_by.is_empty() => out.write_str("ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"),
        None => out.write_str("RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"),
    }
}

fn negated(out: &mut Short<'_>, not: bool, inner: impl FnOnce(&mut Short<'_>) -> std::fmt::Result) -> std::fmt::Result {
    if !not {
        return inner(out);
    }
    out.write_str("(NOT ")?;
    inner(out)?;
    out.write_char(')')
}

fn pair(out: &mut Short<'_>, left: &Expr, between: &str, right: &Expr, depth: usize) -> std::fmt::Result {
    write_expr(out, left, depth)?;
    out.write_str(between)?;
    write_expr(out, right, depth)
}

fn called(out: &mut Short<'_>, name: &str, args: &[&Expr], depth: usize) -> std::fmt::Result {
    write!(out, "{name}(")?;
    list(out, ", ", args, |out, e| write_expr(out, e, depth))?;
    out.write_char(')')
}

fn wrapped(out: &mut Short<'_>, expr: &Expr, behind: &str, depth: usize) -> std::fmt::Result {
    out.write_char('(')?;
    write_expr(out, expr, depth)?;
    write!(out, "{behind})")
}

fn list<T>(
    out: &mut Short<'_>,
    between: &str,
    items: &[T],
    mut each: impl FnMut(&mut Short<'_>, &T) -> std::fmt::Result,
) -> std::fmt::Result {
    for (n, item) in items.iter().enumerate() {
        if n > 0 {
            out.write_str(between)?;
        }
        each(out, item)?;
    }
    Ok(())
}
