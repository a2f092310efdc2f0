//! Who does a cell's jobs. All start at a barrier, when their threads exist and their jobs are laid out, and
//! end when the last job is done.

use evener::core::driver::Clock as _;
use evener::core::plan::Policy;
use evener::{DriverFactory, Setup, Submitted, SystemClock};
use evener_core::job::{Memory as JobMemory, Parts};
use evener_core::{Algorithm, Direction, Estimator, InlineDriver as _, Job, Nanos, Objective, TAG_BYTES_MAX};
use evener_driver_libcrypto::{CipherContext, Libcrypto};
use evener_driver_multibuffer::{BareLoop, BareSpan};

use crate::crypt::round_budget::RoundBudget;
use crate::crypt::rounds::{chunks_of, lock, run_rounds};
use crate::crypt::sync_requests;
use crate::crypt::visit::arm_all;
use crate::crypt::workload::{Memory, Span, Spec, Workload};
use crate::error::BenchError;

mod neighbours;

pub use crate::crypt::visit::Visit;

/// A claim of the rivals: jobs next to each other. Single ones cost memory-bound algorithms 17 to 35 %.
const CHUNK_JOBS: usize = 16;

/// A claim of the bare loop: four fills of its lanes.
const BARE_CHUNK_JOBS: usize = 64;

/// Which modules work beside the cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modules {
    /// None, even where there are some.
    None,
    /// Those that are there.
    Real,
    /// At least one of them is emulated, or the cores' costs are: no figure is a speed of Evener.
    Emulated,
}

impl Modules {
    const fn take_part(self) -> bool {
        !matches!(self, Self::None)
    }
}

/// How a contender is visited.
#[derive(Clone, Copy)]
pub struct VisitPlan<'v> {
    /// How long jobs are done over and over.
    pub budget: Nanos,
    /// Whether one more round is compared with the right answers.
    pub verify: bool,
    /// Who makes drivers.
    pub driver_factory: &'v dyn DriverFactory,
    /// What was learned of costs before.
    pub learned: &'v Estimator,
}

/// Who does the jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contender {
    /// OpenSSL: one context, the IV set per job.
    OpenSsl {
        /// Threads.
        workers: usize,
    },
    /// A bare loop around the multi-buffer library.
    BareMultiBuffer {
        /// Threads.
        workers: usize,
    },
    /// Evener under a policy.
    Evener {
        /// The policy.
        policy: Policy,
        /// What the adaptive policy is to be best at.
        objective: Objective,
        /// CPU workers.
        workers: usize,
        /// The machinery's modules.
        modules: Modules,
        /// Whether a caller brings the jobs one at a time and waits for each. There are no CPU workers then.
        singly: bool,
    },
}

