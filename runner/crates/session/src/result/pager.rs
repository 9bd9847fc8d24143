//! Which rows stand in the result document, which go into pages beside it, and when a result is too large.

use firesteel_model::{Code, Failure, Stage};

use crate::ports::{LargeResults, Page, Totals};

/// How large a result may be, and what happens when it is larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most rows of a result; None: any number.
    pub max_rows: Option<u64>,
    /// The most bytes of a result's row text; None: any number.
    pub max_bytes: Option<u64>,
    /// What happens at `max_rows` and `max_bytes`.
    pub on_limit: OnLimit,
    /// The most bytes of rows in the result document, as they stand in it. Some services cap a request at 10 MB.
    pub document_bytes: u64,
    /// The most bytes of rows in a page, as they stand in it.
    pub page_bytes: u64,
    /// What happens at `document_bytes`.
    pub large_results: LargeResults,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            max_rows: None,
            max_bytes: None,
            on_limit: OnLimit::Fail,
            document_bytes: 8_000_000,
            page_bytes: 1_000_000,
            large_results: LargeResults::Fail,
        }
    }
}

/// What happens when an operator's limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnLimit {
    /// The statement fails and names the limit.
    Fail,
    /// The result is what fits, and says so.
    Truncate,
}

/// What a row made necessary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// This page is full: stage it, then go on.
    Page(Page),
    /// What is there is all that will be kept: stop reading.
    Enough,
    /// The statement fails.
    TooLarge(Failure),
}

/// What remains at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The rows of the result document.
    pub rows: Vec<String>,
    /// The last page, still to be staged.
    pub page: Option<Page>,
    /// The whole result, that page included.
    pub totals: Totals,
}

/// Packs rows, in order: first into the result document, and once one does not fit there, into pages. Holds at the most one document
/// and one page.
#[derive(Debug)]
pub struct Pager {
    limits: Limits,
    document: Vec<String>,
    document_bytes: u64,
    page: Page,
    page_bytes: u64,
    totals: Totals,
    over: Option<Verdict>,
}

impl Pager {
    /// An empty result.
    #[must_use]
    pub fn new(limits: Limits) -> Pager {
        Pager {
            limits,
            document: Vec::new(),
            document_bytes: 0,
            page: Page::default(),
            page_bytes: 0,
            totals: Totals::default(),
            over: None,
        }
    }

    /// Rows, bytes and pages so far. A page counts once it is handed out.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Says what happens at `document_bytes`, for a result that has not reached it.
    pub fn large_results(&mut self, large_results: LargeResults) {
        self.limits.large_results = large_results;
    }

    /// Takes the next row. After `Enough` or `TooLarge` it takes none and says the same again.
    pub fn push(&mut self, row: String) -> Option<Verdict> {
        if let Some(over) = &self.over {
            return Some(over.clone());
        }
        let verdict = self.take(row);
        if let Some(Verdict::Enough | Verdict::TooLarge(_)) = &verdict {
            self.over.clone_from(&verdict);
        }
        verdict
    }

    /// The end of the rows.
    #[must_use]
    pub fn finish(mut self) -> Finished {
        let page = (!self.page.rows.is_empty()).then_some(self.page);
        self.totals.pages += u32::from(page.is_some());
        Finished { rows: self.document, page, totals: self.totals }
    }

    fn take(&mut self, row: String) -> Option<Verdict> {
        let rows = self.totals.rows + 1;
        let bytes = self.totals.bytes + row.len() as u64;
        if let Some(limit) = self.limits.max_rows.filter(|&limit| rows > limit) {
            return Some(self.beyond(too_large(rows, bytes, format_args!("{limit} rows"))));
        }
        if let Some(limit) = self.limits.max_bytes.filter(|&limit| bytes > limit) {
            return Some(self.beyond(too_large(rows, bytes, format_args!("{limit} bytes"))));
        }
        let stored = stored_bytes(&row);
        let in_document = self.document_bytes + stored;
        let paging = self.totals.pages > 0 || !self.page.rows.is_empty();
        if !paging && in_document <= self.limits.document_bytes {
            self.document.push(row);
            self.document_bytes = in_document;
            self.count(rows, bytes);
            return None;
        }
        match self.limits.large_results {
            LargeResults::Fail => {
                let limit = self.limits.document_bytes;
                Some(Verdict::TooLarge(too_large(rows, in_document, format_args!("{limit} bytes"))))
            }
            LargeResults::First => {
                self.totals.truncated = true;
                Some(Verdict::Enough)
            }
            LargeResults::Pages => {
                self.count(rows, bytes);
                self.add_to_page(row, stored).map(Verdict::Page)
            }
        }
    }

    fn beyond(&mut self, failure: Failure) -> Verdict {
        match self.limits.on_limit {
            OnLimit::Fail => Verdict::TooLarge(failure),
            OnLimit::Truncate => {
                self.totals.truncated = true;
                Verdict::Enough
            }
        }
    }

    fn count(&mut self, rows: u64, bytes: u64) {
        self.totals.rows = rows;
        self.totals.bytes = bytes;
    }

    /// Puts the row into the page, or into the next one if it does not fit; hands out the one that is full. A row larger than a page
    /// thus gets one of its own.
    fn add_to_page(&mut self, row: String, stored: u64) -> Option<Page> {
        let full = !self.page.rows.is_empty() && self.page_bytes + stored > self.limits.page_bytes;
        let page = full.then(|| {
            self.page_bytes = 0;
            self.totals.pages += 1;
            std::mem::take(&mut self.page)
        });
        self.page.rows.push(row);
        self.page_bytes += stored;
        page
    }
}

