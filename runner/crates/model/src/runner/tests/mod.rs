//! Stories: a world that answers every action well unless the story says otherwise, and the actions it was asked for.

use std::collections::VecDeque;

use super::*;
use crate::attempt::{Attempt, Kind};
use crate::failure::{Code, Failure, Stage};
use crate::ids::{JobId, QueryId, RunnerId, SessionId};
use crate::session::{Owner, Session, SessionState};
use crate::statement::{QueryText, StatementState};

mod journal;
mod session;
mod statement;

fn at(seq_no: u64) -> Version {
    Version { term: 1, seq_no }
}

fn statement(name: &str, state: StatementState) -> Statement {
    Statement {
        id: StatementId::new(name).expect("short"),
        session: SessionId::new("s").expect("short"),
        query_id: Some(QueryId::new(format!("q-{name}")).expect("short")),
        lang: "sql".into(),
        query: QueryText("SELECT 1".into()),
        data_source: "d".into(),
        submit_time: 1,
        state,
    }
}

fn waiting(name: &str, seq_no: u64) -> Stored<Statement> {
    Stored { version: at(seq_no), value: statement(name, StatementState::Waiting) }
}

fn running(name: &str, seq_no: u64) -> Stored<Statement> {
    Stored { version: at(seq_no), value: statement(name, StatementState::Running { job: None }) }
}

fn owned_by(runner: &str, last_update: u64) -> Stored<Session> {
    Stored {
        version: at(2),
        value: Session {
            state: SessionState::Running,
            owner: Some(Owner { runner: RunnerId::new(runner).expect("short"), lease_millis: 60_000 }),
            last_update,
            ..Session::new(SessionId::new("s").expect("short"), "d")
        },
    }
}

fn me() -> Identity {
    Identity {
        runner: RunnerId::new("me").expect("short"),
        job: None,
        application: None,
        session: SessionId::new("s").expect("short"),
        data_source: "d".into(),
        excluded: Vec::new(),
        batch: None,
    }
}

/// A runner in a world. `told` are answers that the story gives instead of the good ones, each to the next action of its name.
struct World {
    runner: Runner,
    now: Millis,
    seq_no: u64,
    told: Vec<(&'static str, Input)>,
    hits: VecDeque<Vec<Stored<Statement>>>,
    kind: Kind,
    log: Vec<String>,
    /// Actions of these names stay unanswered.
    held: Vec<&'static str>,
}

impl World {
    fn new(me: Identity, policy: Policy) -> World {
        World {
            runner: Runner::new(me, policy),
            now: Millis(1_000),
            seq_no: 100,
            told: Vec::new(),
            hits: VecDeque::new(),
            kind: Kind::Read,
            log: Vec::new(),
            held: Vec::new(),
        }
    }

    fn serving(hits: Vec<Stored<Statement>>) -> World {
        let mut world = World::new(me(), Policy::default());
        world.hits.push_back(hits);
        world
    }

    fn tell(mut self, action: &'static str, input: Input) -> World {
        self.told.push((action, input));
        self
    }

    fn hold(mut self, action: &'static str) -> World {
        self.held.push(action);
        self
    }

    /// Plays from the start until nothing is on its way.
    fn play(&mut self) -> String {
        self.give(Input::Start)
    }

    /// Gives an input and answers what follows; returns the actions asked for since, notes left out.
    fn give(&mut self, input: Input) -> String {
        let mut inputs = VecDeque::from([input]);
        self.log.clear();
        while let Some(input) = inputs.pop_front() {
            for action in self.runner.step(input, self.now) {
                let name = name(&action);
                if !matches!(action, Action::Note(_)) {
                    self.log.push(shown(&action));
                }
                if self.held.contains(&name) {
                    continue;
                }
                let told = self.told.iter().position(|(n, _)| *n == name).map(|i| self.told.remove(i).1);
                inputs.extend(told.or_else(|| self.answer(&action)));
            }
            assert!(self.log.len() < 100, "it goes round and round: {:?}", self.log);
        }
        self.log.join(" ")
    }

    fn later(&mut self, millis: u64, input: Input) -> String {
        self.now = self.now.plus(millis);
        self.give(input)
    }

