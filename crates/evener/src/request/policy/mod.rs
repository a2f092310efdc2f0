//! Where a single request of a program's own threads goes: to a module, where the policy says that it pays, or not; and the
//! guard that takes back what did not.
//!
//! The way of one request that some module does: [`Policy::begin`] -> the guard (locked? control?) -> the table of the
//! adaptive policy ([`Table::route`]: least wait + service + price of a core * core time) -> it is done -> [`Turn::end`]: what
//! it took is learned. Some that follow one that went are not looked at (`unsampled_run.rs`). Costs are learned per class of jobs, the rules are [`evener_core`]'s; splitting has the same
//! ([`super::split`]), with what it knows of helpers. Only requests that another way wants come here: small ones see no clock.

mod unsampled_run;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::mem;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};

use evener_core::driver::Clock as _;
use evener_core::estimate::ModuleSample;
use evener_core::guard::{BySize, Load};
use evener_core::plan::adaptive::{Lane, Offer, Prospect, Queue, Route, Station, TRY_WORK_MIN, Table, plan};
use evener_core::statistics::Kind;
use evener_core::{Class, Estimator, Method, Nanos, Objective};
use evener_ring::{Mapping, PerProcess};

use self::unsampled_run::{RunStats, UnsampledRun, UnsampledRuns};
use crate::SystemClock;
use crate::core_price::{SHARE_WEIGHT, contested, scaled};

/// Kinds of work that are told apart: ciphers, by direction; and the same for requests of callers that are put aside, and for
/// many requests at once, whose times are no single one's.
pub const KINDS: usize = Kind::CIPHERS * 2 * 3;

/// Age after which a table is made anew: it takes some microseconds.
const TABLE_AGE_MAX: Nanos = Nanos::from_millis(20);

/// Requests of a class that are not looked at once the policy has kept one from a module, and at most: each time it keeps one
/// more they are doubled. A look takes 0.2 us, a request of 1 KiB 1 us.
const UNSAMPLED_FIRST: u32 = 31;
const UNSAMPLED_MAX: u32 = 255;

/// Nor are they to take longer than this, beside which a look is nothing even on a slow core: there 31 requests of 16 KiB, 33 ms, went by
/// before a module that took a thirteenth was tried.
const UNSAMPLED_TIME: Nanos = Nanos::from_millis(1);

/// Of requests that go to a module one in so many has its core time taken, once there were [`FIRST`]: a thread's clock
/// takes 640 ns.
const SAMPLED: u32 = 16;
const FIRST: u32 = 8;

/// A try is a run of requests, of which the first teach nothing: so many, or those of so much time. What stands behind a module sleeps
/// deeper after some milliseconds of rest than between two requests (docs/results/guest-afalg.md: 350 to 440 us each at first, 280 of
/// 1000 in a row).
const COLD_COUNT: u32 = 12;
const COLD_TIME: Nanos = Nanos::from_millis(5);

/// Requests after those, which teach.
const RUN_TAUGHT: u32 = 4;

/// A run ends once its requests have taken so much longer than on a core, all together: one that takes 2 ms where a core takes 0.3 may be
/// the first after a rest, or one whose thread was kept from its core. Below [`evener_core::guard::LOSS_ALLOWED`], so that the guard does
/// not lock for a try.
const RUN_LOSS: Nanos = Nanos::from_millis(4);

/// What this process has learned about its modules.
pub struct Policy {
    learned: Mutex<Learned>,
    /// By class: requests that are not to be looked at, and stay.
    unsampled: Vec<AtomicU32>,
    /// Requests that are not to be looked at, and go.
    unsampled_runs: UnsampledRuns,
}

struct Learned {
    guard: BySize,
    estimator: Estimator,
    /// With when it was made.
    tables: BTreeMap<Class, (Nanos, Arc<Table>)>,
    /// Core time that cores spent on a class.
    worked: BTreeMap<Class, Nanos>,
    /// Requests of a class that each look stands for.
    unsampled: BTreeMap<Class, u32>,
    /// Part of a core that a thread gets.
    share: f64,
    routed: u32,
    /// Classes that are being tried.
    trials: BTreeMap<Class, Trial>,
    /// By module: whether a request was there. The first one makes the driver, its threads and a key, and teaches nothing.
    is_warm: Vec<bool>,
}

