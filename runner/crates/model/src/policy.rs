//! Every interval and limit by which the model decides, so that a test takes milliseconds.

/// What the operator may set. All times are milliseconds on the runner's own clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Between heartbeats.
    pub heartbeat: u64,
    /// Before the first heartbeat.
    pub first_heartbeat: u64,
    /// The lease that the runner publishes; by default three heartbeats.
    pub lease: u64,
    /// The lease of an owner that publishes none (the Spark peer).
    pub peer_lease: u64,
    /// Between polls for a while after work.
    pub poll_busy: u64,
    /// How long after work polls stay at `poll_busy`.
    pub busy_for: u64,
    /// Between polls otherwise.
    pub poll: u64,
    /// Between polls after `idle_after` without work.
    pub poll_idle: u64,
    /// When `poll_idle` begins.
    pub idle_after: u64,
    /// Between looks at the running statement and its session.
    pub watch: u64,
    /// A statement that ran longer is stopped and failed with `timeout`.
    pub execution_timeout: u64,
    /// A statement that waited longer is failed with `wait timeout`, not run.
    pub wait_timeout: u64,
    /// The session ends after this long without a statement.
    pub inactivity: u64,
    /// How long a missing index or session means "not yet" when a launcher started the job.
    pub launch_grace: u64,
    /// How long the store may be out of reach before the runner gives up.
    pub unreachable: u64,
    /// How long a running statement may go on after the runner was told to stop.
    pub stop_grace: u64,
    /// How long statements that are left in a session which this runner ended may wait for its recovery before they are failed.
    pub sweep: u64,
    /// Between sweeps over all sessions of the request index.
    pub sweep_every: u64,
    /// The first wait after a store error; doubles up to `retry_max`.
    pub retry: u64,
    /// The longest wait between two tries.
    pub retry_max: u64,
    /// Wait beside another owner for as long as it lives, instead of leaving.
    pub standby: bool,
    /// What a stop does to the session.
    pub on_stop: OnStop,
    /// Write the peer's `timeout` state instead of `failed`.
    pub timeout_state: bool,
}

/// What a stop does to the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnStop {
    /// It ends: `dead`.
    End,
    /// It stays `running`, its lease given up, for a stand-by.
    Handover,
}

impl Default for Policy {
    /// The defaults of the launch contract.
    fn default() -> Policy {
        Policy {
            heartbeat: 20_000,
            first_heartbeat: 3_000,
            lease: 60_000,
            peer_lease: 180_000,
            poll_busy: 20,
            busy_for: 5_000,
            poll: 100,
            // Less than the second within which a statement is to be noticed.
            poll_idle: 900,
            idle_after: 60_000,
            watch: 200,
            execution_timeout: 600_000,
            wait_timeout: 600_000,
            inactivity: 600_000,
            launch_grace: 60_000,
            unreachable: 600_000,
            stop_grace: 20_000,
            sweep: 30_000,
            sweep_every: 60_000,
            retry: 50,
            retry_max: 5_000,
            standby: false,
            on_stop: OnStop::End,
            timeout_state: false,
        }
    }
}
