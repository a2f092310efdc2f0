//! A microbenchmark of one kind of job whose costs are not known yet: a few bursts on this core, a few jobs on a module.
//!
//! Steps: one small job shows about how long the others take -> as large a part of the wanted size as
//! the time allows -> bursts or jobs like those of a run -> samples for the estimator. Modules behind the kernel are measured in more
//! detail ([`kernel_module`]).

mod input;
mod kernel_module;

use evener::SystemClock;
use evener::core::cost::Line;
use evener::core::driver::Clock as _;
use evener::core::{Algorithm, Class, Direction, Estimator, InlineDriver, Method, Nanos};

use crate::modules::OpenModule;
use input::{Input, session};
pub use kernel_module::{first_costs, is_known, overhead};

/// Jobs of one kind.
#[derive(Clone, Copy, Debug)]
pub struct JobKind {
    /// What they do.
    pub operation: (Algorithm, Direction),
    /// Bytes of a job.
    pub bytes: usize,
    /// Jobs that are handed over together.
    pub burst: usize,
    /// Whether input and output lie apart.
    pub is_apart: bool,
}

/// Why there is no cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotMeasured {
    /// It does not do such jobs.
    Unsupported,
    /// It failed one, or did not answer.
    Failed,
    /// It takes none of this length.
    TooLong,
}

impl NotMeasured {
    /// It in words, without a subject.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Unsupported => "does not do such jobs",
            Self::Failed => "failed a job, or did not answer",
            Self::TooLong => "takes no job of this length",
        }
    }
}

impl JobKind {
    /// The class that they belong to.
    #[must_use]
    pub fn class(&self) -> Class {
        let (algorithm, direction) = self.operation;
        Class::of(algorithm, direction, self.bytes, self.is_apart)
    }

    /// The same of a size that the algorithm takes without padding.
    pub fn fitted(self) -> Self {
        Self { bytes: self.fitting(self.bytes), ..self }
    }

    /// The least size of at least `bytes` that the algorithm takes without padding.
    fn fitting(&self, bytes: usize) -> usize {
        self.operation.0.fitting(bytes)
    }

    /// The size to try where a job of `probed` bytes took `took`, and `jobs` may take `limit` together.
    fn affordable(&self, jobs: usize, (probed, took): (usize, Nanos), limit: Nanos) -> usize {
        let space = MEMORY_BYTES.min(to_u64(self.bytes).saturating_mul(to_u64(jobs)));
        let by_time = to_u64(probed).saturating_mul(limit.0) / took.0.max(1);
        let bytes = usize::try_from(space.min(by_time)).unwrap_or(usize::MAX) / jobs.max(1);
        self.fitting(bytes.clamp(probed.min(self.bytes), self.bytes))
    }
}

/// Size of the first job.
const PROBE_BYTES: usize = 1_024;
/// Memory of all jobs together, twice where they lie apart.
const MEMORY_BYTES: u64 = 8 << 20;
/// Work between two looks at the clock, which themselves take 640 ns each.
const SPAN_BYTES: usize = 64 << 10;
const SPAN_BURSTS_MAX: usize = 256;
/// Samples of a method: the mean's weight is an eighth.
const SAMPLES: u32 = 8;
/// Jobs sent to a module.
const MODULE_JOBS: usize = 4;
/// Time that such a job may take, going by the first one.
const MODULE_TIME: Nanos = Nanos::from_millis(250);

/// Runs bursts by `method` on this core, in at most `limit` of core time where no single job takes longer.
///
/// # Errors
///
/// Where the driver does not do such jobs, or fails one.
pub fn measure_core(
    driver: &mut dyn InlineDriver,
    method: Method,
    kind: &JobKind,
    limit: Nanos,
    learned: &mut Estimator,
) -> Result<(), NotMeasured> {
    let (algorithm, direction) = kind.operation;
    let takes = driver.job_bytes_max(algorithm, direction);
    if !driver.supports(algorithm, direction) || kind.bytes > takes {
        return Err(NotMeasured::Unsupported);
    }
    let began = SystemClock.thread_time();
    let session = session(kind);
    let probed = kind.fitting(kind.bytes.min(PROBE_BYTES));
    let probe = Input::new(kind, &session, probed, 1);
    let took = probe.run(driver, &session, kind.is_apart, 1).ok_or(NotMeasured::Failed)?;
    // The first burst only warms up.
    let bytes = kind.affordable(kind.burst, (probed, took), Nanos(limit.0 / 8)).min(takes);
    let expected = to_u64(bytes * kind.burst).saturating_mul(took.0) / to_u64(probed);
    let by_time = usize::try_from(limit.0 / 8 / expected.max(1)).unwrap_or(usize::MAX);
    let bursts = (SPAN_BYTES / (bytes * kind.burst)).min(by_time).clamp(1, SPAN_BURSTS_MAX);
    let input = Input::new(kind, &session, bytes, bursts * kind.burst);
    for sample in 0..=SAMPLES {
        let core = input.run(driver, &session, kind.is_apart, kind.burst).ok_or(NotMeasured::Failed)?;
        let is_last = SystemClock.thread_time() - began + core + core > limit;
        if sample > 0 || is_last {
            let (jobs, all) = (to_u64(kind.burst), to_u64(bytes * kind.burst));
            learned.saw_cpu(kind.class(), method, jobs, all, Nanos(core.0 / to_u64(bursts)));
        }
        if is_last {
            break;
        }
    }
    Ok(())
}

