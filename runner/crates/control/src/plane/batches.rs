//! Batches: jobs that somebody asks for and that end by themselves. Each belongs to the replica that launched it, or that adopted it when
//! that one fell silent.

use firesteel_model::batch::{self, BatchState, Standing, Step};
use firesteel_model::steer::JobState;
use firesteel_model::{Expect, JobId, Stored};
use firesteel_session::ports::StoreError;
use firesteel_session::ports::control::{Batch, Launch, LaunchError, Task};

use super::Plane;
use crate::access::Caller;
use crate::refusal::Refusal;

/// How often a document is read again because another changed it.
const ROUNDS: u32 = 32;
/// The longest id of a batch, in bytes.
const LONGEST_ID: usize = 200;

/// A batch that somebody asks for.
#[derive(Clone, Debug)]
pub struct NewBatch {
    /// Its id, if the asker chooses one: asked for again, it is the same batch.
    pub id: Option<String>,
    /// What people see.
    pub name: String,
    /// The application to launch it in.
    pub application: String,
    /// What it is to do.
    pub task: Task,
}

/// A batch as it is told of.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchView {
    /// Its id.
    pub id: String,
    /// Its document.
    pub batch: Batch,
    /// How it is, by the best knowledge there is.
    pub state: BatchState,
}

fn standing(batch: &Batch) -> Standing {
    Standing { state: batch.state, job: batch.job.clone(), closed_by_peer: batch.closed_by_peer }
}

impl Plane {
    /// Asks for a batch, and launches it.
    ///
    /// # Errors
    /// The id is another's; the store's. A batch whose job could not be launched is launched later, or has failed.
    pub async fn submit_batch(&self, caller: &Caller, new: NewBatch) -> Result<BatchView, Refusal> {
        caller.may_change()?;
        let id = new.id.clone().unwrap_or_else(self.unique);
        if id.is_empty() || id.len() > LONGEST_ID {
            return Err(Refusal::Invalid(format!("a batch's id has from 1 to {LONGEST_ID} bytes")));
        }
        let now = self.store.time().await?;
        let batch = Batch {
            user: caller.user.clone(),
            name: new.name,
            application: new.application,
            task: new.task,
            job: None,
            state: BatchState::Pending,
            error: String::new(),
            created: now,
            updated: now,
            instance: self.settings.instance.clone(),
            closed_by_peer: false,
        };
        match self.store.write_batch(&id, Expect::Absent, &batch).await {
            Ok(_) => {}
            Err(StoreError::Conflict | StoreError::Unknown(_)) => {
                let there = self.store.batch(&id).await?.map(|stored| stored.value);
                if !there.is_some_and(|there| there.user == batch.user && there.task == batch.task) {
                    return Err(Refusal::Conflict(format!("the id `{}` is taken; choose another", id.escape_debug())));
                }
            }
            Err(error) => return Err(error.into()),
        }
        self.drive(&id).await?;
        self.batch(caller, &id).await
    }

    /// Does what is to be done next with a batch that is this instance's.
    pub(crate) async fn drive(&self, id: &str) -> Result<(), Refusal> {
        for _ in 0..ROUNDS {
            let Some(found) = self.store.batch(id).await? else { return Ok(()) };
            if found.value.instance != self.settings.instance {
                return Ok(());
            }
            let job = self.job_of(&found.value).await;
            let changed = match batch::next(&standing(&found.value), job.as_ref()) {
                Step::Leave => return Ok(()),
                Step::Launch => self.launch_batch(id, found).await?,
                Step::Cancel => self.kill(id, found, BatchState::Killed).await?,
                Step::Settle(state, error) => {
                    self.change(id, found, |batch| (batch.state, batch.error) = (state, error.clone())).await?
                }
            };
            if changed.is_none() {
                // Another changed it, or the launcher is away: the next round looks again.
                continue;
            }
        }
        Ok(())
    }

    /// What the launcher says of its job; None: nothing, or it cannot be asked.
    async fn job_of(&self, batch: &Batch) -> Option<JobState> {
        let job = batch.job.as_ref()?;
        self.launcher.state(&batch.application, job).await.ok()
    }

