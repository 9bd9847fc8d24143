//! The machine alone, against answers that no store would give: whatever it is told, it keeps to a few rules.

use firesteel_model::policy::{OnStop, Policy};
use firesteel_model::runner::{
    Action, Beside, Identity, Input, RunTrouble, Runner, Sight, StageTrouble, Trouble, Watched,
};
use firesteel_model::session::{Owner, Session, SessionState};
use firesteel_model::{
    Attempt, Code, Failure, Kind, Millis, QueryId, QueryText, RunnerId, SessionId, Stage, Statement, StatementId,
    StatementState, Stored, Version,
};

use crate::dice::Dice;

/// How many machines walk, and how far.
const WALKS: u64 = 3_000;
const STEPS: usize = 300;

/// A machine, and what it asked for and was not yet answered.
struct Walk {
    runner: Runner,
    dice: Dice,
    now: Millis,
    seq_no: u64,
    asked: Vec<Action>,
    /// The engine plans or runs something, or holds what it planned.
    planned: Option<StatementId>,
    /// What a statement that writes needs before it runs: a marker, a proof of the lease and a look at its claim.
    proofs: u32,
    kind: Kind,
    ended: bool,
    exited: bool,
}

fn me() -> Identity {
    Identity {
        runner: RunnerId::new("me").unwrap(),
        job: None,
        application: None,
        session: SessionId::new("s").unwrap(),
        data_source: "files".into(),
        excluded: Vec::new(),
        batch: None,
    }
}

fn is_engine(action: &Action) -> bool {
    matches!(action, Action::Plan(_) | Action::Run(..))
}

impl Walk {
    fn new(seed: u64) -> Walk {
        let mut dice = Dice(seed);
        let on_stop = *dice.pick(&[OnStop::End, OnStop::Handover]);
        let policy = Policy { on_stop, standby: dice.one_in(2), ..Policy::default() };
        Walk {
            runner: Runner::new(me(), policy),
            dice,
            now: Millis(1_000),
            seq_no: 10,
            asked: Vec::new(),
            planned: None,
            proofs: 0,
            kind: Kind::Read,
            ended: false,
            exited: false,
        }
    }

    fn version(&mut self) -> Version {
        self.seq_no += 1;
        Version { term: 1, seq_no: self.seq_no }
    }

    fn session(&mut self) -> Stored<Session> {
        let owner = *self.dice.pick(&["me", "me", "me", "me", "other"]);
        let state = *self.dice.pick(&[
            SessionState::Running,
            SessionState::Running,
            SessionState::Running,
            SessionState::Running,
            SessionState::Running,
            SessionState::Running,
            SessionState::Dead,
            SessionState::NotStarted,
        ]);
        let value = Session {
            state,
            owner: Some(Owner { runner: RunnerId::new(owner).unwrap(), lease_millis: *self.dice.pick(&[0, 60_000]) }),
            last_update: self.dice.below(3),
            ..Session::new(SessionId::new("s").unwrap(), "files")
        };
        Stored { version: self.version(), value }
    }

    fn statement(&mut self, id: &StatementId) -> Stored<Statement> {
        let state = match self.dice.below(8) {
            0..3 => StatementState::Waiting,
            3..6 => StatementState::Running { job: None },
            6 => StatementState::Cancelled,
            _ => StatementState::Success,
        };
        let value = Statement {
            id: id.clone(),
            session: SessionId::new("s").unwrap(),
            query_id: (!self.dice.one_in(20)).then(|| QueryId::new("q").unwrap()),
            lang: "sql".into(),
            query: QueryText("x".into()),
            data_source: "files".into(),
            submit_time: self.dice.below(5),
            state,
        };
        // Sometimes at the version of the last write, as the machine hopes.
        let version = if self.dice.one_in(2) { Version { term: 1, seq_no: self.seq_no } } else { self.version() };
        Stored { version, value }
    }

    fn name(&mut self) -> StatementId {
        StatementId::new(*self.dice.pick(&["a", "b", "c"])).unwrap()
    }

    fn attempt(&mut self) -> Attempt {
        Attempt { claim: Version { term: 1, seq_no: self.seq_no }, n: 1 + u32::from(self.dice.one_in(3)) }
    }

