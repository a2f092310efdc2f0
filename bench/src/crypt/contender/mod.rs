//! Who does a cell's jobs. All start at a barrier, when their threads exist and their jobs are laid out, and
//! end when the last job is done.
//!
//! | contender | its rounds |
//! |---|---|
//! | OpenSSL, the bare multi-buffer loop, a copy | `rivals.rs` |
//! | kernels of our own, each in a bare loop | `kernels.rs` |
//! | Evener under a policy | `run.rs` |
//! | the same, one request at a time | `sync_requests.rs` |
//! | who else wants the cores | `neighbours.rs` |

use evener::core::plan::Policy;
use evener::{DriverFactory, Setup};
use evener_core::{Algorithm, Direction, Estimator, Nanos, Objective, TAG_BYTES_MAX};
use evener_driver_multibuffer::BareLoop;

use crate::crypt::sync_requests;
use crate::crypt::workload::{Layout, Memory, Workload};
use crate::error::BenchError;
use rivals::{bare, copy, openssl};
use run::{evener_rounds, evener_visit, jobs, pass_through, tags};

mod kernels;
mod neighbours;
mod rivals;
mod run;

pub use crate::crypt::visit::Visit;
pub use kernels::Instructions;

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
    /// A bare loop around a kernel of our own.
    Kernel {
        /// What it is forced to.
        by: Instructions,
        /// Threads.
        workers: usize,
    },
    /// No cipher: input is copied to where output lies, or changed where it is, which bounds what goes through memory.
    Copy {
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
            Self::OpenSsl { workers } => format!("openssl, {}", cores(*workers)),
            Self::Kernel { by, workers } => format!("own lanes {}, {}", by.name(), cores(*workers)),
            Self::Copy { workers } => format!("copy, {}", cores(*workers)),
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

    /// Whether what it takes is compared with what `other` takes: Evener with what is not Evener, the adaptive policy
    /// with those that do not adapt, and kernels of our own with those of others.
    #[must_use]
    pub fn is_compared_with(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Evener { policy: Policy::Adaptive, .. }, Self::Evener { policy, .. }) => {
                *policy != Policy::Adaptive
            }
            (Self::Evener { .. }, _) => !matches!(other, Self::Evener { .. }),
            (Self::Kernel { .. }, _) => !matches!(other, Self::Kernel { .. } | Self::Evener { .. }),
            (Self::OpenSsl { .. } | Self::BareMultiBuffer { .. } | Self::Copy { .. }, _) => false,
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
            Self::Kernel { by, .. } => by.can_do(load),
            Self::Copy { .. } => load.layout != Layout::Cache,
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
        if verify && !matches!(self, Self::Copy { .. }) {
            self.verify(load, &mut memory, driver_factory, learned)?;
        }
        match self {
            Self::OpenSsl { workers } => openssl(load, &mut memory, *workers, budget),
            Self::BareMultiBuffer { workers } => bare(load, &mut memory, *workers, budget),
            Self::Kernel { by, workers } => Ok(by.rounds(load, &mut memory, *workers, budget)),
            Self::Copy { workers } => Ok(copy(load, &mut memory, *workers, budget)),
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
            Self::Kernel { by, .. } => Ok(by.once(load, memory)),
            Self::Copy { .. } => Ok(None),
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

fn cores(workers: usize) -> String {
    if workers == 1 { "1 core".into() } else { format!("{workers} cores") }
}