impl Contender {
    /// The name in tables.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::OpenSsl { workers: 1 } => "openssl, 1 core".into(),
            Self::OpenSsl { workers } => format!("openssl, {workers} cores"),
            Self::BareMultiBuffer { workers } => format!("bare multi-buffer, {workers} cores"),
            Self::Evener { policy, objective, modules, singly, .. } => {
                let way = if *singly { ", one by one" } else { "" };
                let aim = match objective {
                    Objective::Throughput => String::new(),
                    other => format!(" for {other}"),
                };
                if *modules == Modules::Emulated {
                    format!("{policy}{aim}{way}, emulated")
                } else {
                    format!("evener {policy}{aim}{way}")
                }
            }
        }
    }

    /// Whether what it takes is compared with what `other` takes: Evener with what is not Evener, and the adaptive policy
    /// with those that do not adapt.
    #[must_use]
    pub fn is_compared_with(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Evener { policy: Policy::Adaptive, .. }, Self::Evener { policy, .. }) => {
                *policy != Policy::Adaptive
            }
            (Self::Evener { .. }, _) => !matches!(other, Self::Evener { .. }),
            (Self::OpenSsl { .. } | Self::BareMultiBuffer { .. }, _) => false,
        }
    }

    /// Whether it can do the cell at all.
    #[must_use]
    pub fn can_do(&self, load: &Workload) -> bool {
        match self {
            Self::BareMultiBuffer { .. } => {
                let session = &load.session;
                let is_cbc = matches!(
                    session.algorithm(),
                    Algorithm::Aes128Cbc | Algorithm::Aes192Cbc | Algorithm::Aes256Cbc
                );
                let fits = load.jobs.iter().all(|job| job.plain_bytes < 65_504);
                is_cbc
                    && session.direction() == Direction::Encrypt
                    && fits
                    && BareLoop::load(session.key()).is_ok()
            }
            Self::OpenSsl { .. } | Self::Evener { .. } => true,
        }
    }

    /// Does the cell's jobs over and over until `budget` is used up; with `verify` compares one more round
    /// with the right answers.
    ///
    /// # Errors
    ///
    /// [`BenchError::WrongResult`], or [`BenchError::Library`] where a driver cannot be had.
    pub fn visit(&self, load: &Workload, plan: VisitPlan<'_>) -> Result<Visit, BenchError> {
        let VisitPlan { budget, verify, driver_factory, learned } = plan;
        let mut memory = load.memory();
        if verify {
            self.verify(load, &mut memory, driver_factory, learned)?;
        }
        match self {
            Self::OpenSsl { workers } => openssl(load, &mut memory, *workers, budget),
            Self::BareMultiBuffer { workers } => bare(load, &mut memory, *workers, budget),
            Self::Evener { singly: true, .. } => {
                let (mut jobs, setup) = (jobs(load, &mut memory), self.setup(load, driver_factory, learned));
                Ok(sync_requests::rounds(
                    load,
                    &mut jobs,
                    setup,
                    driver_factory.core_drivers(),
                    (load.turns, budget),
                ))
            }
            Self::Evener { .. } => {
                Ok(evener_visit(load, &mut memory, || self.setup(load, driver_factory, learned), budget))
            }
        }
    }

    /// Does the jobs once and compares with the right answers; leaves the input as it was.
    fn verify(
        &self,
        load: &Workload,
        memory: &mut Memory,
        driver_factory: &dyn DriverFactory,
        learned: &Estimator,
    ) -> Result<(), BenchError> {
        load.restore(memory);
        let tags = self.one_round(load, memory, driver_factory, learned)?;
        if let Some(job) = load.first_wrong(memory, tags.as_deref()) {
            let cell = format!("{} {:?}", load.session.algorithm(), load.layout);
            return Err(BenchError::WrongResult { contender: self.name(), cell, job });
        }
        load.restore(memory);
        Ok(())
    }

    /// One round of Evener's, and nothing besides; `None` for others and for single requests.
    #[must_use]
    pub fn round(
        &self,
        load: &Workload,
        driver_factory: &dyn DriverFactory,
        learned: &Estimator,
    ) -> Option<Visit> {
        let Self::Evener { singly: false, .. } = self else { return None };
        let (mut memory, setup) = (load.memory(), self.setup(load, driver_factory, learned));
        Some(evener_rounds(load, &mut jobs(load, &mut memory), setup, Nanos::ZERO))
    }

    /// A run of Evener's; the default for others.
    fn setup<'m>(
        &self,
        load: &Workload,
        driver_factory: &dyn DriverFactory,
        learned: &Estimator,
    ) -> Setup<'m> {
        let Self::Evener { policy, objective, workers, modules, singly } = *self else {
            return Setup::default();
        };
        let workers = if singly { 0 } else { workers };
        Setup {
            workers: (0..workers).map(|_| driver_factory.core_drivers()).collect(),
            callers: usize::from(singly),
            modules: if modules.take_part() { driver_factory.modules() } else { Vec::new() },
            policy,
            objective,
            learned: learned.clone(),
            backlog_jobs: load.jobs.len(),
            homes: 1,
            home_jobs: load.jobs.len(),
            ..Setup::default()
        }
    }

    /// One turn without clock; returns the tags where the algorithm makes any.
    fn one_round(
        &self,
        load: &Workload,
        memory: &mut Memory,
        driver_factory: &dyn DriverFactory,
        learned: &Estimator,
    ) -> Result<Option<Vec<[u8; TAG_BYTES_MAX]>>, BenchError> {
        match self {
            Self::OpenSsl { .. } => openssl(load, memory, 1, Nanos::ZERO).map(|_| None),
            Self::BareMultiBuffer { .. } => bare(load, memory, 1, Nanos::ZERO).map(|_| None),
            Self::Evener { singly: true, .. } => {
                let (mut jobs, setup) = (jobs(load, memory), self.setup(load, driver_factory, learned));
                sync_requests::rounds(
                    load,
                    &mut jobs,
                    setup,
                    driver_factory.core_drivers(),
                    (1, Nanos::ZERO),
                );
                Ok(tags(&jobs, load))
            }
            Self::Evener { .. } => {
                let mut jobs = jobs(load, memory);
                let ((), _) = evener::run(self.setup(load, driver_factory, learned), |runtime| {
                    let (sender, receiver) = runtime.stream();
                    pass_through(sender, receiver, &mut jobs, load);
                });
                Ok(tags(&jobs, load))
            }
        }
    }
}