/// Requests of a class that go to a module one after the other, to find out what they take there.
#[derive(Clone, Copy, Debug)]
struct Trial {
    module: usize,
    began: Nanos,
    cold: u32,
    taught: u32,
    /// What its requests took longer than on a core.
    lost: Nanos,
}

/// A request for which somebody may have another way.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// As the guard counts it.
    pub load: Load,
    /// As costs are learned.
    pub class: Class,
    /// By module: requests that it would find before it; `None` where the module does not take it.
    pub ahead: &'a [Option<u32>],
    /// What stands beside it.
    pub beside: Beside,
}

/// What stands beside a request that is asked about. But for nothing, its time is no single request's: nothing is learned of it, and
/// the guard is the only judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// Nothing: its caller waits for it alone.
    Nothing,
    /// Other requests of the thread, which goes on with them: the time that passes is theirs, too, and core time alone counts.
    Others,
    /// Others of the same call, which waits for all of them.
    OthersOfCall,
}

impl Beside {
    fn is_nothing(self) -> bool {
        self == Self::Nothing
    }
}

/// What this process has learned; a forked child begins anew. `None` where the kernel cannot tell a forked child from its
/// parent, and for the moment in which another thread makes it.
pub fn policy() -> Option<&'static Policy> {
    place()?.get_or_make(|| Some(Policy::new()))
}

/// Makes the policy's place. To be called before threads fork: a child whose parent's other thread was about it would wait for
/// that thread, which it has not.
pub fn prepare() {
    _ = place();
}

fn place() -> Option<&'static PerProcess<Policy, Mapping>> {
    static POLICY: OnceLock<Option<PerProcess<Policy, Mapping>>> = OnceLock::new();
    POLICY.get_or_init(|| Mapping::wiped_by_fork(1).ok().map(PerProcess::new)).as_ref()
}

impl Policy {
    fn new() -> Self {
        let learned = Learned {
            guard: BySize::new(KINDS),
            estimator: Estimator::default(),
            tables: BTreeMap::new(),
            worked: BTreeMap::new(),
            unsampled: BTreeMap::new(),
            share: 1.0,
            routed: 0,
            trials: BTreeMap::new(),
            is_warm: Vec::new(),
        };
        let unsampled = (0..Class::COUNT).map(|_| AtomicU32::new(0)).collect();
        Self { learned: Mutex::new(learned), unsampled, unsampled_runs: UnsampledRuns::default() }
    }

    /// Whether a request that its caller waits for stays on the direct path without a look: a few before it did.
    pub fn is_unseen(&self, class: Class) -> bool {
        let unsampled = &self.unsampled[class.index()];
        // Relaxed: a number of requests, about. Two that take the same one away look once less.
        let left = unsampled.load(Relaxed);
        if left > 0 {
            unsampled.store(left - 1, Relaxed);
        }
        left > 0
    }

    /// Begins a request that a module may want.
    ///
    /// # Panics
    ///
    /// Where the load's kind is not below [`KINDS`].
    pub fn begin(&'static self, ask: &Ask<'_>) -> Turn {
        self.begin_at(ask, SystemClock.now())
    }

