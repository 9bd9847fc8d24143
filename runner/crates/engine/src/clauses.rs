//! Clauses that are parsed and that DataFusion's planner drops or does not know: refused by name, so that no answer is
//! given to another question.
//!
//! What may be there is listed: each struct is taken apart to its last field, so a clause that a later sqlparser adds
//! stops the build until it is looked at.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, DuplicateTreatment, Expr, Function, FunctionArguments, GroupByExpr, Join, Query, Select, SelectItem, SetExpr,
    TableAlias, TableFactor, TableFunctionArgs, TableSample, TableSampleKind, TableWithJoins, Visit, Visitor,
    WildcardAdditionalOptions, WindowType,
};
use firesteel_model::{Code, Failure, Stage};

use crate::generate;

type Found = ControlFlow<Failure>;

/// Refuses a statement that holds such a clause; `scalar` tells the functions that are no aggregates.
///
/// # Errors
/// `Unsupported`, with the clause's name and what to write instead.
pub fn refuse(statement: &Statement, scalar: &dyn Fn(&str) -> bool) -> Result<(), Failure> {
    match statement {
        Statement::Explain(explain) => refuse(&explain.statement, scalar),
        Statement::Statement(statement) => match statement.visit(&mut Clauses { scalar }) {
            ControlFlow::Break(failure) => Err(failure),
            ControlFlow::Continue(()) => Ok(()),
        },
        Statement::CreateExternalTable(_) | Statement::CopyTo(_) | Statement::Reset(_) => Ok(()),
    }
}

fn no(clause: &str, instead: &str) -> Failure {
    Failure::new(Code::Unsupported, Stage::Plan, format!("{clause} is not supported; {instead}"))
}

fn unless(fine: bool, clause: &str, instead: &str) -> Found {
    if fine { ControlFlow::Continue(()) } else { ControlFlow::Break(no(clause, instead)) }
}

const LEAVE: &str = "leave it out";

struct Clauses<'a> {
    scalar: &'a dyn Fn(&str) -> bool,
}

