//! CBC encryption of one thread's own requests side by side: inside `ASYNC_JOB`s, and in pipelines (`pipelines/`).

use std::cell::Cell;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use evener::SystemClock;
use evener::combine::{Request, Verdict};
use evener::in_flight::InFlight;
use evener_core::Nanos;
use evener_core::driver::Clock as _;

use super::lane::source::LaneSource;
use crate::core::Core;
use crate::ffi::async_job::CurrentJob;
use crate::fork;
use crate::state::ProvCtx;

/// The drivers of a library context, for so many cores.
pub(crate) fn drivers(lanes: LaneSource, cores: usize) -> InFlight {
    InFlight::lazy(cores, move || lanes.driver())
}

static ANYWAY: AtomicBool = AtomicBool::new(false);

/// Makes providers that are loaded from now on offer pipelines to cores that know of none. For tests and measurements
/// that link the provider in and call its functions themselves.
pub fn offer_pipelines_anyway() {
    ANYWAY.store(true, Relaxed);
}

/// Whether the core can call pipelines: OpenSSL 3.5 and later.
pub(crate) fn has_pipelines(core: &Core) -> bool {
    let version = core.setting(c"openssl-version").and_then(|version| version.to_str().ok());
    ANYWAY.load(Relaxed) || version.is_some_and(is_late)
}

fn is_late(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (3, 5)
}

/// Path of a request that is made inside a job.
pub(super) struct Paused<'p> {
    prov: &'p ProvCtx,
    drivers: &'p InFlight,
    job: CurrentJob<'p>,
}

/// That way, where the calling thread runs a job now.
pub(super) fn way(prov: &ProvCtx) -> Option<Paused<'_>> {
    let drivers = prov.ways().in_flight.as_ref().filter(|_| prov.ways().combiner.is_some())?;
    let job = prov.ways().jobs.as_ref()?.current()?;
    Some(Paused { prov, drivers, job })
}

impl Paused<'_> {
    /// Encrypts the request together with those of other jobs, and pauses this one until some are there. Besides returns how
    /// long the pause was.
    ///
    /// The stack is a job's, 32 KiB: what grows with the number of requests lies on the heap.
    pub(super) fn encrypt(&self, request: Request<'_>) -> (Verdict, Nanos) {
        let away = Cell::new(Nanos::ZERO);
        let pause = || {
            self.prov.counts.paused.fetch_add(1, Relaxed);
            let left = SystemClock.now();
            self.job.pause();
            away.set(SystemClock.now() - left);
        };
        (self.drivers.encrypt(fork::generation(), request, pause), away.get())
    }
}

#[cfg(test)]
mod tests {
    use super::is_late;

    #[test]
    fn pipelines_came_with_3_5() {
        assert!(["3.5.0", "3.10.1", "4.0.3", "10.0.0"].into_iter().all(is_late));
        assert!(!["3.0.19", "3.4.9", "", "nonsense"].into_iter().any(is_late));
    }
}