    fn begin_at(&'static self, ask: &Ask<'_>, now: Nanos) -> Turn {
        let unsampled_run = self.unsampled_runs.of(ask.class).filter(|_| ask.beside.is_nothing());
        if let Some(turn) = unsampled_run.and_then(|unsampled_run| self.follow(unsampled_run, ask, now)) {
            return turn;
        }
        // Nobody waits for what another thread is looking at: the direct path is always right.
        let Ok(mut learned) = self.learned.try_lock() else { return Turn::unsampled(self, ask) };
        let past = unsampled_run.map(UnsampledRun::take_stats).unwrap_or_default();
        let has_locked = learned.followed(ask, past, now);
        let (mut is_kept, mut goes) = (false, None);
        match learned.choose(ask, past.requests, now) {
            Choice::Module { module, expected } => {
                learned.unsampled.remove(&ask.class);
                if ask.beside.is_nothing() && !learned.trials.contains_key(&ask.class) {
                    self.unsampled_runs.begin(ask.class, module, expected);
                }
                goes = Some((module, expected));
            }
            Choice::Control => {}
            Choice::Inline => is_kept = true,
        }
        let is_sampled = goes.is_none_or(|(module, _)| learned.is_sampled(ask, module, past.requests));
        drop(learned);
        let core_mark = is_sampled.then(|| SystemClock.thread_time());
        let (module, expected) = goes.unzip();
        Turn {
            begun: Some(now),
            is_kept,
            has_locked,
            module,
            expected: expected.unwrap_or_default(),
            core_mark: Cell::new(core_mark),
            ..Turn::unsampled(self, ask)
        }
    }

    /// A request that goes where those before it went, if that module is there and at rest.
    fn follow(
        &'static self,
        unsampled_run: &'static UnsampledRun,
        ask: &Ask<'_>,
        now: Nanos,
    ) -> Option<Turn> {
        let (module, expected) = unsampled_run.next()?;
        if ask.ahead.get(module) != Some(&Some(0)) {
            unsampled_run.end();
            return None;
        }
        let (begun, module, unsampled_run) = (Some(now), Some(module), Some(unsampled_run));
        Some(Turn { begun, module, expected, unsampled_run, ..Turn::unsampled(self, ask) })
    }
}

/// Where one request goes.
enum Choice {
    /// It stays, and is the measure for those that go.
    Control,
    /// It stays: the guard has locked its class, or no module pays.
    Inline,
    /// It goes, and is known to take so long there.
    Module { module: usize, expected: Nanos },
}

impl Learned {
    /// After so many that followed the last one.
    fn choose(&mut self, ask: &Ask<'_>, followed: u32, now: Nanos) -> Choice {
        self.estimator.make_room_for(ask.ahead.len());
        let is_locked = self.guard.is_locked(ask.load, now);
        if self.guard.stays_after(ask.load, followed, now) {
            return if is_locked { Choice::Inline } else { Choice::Control };
        }
        if !ask.beside.is_nothing() {
            let module = ask.ahead.iter().position(Option::is_some);
            return module.map_or(Choice::Inline, |module| Choice::Module { module, expected: Nanos::ZERO });
        }
        let table = self.table(ask, now);
        let takes = |module: &usize| ask.ahead[*module].is_some();
        let expected = |module: usize| table.expected(0, Some(module));
        let wait = |(module, ahead): (usize, &Option<u32>)| Queue {
            wait: Nanos(expected(module).0.saturating_mul(ahead.unwrap_or_default().into())),
        };
        let queues: Vec<Queue> = ask.ahead.iter().enumerate().map(wait).collect();
        if let Some(trial) = self.trials.get(&ask.class).filter(|trial| takes(&trial.module)) {
            return Choice::Module { module: trial.module, expected: expected(trial.module) };
        }
        if let Route::Module(module) = table.route(0, &queues) {
            if takes(&module) {
                return Choice::Module { module, expected: expected(module) };
            }
        }
        let wants_try = |module: &usize| takes(module) && table.wants_single_try(0, *module);
        let Some(module) = (0..queues.len()).find(wants_try) else { return Choice::Inline };
        self.tables.remove(&ask.class);
        if !self.estimator.tries(module, ask.class, now) {
            return Choice::Inline;
        }
        self.trials.insert(ask.class, Trial { module, began: now, cold: 0, taught: 0, lost: Nanos::ZERO });
        Choice::Module { module, expected: expected(module) }
    }