impl Visitor for Clauses<'_> {
    type Break = Failure;

    fn pre_visit_query(&mut self, query: &Query) -> Found {
        let Query {
            with,
            body,
            order_by,
            limit_clause: _,
            fetch,
            locks,
            for_clause,
            settings,
            format_clause,
            pipe_operators: _,
        } = query;
        for cte in with.iter().flat_map(|with| &with.cte_tables) {
            unless(cte.from.is_none(), "FROM behind a WITH query", LEAVE)?;
            alias(Some(&cte.alias))?;
        }
        tables(body)?;
        if let Some(ast::OrderBy { kind: _, interpolate }) = order_by {
            unless(interpolate.is_none(), "INTERPOLATE", LEAVE)?;
        }
        unless(fetch.is_none(), "FETCH", "write LIMIT")?;
        unless(locks.is_empty(), "FOR UPDATE or FOR SHARE", "leave it out: tables are only read")?;
        unless(for_clause.is_none(), "FOR XML, FOR JSON or FOR BROWSE", LEAVE)?;
        unless(settings.is_none(), "SETTINGS", "write a SET statement before the query")?;
        unless(format_clause.is_none(), "FORMAT", LEAVE)
    }

    fn pre_visit_select(&mut self, select: &Select) -> Found {
        let Select {
            select_token: _,
            // Hints say how, not what.
            optimizer_hints: _,
            distinct: _,
            select_modifiers,
            top,
            top_before_distinct: _,
            projection,
            exclude,
            into,
            from,
            // Made part of the FROM before.
            lateral_views: _,
            prewhere,
            selection: _,
            connect_by,
            group_by,
            // Made ORDER BY before, or left out: where rows are computed is no part of the answer.
            cluster_by: _,
            distribute_by: _,
            sort_by: _,
            having: _,
            named_window: _,
            qualify: _,
            window_before_qualify: _,
            value_table_mode,
            flavor,
        } = select;
        unless(!select_modifiers.as_ref().is_some_and(|m| m.is_any_set()), "a modifier of SELECT", LEAVE)?;
        unless(top.is_none(), "TOP", "write LIMIT")?;
        unless(exclude.is_none(), "EXCLUDE", "write * EXCEPT (columns)")?;
        unless(into.is_none(), "SELECT INTO", "write CREATE VIEW name AS SELECT")?;
        unless(prewhere.is_none(), "PREWHERE", "write WHERE")?;
        unless(connect_by.is_empty(), "CONNECT BY", "write WITH RECURSIVE")?;
        unless(*flavor != ast::SelectFlavor::FromFirstNoSelect, "FROM without SELECT", "write SELECT * FROM table")?;
        unless(value_table_mode.is_none(), "SELECT AS STRUCT or AS VALUE", "write struct(columns)")?;
        let (GroupByExpr::All(modifiers) | GroupByExpr::Expressions(_, modifiers)) = group_by;
        if let Some(modifier) = modifiers.first() {
            let name = match modifier {
                ast::GroupByWithModifier::Rollup => "WITH ROLLUP here",
                ast::GroupByWithModifier::Cube => "WITH CUBE here",
                ast::GroupByWithModifier::Totals => "WITH TOTALS",
                ast::GroupByWithModifier::GroupingSets(_) => "GROUPING SETS here",
            };
            return ControlFlow::Break(no(name, "write GROUP BY ROLLUP (columns), CUBE or GROUPING SETS"));
        }
        for item in projection {
            match item {
                SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. } => {}
                SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) => wildcard(options)?,
                SelectItem::ExprWithAliases { .. } => {
                    unless(false, "more than one name for a column", "write one name")?;
                }
            }
        }
        from.iter().try_for_each(joins)
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> Found {
        match table {
            TableFactor::Table {
                name: _,
                alias: named,
                args,
                with_hints,
                version,
                with_ordinality,
                partitions,
                json_path,
                sample,
                index_hints,
            } => {
                alias(named.as_ref())?;
                if let Some(TableFunctionArgs { args: _, settings }) = args {
                    unless(settings.is_none(), "SETTINGS", LEAVE)?;
                }
                unless(with_hints.is_empty(), "WITH (hints)", LEAVE)?;
                unless(version.is_none(), "a version of a table", "leave it out: files have one")?;
                unless(!with_ordinality, "WITH ORDINALITY", "write row_number() OVER ()")?;
                unless(partitions.is_empty(), "PARTITION behind a table", "write WHERE on the partition's column")?;
                unless(json_path.is_none(), "a path behind a table", "write it in the SELECT")?;
                sampled(sample.as_ref())?;
                unless(index_hints.is_empty(), "an index hint", LEAVE)
            }
            TableFactor::Derived { lateral: _, subquery: _, alias: named, sample } => {
                alias(named.as_ref())?;
                sampled(sample.as_ref())
            }
            TableFactor::Function { lateral: _, name: _, args: _, with_ordinality, alias: named } => {
                alias(named.as_ref())?;
                unless(!with_ordinality, "WITH ORDINALITY", "write row_number() OVER ()")
            }
            TableFactor::UNNEST { alias: named, array_exprs: _, with_offset, with_offset_alias, with_ordinality } => {
                alias(named.as_ref())?;
                unless(!with_offset && with_offset_alias.is_none(), "WITH OFFSET", "write row_number() OVER ()")?;
                unless(!with_ordinality, "WITH ORDINALITY", "write row_number() OVER ()")
            }
            TableFactor::NestedJoin { table_with_joins, alias: named } => {
                alias(named.as_ref())?;
                joins(table_with_joins)
            }
            TableFactor::Pivot { .. } => unless(false, "PIVOT", "write an aggregate with FILTER (WHERE …) a column"),
            TableFactor::Unpivot { .. } => unless(false, "UNPIVOT", "write a SELECT a column, joined by UNION ALL"),
            TableFactor::MatchRecognize { .. } => unless(false, "MATCH_RECOGNIZE", "write window functions"),
            TableFactor::TableFunction { expr, alias: named } => {
                alias(named.as_ref())?;
                let fine = generate::is_generator(expr);
                unless(fine, "LATERAL VIEW or TABLE of this function", "write explode, posexplode, inline or stack")
            }
            TableFactor::JsonTable { .. }
            | TableFactor::OpenJsonTable { .. }
            | TableFactor::XmlTable { .. }
            | TableFactor::SemanticView { .. } => unless(false, "this kind of table", "write a table or a query"),
        }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> Found {
        match expr {
            Expr::Function(function) => self.function(function),
            Expr::Like { any: true, .. } | Expr::ILike { any: true, .. } => {
                unless(false, "LIKE ANY", "write each LIKE, joined by OR")
            }
            Expr::Cast { format: Some(_), .. } => unless(false, "FORMAT in a CAST", "write to_date or to_timestamp"),
            Expr::AtTimeZone { time_zone, .. } => unless(
                matches!(time_zone.as_ref(), Expr::Value(_)),
                "AT TIME ZONE with anything but a text",
                "write from_utc_timestamp(time, zone)",
            ),
            _ => ControlFlow::Continue(()),
        }
    }
}