/// Tags that the contender made, where they are its output.
fn tags(jobs: &[Box<Job<'_>>], load: &Workload) -> Option<Vec<[u8; TAG_BYTES_MAX]>> {
    let makes_tags =
        load.session.algorithm().tag_bytes() > 0 && load.session.direction() == Direction::Encrypt;
    let whole = |job: &Job<'_>| {
        let mut tag = [0; TAG_BYTES_MAX];
        tag[..job.tag().len()].copy_from_slice(job.tag());
        tag
    };
    makes_tags.then(|| jobs.iter().map(|job| whole(job)).collect())
}

fn jobs<'m>(load: &Workload, memory: &'m mut Memory) -> Vec<Box<Job<'m>>> {
    let job = |span: Span<'m>| match span.source {
        Some(source) => Job::apart(source, span.room),
        None => Job::in_place(span.room),
    };
    load.spans(memory).into_iter().map(job).collect()
}

/// Submits all jobs and takes all back, in order.
fn pass_through<'m>(
    mut sender: evener::StreamSender<'_, 'm>,
    mut receiver: evener::StreamReceiver<'_, 'm>,
    jobs: &mut Vec<Box<Job<'m>>>,
    load: &'m Workload,
) {
    arm_all(jobs, load);
    let submitted = sender.submit_all(jobs);
    debug_assert_eq!(submitted, Submitted::Yes, "the outlet is there");
    drop(sender);
    jobs.extend(std::iter::from_fn(|| receiver.next()));
}

fn evener_visit<'m>(
    load: &'m Workload,
    memory: &'m mut Memory,
    setup: impl Fn() -> Setup<'m>,
    budget: Nanos,
) -> Visit {
    let clock = SystemClock;
    let mut jobs = jobs(load, memory);
    let visit = evener_rounds(load, &mut jobs, setup(), budget);
    arm_all(&mut jobs, load);
    let paper_setup = setup();
    let start = clock.now();
    let ((), _) = evener::run(paper_setup, |runtime| {
        let (sender, receiver) = runtime.stream();
        pass_through(sender, receiver, &mut jobs, load);
    });
    let paper_clock = (clock.now() - start).0 * load.turns as u64;
    Visit { paper_clock: Some(Nanos(paper_clock)), ..visit }
}

/// Rounds until `budget` is used up, at least one.
fn evener_rounds<'m>(
    load: &'m Workload,
    jobs: &mut Vec<Box<Job<'m>>>,
    setup: Setup<'m>,
    budget: Nanos,
) -> Visit {
    let mut round_budget = RoundBudget::new(budget);
    let ((), report) = evener::run(setup, |runtime| {
        let (mut sender, mut receiver) = runtime.stream();
        while round_budget.wants_more() {
            round_budget.round(load.turns, || {
                arm_all(jobs, load);
                runtime.hold();
                let count = jobs.len();
                let submitted = sender.submit_all(jobs);
                debug_assert_eq!(submitted, Submitted::Yes, "the outlet is there");
                let is_spread = runtime.spread();
                let start = runtime.release();
                // Asleep until the end, because two workers want two cores.
                receiver.wait_for_all();
                jobs.extend(std::iter::from_fn(|| receiver.next()).take(count));
                (runtime.last_done() - start, is_spread)
            });
        }
    });
    let RoundBudget { rounds, crowded, .. } = round_budget;
    let core = report.total().core_time().map(|core| Nanos(core.0 / rounds.len() as u64));
    Visit { rounds, crowded, core, report: Some(report), ..Visit::default() }
}

