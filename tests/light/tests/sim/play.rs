//! One seed, played: what happens is thrown, then nothing more goes wrong, and what must be, is.

use std::collections::BTreeMap;
use std::time::Duration;

use firesteel_model::policy::{OnStop, Policy};

use crate::dice::Dice;
use crate::plant::Fault;
use crate::results;
use crate::world::{LEASE, Served, World, policy};

/// What a play showed.
#[derive(Default)]
pub struct Played {
    pub wrong: Vec<String>,
    pub counts: BTreeMap<&'static str, u64>,
    pub digest: u64,
    /// What happened, line by line, if it was asked for.
    pub story: Vec<String>,
}

/// How long statements may take to end once nothing goes wrong, in milliseconds.
const PATIENCE: u64 = 30_000;
/// Of so many seeds one has processes that serve all sessions.
const POOLED: u64 = 5;
/// Until then a request may come that was sent before, in milliseconds.
const LATEST: u64 = 2_100;

async fn pause(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

fn statement(n: usize, dice: &mut Dice) -> String {
    match dice.below(20) {
        0..4 => format!("set k{n}"),
        4..7 => "show".into(),
        7..10 => format!("write {}", dice.below(80)),
        10..12 => format!("wait {}", dice.below(400)),
        12..14 => format!("rows {}", 20 + dice.below(40)),
        14 => dice.pick(&["fail", "bad"]).to_string(),
        15 => format!("drip {}", 30 + dice.below(40)),
        16 => "die".into(),
        17 => "hang".into(),
        _ => format!("rows {}", dice.below(6)),
    }
}

/// The sessions of a seed, with one to three runners each; or with processes that serve them all, and perhaps a runner of one.
fn sessions(world: &mut World, dice: &mut Dice, pooled: bool) -> Vec<Served> {
    let mut sessions = Vec::new();
    for n in 0..1 + dice.below(2) {
        let launched = dice.one_in(3) || world.fault == Some(Fault::ClaimByJob);
        let on_stop = if dice.one_in(8) { OnStop::End } else { OnStop::Handover };
        let idles = dice.one_in(6) || world.fault == Some(Fault::PartialSearch);
        let inactivity = if idles { 500 } else { 60_000 };
        let served = Served {
            session: format!("s{n}"),
            job: launched.then(|| "j1".to_owned()),
            excluded: if launched && dice.one_in(3) { vec!["j0".into()] } else { Vec::new() },
            batch: false,
            many: false,
            policy: Policy { on_stop, inactivity, ..policy() },
        };
        if launched || pooled {
            world.make(&served, dice);
        }
        let runners = 1 + dice.below(3);
        for _ in u64::from(pooled)..if pooled { runners.min(2) } else { runners } {
            world.start(&served, dice);
        }
        sessions.push(served);
    }
    if pooled {
        let many = Served { session: "s*".into(), job: None, excluded: Vec::new(), many: true, ..sessions[0].clone() };
        for _ in 0..1 + dice.below(2) {
            world.start(&many, dice);
        }
    }
    sessions
}

fn batch(world: &mut World, dice: &mut Dice) {
    let served = Served {
        session: "app/j/b".into(),
        job: None,
        excluded: Vec::new(),
        batch: true,
        many: false,
        policy: policy(),
    };
    let text = dice.pick(&["write 30", "wait 700", "rows 40", "hang"]);
    world.make_batch(&served, text);
    for _ in 0..2 {
        world.start(&served, dice);
    }
}

/// Something that happens to a process.
async fn mishap(world: &mut World, dice: &mut Dice, misled: bool) {
    if world.processes.is_empty() {
        return;
    }
    let n = usize::try_from(dice.below(world.processes.len() as u64)).unwrap();
    match dice.below(12) {
        0..4 => {
            let served = world.kill(n);
            pause(dice.below(300)).await;
            world.start(&served, dice);
        }
        4..6 => world.freeze(n, dice.below(3 * LEASE), misled && dice.one_in(2)),
        6..8 => world.cut(n, dice.below(3 * LEASE)),
        8..11 => world.crash(n),
        _ => {
            let served = world.processes[n].served.clone();
            world.stop(n);
            world.start(&served, dice);
        }
    }
}

async fn storm(world: &mut World, dice: &mut Dice, sessions: &[Served], misled: bool) {
    let mut submitted: Vec<String> = Vec::new();
    let rough = dice.one_in(3);
    for _ in 0..30 + dice.below(20) {
        pause(dice.below(160)).await;
        if !world.ledger.book().wrong.is_empty() {
            return;
        }
        let served = dice.pick(sessions).clone();
        let now = world.ledger.now();
        match dice.below(40) {
            0..18 => {
                let n = submitted.len();
                let text = statement(n, dice);
                // Another program's clock is not ours: some come with an older time than those before.
                let back = if dice.one_in(10) { dice.below(1_000) } else { 0 };
                world.submit(&served.session, n, &text, back, dice);
                submitted.push(format!("{}-{n}", served.session));
            }
            18..21 if !submitted.is_empty() => world.cancel(dice.pick(&submitted).as_str(), dice),
            21..31 => mishap(world, dice, misled).await,
            31 => world.weather.lock().unwrap().away_until = now + dice.below(2 * LEASE),
            32 => world.weather.lock().unwrap().read_only_until = now + dice.below(2 * LEASE),
            33 => world.sweep(),
            34 => world.start(&served, dice),
            35 if rough && dice.one_in(3) => world.close(&served.session, dice),
            36 if rough && served.job.is_some() => {
                world.exclude(&served.session, "j1");
                world.start(&Served { job: Some("j2".into()), excluded: vec!["j1".into()], ..served }, dice);
            }
            37 if rough && dice.one_in(6) => world.delete_session(&served.session),
            _ => {}
        }
        for (_, exit) in world.left().await {
            world.ledger.count(match exit.why {
                "another runner owns the session" => "left to another",
                "another runner of the same launch serves the session" => "duplicates left",
                "the session excludes this job" => "excluded",
                "the session's document is gone" => "session gone",
                _ => "left",
            });
        }
    }
}

/// Nothing goes wrong any more: a runner for each session, until all statements have ended.
async fn calm(world: &mut World, dice: &mut Dice, sessions: &[Served]) {
    world.calm();
    for served in sessions {
        let job = served.job.as_ref().map(|_| "j3".to_owned());
        let last =
            Served { job, excluded: Vec::new(), policy: Policy { inactivity: 600_000, ..policy() }, ..served.clone() };
        world.start(&last, dice);
    }
    // Sessions that nobody serves any more are swept by whoever serves another.
    let other = Served {
        session: "other".into(),
        job: None,
        excluded: Vec::new(),
        batch: false,
        many: false,
        policy: policy(),
    };
    world.start(&other, dice);
    let (latest, until) = (world.ledger.now() + LATEST, world.ledger.now() + PATIENCE);
    loop {
        pause(50).await;
        world.left().await;
        let (open, left) = (world.open(), results::left(&world.ledger, &world.store("auditor")));
        let over = world.ledger.now() > latest && open.is_empty() && left.is_empty();
        if over || !world.ledger.book().wrong.is_empty() {
            return;
        }
        if world.ledger.now() > until {
            return world.ledger.wrong(format!("I8: these never ended: {open:?}; these were never swept: {left:?}"));
        }
    }
}

pub async fn play(seed: u64, fault: Option<Fault>, told: bool) -> Played {
    let mut world = World::new(fault);
    world.ledger.book().story = told.then(Vec::new);
    let mut dice = Dice(seed);
    let mut sessions = sessions(&mut world, &mut dice, seed % POOLED == 4);
    if dice.one_in(4) || fault == Some(Fault::TwoBatches) {
        batch(&mut world, &mut dice);
    }
    let misled = dice.one_in(6);
    storm(&mut world, &mut dice, &sessions, misled).await;
    if world.ledger.book().statements.contains_key("app/j/b") {
        sessions.push(Served {
            session: "app/j/b".into(),
            job: None,
            excluded: Vec::new(),
            batch: true,
            many: false,
            policy: policy(),
        });
    }
    if world.ledger.book().wrong.is_empty() {
        calm(&mut world, &mut dice, &sessions).await;
    }
    let digest = world.ledger.digest();
    let mut book = world.ledger.book();
    let statements: Vec<String> = book.statements.values().filter_map(|s| Some(s.end.as_ref()?.0.clone())).collect();
    for state in statements {
        book.count(match state.as_str() {
            "success" => "success",
            "cancelled" => "cancelled in the end",
            _ => "failed",
        });
    }
    let story = book.story.take().unwrap_or_default();
    Played { wrong: std::mem::take(&mut book.wrong), counts: std::mem::take(&mut book.counts), digest, story }
}
