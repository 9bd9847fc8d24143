//! What Spark writes another way: its functions, literals and clauses as those that DataFusion has.
//!
//! The statement is rewritten before it is planned and after its columns are named, so a result shows what was written.

use datafusion::sql::sqlparser::ast::{
    self, CaseWhen, CastKind, DataType, DuplicateTreatment, ExactNumberInfo, Expr, Function, FunctionArg,
    FunctionArgExpr, FunctionArgumentList, FunctionArguments, GroupByExpr, GroupByWithModifier, Ident, ObjectName,
    TimezoneInfo, TypedString, UnaryOperator, Value, helpers::attached_token::AttachedToken,
};

use crate::patterns;

/// `GROUP BY a, b WITH ROLLUP`, `WITH CUBE` and `GROUPING SETS (…)` as the functions of the same name.
pub fn grouping(group_by: &mut GroupByExpr) {
    let GroupByExpr::Expressions(exprs, modifiers) = group_by else { return };
    let sets = |exprs: &mut Vec<Expr>| std::mem::take(exprs).into_iter().map(|e| vec![e]).collect();
    match modifiers.as_slice() {
        [GroupByWithModifier::Rollup] => *exprs = vec![Expr::Rollup(sets(exprs))],
        [GroupByWithModifier::Cube] => *exprs = vec![Expr::Cube(sets(exprs))],
        [GroupByWithModifier::GroupingSets(sets)] => *exprs = vec![sets.clone()],
        _ => return,
    }
    modifiers.clear();
}

/// `CLUSTER BY` and `SORT BY` as `ORDER BY`: rows in one order are in order in each part, too. `MINUS` as `EXCEPT`.
pub fn organized(query: &mut ast::Query) {
    fn last(body: &mut ast::SetExpr) -> Option<&mut ast::Select> {
        match body {
            ast::SetExpr::Select(select) => Some(select),
            ast::SetExpr::SetOperation { right, .. } => last(right),
            _ => None,
        }
    }
    fn minus(body: &mut ast::SetExpr) {
        if let ast::SetExpr::SetOperation { op, left, right, .. } = body {
            if *op == ast::SetOperator::Minus {
                *op = ast::SetOperator::Except;
            }
            minus(left);
            minus(right);
        }
    }
    minus(&mut query.body);
    let Some(select) = last(&mut query.body) else { return };
    select.distribute_by.clear();
    let options = || ast::OrderByOptions { asc: None, nulls_first: None };
    let mut by: Vec<ast::OrderByExpr> = std::mem::take(&mut select.sort_by);
    let clustered = std::mem::take(&mut select.cluster_by);
    by.extend(clustered.into_iter().map(|expr| ast::OrderByExpr { expr, options: options(), with_fill: None }));
    if query.order_by.is_none() && !by.is_empty() {
        query.order_by = Some(ast::OrderBy { kind: ast::OrderByKind::Expressions(by), interpolate: None });
    }
}

/// The columns of VALUES are `col1`, `col2`, …
pub fn values(table: &mut ast::TableFactor) {
    if let ast::TableFactor::Derived { subquery, alias, .. } = table
        && let ast::SetExpr::Values(values) = subquery.body.as_ref()
        && alias.as_ref().is_none_or(|alias| alias.columns.is_empty())
    {
        let width = values.rows.first().map_or(0, |row| row.len());
        let named = |n: usize| ast::TableAliasColumnDef { name: Ident::new(format!("col{n}")), data_type: None };
        let alias = alias.get_or_insert_with(|| ast::TableAlias {
            explicit: true,
            name: Ident::new("__values"),
            columns: Vec::new(),
            at: None,
        });
        alias.columns = (1..=width).map(named).collect();
    }
}