    /// Writes a batch that is still as it was found. None: it is not.
    async fn change(
        &self,
        id: &str,
        found: Stored<Batch>,
        change: impl FnOnce(&mut Batch),
    ) -> Result<Option<Stored<Batch>>, Refusal> {
        let mut value = found.value;
        change(&mut value);
        value.updated = self.store.time().await?;
        match self.store.write_batch(id, Expect::Version(found.version), &value).await {
            Ok(version) => Ok(Some(Stored { version, value })),
            Err(StoreError::Conflict | StoreError::Unknown(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn launch_batch(&self, id: &str, found: Stored<Batch>) -> Result<Option<Stored<Batch>>, Refusal> {
        let Some(found) = self.change(id, found, |batch| batch.state = BatchState::Submitting).await? else {
            return Ok(None);
        };
        let launch = Launch {
            token: format!("batch-{id}"),
            known_as: Some(id.to_owned()),
            name: found.value.name.clone(),
            application: found.value.application.clone(),
            task: found.value.task.clone(),
            data_source: self.settings.data_source.clone(),
            settings: Vec::new(),
        };
        match self.start(&launch).await {
            // A flag that came meanwhile has changed the document: this write is refused, and the next look cancels the job.
            Ok(job) => match self.change(id, found, |batch| running(batch, &job)).await? {
                Some(running) => Ok(Some(running)),
                None => self.note_job(id, &job).await,
            },
            Err(LaunchError::Refused(why)) => {
                self.change(id, found, |batch| (batch.state, batch.error) = (BatchState::Error, why)).await
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Notes the job of a batch that was changed while it was launched.
    async fn note_job(&self, id: &str, job: &JobId) -> Result<Option<Stored<Batch>>, Refusal> {
        for _ in 0..ROUNDS {
            let Some(found) = self.store.batch(id).await? else { return Ok(None) };
            if found.value.job.is_some() || found.value.state.is_over() {
                // Whoever ended it did not know of the job.
                if found.value.state == BatchState::Killed {
                    self.launcher.cancel(&found.value.application, job).await?;
                }
                return Ok(Some(found));
            }
            if let Some(noted) = self.change(id, found, |batch| running(batch, job)).await? {
                return Ok(Some(noted));
            }
        }
        Err(StoreError::Conflict.into())
    }

    async fn kill(&self, id: &str, found: Stored<Batch>, state: BatchState) -> Result<Option<Stored<Batch>>, Refusal> {
        if let Some(job) = &found.value.job {
            self.launcher.cancel(&found.value.application, job).await?;
        }
        self.change(id, found, |batch| batch.state = state).await
    }

    async fn owned_batch(&self, caller: &Caller, id: &str) -> Result<Stored<Batch>, Refusal> {
        let unknown = || Refusal::not_found("batch", id);
        if id.is_empty() || id.len() > LONGEST_ID {
            return Err(unknown());
        }
        self.store.batch(id).await?.filter(|found| caller.sees(&found.value.user)).ok_or_else(unknown)
    }

    /// A batch that the caller may see.
    ///
    /// # Errors
    /// There is none; the store's.
    pub async fn batch(&self, caller: &Caller, id: &str) -> Result<BatchView, Refusal> {
        let mut found = self.owned_batch(caller, id).await?;
        if found.value.instance == self.settings.instance && !found.value.state.is_over() {
            self.drive(id).await?;
            found = self.owned_batch(caller, id).await?;
        }
        let job = if found.value.state.is_over() { None } else { self.job_of(&found.value).await };
        let state = batch::told(&standing(&found.value), job.as_ref());
        Ok(BatchView { id: id.to_owned(), batch: found.value, state })
    }

    /// The batches that the caller may see, newest first.
    ///
    /// # Errors
    /// The store's.
    pub async fn batches(&self, caller: &Caller, limit: usize) -> Result<Vec<BatchView>, Refusal> {
        let found = self.store.batches(caller.only(), false, limit).await?;
        let mut views = Vec::new();
        for (id, batch) in found {
            let job = if batch.state.is_over() { None } else { self.job_of(&batch).await };
            let state = batch::told(&standing(&batch), job.as_ref());
            views.push(BatchView { id, batch, state });
        }
        Ok(views)
    }

    /// Ends a batch: its own instance cancels it; any other kills its job through the launcher and flags it, so that its own, when it comes back, does
    /// not launch it again.
    ///
    /// # Errors
    /// There is none that the caller may see; the launcher's; the store's.
    pub async fn close_batch(&self, caller: &Caller, id: &str) -> Result<BatchView, Refusal> {
        caller.may_change()?;
        for _ in 0..ROUNDS {
            let found = self.owned_batch(caller, id).await?;
            if found.value.state.is_over() {
                break;
            }
            let done = if found.value.instance == self.settings.instance {
                self.kill(id, found, BatchState::Killed).await?
            } else {
                if let Some(job) = &found.value.job {
                    self.launcher.cancel(&found.value.application, job).await?;
                }
                self.change(id, found, |batch| batch.closed_by_peer = true).await?
            };
            if done.is_some() {
                break;
            }
        }
        self.batch(caller, id).await
    }

    /// The last lines of the log of a batch's job.
    ///
    /// # Errors
    /// There is no such batch that the caller may see; the launcher's.
    pub async fn batch_log(&self, caller: &Caller, id: &str, lines: usize) -> Result<Vec<String>, Refusal> {
        let found = self.owned_batch(caller, id).await?.value;
        match &found.job {
            None => Ok(Vec::new()),
            Some(job) => Ok(self.launcher.log(&found.application, job, lines).await?),
        }
    }

    /// Looks at each batch of this instance that is not over, and does what is to be done next.
    ///
    /// # Errors
    /// The store's, after all were looked at.
    pub async fn drive_batches(&self) -> Result<(), Refusal> {
        for (id, batch) in self.store.batches(None, true, 10_000).await? {
            if batch.instance == self.settings.instance
                && let Err(error) = self.drive(&id).await
            {
                tracing::warn!(batch = id.escape_debug().to_string(), %error, "the batch was not looked after");
            }
        }
        Ok(())
    }

    /// Makes a batch of an instance that fell silent this one's.
    ///
    /// # Errors
    /// The store's.
    pub async fn adopt_batch(&self, id: &str, from: &str) -> Result<(), Refusal> {
        let Some(found) = self.store.batch(id).await? else { return Ok(()) };
        if found.value.instance == from && !found.value.state.is_over() {
            self.change(id, found, |batch| batch.instance.clone_from(&self.settings.instance)).await?;
            self.drive(id).await?;
        }
        Ok(())
    }
}

fn running(batch: &mut Batch, job: &JobId) {
    batch.job = Some(job.clone());
    batch.state = BatchState::Running;
}
