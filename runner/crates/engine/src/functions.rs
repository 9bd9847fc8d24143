//! A session's own functions: `CREATE FUNCTION f(x INT) RETURNS INT RETURN x + 1`, as Spark has them.
//!
//! A call is replaced by the function's expression before anything else is made of a plan, so that it means and costs what the
//! expression would, written out. A view keeps the expression that its functions had when it was made.

use std::sync::Arc;

use arrow_schema::{DataType, Field};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, plan_err};
use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::expr_rewriter::FunctionRewrite;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility, cast,
};
use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::ast::{self, ExprWithAlias};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;
use firesteel_model::{Code, Failure, Stage};

use crate::define::Define;
use crate::dialect::{Spellings, Text};
use crate::failures;
use crate::session::{Session, parts};

/// The most parameters of a function.
const MOST_PARAMETERS: usize = 100;

/// A function whose calls are replaced by its expression.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct SqlFunction {
    name: String,
    parameters: Vec<(String, DataType)>,
    returns: DataType,
    /// In terms of columns that are named as the parameters; or why it could not be made again.
    body: std::result::Result<Expr, String>,
    signature: Signature,
}

impl ScalarUDFImpl for SqlFunction {
    fn name(&self) -> &str {
        &self.name
    }
    fn signature(&self) -> &Signature {
        &self.signature
    }
    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.returns.clone())
    }
    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        datafusion::common::internal_err!("the function `{}` was not replaced by its expression", self.name)
    }
}

impl SqlFunction {
    fn udf(
        name: String,
        parameters: Vec<(String, DataType)>,
        returns: DataType,
        body: std::result::Result<Expr, String>,
    ) -> ScalarUDF {
        let any = vec![TypeSignature::Nullary, TypeSignature::VariadicAny];
        let signature = Signature::one_of(any, Volatility::Immutable);
        ScalarUDF::from(SqlFunction { name, parameters, returns, body, signature })
    }

    /// What could not be made again from the journal, and why.
    pub fn broken(name: String, why: String) -> ScalarUDF {
        SqlFunction::udf(name, Vec::new(), DataType::Null, Err(why))
    }

    fn of(function: &ScalarUDF) -> Option<&SqlFunction> {
        function.inner().downcast_ref::<SqlFunction>()
    }

    fn called(&self, arguments: &[Expr]) -> Result<Expr> {
        let name = &self.name;
        let body = match &self.body {
            Ok(body) => body.clone(),
            Err(why) => {
                return plan_err!(
                    "the function `{name}` could not be made again from the session's journal: {why}; make it anew, or DROP it"
                );
            }
        };
        if arguments.len() != self.parameters.len() {
            return plan_err!(
                "the function `{name}` takes {} arguments, not {}",
                self.parameters.len(),
                arguments.len()
            );
        }
        let replaced = body.transform_up(|expr| {
            let found = match &expr {
                Expr::Column(column) => self.parameters.iter().position(|(name, _)| *name == column.name),
                _ => None,
            };
            Ok(match found {
                Some(at) => Transformed::yes(cast(arguments[at].clone(), self.parameters[at].1.clone())),
                None => Transformed::no(expr),
            })
        })?;
        Ok(cast(replaced.data, self.returns.clone()))
    }
}

/// Replaces calls of a session's functions.
#[derive(Debug)]
struct Inline;

impl FunctionRewrite for Inline {
    fn name(&self) -> &str {
        "session_functions"
    }

    fn rewrite(&self, expr: Expr, _: &DFSchema, _: &ConfigOptions) -> Result<Transformed<Expr>> {
        inlined(expr)
    }
}

fn inlined(expr: Expr) -> Result<Transformed<Expr>> {
    match &expr {
        Expr::ScalarFunction(call) => match SqlFunction::of(&call.func) {
            Some(function) => Ok(Transformed::yes(function.called(&call.args)?)),
            None => Ok(Transformed::no(expr)),
        },
        _ => Ok(Transformed::no(expr)),
    }
}

/// Has calls of a session's functions replaced in each plan of this context.
///
/// # Errors
/// DataFusion's own.
pub fn install(ctx: &SessionContext) -> Result<()> {
    ctx.state_ref().write().register_function_rewrite(Arc::new(Inline))
}

/// `CREATE FUNCTION` and `DROP FUNCTION`, as they are written.
enum Read {
    Create(Box<Create>),
    Drop {
        name: ast::ObjectName,
        if_exists: bool,
    },
    /// One of a class or a file.
    Foreign,
}

