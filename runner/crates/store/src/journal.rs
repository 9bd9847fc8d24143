//! The journal in the state index: a document a record, read by number in real time, and one that names the newest snapshot.

use firesteel_model::SessionId;
use firesteel_session::journal::{Found, Record, What};
use firesteel_session::ports::StoreError;

use crate::documents::{Documents, Op};
use crate::store::{Store, corrupt, reading, state, text};
use crate::wire::{self, ids};

/// How many records are looked for in one request, at first and at most.
const FIRST_BLOCK: u64 = 16;
const BLOCK: u64 = 512;

impl<D: Documents> Store<D> {
    pub(crate) async fn read_journal(&self, session: &SessionId) -> Result<Found, StoreError> {
        let head = self.find(state(ids::journal_head(session))).await?;
        let snapshot = reading(head, |f| wire::journal::read_head(&f.source))?.unwrap_or(0);
        let found = self.records_from(session, snapshot).await?;
        if snapshot == 0 || matches!(found.records.first(), Some(Record { what: What::Snapshot { .. }, .. })) {
            return Ok(found);
        }
        // What it names is gone; all that is there is the whole.
        self.records_from(session, 0).await
    }

    async fn records_from(&self, session: &SessionId, first: u64) -> Result<Found, StoreError> {
        let (mut records, mut next, mut block) = (Vec::new(), first, FIRST_BLOCK);
        loop {
            let keys: Vec<_> = (next..next + block).map(|n| state(ids::record(session, n))).collect();
            for found in self.documents.get(&keys, true).await? {
                let Some(found) = found else { return Ok(Found { first, records }) };
                records.push(wire::journal::read(&found.source).map_err(|bad| corrupt(&found.id, &bad))?);
            }
            next += block;
            block = BLOCK;
        }
    }

    pub(crate) async fn read_record(&self, session: &SessionId, n: u64) -> Result<Option<Record>, StoreError> {
        reading(self.find(state(ids::record(session, n))).await?, |f| wire::journal::read(&f.source))
    }

    pub(crate) async fn make_record(&self, session: &SessionId, n: u64, record: &Record) -> Result<(), StoreError> {
        let body = text(&wire::journal::record(session, record));
        self.write(Op::Create { key: state(ids::record(session, n)), body }, false).await?;
        if matches!(record.what, What::Snapshot { .. })
            && let Err(error) = self.raise_head(session, n).await
        {
            // The journal is whole without it, only longer to read.
            tracing::debug!(%session, %error, "the newest snapshot of the journal was not noted");
        }
        Ok(())
    }

    async fn raise_head(&self, session: &SessionId, snapshot: u64) -> Result<(), StoreError> {
        let key = state(ids::journal_head(session));
        let body = text(&wire::journal::head(session, snapshot));
        let op = match self.find(key.clone()).await? {
            None => Op::Create { key, body },
            Some(found) => {
                if wire::journal::read_head(&found.source).is_ok_and(|there| there >= snapshot) {
                    return Ok(());
                }
                Op::Update { key, at: found.version, fields: body }
            }
        };
        self.write(op, false).await.map(drop)
    }
}
