//! What the lock of a request queue protects: requests that wait, results that are back, and where the driver is.
//!
//! A request is in `waiting` (its caller has put it there) -> with the driver (a leader has handed it over) -> in `back` (a leader has laid it
//! out) -> with its caller. A caller stands in `expected` from the first to the last; the buffer of a result whose caller has left is free again.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;

use evener_core::{Job, JobError, Nanos, Outcome, QueuedDriver, SessionId};

use super::buffers::{Buffer, BufferPool};
use super::{MakeDriver, Waker};
use crate::module_limits::ERRORS_MAX;

/// So many stand for a module that said that it is lost.
const LOST: u32 = u32::MAX;

/// Why a module gets no more requests of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutOfService {
    /// It went away.
    Lost,
    /// It was silent for too long.
    Late,
    /// It failed one request after the other.
    Errors,
    /// It computed something else than a core.
    WrongResult,
}

/// A module's driver.
pub(super) type Driver = Box<dyn QueuedDriver<'static>>;

/// What the lock of the queue protects.
pub(super) struct State {
    pub(super) driver: DriverPlace,
    pub(super) waiting: Vec<Box<Job<'static>>>,
    pub(super) back: BTreeMap<u64, Option<Buffer>>,
    /// Those whose callers are still there, and when these give up.
    pub(super) expected: BTreeMap<u64, Waiting>,
    pub(super) buffers: BufferPool,
    pub(super) next: u64,
    pub(super) errors_in_row: u32,
    pub(super) out: Option<OutOfService>,
    pub(super) has_helper: bool,
    pub(super) helper_core: Nanos,
    /// Sessions that ended while a caller leads; none while the driver is here.
    pub(super) ended: Vec<SessionId>,
    /// Sessions that ended while there are single callers.
    pub(super) ended_for_single: Vec<SessionId>,
}

/// A caller that waits for its result.
pub(super) struct Waiting {
    pub(super) until: Nanos,
    pub(super) waker: Option<Box<dyn Waker>>,
    /// Whether its caller may lead: not on the small stack of one that was put aside.
    pub(super) may_lead: bool,
}

/// Where the driver is.
pub(super) enum DriverPlace {
    /// It was not needed yet.
    Unmade(Arc<MakeDriver>),
    /// Here.
    Here(Driver),
    /// With the leader, or gone with the service.
    Away,
}

impl DriverPlace {
    pub(super) fn is_here(&self) -> bool {
        !matches!(self, Self::Away)
    }

    pub(super) fn take(&mut self) -> Option<Driver> {
        match mem::replace(self, Self::Away) {
            Self::Unmade(make) => Some(make()),
            Self::Here(driver) => Some(driver),
            Self::Away => None,
        }
    }
}

impl State {
    /// In service, with a driver that is made when the first request comes.
    pub(super) fn new(make_driver: Arc<MakeDriver>) -> Self {
        Self {
            driver: DriverPlace::Unmade(make_driver),
            waiting: Vec::new(),
            back: BTreeMap::new(),
            expected: BTreeMap::new(),
            buffers: BufferPool::default(),
            next: 0,
            errors_in_row: 0,
            out: None,
            has_helper: false,
            helper_core: Nanos::ZERO,
            ended: Vec::new(),
            ended_for_single: Vec::new(),
        }
    }

    /// A job came back from the driver.
    pub(super) fn settle(&mut self, job: Box<Job<'static>>) {
        let number = job.mark;
        let error = match job.outcome() {
            Outcome::Done { .. } => None,
            Outcome::Failed(error) => Some(error),
            Outcome::Pending => Some(JobError::Module { code: 0 }),
        };
        self.judge(error);
        if !self.expected.contains_key(&number) {
            return self.keep(job);
        }
        let mut buffer = self.buffers.returned(job);
        if error.is_some() {
            buffer.take().into_iter().for_each(|buffer| self.buffers.give_back(buffer));
        }
        self.back.insert(number, buffer);
    }

    /// The same, and why that ends the service, where it does.
    pub(super) fn judged(&mut self, error: Option<JobError>) -> Option<OutOfService> {
        self.judge(error);
        self.why_out()
    }

    /// Counts errors in a row.
    pub(super) fn judge(&mut self, error: Option<JobError>) {
        match error {
            Some(JobError::ModuleFull) => {}
            Some(JobError::ModuleLost) => self.errors_in_row = LOST,
            Some(_) => self.errors_in_row = self.errors_in_row.saturating_add(1),
            None => self.errors_in_row = 0,
        }
    }

    /// Why the errors so far end the service, where they do.
    pub(super) fn why_out(&self) -> Option<OutOfService> {
        match self.errors_in_row {
            LOST => Some(OutOfService::Lost),
            ERRORS_MAX.. => Some(OutOfService::Errors),
            _ => None,
        }
    }

    /// A job whose caller has left.
    pub(super) fn keep(&mut self, job: Box<Job<'static>>) {
        if let Some(buffer) = self.buffers.returned(job) {
            self.buffers.give_back(buffer);
        }
    }

    /// Rings for those whose results are there.
    pub(super) fn ring(&mut self) {
        let Self { expected, back, .. } = self;
        let there = expected.iter_mut().filter(|(number, _)| back.contains_key(number));
        there.filter_map(|(_, caller)| caller.waker.take()).for_each(|waker| waker.wake());
    }

    pub(super) fn ring_all(&mut self) {
        self.expected.values_mut().filter_map(|caller| caller.waker.take()).for_each(|waker| waker.wake());
    }
}