    fn well<T>(&mut self, good: T) -> Result<T, Trouble> {
        match self.dice.below(16) {
            0 | 1 => Err(Trouble::Conflict),
            2 => Err(Trouble::Unavailable),
            3 => Err(Trouble::Unknown),
            4 if self.dice.one_in(8) => Err(Trouble::Refused),
            4 if self.dice.one_in(8) => Err(Trouble::Corrupt),
            _ => Ok(good),
        }
    }

    fn ran<T>(&mut self, good: T) -> Result<T, RunTrouble> {
        match self.dice.below(8) {
            0 => Err(RunTrouble::Failed(Failure::new(Code::Execution, Stage::Execute, "as asked"))),
            1 => Err(RunTrouble::Died { why: "signal 9".into() }),
            _ => Ok(good),
        }
    }

    /// Any answer to an action.
    fn answer(&mut self, action: &Action) -> Input {
        let version = self.version();
        let sent = Millis(self.now.0 - self.dice.below(500).min(self.now.0));
        match action {
            Action::ReadSession => {
                let session = (!self.dice.one_in(8)).then(|| self.session());
                Input::Session(self.well(session))
            }
            Action::CreateSession(_) | Action::Own(..) => Input::Owned(sent, self.well(version)),
            Action::Prove(_) => Input::Proved(sent, self.well(version)),
            Action::EndSession(..) => Input::SessionEnded(self.well(version)),
            Action::Replay => {
                let pending = self.dice.one_in(3).then(|| (self.name(), self.attempt()));
                Input::Replayed(self.well(pending))
            }
            Action::Poll | Action::PollEvery => {
                let mut statements = Vec::new();
                for id in ["a", "b", "c"] {
                    if self.dice.one_in(3) {
                        let hit = self.statement(&StatementId::new(id).unwrap());
                        statements.extend((!hit.value.state.is_terminal()).then_some(hit));
                    }
                }
                Input::Open(self.well(Sight { statements, session: None }))
            }
            Action::ReadStatement(id) => {
                let read = (!self.dice.one_in(12)).then(|| self.statement(id));
                Input::Statement(self.well(read))
            }
            Action::Write(..) | Action::Decide(..) => Input::Written(self.well(version)),
            Action::Examine(_) => {
                let beside = Beside {
                    marker: self.dice.one_in(4).then(|| self.attempt()),
                    attempts: u32::try_from(self.dice.below(4)).unwrap(),
                    companion: self.dice.one_in(2).then_some(version),
                    candidate: self.dice.one_in(2).then(|| self.attempt()),
                };
                Input::Examined(self.well(beside))
            }
            Action::Count(..) => Input::Counted(self.well(())),
            Action::Plan(_) => {
                self.kind = *self.dice.pick(&[Kind::Read, Kind::Read, Kind::Define, Kind::Write]);
                let kind = self.kind;
                Input::Planned(self.ran(kind))
            }
            Action::Mark(..) => Input::Marked(self.well(())),
            Action::Run(..) => Input::Ran(self.ran(())),
            Action::Look(id) => {
                let statement = (!self.dice.one_in(20)).then(|| self.statement(id));
                let session = (!self.dice.one_in(20)).then(|| self.session());
                Input::Watched(self.well(Watched { statement, session, timeout: None }))
            }
            Action::Stage(..) => Input::Staged(match self.dice.below(8) {
                0 => Err(StageTrouble::Again),
                1 => Err(StageTrouble::Superseded),
                2 => Err(StageTrouble::DuplicateQueryId),
                3 => Err(StageTrouble::Fenced),
                _ => Ok(()),
            }),
            Action::Publish(..) | Action::PublishFailure(..) | Action::Settle(..) => Input::Published(self.well(())),
            Action::Discard(..) => Input::Discarded(self.well(())),
            Action::Void(..) => Input::Voided(self.well(())),
            Action::Drop | Action::KeepDefine | Action::Taint | Action::Note(_) | Action::Exit(_) => {
                unreachable!("not answered")
            }
        }
    }

