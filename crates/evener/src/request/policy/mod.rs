//! Where a single request of a program's own threads goes: to a module, where the policy says that it pays, or not; and the
//! guard that takes back what did not.
//!
//! [`Policy::begin`] -> the guard (locked? control?) -> the table of the adaptive policy (`evener_core::plan::adaptive::Table::route`: least wait +
//! service + price of a core * core time) -> it is done -> [`Measurement::end`]: what it took is learned. Only requests that another way wants come
//! here: small ones see no clock. Costs are learned per class of jobs, the rules are [`evener_core`]'s; splitting has the same ([`super::split`]),
//! with what it knows of helpers.
//!
//! Why it is not the policy of runs (`crate::adaptive`), whose table, guard, estimator and price of a core it shares: there workers take from queues
//! that show what waits, and may wait for a lock. Here one request comes at a time, its thread does not wait (the lock is tried), and a look
//! at the clock costs a small one more than a module could save; so a sample of them teaches, and the others follow.
//!
//! | file | what it has |
//! |---|---|
//! | `measurement.rs` | one request from its beginning to its end |
//! | `choice.rs` | where one request goes |
//! | `booking.rs` | what requests took, booked with guard and estimator |
//! | `knowledge.rs` | guard, costs and tables, under one lock |
//! | `sampling.rs` | which requests are looked at |
//! | `unsampled_run.rs` | requests that follow one that went, without a look |
//! | `trial.rs` | requests that find out what a module takes |
//! | `tuning.rs` | the numbers of all of them |

mod booking;
mod choice;
mod knowledge;
mod measurement;
mod sampling;
mod trial;
mod tuning;
mod unsampled_run;

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use evener_core::counts::Kind;
use evener_core::driver::Clock as _;
use evener_core::guard::RequestSize;
use evener_core::{Class, Nanos};
use evener_ring::{Inherited, ProcessValue};

use self::choice::Choice;
use self::knowledge::Learned;
pub use self::measurement::Measurement;
use self::unsampled_run::{UnsampledRun, UnsampledRuns};
use super::shared_module::SharedModule;
use crate::SystemClock;

/// Kinds of work that are told apart: ciphers, by direction; and the same for requests of callers that are put aside, and for
/// many requests at once, whose times are no single one's.
pub const KINDS: usize = Kind::CIPHERS * 2 * 3;

/// What this process has learned about its modules.
pub struct Policy {
    learned: Mutex<Learned>,
    /// By class: requests that are not to be looked at, and stay.
    unsampled: Vec<AtomicU32>,
    /// Requests that are not to be looked at, and go.
    unsampled_runs: UnsampledRuns,
}

/// A request for which there may be another way.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// As the guard counts it.
    pub size: RequestSize,
    /// As costs are learned.
    pub class: Class,
    /// By module: requests that it would find before it; `None` where the module does not take it.
    pub ahead: &'a [Option<u32>],
    /// By module: how other processes share it; none, and missing, where they do not.
    pub shared: &'a [Option<&'static SharedModule>],
    /// What stands beside it.
    pub concurrency: Concurrency,
}

impl Query<'_> {
    fn shared(&self, module: usize) -> Option<&'static SharedModule> {
        self.shared.get(module).copied().flatten()
    }
}

/// What stands beside a request that is asked about. But for nothing, its time is no single request's: nothing is learned of it, and
/// the guard is the only judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concurrency {
    /// Nothing: its caller waits for it alone.
    Alone,
    /// Other requests of the thread, which goes on with them: the time that passes is theirs, too, and core time alone counts.
    SameThread,
    /// Others of the same call, which waits for all of them.
    SameCall,
}

impl Concurrency {
    fn is_alone(self) -> bool {
        self == Self::Alone
    }
}

/// What this process has learned; a forked child begins anew. `None` where the kernel cannot tell a forked child from its
/// parent, and for the moment in which another thread makes it.
pub fn policy() -> Option<&'static Policy> {
    POLICY.get_or_make(|| Some(Policy::new()))
}