/// One expression, after those inside it.
pub fn rewrite(expr: &mut Expr) {
    match expr {
        // What is written with an exponent is a double.
        Expr::Value(value) => {
            if let Value::Number(n, _) = &value.value
                && n.to_string().contains(['e', 'E'])
            {
                *expr = cast(string(&n.to_string()), DataType::Double(ExactNumberInfo::None));
            }
        }
        Expr::Cast { data_type, expr: inner, .. } => {
            micros(data_type);
            if whole(data_type)
                && let Expr::Value(value) = inner.as_ref()
                && let Value::SingleQuotedString(s) | Value::DoubleQuotedString(s) = &value.value
                && s.contains('.')
            {
                // The part behind the point is cut off.
                let decimal = DataType::Decimal(ExactNumberInfo::PrecisionAndScale(38, 10));
                **inner = cast(std::mem::replace(inner, null()), decimal);
            }
        }
        Expr::TypedString(TypedString { data_type, .. }) => micros(data_type),
        Expr::RLike { negated, expr: text, pattern, .. } => {
            let found = call("regexp_like", vec![take(text), take(pattern)]);
            *expr = if *negated { Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(found) } } else { found };
        }
        Expr::Extract { field: ast::DateTimeField::Second | ast::DateTimeField::Seconds, expr: time, .. } => {
            *expr = with_fraction(take(time));
        }
        Expr::UnaryOp { op: op @ UnaryOperator::BangNot, .. } => *op = UnaryOperator::Not,
        Expr::UnaryOp { op: UnaryOperator::BitwiseNot, expr: inner } => *expr = call("bitwise_not", vec![take(inner)]),
        Expr::CompoundFieldAccess { access_chain, .. } => {
            for access in access_chain {
                if let ast::AccessExpr::Dot(field) = access
                    && let Expr::Identifier(name) = field
                {
                    *field = string(&name.value);
                }
            }
        }
        Expr::Struct { values, fields } if fields.is_empty() => *expr = named(std::mem::take(values)),
        Expr::Function(function) => {
            let name = function.name.to_string().to_lowercase();
            if let Some((_, other)) = SYNONYMS.iter().find(|(spark, _)| *spark == name) {
                rename(function, other);
            }
            if let Some(other) = called(&name, function) {
                *expr = other;
            }
        }
        _ => {}
    }
}

/// Functions that have another name here.
const SYNONYMS: &[(&str, &str)] = &[
    ("any", "bool_or"),
    ("approx_count_distinct", "approx_distinct"),
    ("endswith", "ends_with"),
    ("every", "bool_and"),
    ("exists", "array_any_match"),
    ("filter", "array_filter"),
    ("first", "first_value"),
    ("last", "last_value"),
    ("percentile", "percentile_cont"),
    ("percentile_approx", "approx_percentile_cont"),
    ("sequence", "generate_series"),
    ("some", "bool_or"),
    ("sort_array", "array_sort"),
    ("startswith", "starts_with"),
    ("transform", "array_transform"),
    ("variance", "var_samp"),
];

/// `struct(a, 1, b AS c)`: its fields have the names of columns, `col` and their place, or the names that they are given.
fn named(values: Vec<Expr>) -> Expr {
    let mut args = Vec::new();
    for (n, value) in values.into_iter().enumerate() {
        let (name, value) = match value {
            Expr::Named { expr, name } => (name.value, *expr),
            Expr::Identifier(name) => (name.value.clone(), Expr::Identifier(name)),
            Expr::CompoundIdentifier(parts) => {
                let name = parts.last().map(|p| p.value.clone()).unwrap_or_default();
                (name, Expr::CompoundIdentifier(parts))
            }
            other => (format!("col{}", n + 1), other),
        };
        args.extend([string(&name), value]);
    }
    call("named_struct", args)
}

/// A timestamp has microseconds, as in Spark: its years go from 1 to 9999.
fn micros(data_type: &mut DataType) {
    if let DataType::Timestamp(precision @ None, _) = data_type {
        *precision = Some(6);
    }
}

fn whole(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Int(None)
            | DataType::Integer(None)
            | DataType::BigInt(None)
            | DataType::SmallInt(None)
            | DataType::TinyInt(None)
    )
}

