//! What a statement answers: its state, its failure, or its rows, page by page.

use firesteel_model::StatementState;
use firesteel_session::ports::{Column, Companion};

use super::{Plane, StatementView};
use crate::access::Caller;
use crate::refusal::Refusal;

/// What there is of a statement's result.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// It is not decided, or its result is not readable yet. `running`: somebody has begun it.
    Pending {
        /// Somebody has begun it.
        running: bool,
    },
    /// It ended without a result.
    Failed {
        /// `FAILED`, `TIMEOUT` or `cancelled`.
        status: &'static str,
        /// What its user is told.
        error: String,
    },
    /// It has one.
    Page(ResultPage),
}

/// A part of a result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResultPage {
    /// The columns.
    pub columns: Vec<Column>,
    /// Rows as the result document has them.
    pub rows: Vec<String>,
    /// How many rows the whole result has.
    pub total: u64,
    /// How long the statement ran, in milliseconds.
    pub run_millis: u64,
    /// A limit was reached, and rows beyond it were left out.
    pub truncated: bool,
    /// The number of the next page, if there is one.
    pub next: Option<u32>,
}

impl Plane {
    /// What there is of a statement's result: the result document, or page `n` beyond it.
    ///
    /// # Errors
    /// There is no such statement or page that the caller may see; the store's.
    pub async fn answer(
        &self,
        caller: &Caller,
        id: &str,
        page: Option<u32>,
    ) -> Result<(StatementView, Answer), Refusal> {
        let view = self.statement(caller, id).await?;
        let answer = self.answer_of(&view, page).await?;
        Ok((view, answer))
    }

    async fn answer_of(&self, view: &StatementView, page: Option<u32>) -> Result<Answer, Refusal> {
        let statement = &view.statement.value;
        match &statement.state {
            StatementState::Waiting => return Ok(Answer::Pending { running: false }),
            StatementState::Running { .. } => return Ok(Answer::Pending { running: true }),
            StatementState::Failed { error } => return Ok(Answer::Failed { status: "FAILED", error: error.clone() }),
            StatementState::Timeout { error } => return Ok(Answer::Failed { status: "TIMEOUT", error: error.clone() }),
            StatementState::Cancelled => {
                let error = "the statement was cancelled".to_owned();
                return Ok(Answer::Failed { status: "cancelled", error });
            }
            StatementState::Success => {}
        }
        let Some(query_id) = &statement.query_id else { return Ok(Answer::Pending { running: true }) };
        // Decided, and to be published in a moment.
        let Some(document) = self.store.result(query_id).await? else { return Ok(Answer::Pending { running: true }) };
        let Companion { candidate, totals, labels, .. } = view.companion.clone();
        let mut columns = document.columns;
        if labels.len() == columns.len() {
            for (column, label) in columns.iter_mut().zip(labels) {
                column.label = Some(label);
            }
        }
        let pages = totals.map_or(0, |totals| totals.pages);
        let (rows, next) = match page {
            None => (document.rows, (pages > 0).then_some(0)),
            Some(n) => {
                let attempt =
                    candidate.filter(|_| n < pages).ok_or_else(|| Refusal::not_found("page", &n.to_string()))?;
                (self.store.page(&statement.id, attempt, n).await?.rows, (n + 1 < pages).then_some(n + 1))
            }
        };
        Ok(Answer::Page(ResultPage {
            total: totals.map_or(rows.len() as u64, |totals| totals.rows),
            truncated: totals.is_some_and(|totals| totals.truncated),
            columns,
            rows,
            run_millis: document.run_millis,
            next,
        }))
    }
}