fn openssl(load: &Workload, memory: &mut Memory, workers: usize, budget: Nanos) -> Result<Visit, BenchError> {
    let library = |error: &dyn std::fmt::Display| BenchError::Library(error.to_string());
    if !load.session.algorithm().is_cipher() {
        let mut jobs = jobs(load, memory);
        arm_all(&mut jobs, load);
        let chunks = chunks_of(jobs, CHUNK_JOBS);
        let drivers: Result<Vec<_>, _> = (0..workers).map(|_| Libcrypto::new()).collect();
        let mut drivers = drivers.map_err(|error| library(&error))?;
        let work = drivers.iter_mut().map(|driver| |chunk: &mut Vec<Box<Job<'_>>>| driver.run(chunk));
        return Ok(run_rounds(&chunks, work.collect(), load.turns, budget, || ()));
    }
    let spans = load.spans(memory).into_iter().zip(&load.jobs);
    let rivals: Vec<_> = spans.map(|(span, spec)| Rival { span, spec: *spec }).collect();
    let chunks = chunks_of(rivals, CHUNK_JOBS);
    let contexts: Result<Vec<_>, _> = (0..workers).map(|_| CipherContext::new(&load.session)).collect();
    let mut contexts = contexts.map_err(|error| library(&error))?;
    let work = contexts
        .iter_mut()
        .map(|context| |chunk: &mut Vec<Rival<'_>>| chunk.iter_mut().for_each(|rival| rival.run(context)));
    let restore = || {
        if load.wants_restoring() {
            chunks.iter().for_each(|chunk| lock(chunk).iter_mut().for_each(|rival| rival.restore(load)));
        }
    };
    Ok(run_rounds(&chunks, work.collect(), load.turns, budget, restore))
}

fn bare(load: &Workload, memory: &mut Memory, workers: usize, budget: Nanos) -> Result<Visit, BenchError> {
    let spans = load.spans(memory).into_iter().zip(&load.jobs);
    let spans: Vec<_> = spans
        .map(|(span, spec)| match span.source {
            Some(source) => BareSpan::apart(spec.iv, source, span.room),
            None => BareSpan::in_place(spec.iv, span.room, spec.input_bytes),
        })
        .collect();
    let chunks = chunks_of(spans, BARE_CHUNK_JOBS);
    let loops: Result<Vec<_>, _> = (0..workers).map(|_| BareLoop::load(load.session.key())).collect();
    let mut loops = loops.map_err(|error| BenchError::Library(error.to_string()))?;
    let work = loops.iter_mut().map(|bare| |chunk: &mut Vec<BareSpan<'_>>| bare.encrypt(chunk));
    Ok(run_rounds(&chunks, work.collect(), load.turns, budget, || ()))
}

/// One job of OpenSSL's.
struct Rival<'m> {
    span: Span<'m>,
    spec: Spec,
}

impl Rival<'_> {
    fn run(&mut self, context: &mut CipherContext) {
        let input_bytes = self.spec.input_bytes;
        let memory = match self.span.source {
            Some(source) => JobMemory::Apart { src: source, dst: &mut *self.span.room },
            None => JobMemory::InPlace { room: &mut *self.span.room, input_bytes },
        };
        let parts = Parts { iv: &self.spec.iv, aad: &[], memory, tag: &mut self.spec.tag };
        let written = context.run_parts(parts);
        debug_assert!(written.is_ok(), "{written:?}");
    }

    fn restore(&mut self, load: &Workload) {
        self.span.room[..self.spec.input_bytes].copy_from_slice(load.input_of(&self.spec));
    }
}