    /// Whether the core time of a request that goes to `module` after so many that followed another is to be taken.
    fn is_sampled(&mut self, ask: &Ask<'_>, module: usize, followed: u32) -> bool {
        let before = self.routed;
        self.routed = self.routed.wrapping_add(1 + followed);
        let samples = self.estimator.on_module(module, ask.class).d.samples;
        let is_tried = self.trials.contains_key(&ask.class);
        !ask.beside.is_nothing() || is_tried || samples < FIRST || before / SAMPLED != self.routed / SAMPLED
    }

    /// Whether a request that took so long at `module` says what requests take there; the run that it was of goes on, or ends.
    fn teaches(&mut self, turn: &Turn, module: usize, wall: Nanos, now: Nanos) -> bool {
        let class = turn.class;
        let Some(trial) = self.trials.get_mut(&class).filter(|trial| trial.module == module) else {
            return true;
        };
        // It looks at other classes, too: not for each request.
        let c = self.estimator.c(class, turn.load.bytes, 1).unwrap_or_default();
        trial.lost += wall - c;
        if trial.lost >= RUN_LOSS {
            self.trials.remove(&class);
            return true;
        }
        if trial.cold < COLD_COUNT && now - trial.began < COLD_TIME {
            trial.cold += 1;
            return cfg!(mutant = "cold_requests_teach");
        }
        trial.taught += 1;
        if trial.taught >= RUN_TAUGHT {
            self.trials.remove(&class);
        }
        true
    }

    /// The table in force for the class.
    fn table(&mut self, ask: &Ask<'_>, now: Nanos) -> Arc<Table> {
        let class = ask.class;
        if let Some((made, table)) = self.tables.get(&class) {
            if now - *made < TABLE_AGE_MAX && table.modules() == ask.ahead.len() {
                return Arc::clone(table);
            }
        }
        let bytes = *class.bytes().end().min(&(2 << 20));
        let offer = |module: usize| {
            let tries_left = self.estimator.tries_left(module, class, now);
            match self.estimator.on_module(module, class).at(bytes) {
                // A try is made whatever else waits.
                Some((d, h)) => Offer::Known { d, h, tries_left, is_long_untried: true },
                None => Offer::Unknown { tries_left },
            }
        };
        let lane = Lane {
            c: self.estimator.c(class, bytes, 1),
            waiting: 1,
            offers: (0..ask.ahead.len()).map(offer).collect(),
        };
        let prospect = Prospect {
            objective: Objective::Throughput,
            cpu_workers: 1,
            share: self.share.max(0.05),
            lambda: contested(self.share),
            gives_way: false,
            stations: vec![Station { units: 1, depth: 1 }; ask.ahead.len()],
            lanes: vec![lane],
        };
        let worked = self.worked.get(&class).copied().unwrap_or_default();
        let table = Arc::new(plan(&prospect).having_worked(|_| worked));
        self.tables.insert(class, (now, Arc::clone(&table)));
        table
    }

    /// What counts of a request: the time and the core time at its price, or core time alone.
    fn cost(&self, turn: &Turn, wall: Nanos, core: Nanos) -> Nanos {
        match turn.beside {
            Beside::Nothing | Beside::OthersOfCall => wall + scaled(core, contested(self.share)),
            Beside::Others => core,
        }
    }

    /// Requests that are not to be looked at after one that was kept and took so long: twice as many as the last time, as far as they take no
    /// longer than [`UNSAMPLED_TIME`].
    fn next_unsampled(&mut self, class: Class, core: Nanos) -> u32 {
        let most = u32::try_from(UNSAMPLED_TIME.0 / core.0.max(1)).unwrap_or(u32::MAX);
        let next = self.unsampled.entry(class).or_insert(UNSAMPLED_FIRST / 2);
        *next = (*next * 2 + 1).min(UNSAMPLED_MAX).min(most);
        *next
    }

