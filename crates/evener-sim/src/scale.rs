//! The plan past one machine: many cores, many modules, many streams, all in virtual time.
//!
//! Path of one cell: a [`Cell`] -> a machine and the jobs of its streams -> a run of the adaptive policy, which learns
//! the costs anew -> [`Figures`], beside the least time that the work takes on that machine (`bounds.rs`).
//!
//! A stream is a sender of its own: it hands in one job after another at chance times, so many per second on average,
//! and never waits for an answer. Many such streams together are again jobs at chance times, as many times as often: that is
//! how they enter. 1000 streams of records are 100 000 jobs per second, whatever the machine; a run sees their first
//! jobs. More streams than the machine can serve let jobs pile up, and then throughput is what counts; fewer leave it
//! waiting, and then the time that a job takes is.
//!
//! Costs are those of the AM3358 fitted on paper 002, table 2; no machine of many such cores or modules was ever built.
//! Beyond 16 KiB the fitted lines go on.

use evener_core::{CostTable, Nanos, Objective};

use crate::adaptive::Adaptive;
use crate::bounds;
use crate::engine::{Faults, ModuleSpec, SchedulerSpec, Stuck};
use crate::lab::{
    Arrivals, Chooser, Class, CpuSide, ModuleCost, ModulePath, ModuleSide, Opening, Path, Report, Setup,
    Workload, run,
};
use crate::papers::am3358::{MONITOR, Series};
use crate::random::Random;

/// The grid's numbers of modules, cores and streams.
pub const MODULES: [u32; 4] = [1, 4, 16, 64];
/// See [`MODULES`].
pub const CORES: [u32; 5] = [1, 2, 8, 64, 256];
/// See [`MODULES`].
pub const STREAMS: [u32; 3] = [1, 1_000, 100_000];

/// Jobs of a run for each worker, and the least and the most of a run: so many that the beginning, in which costs are
/// learned, and the end, where some wait for the last long job, are small beside what lies between. With 100 for each
/// they are a tenth of a run of files.
const JOBS_PER_WORKER: u32 = 400;
const JOBS_MIN: u32 = 10_000;
const JOBS_MAX: u32 = 40_000;
/// Jobs of a single stream, which leaves every machine waiting: enough for a 99th percentile.
const JOBS_OF_ONE: u32 = 200;

/// Requests outstanding at a module: the path prepares one while the module works on another.
const DEPTH: u32 = 2;

/// Seed of sizes, times and jitter. Arbitrary.
const SEED: u64 = 16;

evener_core::named! {
    /// What streams send.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Mix {
        /// Records of TLS, the mix of five sizes from 64 B to 16 KiB that the policies are compared on.
        TlsRecords = "TLS records",
        /// Files of 16 KiB to 1 MiB. Weights are assumed, not measured: half as many of four times the size.
        Files = "files",
    }
}

impl Mix {
    /// Sizes in bytes, each with its weight.
    #[must_use]
    pub const fn sizes(self) -> &'static [(u64, u64)] {
        match self {
            Self::TlsRecords => &[(64, 20), (256, 20), (1 << 10, 20), (4 << 10, 15), (16 << 10, 25)],
            Self::Files => &[(16 << 10, 8), (64 << 10, 4), (256 << 10, 2), (1 << 20, 1)],
        }
    }

    /// Mean time between two jobs of one stream. Assumed, not measured: 100 records or 10 files per second, because a stream is then idle most of the time, as most are.
    #[must_use]
    pub const fn rhythm(self) -> Nanos {
        match self {
            Self::TlsRecords => Nanos::from_millis(10),
            Self::Files => Nanos::from_millis(100),
        }
    }
}

/// One machine with its streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Modules, all alike.
    pub modules: u32,
    /// Cores, each with one CPU worker.
    pub cores: u32,
    /// Streams.
    pub streams: u32,
    /// What they send.
    pub mix: Mix,
}

/// What a cell came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Jobs.
    pub jobs: u32,
    /// Jobs that never ended; anything above 0 is a bug.
    pub lost: usize,
    /// Part of the jobs that modules did.
    pub module_share: f64,
    /// Jobs per second of virtual time.
    pub jobs_per_s: f64,
    /// Bytes per second of virtual time.
    pub bytes_per_s: f64,
    /// What comes, as a multiple of what the machine could do at its best: above 1 jobs pile up.
    pub load: f64,
    /// Throughput as a part of the greatest there can be: the least time of the work on the machine, or the coming of
    /// the last job where that is later, over the time it took.
    pub of_bound: f64,
    /// The time that 99 of 100 jobs do not exceed from coming to end.
    pub p99: Nanos,
}