    fn answer(&mut self, action: &Action) -> Option<Input> {
        let mut version = || {
            self.seq_no += 1;
            at(self.seq_no)
        };
        Some(match action {
            Action::ReadSession => Input::Session(Ok(None)),
            Action::CreateSession(_) | Action::Own(..) => Input::Owned(self.now, Ok(version())),
            Action::Prove(_) => Input::Proved(self.now, Ok(version())),
            Action::EndSession(..) => Input::SessionEnded(Ok(version())),
            Action::Poll | Action::PollEvery => {
                Input::Open(Ok(Sight { statements: self.hits.pop_front().unwrap_or_default(), session: None }))
            }
            Action::ReadStatement(_) => Input::Statement(Ok(None)),
            Action::Write(..) | Action::Decide(..) => Input::Written(Ok(version())),
            Action::Examine(_) => Input::Examined(Ok(Beside::default())),
            Action::Count(..) => Input::Counted(Ok(())),
            Action::Plan(_) => Input::Planned(Ok(self.kind)),
            Action::Mark(..) => Input::Marked(Ok(())),
            Action::Run(..) => Input::Ran(Ok(())),
            Action::Stage(..) => Input::Staged(Ok(())),
            Action::Publish(..) | Action::PublishFailure(..) | Action::Settle(..) => Input::Published(Ok(())),
            Action::Replay => Input::Replayed(Ok(None)),
            Action::Void(..) => Input::Voided(Ok(())),
            Action::Discard(..) => Input::Discarded(Ok(())),
            Action::Look(_) | Action::Drop | Action::KeepDefine | Action::Taint | Action::Note(_) | Action::Exit(_) => {
                return None;
            }
        })
    }
}

fn name(action: &Action) -> &'static str {
    match action {
        Action::ReadSession => "read-session",
        Action::CreateSession(_) => "create-session",
        Action::Own(..) => "own",
        Action::Prove(_) => "prove",
        Action::EndSession(..) => "end",
        Action::Poll => "poll",
        Action::PollEvery => "poll-every",
        Action::ReadStatement(_) => "read",
        Action::Write(..) => "claim",
        Action::Decide(..) => "decide",
        Action::Examine(_) => "examine",
        Action::Count(..) => "count",
        Action::Plan(_) => "plan",
        Action::Mark(..) => "mark",
        Action::Run(..) => "run",
        Action::Look(_) => "look",
        Action::Drop => "drop",
        Action::Stage(..) => "stage",
        Action::Publish(..) => "publish",
        Action::PublishFailure(..) => "publish-failure",
        Action::Discard(..) => "discard",
        Action::Settle(..) => "settle",
        Action::Replay => "replay",
        Action::Void(..) => "void",
        Action::KeepDefine => "keep",
        Action::Taint => "taint",
        Action::Note(_) => "note",
        Action::Exit(_) => "exit",
    }
}

fn shown(action: &Action) -> String {
    let name = name(action);
    match action {
        Action::Write(s, v, _) => format!("{name}:{}@{}", s.id, v.seq_no),
        Action::Run(s, a) | Action::Stage(s, a) | Action::Publish(s, a) | Action::Discard(s, a) => {
            format!("{name}:{}#{a}", s.id)
        }
        Action::Decide(s, v, _, verdict) => {
            let verdict = match verdict {
                Verdict::Success => "success".to_owned(),
                Verdict::Release => "release".to_owned(),
                Verdict::Failed(Fault::Timeout) => "timeout".to_owned(),
                Verdict::Failed(Fault::WaitTimeout) => "wait-timeout".to_owned(),
                Verdict::Failed(Fault::SessionEnded) => "session-ended".to_owned(),
                Verdict::Failed(Fault::Failure(f)) => f.code.as_str().to_owned(),
            };
            format!("{name}:{}@{}={verdict}", s.id, v.seq_no)
        }
        Action::Settle(s, _) => format!("{name}:{}={}", s.id, s.state.name()),
        Action::ReadStatement(id) => format!("{name}:{id}"),
        Action::Count(_, n, _) => format!("{name}={n}"),
        Action::EndSession(_, change) => format!(
            "{name}={}",
            match change {
                SessionChange::End => "dead",
                SessionChange::Fail { .. } => "fail",
                SessionChange::GiveUp => "given-up",
                _ => "?",
            }
        ),
        Action::Exit(exit) => format!("{name}={}", exit.code),
        _ => name.to_owned(),
    }
}

fn check(mut world: World, expected: &str) -> World {
    assert_eq!(world.play(), expected);
    world
}
