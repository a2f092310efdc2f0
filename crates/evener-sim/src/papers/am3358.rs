//! The AM3358 of papers 000 and 002: its costs, and the machines on which the papers' policies run.
//!
//! [`Model`] says how the module path works: L0 and L1 predict the papers' own cells,
//! policies are compared on [`Model::Policy`]. HZ 250 and the kernel's share of one third were chosen while
//! looking at the column *proposed* of paper 002, table 2, and at nothing else.

use evener_core::plan::Policy;
use evener_core::{Cost, Nanos};

use super::table::{
    SEED000_TABLE2, SEED002_TABLE_A1, SEED002_TABLE_A2, SEED002_TABLE2, Table, TableError, WORKLOAD_TLS,
    WORKLOAD_UNIFORM8,
};
use crate::costs::{Fit, JOBS, SingleResource, fit};
use crate::engine::{Faults, ModuleSpec, SchedulerSpec, Stuck};
use crate::lab::{
    Arrivals, Chooser, Class, CpuSide, ModuleCost, ModulePath, ModuleSide, Opening, Path, Planned, Report,
    Setup, Workload, run,
};
use crate::rounding::round;

/// A series of measurements: one algorithm, several sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Series {
    /// Paper 002, table 2.
    Aes128,
    /// Paper 002, table A.1.
    Aes192,
    /// Paper 002, table A.2.
    Aes256,
    /// Paper 000, table 2: AES-256.
    Paper000,
}

impl Series {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Aes128, Self::Aes192, Self::Aes256, Self::Paper000];

    /// The table and the name of its column of sizes.
    #[must_use]
    pub const fn table(self) -> (Table, &'static str) {
        match self {
            Self::Aes128 => (SEED002_TABLE2, "file_size_bytes"),
            Self::Aes192 => (SEED002_TABLE_A1, "file_size_bytes"),
            Self::Aes256 => (SEED002_TABLE_A2, "file_size_bytes"),
            Self::Paper000 => (SEED000_TABLE2, "file_size_bytes_nominal"),
        }
    }

    /// The two columns that the costs come from.
    ///
    /// # Panics
    ///
    /// Where a committed table is malformed, which the tests exclude.
    #[must_use]
    pub fn columns(self) -> Vec<SingleResource> {
        let (table, sizes) = self.table();
        single_resource(table, sizes).expect("a committed table")
    }

    /// The costs.
    #[must_use]
    pub fn fit(self) -> Fit {
        let slope_from = if self == Self::Paper000 { 100 } else { 256 };
        fit(&self.columns(), slope_from)
    }
}

/// Reads the two columns of a table that used one resource alone, and no other; `sizes` names its column of sizes.
///
/// # Errors
///
/// [`TableError`].
pub fn single_resource(table: Table, sizes: &str) -> Result<Vec<SingleResource>, TableError> {
    let rows = table.numbers(sizes)?.into_iter();
    let (cpu, module) = (table.numbers("cpu_only_ms")?, table.numbers("module_only_ms")?);
    let row = |((bytes, cpu_only_ms), module_only_ms)| SingleResource {
        bytes: round(bytes),
        cpu_only_ms,
        module_only_ms,
    };
    Ok(rows.zip(cpu).zip(module).map(row).collect())
}

/// How the module path works, and how often the clock ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Two threads, nothing else; 128 ticks per second.
    L0,
    /// The kernel has a thread of its own, which waits for the module.
    L1 {
        /// Ticks per second; 250 is the reference.
        hz: u32,
    },
    /// As L1 with 250 ticks, but the kernel's thread does not wait, its last part is an interrupt, and costs
    /// vary by 5 %.
    Policy,
}

/// Core time that the monitor needs to hand over one job. Assumed, not measured: 2 us, because the paper gives no time for it.
pub const MONITOR: Nanos = Nanos::from_micros(2);

/// Jobs vary by 5 % where policies are compared. Assumed, not measured: 5 %, because that is enough to break resonances with the
/// clock's ticks.
const JITTER: f64 = 0.05;

/// No run of a paper lasts longer, by far.
const END_MAX: Nanos = Nanos::from_millis(600_000);

/// A machine of one core and one module: costs by size, `seed` and the `phase` of the first tick in thousandths.
#[must_use]
pub fn machine(costs: &[(u64, Cost)], model: Model, seed: u64, phase_permille: u32) -> Setup {
    let (hz, path, jitter) = match model {
        Model::L0 => (128, ModulePath::DIRECT, 0.0),
        Model::L1 { hz } => (hz, ModulePath::KERNEL_WAITS, 0.0),
        Model::Policy => (250, ModulePath::INTERRUPT, JITTER),
    };
    let module = ModuleSide {
        spec: ModuleSpec { units: 1, faults: Faults::default() },
        costs: costs.iter().map(|&(_, cost)| ModuleCost { d: cost.d, h: cost.h }).collect(),
        path,
        depth: 1,
        priority: 0,
        hand_over: Nanos::ZERO,
        opening: Opening::default(),
        check_every: 0,
    };
    Setup {
        cores: 1,
        scheduler: SchedulerSpec::linux(hz, phase_permille),
        classes: costs.iter().map(|&(bytes, cost)| Class { bytes, c: cost.c }).collect(),
        cpu: CpuSide { workers: 1, nice: 0, cap: None, hand_over: Nanos::ZERO },
        modules: vec![module],
        hogs: 0,
        first: Path::Module,
        turn: 0,
        monitor: MONITOR,
        jitter,
        seed,
        end_max: END_MAX,
    }
}