    /// One that stayed.
    fn stayed(&mut self, turn: &Turn, wall: Nanos, core: Nanos) {
        if turn.beside.is_nothing() {
            let (class, bytes) = (turn.class, turn.load.bytes as u64);
            self.estimator.saw_cpu(class, Method::Plain, 1, bytes, core);
            let worked = self.worked.entry(class).or_default();
            let unsampled = self.unsampled.get(&class).copied().unwrap_or_default();
            let before = *worked;
            *worked += Nanos(core.0.saturating_mul(u64::from(unsampled) + 1));
            if before < TRY_WORK_MIN && TRY_WORK_MIN <= *worked && !cfg!(mutant = "tries_wait_for_tables") {
                // From now on a try is worth while.
                self.tables.remove(&class);
            }
            let share = (core.as_secs_f64() / wall.as_secs_f64().max(1e-9)).clamp(0.0, 1.0);
            self.share += SHARE_WEIGHT * (share - self.share);
        }
        self.guard.stayed(turn.load, self.cost(turn, wall, core));
    }

    /// Books what those took that followed one that went; whether that locked their class.
    fn followed(&mut self, ask: &Ask<'_>, past: RunStats, now: Nanos) -> bool {
        let RunStats { module, requests, wall, bytes } = past;
        let Some(mean) = bytes.checked_div(requests.into()) else { return false };
        let load = Load { bytes: usize::try_from(mean).unwrap_or(usize::MAX), ..ask.load };
        let each = self.estimator.on_module(module, ask.class).d.at(load.bytes).unwrap_or_default();
        let core = Nanos(each.0.saturating_mul(requests.into()));
        self.guard.went_together(load, requests.into(), wall + scaled(core, contested(self.share)), now)
    }

    /// One that went to a module; whether that locked its class.
    fn went(&mut self, turn: &Turn, module: usize, wall: Nanos, core: Option<Nanos>, now: Nanos) -> bool {
        let bytes = turn.load.bytes;
        if self.is_warm.len() <= module {
            self.is_warm.resize(module + 1, false);
        }
        if !mem::replace(&mut self.is_warm[module], true) && !cfg!(mutant = "first_request_judged") {
            // Some milliseconds, once in a process: neither what requests take nor what a lock would save.
            if let Some(trial) = self.trials.get_mut(&turn.class) {
                trial.began = now;
            }
            return false;
        }
        let was_tried = self.trials.contains_key(&turn.class);
        let teaches = turn.beside.is_nothing() && self.teaches(turn, module, wall, now);
        if let Some(d) = core.filter(|_| teaches) {
            let seen = ModuleSample { jobs: 1, bytes: bytes as u64, d, h: wall - d, now };
            let is_first = self.estimator.on_module(module, turn.class).d.samples == 0;
            self.estimator.saw_module(module, turn.class, &seen);
            if is_first || was_tried && !self.trials.contains_key(&turn.class) {
                self.tables.remove(&turn.class);
            }
        }
        let known = || self.estimator.on_module(module, turn.class).d.at(bytes).unwrap_or_default();
        let cost = self.cost(turn, wall, core.unwrap_or_else(known));
        self.guard.went(turn.load, cost, now)
    }
}

/// A request that was begun.
pub struct Turn {
    policy: &'static Policy,
    load: Load,
    class: Class,
    beside: Beside,
    /// `None` where nobody looks.
    begun: Option<Nanos>,
    /// What it follows, where nobody looked at it.
    unsampled_run: Option<&'static UnsampledRun>,
    /// Whether those that followed the last one have locked its class.
    has_locked: bool,
    /// Whether the policy keeps it, and some after it, from modules.
    is_kept: bool,
    module: Option<usize>,
    expected: Nanos,
    /// Core time up to the last pause.
    core: Cell<Nanos>,
    /// The thread's clock at the beginning or after the last pause, where core time is taken.
    core_mark: Cell<Option<Nanos>>,
    /// Time that went to other things than the request.
    besides: Cell<Nanos>,
}

