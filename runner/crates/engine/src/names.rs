//! The names that Spark gives to columns without one, and names that may repeat.
//!
//! DataFusion names `1` as `Int64(1)` and takes no name twice. So each select item gets the alias that Spark would
//! show; one that is taken already gets it with a mark and a number behind, which [`shown`] cuts off.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, CastKind, DataType, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Query, SelectItem, SetExpr,
    UnaryOperator, Value, VisitMut, VisitorMut,
};

use crate::balance::balance;
use crate::generate;
use crate::pretty::{self, DEEPEST};
use crate::spark;

/// What separates a name from what makes it unique. No name of a user's holds it.
const MARK: char = '\u{1}';

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
            selects(&mut query.body, &mut |select| {
                let relations = pretty::relations(&select.from);
                select.projection.iter_mut().for_each(|item| narrow(item, &relations));
            });
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
            let generator = generate::place(select);
            name_items(&mut select.projection, generator, &pretty::relations(&select.from));
            spark::grouping(&mut select.group_by);
            generate::lateral_views(select);
            if let Some(place) = generator {
                generate::select_item(select, place);
            }
        });
        spark::organized(query);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &mut ast::TableFactor) -> ControlFlow<()> {
        spark::values(table);
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

/// All but the item at `generator`, whose columns have names of their own.
fn name_items(items: &mut [SelectItem], generator: Option<usize>, relations: &[String]) {
    let wild = items.iter().any(|i| matches!(i, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)));
    let mut taken = HashSet::new();
    for (n, item) in items.iter_mut().enumerate().filter(|(n, _)| Some(*n) != generator) {
        let (name, plain) = match item {
            SelectItem::UnnamedExpr(e) => (pretty::name(e, relations), pretty::is_column(e, relations)),
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
fn narrow(item: &mut SelectItem, relations: &[String]) {
    let (expr, alias) = match item {
        SelectItem::UnnamedExpr(e) => {
            let name = pretty::name(e, relations);
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