struct Create {
    name: ast::ObjectName,
    or_replace: bool,
    if_not_exists: bool,
    parameters: Vec<(ast::Ident, ast::DataType)>,
    returns: Option<ast::DataType>,
    body: ast::Expr,
}

/// The name of the function that a text makes.
pub fn made(text: &Text, session: &Session) -> Option<String> {
    match read(text, session).ok()?? {
        Read::Create(create) => parts(&create.name).pop().map(|name| name.to_lowercase()),
        Read::Drop { .. } | Read::Foreign => None,
    }
}

fn read(text: &Text, session: &Session) -> std::result::Result<Option<Read>, Failure> {
    let mut parser = text.parser();
    read_with(&mut parser).map_err(|e| failures::failure(&e.into(), Stage::Plan, session.limits))
}

fn read_with(parser: &mut Parser<'_>) -> std::result::Result<Option<Read>, ParserError> {
    let create = parser.parse_keyword(Keyword::CREATE);
    if !create && !parser.parse_keyword(Keyword::DROP) {
        return Ok(None);
    }
    let or_replace = create && parser.parse_keywords(&[Keyword::OR, Keyword::REPLACE]);
    // All functions are the session's own, so the word adds nothing.
    let _ = parser.parse_one_of_keywords(&[Keyword::TEMPORARY, Keyword::TEMP]);
    if !parser.parse_keyword(Keyword::FUNCTION) {
        return Ok(None);
    }
    let read = if create {
        match read_create(parser, or_replace)? {
            Some(create) => Read::Create(Box::new(create)),
            None => return Ok(Some(Read::Foreign)),
        }
    } else {
        let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
        Read::Drop { name: parser.parse_object_name(false)?, if_exists }
    };
    while parser.consume_token(&Token::SemiColon) {}
    parser.expect_token(&Token::EOF)?;
    Ok(Some(read))
}

fn read_create(parser: &mut Parser<'_>, or_replace: bool) -> std::result::Result<Option<Create>, ParserError> {
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let name = parser.parse_object_name(false)?;
    if parser.parse_keyword(Keyword::AS) {
        return Ok(None);
    }
    parser.expect_token(&Token::LParen)?;
    let parameters = parser.parse_comma_separated0(
        |parser| {
            let name = parser.parse_identifier()?;
            let data_type = parser.parse_data_type()?;
            if parser.parse_keyword(Keyword::DEFAULT) {
                return Err(ParserError::ParserError(format!(
                    "the parameter {name} cannot have a DEFAULT here: leave it out"
                )));
            }
            if parser.parse_keyword(Keyword::COMMENT) {
                parser.parse_literal_string()?;
            }
            Ok((name, data_type))
        },
        Token::RParen,
    )?;
    parser.expect_token(&Token::RParen)?;
    let returns = if !parser.parse_keyword(Keyword::RETURNS) {
        None
    } else if parser.parse_keyword(Keyword::TABLE) {
        return Err(ParserError::ParserError("a function cannot return a TABLE here: make a view".into()));
    } else {
        Some(parser.parse_data_type()?)
    };
    loop {
        if parser.parse_keyword(Keyword::COMMENT) {
            parser.parse_literal_string()?;
        } else if !parser.parse_keywords(&[Keyword::LANGUAGE, Keyword::SQL])
            && !parser.parse_keyword(Keyword::DETERMINISTIC)
            && !parser.parse_keywords(&[Keyword::NOT, Keyword::DETERMINISTIC])
        {
            break;
        }
    }
    parser.expect_keyword_is(Keyword::RETURN)?;
    let body = parser.parse_expr()?;
    Ok(Some(Create { name, or_replace, if_not_exists, parameters, returns, body }))
}

fn failed(text: String) -> Failure {
    Failure::new(Code::Analysis, Stage::Plan, text)
}

