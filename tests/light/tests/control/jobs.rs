//! A launcher whose jobs do nothing, and end when a story says so.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use firesteel_model::JobId;
use firesteel_model::steer::JobState;
use firesteel_session::ports::control::{Launch, LaunchError, Launcher};

/// What was launched, by token.
#[derive(Clone, Default)]
pub struct Jobs {
    pub states: Arc<Mutex<BTreeMap<String, JobState>>>,
    /// What the next launches say instead of starting anything.
    pub refuse: Arc<Mutex<Vec<LaunchError>>>,
}

impl Jobs {
    pub fn set(&self, job: &str, state: JobState) {
        self.states.lock().unwrap().insert(job.to_owned(), state);
    }

    pub fn get(&self, job: &str) -> Option<JobState> {
        self.states.lock().unwrap().get(job).cloned()
    }
}

#[async_trait]
impl Launcher for Jobs {
    fn name(&self) -> &'static str {
        "jobs"
    }

    async fn start(&self, launch: &Launch) -> Result<JobId, LaunchError> {
        if let Some(refused) = self.refuse.lock().unwrap().pop() {
            return Err(refused);
        }
        let job = format!("job-{}", launch.token);
        self.states.lock().unwrap().entry(job.clone()).or_insert(JobState::Running);
        Ok(JobId::new(job).unwrap())
    }

    async fn state(&self, _: &str, job: &JobId) -> Result<JobState, LaunchError> {
        Ok(self.get(job.as_str()).unwrap_or(JobState::Gone))
    }

    async fn cancel(&self, _: &str, job: &JobId) -> Result<(), LaunchError> {
        self.set(job.as_str(), JobState::Cancelled);
        Ok(())
    }

    async fn list(&self, _: &str) -> Result<Vec<(JobId, JobState)>, LaunchError> {
        let states = self.states.lock().unwrap();
        Ok(states.iter().map(|(job, state)| (JobId::new(job.clone()).unwrap(), state.clone())).collect())
    }

    async fn log(&self, _: &str, _: &JobId, _: usize) -> Result<Vec<String>, LaunchError> {
        Ok(Vec::new())
    }

    fn shares_jobs(&self) -> bool {
        false
    }
}