impl Cell {
    /// The whole grid, 120 cells.
    pub fn grid() -> impl Iterator<Item = Self> {
        let streams = |mix| STREAMS.into_iter().map(move |streams| (mix, streams));
        let cores = |(mix, streams)| CORES.into_iter().map(move |cores| (mix, streams, cores));
        let cell = |(mix, streams, cores)| {
            MODULES.into_iter().map(move |modules| Self { modules, cores, streams, mix })
        };
        Mix::ALL.into_iter().flat_map(streams).flat_map(cores).flat_map(cell)
    }

    /// Jobs of a run.
    #[must_use]
    pub fn jobs(&self) -> u32 {
        match self.streams {
            0 | 1 => JOBS_OF_ONE,
            _ => (JOBS_PER_WORKER * (self.cores + self.modules)).clamp(JOBS_MIN, JOBS_MAX),
        }
    }

    /// Runs the adaptive policy, watched by what `watch` makes of it.
    ///
    /// # Errors
    ///
    /// [`Stuck`].
    pub fn run<C: Chooser>(&self, watch: impl FnOnce(Adaptive) -> C) -> Result<(Figures, C), Stuck> {
        self.run_of(self.jobs(), watch)
    }

    /// The same with so many jobs, at least one.
    ///
    /// # Errors
    ///
    /// [`Stuck`].
    pub fn run_of<C: Chooser>(
        &self,
        jobs: u32,
        watch: impl FnOnce(Adaptive) -> C,
    ) -> Result<(Figures, C), Stuck> {
        let workload = self.workload(jobs);
        let mut setup = self.setup();
        Adaptive::arrange(&mut setup, &workload);
        let mut chooser = watch(Adaptive::new(&setup, Objective::Throughput));
        let report = run(&setup, &workload, &mut chooser)?;
        Ok((self.figures(&setup, &workload, &report), chooser))
    }

    /// The machine.
    fn setup(&self) -> Setup {
        let costs = CostTable::new(Series::Aes128.fit().costs);
        let sizes = self.mix.sizes().iter().map(|&(bytes, _)| bytes);
        let module = ModuleSide {
            spec: ModuleSpec { units: 1, faults: Faults::default() },
            costs: sizes
                .clone()
                .map(|bytes| costs.at(bytes))
                .map(|at| ModuleCost { d: at.d, h: at.h })
                .collect(),
            path: ModulePath::DIRECT,
            depth: DEPTH,
            priority: 0,
            hand_over: Nanos::ZERO,
            opening: Opening::default(),
            check_every: 0,
        };
        Setup {
            cores: self.cores as usize,
            scheduler: SchedulerSpec::linux(250, 300),
            classes: sizes.map(|bytes| Class { bytes, c: costs.at(bytes).c }).collect(),
            cpu: CpuSide { workers: self.cores, nice: 0, cap: None, hand_over: Nanos::ZERO },
            modules: vec![module; self.modules as usize],
            hogs: 0,
            first: Path::Module,
            turn: 0,
            monitor: MONITOR,
            jitter: 0.05,
            seed: SEED,
            end_max: Nanos::from_millis(100_000_000),
        }
    }

    /// The jobs of all streams together.
    fn workload(&self, jobs: u32) -> Workload {
        let sizes = self.mix.sizes();
        let weights: u64 = sizes.iter().map(|(_, weight)| weight).sum();
        let mut random = Random::new(SEED);
        let mut class = || {
            let mut drawn = random.below(weights);
            let is_it = |&(_, weight): &(u64, u64)| match drawn.checked_sub(weight) {
                Some(rest) => {
                    drawn = rest;
                    false
                }
                None => true,
            };
            sizes.iter().position(is_it).expect("below the sum of all weights")
        };
        let classes: Vec<usize> = (0..jobs).map(|_| class()).collect();
        let mean = Nanos(self.mix.rhythm().0 / u64::from(self.streams.max(1)));
        Workload::new(classes, Arrivals::Poisson { mean }, SEED)
    }

    fn figures(&self, setup: &Setup, workload: &Workload, report: &Report) -> Figures {
        let jobs = u32::try_from(workload.jobs().len()).expect("the count fits, for the caller gave it");
        let arrived_s = workload.jobs().last().map_or(0.0, |job| job.at.as_secs_f64());
        let least = bounds::of_jobs(setup, workload).expect("modules are alike") / 1e9;
        let bytes: u64 = workload.jobs().iter().map(|job| setup.classes[job.class].bytes).sum();
        let took_s = report.makespan.as_secs_f64();
        Figures {
            jobs,
            lost: report.lost(),
            module_share: f64::from(report.module_jobs()) / f64::from(jobs),
            jobs_per_s: f64::from(jobs) / took_s,
            bytes_per_s: bytes as f64 / took_s,
            load: least / arrived_s,
            of_bound: least.max(arrived_s) / took_s,
            p99: report.latency(990),
        }
    }
}