/// Short runs of which the quickest counts.
const LEAST_OF: usize = 5;

/// The least core time of a job of `kind` in several short runs of bursts; `None` where the driver fails one.
pub fn least_cost(driver: &mut dyn InlineDriver, kind: &JobKind) -> Option<Nanos> {
    let session = session(kind);
    let bursts = (SPAN_BYTES / (kind.bytes * kind.burst)).clamp(1, SPAN_BURSTS_MAX);
    let input = Input::new(kind, &session, kind.bytes, bursts * kind.burst);
    let mut least = None;
    for _ in 0..LEAST_OF {
        let core = input.run(driver, &session, kind.is_apart, kind.burst)?;
        least = [least, Some(core)].into_iter().flatten().min();
    }
    least.map(|core: Nanos| Nanos(core.0 / to_u64(bursts * kind.burst)))
}

/// Sends jobs to a module, one after the other. `overhead`: what of a request no thread's clock shows.
pub(super) fn measure_module(
    module: &OpenModule,
    number: usize,
    overhead: Line,
    kind: &JobKind,
    learned: &mut Estimator,
) -> Result<(), NotMeasured> {
    let session = session(kind);
    let probed = kind.fitting(kind.bytes.min(PROBE_BYTES));
    let probe = Input::new(kind, &session, probed, 1).run_on_module(module, overhead, &session, kind)?;
    let took = probe.iter().map(|sample| sample.d + sample.h).sum();
    let mut bytes = kind.affordable(1, (probed, took), MODULE_TIME);
    let mut samples = loop {
        let input = Input::new(kind, &session, bytes, MODULE_JOBS - 1);
        match input.run_on_module(module, overhead, &session, kind) {
            // What it takes at most is its own knowledge.
            Err(NotMeasured::TooLong) if bytes > probed => bytes = kind.fitting((bytes / 2).max(probed)),
            measured => break measured?,
        }
    };
    if bytes == probed {
        samples.extend(probe);
    }
    samples.iter().for_each(|sample| learned.saw_module(number, kind.class(), sample));
    Ok(())
}

fn to_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use evener_driver_emulated::CostedCpu;
    use evener_driver_libcrypto::Libcrypto;

    const LIMIT: Nanos = Nanos::from_millis(25);

    /// A gibibyte takes half a second and more.
    #[test]
    fn a_trial_keeps_to_its_core_time_whatever_the_job() {
        let slow = || {
            let preset = "emulated:d=0+0,h=0+0,c=1000+1000000".parse().unwrap();
            Box::new(CostedCpu::new(Box::new(Libcrypto::new().unwrap()), preset))
        };
        let usual = || Box::new(Libcrypto::new().unwrap());
        let cases: [(Box<dyn InlineDriver>, Algorithm, usize, usize); 4] = [
            (usual(), Algorithm::Sha256, 1 << 30, 16),
            (usual(), Algorithm::Aes128Cbc, 1 << 20, 1),
            (usual(), Algorithm::Md5, 1, 16),
            (slow(), Algorithm::Sha256, 1 << 30, 16),
        ];
        for (mut driver, algorithm, bytes, burst) in cases {
            let kind = JobKind { operation: (algorithm, Direction::Encrypt), bytes, burst, is_apart: true };
            let (mut learned, began) = (Estimator::new(0), SystemClock.thread_time());
            assert_eq!(measure_core(&mut *driver, Method::Plain, &kind, LIMIT, &mut learned), Ok(()));
            let spent = SystemClock.thread_time() - began;
            assert!(spent < LIMIT, "{kind:?}: {spent}");
            assert!(learned.cpu(kind.class(), Method::Plain, burst).is_some(), "{kind:?}");
        }
    }
}