/// What a call of one of Spark's functions is here; None: itself, perhaps with other arguments.
fn called(name: &str, function: &mut Function) -> Option<Expr> {
    if function.over.is_some() {
        return None;
    }
    let FunctionArguments::List(list) = &mut function.args else { return None };
    let mut exprs = Vec::new();
    for arg in &list.args {
        let FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) = arg else { return None };
        exprs.push(e.clone());
    }
    if list.duplicate_treatment == Some(DuplicateTreatment::Distinct) {
        match (name, exprs.len()) {
            // It drops the word; the set is what it asks for.
            ("collect_list", 1) => {
                list.duplicate_treatment = None;
                rename(function, "collect_set");
            }
            ("count", 2..) => list.args = vec![arg(row(exprs))],
            _ => {}
        }
        return None;
    }
    if function.filter.is_some() {
        return None;
    }
    if name == "struct" {
        return Some(named(exprs));
    }
    let mut args = exprs.into_iter();
    let (a, b, c) = (args.next(), args.next(), args.next());
    let more = args.next().is_some();
    match (name, a, b, c) {
        // Every place, not the first one.
        ("regexp_replace", Some(x), Some(p), Some(by)) if !more => {
            Some(call("regexp_replace", vec![x, p, by, string("g")]))
        }
        ("array_position", Some(x), Some(y), None) => {
            let place = call("coalesce", vec![call("array_position", vec![x.clone(), y.clone()]), number("0")]);
            Some(unless_null(&[x, y], cast(place, DataType::BigInt(None))))
        }
        ("date_part" | "datepart", Some(part), Some(x), None) if is_seconds(&part) => Some(with_fraction(x)),
        ("locate", Some(x), Some(y), None) => Some(call("strpos", vec![y, x])),
        ("count_if", Some(x), None, None) => {
            function.filter = Some(Box::new(x));
            rename(function, "count");
            if let FunctionArguments::List(list) = &mut function.args {
                list.args = vec![arg(number("1"))];
            }
            None
        }
        ("array_remove", Some(x), Some(y), None) => Some(call("array_remove_all", vec![x, y])),
        ("log", Some(x), None, None) => Some(call("ln", vec![x])),
        (
            "year" | "quarter" | "month" | "day" | "dayofmonth" | "dayofweek" | "dayofyear" | "weekofyear",
            Some(x),
            None,
            None,
        ) => {
            let part = match name {
                "dayofmonth" => "day",
                "dayofyear" => "doy",
                "weekofyear" => "week",
                other => other,
            };
            Some(call("date_part", vec![string(part), timestamp(x)]))
        }
        ("hour" | "minute" | "second", Some(x), None, None) => {
            list.args = vec![arg(timestamp(x))];
            None
        }
        ("date_format", Some(x), Some(p), None) => Some(call("to_char", vec![timestamp(x), pattern(p)])),
        ("to_date", Some(x), Some(p), None) => Some(cast(parsed(x, p), DataType::Date)),
        ("to_timestamp", Some(x), Some(p), None) => Some(parsed(x, p)),
        ("to_date", Some(x), None, None) => Some(cast(x, DataType::Date)),
        ("to_timestamp", Some(x), None, None) => Some(timestamp(x)),
        ("unix_timestamp" | "to_unix_timestamp", Some(x), None, None) => Some(seconds(timestamp(x))),
        ("unix_timestamp" | "to_unix_timestamp", Some(x), Some(p), None) => Some(seconds(parsed(x, p))),
        ("unix_timestamp", None, None, None) => Some(seconds(call("now", vec![]))),
        ("from_unixtime", Some(x), p, None) => {
            let p = p.unwrap_or_else(|| string("yyyy-MM-dd HH:mm:ss"));
            let time = cast(cast(x, DataType::BigInt(None)), DataType::Timestamp(Some(0), TimezoneInfo::None));
            Some(call("to_char", vec![time, pattern(p)]))
        }
        ("date_add" | "dateadd" | "date_sub" | "add_months" | "next_day", Some(x), Some(n), None) => {
            list.args = vec![arg(cast(x, DataType::Date)), arg(n)];
            None
        }
        ("datediff" | "date_diff", Some(x), Some(y), None) => {
            list.args = vec![arg(cast(x, DataType::Date)), arg(cast(y, DataType::Date))];
            None
        }
        ("last_day", Some(x), None, None) => {
            list.args = vec![arg(cast(x, DataType::Date))];
            None
        }
        ("isnull", Some(x), None, None) => Some(Expr::IsNull(Box::new(x))),
        ("isnotnull", Some(x), None, None) => Some(Expr::IsNotNull(Box::new(x))),
        ("explode", Some(x), None, None) => Some(call("unnest", vec![x])),
        ("explode_outer", Some(x), None, None) => Some(call("unnest_outer", vec![x])),
        ("rlike" | "regexp", Some(x), Some(p), None) => Some(call("regexp_like", vec![x, p])),
        ("split", Some(x), Some(p), None) => plain(&p).map(|by| call("string_to_array", vec![x, string(&by)])),
        (_, Some(x), None, None) => cast_function(name).map(|to| cast(x, to)),
        _ => None,
    }
}

