//! A microbenchmark of one kind of job whose costs are not known yet: a few bursts on this core, a few jobs on a module.
//!
//! Steps: one small job says about how long the others take -> as large a part of the size asked for as
//! the time allows -> bursts or jobs like those of a run -> samples for the estimator.

use std::sync::Arc;

use evener::SystemClock;
use evener::core::cost::{CostTable, Line};
use evener::core::driver::Clock as _;
use evener::core::estimate::{Learned, ModuleSample, OnModule, width_class};
use evener::core::{
    Algorithm, Class, Cost, Direction, Estimator, Family, InlineDriver, Job, Method, Nanos, Outcome, Padding,
    QueuedDriver, Session, TAG_BYTES_MAX,
};
use evener::unseen;
use evener_driver_libcrypto::Libcrypto;

use super::libraries::{Operation, libcrypto};
use super::modules::OpenModule;

/// Jobs of one kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobKind {
    pub(crate) algorithm: Algorithm,
    pub(crate) direction: Direction,
    /// Bytes of a job.
    pub(crate) bytes: usize,
    /// Jobs that are handed over together.
    pub(crate) burst: usize,
    /// Whether input and output lie apart.
    pub(crate) is_apart: bool,
}

/// Why there is no cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotMeasured {
    /// It does not do such jobs.
    Unsupported,
    /// It failed one, or did not answer.
    Failed,
}

impl JobKind {
    pub(crate) fn class(&self) -> Class {
        Class::of(self.algorithm, self.direction, self.bytes, self.is_apart)
    }

    /// The least size of at least `bytes` that the algorithm takes without padding.
    fn fitting(&self, bytes: usize) -> usize {
        match self.algorithm.family() {
            Family::Ecb | Family::Cbc => bytes.max(1).next_multiple_of(16),
            Family::Xts => bytes.max(16),
            _ => bytes.max(1),
        }
    }

    /// The size to try where a job of `probed` bytes took `took`, and `jobs` may take `limit` together.
    fn affordable(&self, jobs: usize, (probed, took): (usize, Nanos), limit: Nanos) -> usize {
        let room = MEMORY_BYTES.min(to_u64(self.bytes).saturating_mul(to_u64(jobs)));
        let by_time = to_u64(probed).saturating_mul(limit.0) / took.0.max(1);
        let bytes = usize::try_from(room.min(by_time)).unwrap_or(usize::MAX) / jobs.max(1);
        self.fitting(bytes.clamp(probed.min(self.bytes), self.bytes))
    }
}

/// Size of the first job.
const PROBE_BYTES: usize = 1_024;
/// Memory of the jobs of a trial together, twice where they lie apart.
const MEMORY_BYTES: u64 = 8 << 20;
/// Work between two looks at the clock, which themselves take 640 ns each.
const SPAN_BYTES: usize = 64 << 10;
const SPAN_BURSTS_MAX: usize = 256;
/// Samples of a method: the mean's weight is an eighth.
const SAMPLES: u32 = 8;
/// Jobs sent to a module.
const MODULE_JOBS: usize = 4;
/// The longest jobs for which a module's costs are carried on beyond the sizes that were measured: what the kernel takes in one
/// piece.
const CARRIED_BYTES_MAX: usize = 64 << 10;
/// The same for ciphers that a driver can cut into such pieces, one behind the other.
const IN_PIECES_BYTES_MAX: usize = 64 << 20;
/// Bytes of the job that the only core repeats while a module is measured beside it. Assumed, not measured: 4 KiB, a usual job.
const PIECE_BYTES: usize = 4_096;
/// The burst width whose cost modules are held against.
pub(crate) const WIDTH: usize = 16;
/// Samples that the costs of a module's first burst are worth: those of a burst's least disturbed part.
const FIRST_SAMPLES: u32 = 16;
/// Time that such a job may take, going by the first one.
const MODULE_TIME: Nanos = Nanos::from_millis(250);
/// Silence after which a module is taken for dead, as in a run.
const PATIENCE: Nanos = Nanos::from_millis(2_000);