impl Turn {
    fn unsampled(policy: &'static Policy, ask: &Ask<'_>) -> Self {
        Self {
            policy,
            load: ask.load,
            class: ask.class,
            beside: ask.beside,
            begun: None,
            unsampled_run: None,
            has_locked: false,
            is_kept: false,
            module: None,
            expected: Nanos::ZERO,
            core: Cell::new(Nanos::ZERO),
            core_mark: Cell::new(None),
            besides: Cell::new(Nanos::ZERO),
        }
    }

    /// Whether it is to stay on the direct path.
    #[must_use]
    pub const fn stays(&self) -> bool {
        self.module.is_none()
    }

    /// The request begins now: what it took to ask about it is no part of it. Of one that follows another, for which nobody asked, nothing
    /// is left out.
    pub fn begins(&mut self) {
        if self.begun.is_none() || self.unsampled_run.is_some() || cfg!(mutant = "asking_counts") {
            return;
        }
        if self.is_timed() {
            self.core_mark.set(Some(SystemClock.thread_time()));
        }
        self.begun = Some(SystemClock.now());
    }

    /// Whether its core time is taken.
    #[must_use]
    pub fn is_timed(&self) -> bool {
        self.core_mark.get().is_some()
    }

    /// The module that is to do it.
    #[must_use]
    pub const fn module(&self) -> Option<usize> {
        self.module
    }

    /// Time that the module takes for it as far as that is known, requests before it not counted; else nothing.
    #[must_use]
    pub const fn expected(&self) -> Nanos {
        self.expected
    }

    /// Runs `rest`, in which the thread does other things and after which the request may be another thread's.
    pub fn aside<T>(&self, rest: impl FnOnce() -> T) -> T {
        let Some(mark) = self.core_mark.get() else { return rest() };
        self.core.set(self.core.get() + (SystemClock.thread_time() - mark));
        let made = rest();
        self.core_mark.set(Some(SystemClock.thread_time()));
        made
    }

    /// Runs `work`, which is no part of the request: neither its time nor its core time counts.
    pub fn besides<T>(&self, work: impl FnOnce() -> T) -> T {
        if self.begun.is_none() {
            return work();
        }
        let began = SystemClock.now();
        let made = self.aside(work);
        self.besides.set(self.besides.get() + (SystemClock.now() - began));
        made
    }

    /// Learns what it took, `elsewhere` being core time of the module's path on other threads than the caller's, and returns
    /// whether its class was locked for that. One that was not done as it should is dropped instead.
    pub fn end(self, elsewhere: impl FnOnce() -> Nanos) -> bool {
        // Before what takes longer: the clocks of threads are asked by system calls.
        let now = SystemClock.now();
        let core = self.core_mark.get().map(|mark| self.core.get() + (SystemClock.thread_time() - mark));
        let elsewhere = if core.is_some() { elsewhere() } else { Nanos::ZERO };
        self.end_at(core, elsewhere, now)
    }

    fn end_at(self, core: Option<Nanos>, elsewhere: Nanos, now: Nanos) -> bool {
        let Some(begun) = self.begun else { return false };
        let wall = now - begun - self.besides.get();
        if let Some(unsampled_run) = self.unsampled_run {
            unsampled_run.took(wall, self.load.bytes);
            return false;
        }
        let Ok(mut learned) = self.policy.learned.try_lock() else { return self.has_locked };
        match (self.module, core) {
            (None, Some(core)) => {
                learned.stayed(&self, wall, core);
                if self.is_kept {
                    let unsampled = learned.next_unsampled(self.class, core);
                    self.policy.unsampled[self.class.index()].store(unsampled, Relaxed);
                }
            }
            (None, None) => {}
            (Some(module), core) => {
                let core = core.map(|core| core + elsewhere);
                let has_locked = learned.went(&self, module, wall, core, now);
                if let Some(unsampled_run) = self
                    .policy
                    .unsampled_runs
                    .of(self.class)
                    .filter(|_| has_locked && !cfg!(mutant = "streaks_outlive_locks"))
                {
                    // None of those that were to follow it.
                    unsampled_run.end();
                }
                return has_locked || self.has_locked;
            }
        }
        self.has_locked
    }
}

#[cfg(test)]
mod tests;
