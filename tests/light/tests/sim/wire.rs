//! What lies between a process and the store: requests that come late, not at all, or whose answers are lost.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use firesteel_model::Version;
use firesteel_session::ports::StoreError;
use firesteel_store::documents::{Documents, Found, Index, Key, Op, Opened, Search};

use crate::dice::Dice;
use crate::observer::Observed;
use crate::plant::Planted;
use crate::process::Gate;

/// How long a process waits for an answer, in milliseconds.
const PATIENCE: u64 = 400;
/// How old what a search finds may be.
const STALE: u64 = 1_000;

/// How the store is, for all.
#[derive(Default)]
pub struct Weather {
    /// Nothing goes wrong from now on.
    pub calm: bool,
    /// Nobody reaches the store before then.
    pub away_until: u64,
    /// It takes no writes before then.
    pub read_only_until: u64,
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Done,
    /// It is not done, and says so.
    Refused,
    /// It is done, and its answer is lost.
    AnswerLost,
    /// It is lost, and nobody knows.
    RequestLost,
    /// Some of its writes are done, the others are refused.
    Partly,
}

/// What a search found, and when.
type Seen = Arc<Mutex<BTreeMap<String, (u64, Vec<Found>)>>>;

/// One process's connection. Clones share its luck.
#[derive(Clone)]
pub struct Wire {
    to: Observed,
    gate: Gate,
    weather: Arc<Mutex<Weather>>,
    dice: Arc<Mutex<Dice>>,
    cut_until: Arc<Mutex<u64>>,
    /// How far the time that this process takes for the store's is off.
    skew: i64,
    seen: Seen,
    planted: Planted,
}

impl Wire {
    pub fn new(to: Observed, gate: Gate, weather: Arc<Mutex<Weather>>, mut dice: Dice, planted: Planted) -> Wire {
        let skew = *dice.pick(&[0, 0, 900_000, -900_000]) + i64::try_from(dice.below(100)).unwrap();
        Wire {
            to,
            gate,
            weather,
            dice: Arc::new(Mutex::new(dice)),
            cut_until: Arc::default(),
            skew,
            seen: Arc::default(),
            planted,
        }
    }

    /// This process alone does not reach the store before then.
    pub fn cut(&self, until: u64) {
        *self.cut_until.lock().unwrap() = until;
    }

    /// How long the request is on its way, what becomes of it, how long its answer is on its way, and whether it arrives though its
    /// sender is gone.
    fn luck(&self, writes: bool) -> (u64, Fate, u64, bool) {
        let (weather, mut dice, now) = (self.weather.lock().unwrap(), self.dice.lock().unwrap(), self.to.now_true());
        let (there, back) = (dice.below(4), dice.below(4));
        if weather.calm {
            return (there, Fate::Done, back, false);
        }
        if now < weather.away_until.max(*self.cut_until.lock().unwrap()) {
            let fate = if writes && dice.one_in(2) { Fate::RequestLost } else { Fate::Refused };
            return (20 + dice.below(100), fate, 0, false);
        }
        if writes && now < weather.read_only_until {
            return (there, Fate::Refused, back, false);
        }
        let there = match dice.below(60) {
            0 => dice.below(2_000),
            1..4 => dice.below(150),
            _ => there,
        };
        let back = if dice.one_in(30) { dice.below(200) } else { back };
        let fate = match dice.below(60) {
            0 | 1 => Fate::Refused,
            2 => Fate::AnswerLost,
            3 => Fate::RequestLost,
            4 => Fate::Partly,
            _ => Fate::Done,
        };
        (there, fate, back, dice.one_in(2))
    }

    fn pause(&self, millis: u64) -> tokio::time::Sleep {
        tokio::time::sleep(Duration::from_millis(millis))
    }