/// Makes the policy's place. To be called before threads fork: a child whose parent's other thread was about it would wait for
/// that thread, which it has not.
pub fn prepare() {
    POLICY.prepare();
}

static POLICY: ProcessValue<Policy> = ProcessValue::new();

impl Inherited for Policy {
    fn is_whole(&mut self) -> bool {
        self.learned.try_lock().is_ok()
    }
}

impl Policy {
    fn new() -> Self {
        let unsampled = (0..Class::COUNT).map(|_| AtomicU32::new(0)).collect();
        Self { learned: Mutex::new(Learned::new()), unsampled, unsampled_runs: UnsampledRuns::default() }
    }

    /// Whether a request stays on the direct path without a look: a few before it did. A look asks the thread's clock twice, which takes a tenth of what a core takes for
    /// 16 KiB.
    pub fn is_unsampled(&self, class: Class, concurrency: Concurrency) -> bool {
        if !concurrency.is_alone() && cfg!(mutant = "jobs_all_looked_at") {
            return false;
        }
        self.take_unsampled(class, 1) > 0
    }

    /// Requests of `class` that stay without a look, of so many that are to come: they are taken from those of all threads.
    pub fn take_unsampled(&self, class: Class, wanted: u32) -> u32 {
        // No panic: the provider asks where C has called it.
        let Some(unsampled) = self.unsampled.get(class.index()) else { return 0 };
        // Relaxed: a number of requests, about. Two that take the same ones away look once less.
        let left = unsampled.load(Relaxed);
        let taken = left.min(wanted);
        if taken > 0 {
            unsampled.store(left - taken, Relaxed);
        }
        taken
    }

    /// Begins a request that a module may want.
    ///
    /// # Panics
    ///
    /// Where the size's kind is not below [`KINDS`].
    pub fn begin(&'static self, query: &Query<'_>) -> Measurement {
        self.begin_at(query, SystemClock.now())
    }

    fn begin_at(&'static self, query: &Query<'_>, now: Nanos) -> Measurement {
        let unsampled_run = self.unsampled_runs.of(query.class).filter(|_| query.concurrency.is_alone());
        if let Some(turn) = unsampled_run.and_then(|unsampled_run| self.follow(unsampled_run, query, now)) {
            return turn;
        }
        // No thread waits for what another one is looking at: the direct path is always right.
        let Ok(mut learned) = self.learned.try_lock() else { return Measurement::unsampled(self, query) };
        let (module, past) = unsampled_run.map(UnsampledRun::take_stats).unwrap_or_default();
        let has_locked = learned.followed(query, (module, past), now);
        let (mut is_kept, mut goes) = (false, None);
        match learned.choose(query, past.requests, now) {
            Choice::Module(chosen) => {
                learned.sampling.restart(query.class);
                if query.concurrency.is_alone() && !learned.trials.contains_key(&query.class) {
                    self.unsampled_runs.begin(query.class, chosen);
                }
                goes = Some(chosen);
            }
            Choice::Control => {}
            Choice::Inline => is_kept = true,
        }
        let is_sampled = goes.is_none_or(|goes| learned.is_sampled(query, goes.module, past.requests));
        drop(learned);
        let core_mark = is_sampled.then(|| SystemClock.thread_time());
        let turn = goes.map_or_else(
            || Measurement::unsampled(self, query),
            |goes| Measurement::going(self, query, goes),
        );
        Measurement { begun: Some(now), is_kept, has_locked, core_mark: Cell::new(core_mark), ..turn }
    }

    /// A request that goes where those before it went, if that module is there and at rest.
    fn follow(
        &'static self,
        unsampled_run: &'static UnsampledRun,
        query: &Query<'_>,
        now: Nanos,
    ) -> Option<Measurement> {
        let chosen = unsampled_run.next()?;
        if query.ahead.get(chosen.module) != Some(&Some(0)) {
            unsampled_run.end();
            return None;
        }
        let (begun, unsampled_run) = (Some(now), Some(unsampled_run));
        Some(Measurement { begun, unsampled_run, ..Measurement::going(self, query, chosen) })
    }
}

#[cfg(test)]
mod tests;