    /// Gives an input, and checks what is asked for then.
    fn give(&mut self, input: Input) -> Result<(), String> {
        match &input {
            Input::SessionEnded(Ok(_)) => self.ended = true,
            Input::Marked(Ok(())) | Input::Proved(_, Ok(_)) | Input::Statement(Ok(Some(_))) => self.proofs += 1,
            Input::Planned(Err(_)) | Input::Ran(_) => self.planned = None,
            _ => {}
        }
        let actions = self.runner.step(input, self.now);
        let lost = self.runner.lease().is_some_and(|lease| lease.lost().is_some());
        let holds = self.runner.lease().is_some_and(|lease| lease.holds(self.now));
        for action in actions {
            if self.exited {
                return Err(format!("{action:?} after its exit"));
            }
            let needs = matches!(
                action,
                Action::Write(..)
                    | Action::Count(..)
                    | Action::Plan(_)
                    | Action::Mark(..)
                    | Action::Prove(_)
                    | Action::Run(..)
            ) || (matches!(action, Action::Decide(..)) && !self.ended && !lost);
            if needs && !holds {
                return Err(format!("{action:?} without its lease"));
            }
            match &action {
                Action::Plan(statement) => {
                    if let Some(other) = self.planned.replace(statement.id.clone()) {
                        return Err(format!("{action:?} while the engine is at {other}"));
                    }
                    self.proofs = 0;
                }
                Action::Run(statement, _) => {
                    if self.planned.as_ref() != Some(&statement.id) || self.asked.iter().any(is_engine) {
                        return Err(format!("{action:?} and nothing of it is planned"));
                    }
                    if self.kind == Kind::Write && self.proofs < 2 {
                        return Err(format!("{action:?}, which writes, unproved"));
                    }
                }
                Action::Drop => {
                    self.planned = None;
                    self.asked.retain(|asked| !is_engine(asked));
                }
                Action::Exit(_) => self.exited = true,
                _ => {}
            }
            if !matches!(action, Action::Drop | Action::KeepDefine | Action::Taint | Action::Note(_) | Action::Exit(_))
            {
                self.asked.push(action);
            }
        }
        let writes = self.asked.iter().filter(|a| matches!(a, Action::Write(..) | Action::Decide(..))).count();
        if writes > 1 {
            return Err(format!("two statements are written at once: {:?}", self.asked));
        }
        if !self.exited && self.asked.is_empty() && self.runner.wake().is_none() {
            return Err("it is stuck".into());
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), String> {
        match self.dice.below(20) {
            0 => {
                // The heart did something.
                let (sent, version, session) = (self.now, self.version(), self.session());
                let which = self.dice.below(6);
                if let Some(lease) = self.runner.lease() {
                    match which {
                        0 => lease.doubted(sent),
                        1 => lease.silent(sent),
                        2 => lease.seen(Some(&session), sent),
                        _ => lease.renewed(sent, version),
                    }
                }
                self.give(Input::LeaseChanged)
            }
            1 if self.dice.one_in(10) => self.give(Input::Stop),
            1..4 => {
                self.now = self.now.plus(self.dice.below(30_000));
                self.give(Input::Tick)
            }
            _ if self.asked.is_empty() => {
                self.now = self.runner.wake().map_or(self.now, |wake| wake.max(self.now));
                self.give(Input::Tick)
            }
            _ => {
                let n = usize::try_from(self.dice.below(self.asked.len() as u64)).unwrap();
                let action = self.asked.remove(n);
                self.now = self.now.plus(self.dice.below(50));
                let answer = self.answer(&action);
                self.give(answer)
            }
        }
    }
}

#[test]
fn whatever_it_is_told_the_machine_begins_nothing_without_its_lease_and_is_never_stuck() {
    let (mut runs, mut exits) = (0, 0);
    for seed in 0..WALKS {
        let mut walk = Walk::new(seed);
        walk.give(Input::Start).unwrap();
        for step in 0..STEPS {
            if walk.exited {
                exits += 1;
                break;
            }
            if let Err(wrong) = walk.step() {
                panic!("walk {seed}, step {step}: {wrong}; {:?}", walk.runner);
            }
            runs += usize::from(walk.asked.iter().any(|a| matches!(a, Action::Run(..))));
        }
    }
    assert!(runs > 1_000 && exits > 1_000, "{runs} runs, {exits} exits");
}