    /// What is done where the store is.
    fn arrive(&self, ops: Vec<Op>, part: bool) -> Vec<Result<Version, StoreError>> {
        let last = ops.len() - 1;
        let mut dice = self.dice.lock().unwrap();
        let mut answers = Vec::new();
        for (n, op) in ops.into_iter().enumerate() {
            if part && (n == last || dice.one_in(2)) {
                answers.push(Err(StoreError::Unavailable("too busy".into())));
            } else {
                answers.push(self.planted.write(&self.to, op));
            }
        }
        answers
    }

    async fn read(&self) -> Result<(), StoreError> {
        self.gate.pass().await;
        let (there, fate, back, _) = self.luck(false);
        let late = there + back > PATIENCE;
        self.pause((there + back).min(PATIENCE)).await;
        self.gate.pass().await;
        match fate {
            _ if late => Err(StoreError::Unavailable("no answer".into())),
            Fate::Done | Fate::Partly => Ok(()),
            _ => Err(StoreError::Unavailable("away".into())),
        }
    }
}

fn lost() -> StoreError {
    StoreError::Unknown("lost".into())
}

#[async_trait]
impl Documents for Wire {
    async fn open(&self, index: Index, create: bool) -> Result<Opened, StoreError> {
        self.read().await?;
        self.to.open(index, create)
    }

    async fn get(&self, keys: &[Key], sources: bool) -> Result<Vec<Option<Found>>, StoreError> {
        self.read().await?;
        Ok(self.planted.read(&self.to, self.to.get(keys, sources)))
    }

    async fn bulk(&self, ops: Vec<Op>, _refresh: bool) -> Result<Vec<Result<Version, StoreError>>, StoreError> {
        self.gate.pass().await;
        if ops.is_empty() {
            return Ok(Vec::new());
        }
        let (there, fate, back, arrives) = self.luck(true);
        let (wire, asked) = (self.clone(), ops.clone());
        let request = async move {
            wire.pause(there).await;
            match fate {
                Fate::Refused => Err(StoreError::Unavailable("away".into())),
                Fate::RequestLost => {
                    wire.pause(PATIENCE).await;
                    Err(lost())
                }
                fate => {
                    let answers = wire.arrive(ops, fate == Fate::Partly);
                    wire.pause(if fate == Fate::AnswerLost { PATIENCE } else { back }).await;
                    if fate == Fate::AnswerLost { Err(lost()) } else { Ok(answers) }
                }
            }
        };
        let patience = Duration::from_millis(PATIENCE);
        let answer = if arrives {
            // It is on its way: that its sender dies or gives up does not stop it.
            tokio::time::timeout(patience, tokio::spawn(request)).await.map(Result::unwrap)
        } else {
            tokio::time::timeout(patience, request).await
        };
        self.gate.pass().await;
        let answer = answer.unwrap_or_else(|_| Err(lost()));
        if let Err(StoreError::Unknown(_)) = &answer {
            self.to.ledger().count("unknown outcomes");
        }
        self.planted.answer(&self.to, &asked, answer)
    }

    async fn refresh(&self, index: Index) -> Result<(), StoreError> {
        self.read().await?;
        self.seen.lock().unwrap().clear();
        self.planted.refreshed();
        self.to.refresh(index)
    }

    async fn search(&self, search: &Search) -> Result<Vec<Found>, StoreError> {
        self.read().await?;
        let (name, now) = (format!("{search:?}"), self.to.now_true());
        let stale = !self.weather.lock().unwrap().calm && self.dice.lock().unwrap().one_in(12);
        let mut seen = self.seen.lock().unwrap();
        if let Some((at, found)) = seen.get(&name).filter(|(at, _)| stale && now < at + STALE) {
            let _ = at;
            return Ok(found.clone());
        }
        let found = self.to.search(search);
        seen.insert(name, (now, found.clone()));
        Ok(self.planted.found(search, found))
    }

    async fn measure(&self) -> Result<(), StoreError> {
        self.read().await
    }

    fn now(&self) -> u64 {
        self.to.now().saturating_add_signed(self.skew)
    }
}