impl Clauses<'_> {
    fn function(&self, function: &Function) -> Found {
        let Function { name, uses_odbc_syntax: _, parameters, args, filter, null_treatment, over, within_group } =
            function;
        let name = name.to_string().to_lowercase();
        unless(matches!(parameters, FunctionArguments::None), "a second pair of parentheses", LEAVE)?;
        let (mut distinct, mut clauses) = (false, false);
        if let FunctionArguments::List(list) = args {
            distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
            clauses = !list.clauses.is_empty();
        }
        if let Some(WindowType::WindowSpec(window)) = over {
            unless(window.window_name.is_none(), "a window made of another", "write all of it behind OVER")?;
        }
        // A plain text is split by another function.
        unless(
            name != "split",
            "split by a regular expression or with a limit",
            "write a plain text, as in split(s, ',')",
        )?;
        unless(!(distinct && name == "try_sum"), "DISTINCT in try_sum", "write sum(DISTINCT …)")?;
        if !(self.scalar)(&name) {
            return ControlFlow::Continue(());
        }
        let instead = format!("`{name}` is no aggregate");
        unless(filter.is_none(), "FILTER here", &instead)?;
        unless(over.is_none(), "OVER here", &instead)?;
        unless(!distinct, "DISTINCT here", &instead)?;
        unless(null_treatment.is_none() && !clauses && within_group.is_empty(), "a clause of aggregates", &instead)
    }
}

/// `TABLE t` has no place of its own among what is visited.
fn tables(body: &SetExpr) -> Found {
    match body {
        SetExpr::Table(_) => unless(false, "TABLE name", "write SELECT * FROM name"),
        _ => ControlFlow::Continue(()),
    }
}

fn joins(from: &TableWithJoins) -> Found {
    let TableWithJoins { relation: _, joins } = from;
    for Join { relation, global, join_operator } in joins {
        use ast::JoinOperator as J;
        unless(!global, "GLOBAL JOIN", "leave GLOBAL out")?;
        match join_operator {
            J::CrossJoin(ast::JoinConstraint::None) => {}
            J::CrossJoin(_) => unless(false, "CROSS JOIN with a condition", "write JOIN")?,
            J::CrossApply | J::OuterApply => unless(false, "APPLY", "write JOIN LATERAL")?,
            J::AsOf { .. } => unless(false, "ASOF JOIN", "write a window function over a UNION ALL")?,
            J::StraightJoin(_) => unless(false, "STRAIGHT_JOIN", "write JOIN")?,
            // What a LATERAL VIEW has become.
            J::ArrayJoin | J::LeftArrayJoin if matches!(relation, TableFactor::TableFunction { .. }) => {}
            J::ArrayJoin | J::LeftArrayJoin | J::InnerArrayJoin => {
                unless(false, "ARRAY JOIN", "write LATERAL VIEW explode(column)")?
            }
            J::Join(_)
            | J::Inner(_)
            | J::Left(_)
            | J::LeftOuter(_)
            | J::Right(_)
            | J::RightOuter(_)
            | J::FullOuter(_)
            | J::Semi(_)
            | J::LeftSemi(_)
            | J::RightSemi(_)
            | J::Anti(_)
            | J::LeftAnti(_)
            | J::RightAnti(_) => {}
        }
    }
    ControlFlow::Continue(())
}

fn sampled(sample: Option<&TableSampleKind>) -> Found {
    let Some(TableSampleKind::BeforeTableAlias(sample) | TableSampleKind::AfterTableAlias(sample)) = sample else {
        return ControlFlow::Continue(());
    };
    let TableSample { modifier: _, name, quantity: _, seed, bucket, offset } = sample.as_ref();
    unless(name.is_none() && offset.is_none(), "this form of TABLESAMPLE", "write TABLESAMPLE (10 PERCENT)")?;
    unless(seed.is_none(), "TABLESAMPLE … REPEATABLE", "leave it out, or write WHERE crc32(column) % 100 < percent")?;
    let on = bucket.as_ref().is_some_and(|bucket| bucket.on.is_some());
    unless(!on, "ON in TABLESAMPLE", "write WHERE crc32(column) % buckets = bucket")
}

fn alias(alias: Option<&TableAlias>) -> Found {
    let Some(TableAlias { explicit: _, name: _, columns, at }) = alias else { return ControlFlow::Continue(()) };
    unless(at.is_none(), "AT behind an alias", LEAVE)?;
    unless(columns.iter().all(|c| c.data_type.is_none()), "a type in an alias", "write a CAST in the SELECT")
}

fn wildcard(options: &WildcardAdditionalOptions) -> Found {
    let WildcardAdditionalOptions {
        wildcard_token: _,
        opt_ilike,
        opt_exclude: _,
        opt_except: _,
        opt_replace: _,
        opt_rename,
        opt_alias,
    } = options;
    unless(opt_ilike.is_none(), "* ILIKE", "name the columns")?;
    unless(opt_rename.is_none() && opt_alias.is_none(), "* with another name", "name the columns")
}