/// Runs bursts by `method` on this core, in at most `limit` of core time where no single job takes longer.
pub(crate) fn measure_core(
    driver: &mut dyn InlineDriver,
    method: Method,
    kind: &JobKind,
    limit: Nanos,
    learned: &mut Estimator,
) -> Result<(), NotMeasured> {
    let takes = driver.job_bytes_max(kind.algorithm, kind.direction);
    if !driver.supports(kind.algorithm, kind.direction) || kind.bytes > takes {
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

/// What threads' clocks do not show of a request on a module; `None` where that cannot be measured now.
pub(super) fn overhead(module: &OpenModule) -> Option<Line> {
    let does = |algorithm: &&Algorithm| module.does((**algorithm, Direction::Encrypt));
    let algorithm = *Algorithm::ALL.iter().find(does)?;
    let (kind, session) = longest((algorithm, Direction::Encrypt));
    let input = Input::new(&kind, &session, kind.bytes, count(module)?);
    let mut room = vec![0; input.all.len()];
    let jobs = input.jobs(&session, kind.is_apart, &mut room);
    let mut driver = module.driver();
    if evener::core_budget().workers() == 1 {
        let mut beside = unseen::Beside::new(work(), &SystemClock)?;
        unseen::unseen(&mut *driver, jobs, &SystemClock, &mut beside)
    } else {
        let mut idle = unseen::IdleTime::new(&SystemClock)?;
        unseen::unseen(&mut *driver, jobs, &SystemClock, &mut idle)
    }
}

/// A piece of work for a core: what most of its work is like.
fn work() -> impl FnMut() + Send {
    work_of((Algorithm::Aes128Cbc, Direction::Encrypt), PIECE_BYTES)
}

/// A job of `bytes` for a core.
fn work_of(row: Operation, bytes: usize) -> impl FnMut() + Send {
    let kind = JobKind { bytes, ..longest(row).0 };
    let (mut cpu, session, mut room) = (libcrypto(), session(&kind), vec![0; bytes]);
    move || {
        let mut job = [Job::in_place(&mut room)];
        job[0].arm(Arc::clone(&session), &IV[..row.0.iv_bytes()], bytes);
        cpu.run(&mut job);
    }
}

/// Whether anything is known of what such jobs take on a module.
pub(crate) fn is_known(learned: &Estimator, module: usize, (algorithm, direction): Operation) -> bool {
    let class = Class::of(algorithm, direction, unseen::SIZES[0], true);
    learned.on_module(module, class).d.samples > 0
}

/// Measures what jobs of a few sizes take on a module, in some milliseconds, and carries it to the sizes between. `None` where
/// it does not do them, or fails one. Nothing is left to first jobs of a run, which open a key and wait beside a core that
/// works. What a core takes is measured in turn with it, and kept where nothing is known of it.
pub(crate) fn first_costs(
    module: &OpenModule,
    number: usize,
    (algorithm, direction): Operation,
    unseen: Line,
    learned: &mut Estimator,
) -> Option<()> {
    // What is decrypted twice has no right tag.
    let has_tag = algorithm.is_aead() && direction == Direction::Decrypt;
    if has_tag || !module.does((algorithm, direction)) {
        return None;
    }
    let (kind, session) = longest((algorithm, direction));
    let input = Input::new(&kind, &session, kind.bytes, count(module)?);
    let mut room = vec![0; input.all.len()];
    let mut jobs = input.jobs(&session, kind.is_apart, &mut room);
    let mut driver = module.driver();
    let cores = evener::core_budget().workers();
    let mut row = |bytes: usize| {
        let asked = unseen::Asked { bytes, unseen, cores };
        let mut core = work_of((algorithm, direction), bytes);
        let (sample, c) = unseen::costs(&mut *driver, &mut jobs, &asked, &SystemClock, &mut core)?;
        let each = |cost: Nanos| Nanos(cost.0 / sample.jobs);
        Some((to_u64(bytes), Cost { c, d: each(sample.d), h: each(sample.h) }))
    };
    let rows: Option<Vec<_>> = unseen::COST_SIZES.into_iter().map(&mut row).collect();
    let table = CostTable::new(rows?);
    let can_be_cut = matches!(algorithm.family(), Family::Ecb | Family::Cbc | Family::Ctr);
    let bytes_max = if can_be_cut { IN_PIECES_BYTES_MAX } else { CARRIED_BYTES_MAX };
    let ends = (0..).map(|double| unseen::SIZES[0] << double).take_while(|&bytes| bytes <= bytes_max);
    for (bytes, is_apart) in ends.flat_map(|bytes| [(bytes, false), (bytes, true)]) {
        let (cost, mean_bytes) = (carried(&table, bytes), float(to_u64(bytes)));
        let [d, h] = [cost.d, cost.h].map(|of| Learned::kept(float(of.0), mean_bytes, FIRST_SAMPLES));
        let known = OnModule { d, h, ..OnModule::default() };
        let class = Class::of(algorithm, direction, bytes, is_apart);
        learned.keep_module(number, class, known);
        if cores == 1 && learned.c(class, bytes, WIDTH).is_none() {
            let c = Learned::kept(float(cost.c.0), mean_bytes, 1);
            learned.keep_cpu(class, Method::Plain, width_class(WIDTH), c);
        }
    }
    Some(())
}

/// What a job of `bytes` takes by the sizes that were measured: beyond one piece as many times a piece.
fn carried(table: &CostTable, bytes: usize) -> Cost {
    let Cost { c, d, h } = table.at(to_u64(bytes.min(CARRIED_BYTES_MAX)));
    let pieces = to_u64(bytes.div_ceil(CARRIED_BYTES_MAX).max(1));
    let [c, d, h] = [c, d, h].map(|of| Nanos(of.0.saturating_mul(pieces)));
    Cost { c, d, h }
}

/// A job of the longest size that a module is measured with.
fn longest((algorithm, direction): Operation) -> (JobKind, Arc<Session>) {
    let bytes = unseen::SIZES[unseen::SIZES.len() - 1];
    let kind = JobKind { algorithm, direction, bytes, burst: 1, is_apart: false };
    let session = session(&kind);
    (kind, session)
}

/// Requests that a module is kept busy with.
fn count(module: &OpenModule) -> Option<usize> {
    usize::try_from(module.station().depth).ok()
}

/// Sends jobs to a module, one after the other. `unseen`: what of a request no thread's clock shows.
pub(super) fn measure_module(
    module: &OpenModule,
    number: usize,
    unseen: Line,
    kind: &JobKind,
    learned: &mut Estimator,
) -> Result<(), NotMeasured> {
    let session = session(kind);
    let probed = kind.fitting(kind.bytes.min(PROBE_BYTES));
    let probe = Input::new(kind, &session, probed, 1).run_on_module(module, unseen, &session, kind)?;
    let took = probe.iter().map(|sample| sample.d + sample.h).sum();
    let bytes = kind.affordable(1, (probed, took), MODULE_TIME);
    let mut samples =
        Input::new(kind, &session, bytes, MODULE_JOBS - 1).run_on_module(module, unseen, &session, kind)?;
    if bytes == probed {
        samples.extend(probe);
    }
    samples.iter().for_each(|sample| learned.saw_module(number, kind.class(), sample));
    Ok(())
}

/// A session with a fixed key that is nobody's.
fn session(kind: &JobKind) -> Arc<Session> {
    let key: Vec<u8> = (0..=254).take(kind.algorithm.key_bytes().unwrap_or(32)).collect();
    let session = Session::new(kind.algorithm, kind.direction, Padding::None, &key);
    Arc::new(session.expect("the key has the algorithm's length, and there is something to decrypt"))
}

/// What jobs read: noughts, or noughts encrypted where a tag is checked.
struct Input {
    /// Of each job.
    bytes: usize,
    /// Of all jobs.
    all: Vec<u8>,
    tag: [u8; TAG_BYTES_MAX],
}

impl Input {
    fn new(kind: &JobKind, session: &Session, bytes: usize, jobs: usize) -> Self {
        let (mut one, mut tag) = (vec![0; bytes], [0; TAG_BYTES_MAX]);
        if kind.algorithm.is_aead() && kind.direction == Direction::Decrypt {
            tag = seal(session, &mut one);
        }
        Self { bytes, all: one.repeat(jobs), tag }
    }

    /// Jobs over `all` and `room`, ready to run.
    fn jobs<'m>(&'m self, session: &Arc<Session>, is_apart: bool, room: &'m mut [u8]) -> Vec<Box<Job<'m>>> {
        if !is_apart {
            room.copy_from_slice(&self.all);
        }
        let rooms = room.chunks_exact_mut(self.bytes);
        let mut jobs: Vec<_> = match is_apart {
            true => {
                self.all.chunks_exact(self.bytes).zip(rooms).map(|(src, dst)| Job::apart(src, dst)).collect()
            }
            false => rooms.map(Job::in_place).collect(),
        };
        for job in &mut jobs {
            job.arm(Arc::clone(session), &IV[..session.algorithm().iv_bytes()], self.bytes);
            job.set_tag(&self.tag);
        }
        jobs
    }

    /// Core time of all jobs in bursts of `burst`; `None` where one fails.
    fn run(
        &self,
        driver: &mut dyn InlineDriver,
        session: &Arc<Session>,
        is_apart: bool,
        burst: usize,
    ) -> Option<Nanos> {
        let mut room = vec![0; self.all.len()];
        let mut jobs = self.jobs(session, is_apart, &mut room);
        let start = SystemClock.thread_time();
        jobs.chunks_mut(burst).for_each(|burst| driver.run(burst));
        let core = SystemClock.thread_time() - start;
        jobs.iter().all(|job| is_done(job)).then_some(core)
    }

    /// What each job takes on a module of its own.
    fn run_on_module(
        &self,
        module: &OpenModule,
        unseen: Line,
        session: &Arc<Session>,
        kind: &JobKind,
    ) -> Result<Vec<ModuleSample>, NotMeasured> {
        let mut room = vec![0; self.all.len()];
        let jobs = self.jobs(session, kind.is_apart, &mut room);
        let mut driver = module.driver();
        if !driver.supports(kind.algorithm, kind.direction) {
            return Err(NotMeasured::Unsupported);
        }
        jobs.into_iter().map(|job| turn(&mut *driver, unseen, job).ok_or(NotMeasured::Failed)).collect()
    }
}

const IV: [u8; 16] = [7; 16];

/// Encrypts for the session that is to decrypt.
fn seal(session: &Session, one: &mut [u8]) -> [u8; TAG_BYTES_MAX] {
    let key: Vec<u8> = (0..=254).take(session.algorithm().key_bytes().unwrap_or(32)).collect();
    let sealing = Session::new(session.algorithm(), Direction::Encrypt, Padding::None, &key);
    let bytes = one.len();
    let mut jobs = [Job::in_place(one)];
    jobs[0].arm(Arc::new(sealing.expect("as above")), &IV[..session.algorithm().iv_bytes()], bytes);
    Libcrypto::new().expect("it was there when the machine was looked at").run(&mut jobs);
    *jobs[0].tag_given()
}

/// One job on the module: core time of its path, and time in which only the module works.
fn turn<'m>(
    driver: &mut (dyn QueuedDriver<'m> + 'm),
    unseen: Line,
    job: Box<Job<'m>>,
) -> Option<ModuleSample> {
    let bytes = to_u64(job.input_bytes());
    let (core, wall) = (SystemClock.thread_time() + driver.core_time(), SystemClock.now());
    let mut done = Vec::new();
    driver.submit(job).ok()?;
    while done.is_empty() && SystemClock.now() - wall < PATIENCE {
        driver.poll(&mut done, PATIENCE);
    }
    let seen = SystemClock.thread_time() + driver.core_time() - core;
    let (d, all) = (seen + unseen.at(bytes), SystemClock.now() - wall);
    if done.is_empty() {
        driver.abandon(&mut done);
    }
    let is_well = done.iter().all(|job| is_done(job));
    is_well.then(|| ModuleSample { jobs: 1, bytes, d, h: all - d, now: SystemClock.now() })
}

fn is_done(job: &Job<'_>) -> bool {
    matches!(job.outcome(), Outcome::Done { .. })
}

#[expect(clippy::cast_precision_loss, reason = "costs and sizes are far below 2^53")]
const fn float(whole: u64) -> f64 {
    whole as f64
}

fn to_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use evener_driver_emulated::CostedCpu;

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
            let kind = JobKind { algorithm, direction: Direction::Encrypt, bytes, burst, is_apart: true };
            let (mut learned, began) = (Estimator::new(0), SystemClock.thread_time());
            assert_eq!(measure_core(&mut *driver, Method::Plain, &kind, LIMIT, &mut learned), Ok(()));
            let spent = SystemClock.thread_time() - began;
            assert!(spent < LIMIT, "{kind:?}: {spent}");
            assert!(learned.cpu(kind.class(), Method::Plain, burst).is_some(), "{kind:?}");
        }
    }
}