/// Means over several runs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Means {
    /// Time from start to end, in milliseconds.
    pub makespan_ms: f64,
    /// Jobs that the CPU path did.
    pub cpu_jobs: f64,
    /// Jobs that the module did.
    pub module_jobs: f64,
    /// Core time of crypto by its threads' clocks, in milliseconds.
    pub crypto_ms: f64,
    /// Core time of interrupts, in milliseconds.
    pub interrupt_ms: f64,
    /// Core time of competing programs, in milliseconds.
    pub hog_ms: f64,
    /// Context switches of the core.
    pub switches: f64,
}

impl Means {
    /// The means of some reports, of at least one.
    #[must_use]
    pub fn of(reports: &[Report]) -> Self {
        let count = f64::from(u32::try_from(reports.len()).unwrap_or(u32::MAX));
        let mean = |of: &dyn Fn(&Report) -> f64| reports.iter().map(of).sum::<f64>() / count;
        Self {
            makespan_ms: mean(&|report| report.makespan.as_secs_f64() * 1e3),
            cpu_jobs: mean(&|report| f64::from(report.cpu_jobs())),
            module_jobs: mean(&|report| f64::from(report.module_jobs())),
            crypto_ms: mean(&|report| report.crypto().as_secs_f64() * 1e3),
            interrupt_ms: mean(&|report| report.interrupts.as_secs_f64() * 1e3),
            hog_ms: mean(&|report| report.hog().as_secs_f64() * 1e3),
            switches: mean(&|report| f64::from(u32::try_from(report.switches).unwrap_or(u32::MAX))),
        }
    }
}

/// 4000 jobs of one cost under a policy of the papers, averaged over phases of the tick and, where it matters,
/// over the order in which the two workers are created.
///
/// # Errors
///
/// [`Stuck`].
pub fn predict(cost: Cost, model: Model, policy: Policy) -> Result<Means, Stuck> {
    let orders: &[Path] = match policy {
        Policy::RoundRobin | Policy::SharedQueue => &[Path::Module, Path::Cpu],
        Policy::Polling => &[Path::Cpu],
        _ => &[Path::Module],
    };
    let jobs = equal_jobs(0);
    let mut reports = Vec::new();
    for phase in [100, 350, 600, 850] {
        for &first in orders {
            let setup = Setup { first, ..machine(&[(0, cost)], model, 1, phase) };
            reports.push(run(&setup, &jobs, &mut Planned::new(policy, 1, 1))?);
        }
    }
    Ok(Means::of(&reports))
}

/// Three runs with different chance, as policies are compared; `change` adapts the machine, `chooser` is called
/// for a new one before each run.
///
/// # Errors
///
/// [`Stuck`].
pub fn compare<C: Chooser>(
    costs: &[(u64, Cost)],
    workload: &Workload,
    change: impl Fn(&mut Setup),
    mut chooser: impl FnMut() -> C,
) -> Result<Vec<Report>, Stuck> {
    let one = |(seed, phase)| {
        let mut setup = machine(costs, Model::Policy, seed, phase);
        change(&mut setup);
        run(&setup, workload, &mut chooser())
    };
    [(1, 200), (2, 550), (3, 900)].into_iter().map(one).collect()
}

/// 4000 jobs of one class, all there at the start.
#[must_use]
pub fn equal_jobs(class: usize) -> Workload {
    Workload::new(std::iter::repeat_n(class, JOBS as usize), Arrivals::AtOnce, 0)
}

/// A list of 4000 jobs of several sizes, in queue order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Evenly over the eight sizes of paper 002.
    Uniform8,
    /// 64, 256, 1024, 4096 and 16384 bytes in the ratio 20 : 20 : 20 : 15 : 25.
    Tls,
}

impl Mix {
    /// The sizes in bytes, in queue order.
    ///
    /// # Panics
    ///
    /// Where the committed list is malformed, which the tests exclude.
    #[must_use]
    pub fn sizes(self) -> Vec<u64> {
        let list = match self {
            Self::Uniform8 => WORKLOAD_UNIFORM8,
            Self::Tls => WORKLOAD_TLS,
        };
        list.numbers("size_bytes").expect("a committed list").into_iter().map(round).collect()
    }

    /// The jobs, all there at the start, with classes by the position of their size in `costs`.
    ///
    /// # Panics
    ///
    /// Where a size is not in `costs`.
    #[must_use]
    pub fn workload(self, costs: &[(u64, Cost)]) -> Workload {
        let class = |size| costs.iter().position(|&(bytes, _)| bytes == size).expect("every size has a cost");
        Workload::new(self.sizes().into_iter().map(class), Arrivals::AtOnce, 0)
    }
}
