//! `COPY (query) TO 'folder'`: the one statement that writes, and only below the folder that the operator opened for it. Each
//! execution adds files with names of its own, each whole or not there at all.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use datafusion::datasource::file_format::format_as_file_type;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::dml::CopyTo;
use datafusion::sql::parser::{CopyToSource, CopyToStatement, Statement};
use datafusion::sql::sqlparser::ast;
use firesteel_model::{Code, Failure, Stage};
use url::Url;

use crate::allow;
use crate::names;
use crate::session::Session;

/// The formats, as `STORED AS` names them.
const FORMATS: &[&str] = &["PARQUET", "CSV", "JSON", "ARROW"];

fn unsupported(what: &str) -> Failure {
    let message =
        format!("{what} is not supported here; write COPY (query) TO 'folder' STORED AS {}", FORMATS.join("|"));
    Failure::new(Code::Unsupported, Stage::Plan, message)
}

/// The plan of a `COPY` whose names are spelled as its tables spell them.
///
/// # Errors
/// A form that is not taken, a place outside of `folder`, or what is wrong with the query.
pub async fn plan(session: &Session, copy: CopyToStatement, folder: &Path) -> Result<LogicalPlan, Failure> {
    let CopyToSource::Query(query) = copy.source else { return Err(unsupported("COPY of a table by its name")) };
    if !copy.partitioned_by.is_empty() {
        return Err(unsupported("PARTITIONED BY in COPY"));
    }
    if !copy.options.is_empty() {
        return Err(unsupported("OPTIONS in COPY"));
    }
    let format = copy.stored_as.filter(|f| FORMATS.iter().any(|known| known.eq_ignore_ascii_case(f)));
    let format = format.ok_or_else(|| unsupported("COPY without STORED AS, or in another format"))?;
    let target = below(folder, &copy.target)?;
    let mut statement = Statement::Statement(Box::new(ast::Statement::Query(query)));
    names::name(&mut statement);
    let input = session.to_plan(statement).await?;
    allow::plan(&input, session.limits)?;
    let factory = session.ctx.state().get_file_format_factory(&format).ok_or_else(|| unsupported("this format"))?;
    let url = Url::from_directory_path(&target).map_err(|()| outside(&copy.target))?;
    let copy = CopyTo::new(Arc::new(input), url.to_string(), Vec::new(), format_as_file_type(factory), HashMap::new());
    Ok(LogicalPlan::Copy(copy))
}

fn outside(target: &str) -> Failure {
    let message = format!(
        "`{target}` is not below the folder that may be written into; name a folder in it, as in 'daily/sales'"
    );
    Failure::new(Code::Refused, Stage::Plan, message)
}

/// A folder below `root`, by a relative name that goes only down, through no link.
fn below(root: &Path, name: &str) -> Result<PathBuf, Failure> {
    let relative = Path::new(name);
    let down = relative.components().all(|part| matches!(part, Component::Normal(_)));
    if !down || relative.as_os_str().is_empty() {
        return Err(outside(name));
    }
    let target = root.join(relative);
    if holds(root, &target) { Ok(target) } else { Err(outside(name)) }
}

/// Whether `path`, of which the last parts may not exist yet, is really below `root`.
pub fn holds(root: &Path, path: &Path) -> bool {
    let there = path.ancestors().find_map(|part| part.canonicalize().ok());
    path.starts_with(root) && there.is_some_and(|there| there.starts_with(root))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;

    #[test]
    fn a_name_leads_down_and_through_no_link_that_leads_out() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("root");
        std::fs::create_dir_all(root.join("in")).unwrap();
        std::os::unix::fs::symlink("/", root.join("out")).unwrap();
        for name in ["a", "a/b/", "in", "in/a"] {
            assert_eq!(below(&root, name).unwrap(), root.join(name), "{name}");
        }
        for name in ["", ".", "..", "/tmp/x", "a/../../b", "file:///tmp/../x/../..", "out", "out/tmp", "s3://b/x/.."] {
            assert_eq!(below(&root, name).unwrap_err().code, Code::Refused, "{name}");
        }
    }
}