/// The functions that have the name of a type.
fn cast_function(name: &str) -> Option<DataType> {
    Some(match name {
        "boolean" => DataType::Boolean,
        "tinyint" => DataType::TinyInt(None),
        "smallint" => DataType::SmallInt(None),
        "int" => DataType::Int(None),
        "bigint" => DataType::BigInt(None),
        "float" => DataType::Real,
        "double" => DataType::Double(ExactNumberInfo::None),
        "string" => DataType::String(None),
        "date" => DataType::Date,
        "timestamp" => DataType::Timestamp(Some(6), TimezoneInfo::None),
        _ => return None,
    })
}

/// The text that a regular expression without special characters finds.
fn plain(pattern: &Expr) -> Option<String> {
    let Expr::Value(value) = pattern else { return None };
    let (Value::SingleQuotedString(s) | Value::DoubleQuotedString(s)) = &value.value else { return None };
    let mut out = String::new();
    let mut chars = s.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.push(chars.next().filter(|c| c.is_ascii_punctuation())?),
            '[' => match (chars.next()?, chars.next()?) {
                (c, ']') if c != '^' && c != '\\' => out.push(c),
                _ => return None,
            },
            '.' | '*' | '+' | '?' | '(' | ')' | ']' | '{' | '}' | '|' | '^' | '$' => return None,
            c => out.push(c),
        }
    }
    (!out.is_empty()).then_some(out)
}

/// Several values as one that is null if one of them is.
fn row(exprs: Vec<Expr>) -> Expr {
    unless_null(&exprs.clone(), call("struct", exprs))
}

/// The result, or null if one of these is.
fn unless_null(these: &[Expr], result: Expr) -> Expr {
    let there = these
        .iter()
        .map(|e| Expr::IsNotNull(Box::new(e.clone())))
        .reduce(|a, b| Expr::BinaryOp { left: Box::new(a), op: ast::BinaryOperator::And, right: Box::new(b) })
        .unwrap_or_else(null);
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![CaseWhen { condition: there, result }],
        else_result: None,
    }
}

/// The seconds of a minute, with their fraction.
fn with_fraction(time: Expr) -> Expr {
    let decimal = |precision, scale| DataType::Decimal(ExactNumberInfo::PrecisionAndScale(precision, scale));
    let micros = cast(call("date_part", vec![string("microsecond"), time]), decimal(8, 0));
    let seconds = Expr::BinaryOp {
        left: Box::new(micros),
        op: ast::BinaryOperator::Multiply,
        right: Box::new(number("0.000001")),
    };
    cast(seconds, decimal(8, 6))
}

fn is_seconds(part: &Expr) -> bool {
    matches!(part, Expr::Value(v) if matches!(&v.value, Value::SingleQuotedString(s) | Value::DoubleQuotedString(s)
        if ["second", "seconds", "sec", "secs", "s"].iter().any(|p| s.eq_ignore_ascii_case(p))))
}

fn seconds(time: Expr) -> Expr {
    cast(cast(time, DataType::Timestamp(Some(0), TimezoneInfo::None)), DataType::BigInt(None))
}

fn parsed(text: Expr, format: Expr) -> Expr {
    call("to_timestamp_micros", vec![text, pattern(format)])
}

fn pattern(format: Expr) -> Expr {
    call(patterns::NAME, vec![format])
}

fn timestamp(expr: Expr) -> Expr {
    cast(expr, DataType::Timestamp(Some(6), TimezoneInfo::None))
}

fn cast(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(expr), data_type, array: false, format: None }
}

fn string(text: &str) -> Expr {
    Expr::Value(Value::SingleQuotedString(text.to_owned()).with_empty_span())
}

fn number(text: &str) -> Expr {
    Expr::Value(Value::Number(text.to_owned(), false).with_empty_span())
}

fn null() -> Expr {
    Expr::Value(Value::Null.with_empty_span())
}

fn take(expr: &mut Box<Expr>) -> Expr {
    std::mem::replace(expr.as_mut(), null())
}

fn arg(expr: Expr) -> FunctionArg {
    FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))
}

fn rename(function: &mut Function, name: &str) {
    function.name = ObjectName::from(vec![Ident::new(name)]);
}

fn call(name: &str, args: Vec<Expr>) -> Expr {
    let list = FunctionArgumentList {
        duplicate_treatment: None,
        args: args.into_iter().map(arg).collect(),
        clauses: Vec::new(),
    };
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(list),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}
