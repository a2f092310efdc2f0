//! Bursts: one caller runs the requests of all who wait (flat combining), by a driver that the permit it holds keeps for it.

use evener_core::combine::TOGETHER_MAX;
use evener_core::{InlineDriver, Job, Outcome};
use evener_ring::{CombiningList, LentWork};

use super::request::Request;

/// What makes the driver of a permit; nothing where there is none on this machine.
pub trait DriverSource: Fn() -> Option<Box<dyn InlineDriver>> + Send + Sync + 'static {}

impl<F: Fn() -> Option<Box<dyn InlineDriver>> + Send + Sync + 'static> DriverSource for F {}

pub(crate) type MakeDriver = dyn Fn() -> Option<Box<dyn InlineDriver>> + Send + Sync;

/// The place of a permit's driver. Of the process that made the combiner it is made at once, since it may be the last moment at
/// which a library can be opened; of its children when it is first needed.
pub(crate) enum DriverSlot {
    Unmade,
    Made(Box<dyn InlineDriver>),
    Absent,
}

/// What callers lend each other: a request; what they get: how it ended.
pub(crate) struct Encryption;

impl LentWork for Encryption {
    type Loan<'c> = Request<'c>;
    type Reply = Outcome;
}

/// Runs all that waits, in bursts of as many as there are lanes; a single one goes back to its caller, whose plain path is
/// faster than one lane. `count` gets the requests of each burst that went well before their callers know, so that a caller
/// that asks finds itself counted. Returns how many waited.
pub(crate) fn serve(
    list: &CombiningList<Encryption>,
    slot: &mut DriverSlot,
    make_driver: &MakeDriver,
    mut count: impl FnMut(usize),
) -> usize {
    let mut batch = list.take();
    let waited = batch.len();
    let Some(driver) = slot.driver(make_driver) else { return waited };
    while batch.len() > 1 {
        batch.run(TOGETHER_MAX as usize, |requests| {
            let outcomes = run(driver, requests);
            count(outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Done { .. })).count());
            outcomes
        });
    }
    waited
}

/// Runs requests side by side; outcomes in their order.
fn run(driver: &mut dyn InlineDriver, requests: Vec<Request<'_>>) -> Vec<Outcome> {
    let mut jobs: Vec<Box<Job<'_>>> = requests.into_iter().map(Request::into_job).collect();
    (0..).zip(&mut jobs).for_each(|(place, job)| job.mark = place);
    driver.run(&mut jobs);
    // A driver may sort a burst.
    jobs.sort_unstable_by_key(|job| job.mark);
    jobs.iter().map(|job| job.outcome()).collect()
}

impl DriverSlot {
    pub(crate) fn driver(&mut self, make_driver: &MakeDriver) -> Option<&mut dyn InlineDriver> {
        if matches!(self, Self::Unmade) {
            *self = make_driver().map_or(Self::Absent, Self::Made);
        }
        match self {
            Self::Made(driver) => Some(&mut **driver),
            Self::Unmade | Self::Absent => None,
        }
    }
}