/// The bytes that the row takes as a string in a JSON array: the row is JSON text, so only quotation marks and backslashes are escaped.
fn stored_bytes(row: &str) -> u64 {
    let escaped = row.bytes().filter(|b| matches!(b, b'"' | b'\\')).count();
    (row.len() + escaped + 3) as u64
}

fn too_large(rows: u64, bytes: u64, limit: std::fmt::Arguments<'_>) -> Failure {
    let message = format!(
        "result too large: {rows} rows, {bytes} bytes, limit {limit}; add a LIMIT or read it through Firesteel's API"
    );
    Failure::new(Code::ResultTooLarge, Stage::Result, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twelve bytes as they stand in a document.
    const ROW: &str = r#"{"a":1234}"#;

    fn limits(large_results: LargeResults) -> Limits {
        Limits { document_bytes: 45, page_bytes: 30, large_results, ..Limits::default() }
    }

    /// Pushes rows to the end or to the first verdict that ends it; returns pages by their number of rows.
    fn feed(limits: Limits, rows: &[&str]) -> (Vec<usize>, Option<Verdict>, Finished) {
        let mut pager = Pager::new(limits);
        let mut pages = Vec::new();
        let mut end = None;
        for row in rows {
            match pager.push((*row).to_owned()) {
                None => {}
                Some(Verdict::Page(page)) => pages.push(page.rows.len()),
                Some(over) => {
                    end = Some(over);
                    break;
                }
            }
        }
        (pages, end, pager.finish())
    }

    fn message(verdict: Option<Verdict>) -> String {
        match verdict {
            Some(Verdict::TooLarge(failure)) => {
                assert_eq!(failure.code, Code::ResultTooLarge);
                failure.message
            }
            other => panic!("expected a failure, got {other:?}"),
        }
    }

    #[test]
    fn a_row_counts_as_it_stands_in_the_document() {
        assert_eq!(
            stored_bytes(ROW),
            serde_json::to_string(&[ROW, ROW]).expect("json").len() as u64
                - serde_json::to_string(&[ROW]).expect("json").len() as u64
        );
        assert_eq!(stored_bytes(ROW), 15);
        assert_eq!(stored_bytes(r#"{"a":"\n"}"#), 18);
    }

    #[test]
    fn what_fits_is_in_the_document_and_nowhere_else() {
        let (pages, end, done) = feed(limits(LargeResults::Fail), &[ROW; 3]);
        assert_eq!((pages, end), (vec![], None));
        assert_eq!((done.rows.len(), done.page), (3, None));
        assert_eq!(done.totals, Totals { rows: 3, bytes: 30, pages: 0, truncated: false });
    }

    #[test]
    fn an_empty_result_is_an_empty_document() {
        let (_, end, done) = feed(limits(LargeResults::Pages), &[]);
        assert_eq!(end, None);
        assert_eq!(done, Finished { rows: vec![], page: None, totals: Totals::default() });
    }

    #[test]
    fn the_rest_goes_add_to_pages_in_order_and_never_back_into_the_document() {
        let small = "{}";
        let large = r#"{"a":"twenty characters...."}"#;
        let (pages, end, done) = feed(limits(LargeResults::Pages), &[ROW, ROW, large, small, ROW, small, ROW]);
        assert_eq!(end, None);
        assert_eq!(done.rows.len(), 2);
        assert_eq!(pages, [1, 3], "a row larger than a page has one of its own");
        assert_eq!(done.page.expect("the last one").rows, [ROW]);
        assert_eq!(done.totals.pages, 3);
        assert_eq!(done.totals.rows, 7);
    }

    #[test]
    fn a_reader_that_cannot_page_gets_an_error_or_what_fits_as_asked_but_never_a_silent_cut() {
        let (_, end, _) = feed(limits(LargeResults::Fail), &[ROW; 9]);
        assert_eq!(
            message(end),
            "result too large: 4 rows, 60 bytes, limit 45 bytes; add a LIMIT or read it through Firesteel's API"
        );
        let (pages, end, done) = feed(limits(LargeResults::First), &[ROW; 9]);
        assert_eq!((pages, end), (vec![], Some(Verdict::Enough)));
        assert_eq!(done.totals, Totals { rows: 3, bytes: 30, pages: 0, truncated: true });
    }

    #[test]
    fn the_operators_limits_are_named_or_said_to_be_reached() {
        let base = limits(LargeResults::Pages);
        for (limits, text) in [
            (Limits { max_rows: Some(2), ..base }, "result too large: 3 rows, 30 bytes, limit 2 rows; "),
            (Limits { max_bytes: Some(25), ..base }, "result too large: 3 rows, 30 bytes, limit 25 bytes; "),
        ] {
            let (_, end, _) = feed(limits, &[ROW; 9]);
            let message = message(end);
            assert!(message.starts_with(text), "{message}");
            let (_, end, done) = feed(Limits { on_limit: OnLimit::Truncate, ..limits }, &[ROW; 9]);
            assert_eq!(end, Some(Verdict::Enough));
            assert_eq!(done.totals, Totals { rows: 2, bytes: 20, pages: 0, truncated: true });
        }
        let exact = Limits { max_rows: Some(3), on_limit: OnLimit::Truncate, ..base };
        let (_, end, done) = feed(exact, &[ROW; 3]);
        assert_eq!((end, done.totals.truncated), (None, false), "a result of exactly the limit is whole");
    }

    #[test]
    fn once_it_is_over_it_stays_over() {
        let mut pager = Pager::new(Limits { max_rows: Some(0), ..Limits::default() });
        let first = pager.push(ROW.to_owned());
        assert!(matches!(first, Some(Verdict::TooLarge(_))));
        assert_eq!(pager.push(ROW.to_owned()), first);
        assert_eq!(pager.finish().totals.rows, 0);
    }
}
