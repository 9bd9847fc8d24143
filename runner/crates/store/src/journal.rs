//! The journal in the state index: a document a record, read by number in real time, and one that names the newest snapshot.

use firesteel_model::SessionId;
use firesteel_session::journal::{Found, Record, What};
use firesteel_session::ports::StoreError;

use crate::documents::{Documents, Found as Read, Op};
use crate::store::{Store, corrupt, reading, state, text};
use crate::wire::{self, ids};

/// How many records are looked for in one request: with the head, and then.
const FIRST_BLOCK: u64 = 16;
const BLOCK: u64 = 512;

impl<D: Documents> Store<D> {
    pub(crate) async fn read_journal(&self, session: &SessionId) -> Result<Found, StoreError> {
        // The head and, as most journals are short, the first records with it.
        let mut keys = vec![state(ids::journal_head(session))];
        keys.extend((0..FIRST_BLOCK).map(|n| state(ids::record(session, n))));
        let mut first = self.documents.get(&keys, true).await?.into_iter();
        let snapshot = reading(first.next().flatten(), |f| wire::journal::read_head(&f.source))?.unwrap_or(0);
        if snapshot > 0 {
            let found = self.records_from(session, snapshot, Vec::new()).await?;
            if matches!(found.records.first(), Some(Record { what: What::Snapshot { .. }, .. })) {
                return Ok(found);
            }
            // What the head names is gone; all that is there is the whole.
        }
        self.records_from(session, 0, first.collect()).await
    }

    /// The records from `first` on; `block` are those of them that were read already.
    async fn records_from(
        &self,
        session: &SessionId,
        first: u64,
        mut block: Vec<Option<Read>>,
    ) -> Result<Found, StoreError> {
        let (mut records, mut next) = (Vec::new(), first);
        loop {
            next += block.len() as u64;
            for found in block {
                let Some(found) = found else { return Ok(Found { first, records }) };
                records.push(wire::journal::read(&found.source).map_err(|bad| corrupt(&found.id, &bad))?);
            }
            let keys: Vec<_> = (next..next + BLOCK).map(|n| state(ids::record(session, n))).collect();
            block = self.documents.get(&keys, true).await?;
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