/// What a text defines, if it makes a function or removes one. One that is done `again` makes its name whatever has it today.
///
/// # Errors
/// It cannot be done.
pub fn define(session: &Session, text: &Text, again: bool) -> std::result::Result<Option<Define>, Failure> {
    let Some(written) = read(text, session)? else { return Ok(None) };
    let (name, create, if_exists) = match written {
        Read::Create(create) => (create.name.clone(), Some(create), false),
        Read::Drop { name, if_exists } => (name, None, if_exists),
        Read::Foreign => {
            let text = "a function of a class or a file is not allowed here; write CREATE FUNCTION f(x INT) RETURNS INT RETURN x + 1";
            return Err(Failure::new(Code::Refused, Stage::Plan, text));
        }
    };
    let [name] = parts(&name).try_into().map_err(|_| {
        failed("a function's name has one part: functions are the session's own, and in no database".to_owned())
    })?;
    let name: String = name;
    let name = name.to_lowercase();
    let state = session.ctx.state();
    let known = state.scalar_functions().get(&name);
    let own = known.and_then(|function| SqlFunction::of(function));
    let is_another = (known.is_some() && own.is_none())
        || state.aggregate_functions().contains_key(&name)
        || state.window_functions().contains_key(&name)
        || state.table_functions().contains_key(&name);
    if is_another {
        return Err(failed(format!("`{name}` is a function that is always there; use another name")));
    }
    let Some(create) = create else {
        return match own {
            Some(_) => Ok(Some(Define::DropFunction(name))),
            None if if_exists => Ok(Some(Define::Nothing)),
            None => {
                let all: Vec<String> =
                    state.scalar_functions().values().filter_map(|f| Some(SqlFunction::of(f)?.name.clone())).collect();
                Err(failed(failures::no_such("function", &name, &all)))
            }
        };
    };
    if own.is_some_and(|own| own.body.is_ok()) && !create.or_replace && !again {
        if create.if_not_exists {
            return Ok(Some(Define::Nothing));
        }
        return Err(failed(format!("`{name}` exists; write CREATE OR REPLACE FUNCTION, or use another name")));
    }
    let function = made_of(session, text, name, &create.parameters)?;
    Ok(Some(Define::Function(Arc::new(function))))
}

/// The function of a text whose parameters these are.
fn made_of(
    session: &Session,
    text: &Text,
    name: String,
    written: &[(ast::Ident, ast::DataType)],
) -> std::result::Result<ScalarUDF, Failure> {
    let state = session.ctx.state();
    let of = |expr: ast::Expr, schema: &DFSchema| {
        let expr = ExprWithAlias { expr, alias: None };
        state.create_logical_expr_from_sql_expr(expr, schema).map_err(|e| session.failed(&e))
    };
    let nothing = DFSchema::empty();
    let typed = |data_type: &ast::DataType| {
        let null = Box::new(ast::Expr::Value(ast::Value::Null.into()));
        let data_type = data_type.clone();
        let kind = ast::CastKind::Cast;
        let cast = of(ast::Expr::Cast { kind, expr: null, data_type, format: None, array: false }, &nothing)?;
        cast.get_type(&nothing).map_err(|e| session.failed(&e))
    };
    if written.len() > MOST_PARAMETERS {
        return Err(failed(format!("a function takes {MOST_PARAMETERS} parameters at most, not {}", written.len())));
    }
    let mut parameters: Vec<(String, DataType)> = Vec::new();
    for (parameter, data_type) in written {
        let parameter = parameter.value.to_lowercase();
        if parameters.iter().any(|(known, _)| *known == parameter) {
            return Err(failed(format!("the function `{name}` has the parameter `{parameter}` twice")));
        }
        parameters.push((parameter, typed(data_type)?));
    }
    let fields: Vec<Field> = parameters.iter().map(|(name, t)| Field::new(name, t.clone(), true)).collect();
    // The names in the expression are spelled as the parameters are: all in lower case.
    let Some(Read::Create(create)) = read(&text.spelled(&Spellings::default()), session)? else {
        return Err(failed("the function's text is none".to_owned()));
    };
    let schema =
        DFSchema::from_unqualified_fields(fields.into(), Default::default()).map_err(|e| session.failed(&e))?;
    let body = of(create.body, &schema)?;
    let is_more = |expr: &Expr| {
        matches!(
            expr,
            Expr::AggregateFunction(_)
                | Expr::WindowFunction(_)
                | Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::ScalarSubquery(_)
                | Expr::SetComparison(_)
                | Expr::Unnest(_)
        )
    };
    if body.exists(|expr| Ok(is_more(expr))).map_err(|e| session.failed(&e))? {
        return Err(failed(format!(
            "the function `{name}` must be an expression of its parameters, without aggregates, windows and subqueries"
        )));
    }
    let body = body.transform_up(inlined).map_err(|e| session.failed(&e))?.data;
    let returns = match &create.returns {
        Some(data_type) => typed(data_type)?,
        None => body.get_type(&schema).map_err(|e| session.failed(&e))?,
    };
    Ok(SqlFunction::udf(name, parameters, returns, Ok(body)))
}
