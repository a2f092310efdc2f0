//! Makes a machine and its work from the keys of a file.
//!
//! The ranges keep every sum of times below the 584 years that 64 bits of nanoseconds last; apart from that they
//! only exclude values that make no sense.

use std::ops::RangeInclusive;
use std::str::FromStr as _;

use evener_core::plan::Policy;
use evener_core::{Cost, CostTable, Nanos};
use toml::Spanned;

use crate::engine::{Faults, ModuleSpec, SchedulerSpec, Slowdown};
use crate::lab::{Arrivals, CpuCap, CpuSide, ModulePath, ModuleSide, Opening, Path, Setup, Workload};
use crate::papers::am3358::Mix;
use crate::random::Random;

use super::check::{ScenarioError, Source};
use super::file::{self, File};
use super::{Chance, Scenario};

/// Sizes of jobs in bytes: up to 1 GiB.
const BYTES: RangeInclusive<u64> = 0..=1 << 30;
/// Times of one job: up to 10 s.
const JOB_NS: RangeInclusive<u64> = 0..=10_000_000_000;
/// Times within a run: up to 11 days.
const RUN_MS: RangeInclusive<u64> = 0..=1_000_000_000;
const RUN_NS: RangeInclusive<u64> = 1_000..=1_000_000_000_000_000;
const JOBS: RangeInclusive<u32> = 1..=10_000_000;

pub(super) fn build(source: &Source<'_>) -> Result<Scenario, ScenarioError> {
    let file: File = toml::from_str(source.text).map_err(|error| source.reading_error(&error))?;
    if file.name.get_ref().trim().is_empty() {
        return Err(source.error(&file.name.span(), "name", "is empty"));
    }
    let ticks_per_second = source.small("ticks_per_second", &file.machine.ticks_per_second, 1..=100_000)?;
    let (sizes, workload) = work(source, &file.workload)?;
    let modules: Result<Vec<_>, _> = file.module.iter().map(|module| module_side(source, module)).collect();
    let module_costs: Result<Vec<_>, _> =
        file.module.iter().map(|module| own_costs(source, module)).collect();
    let mut scenario = Scenario {
        name: file.name.get_ref().clone(),
        setup: setup(source, &file, ticks_per_second, modules?)?,
        workload: Workload::new([], Arrivals::AtOnce, 0),
        policies: policies(source, &file)?,
        chances: chances(source, &file.chance)?,
        ticks_per_second,
        costs: costs(source, &file.costs)?,
        module_costs: module_costs?,
        source: file.source,
    };
    scenario.set_workload(&sizes, workload);
    Ok(scenario)
}

fn setup(
    source: &Source<'_>,
    file: &File,
    ticks_per_second: u32,
    modules: Vec<ModuleSide>,
) -> Result<Setup, ScenarioError> {
    let machine = &file.machine;
    let jitter = source.small("jitter_permille", &file.chance.get_ref().jitter_permille, 0..=900)?;
    Ok(Setup {
        cores: source.small("cores", &machine.cores, 1..=1_024)? as usize,
        scheduler: SchedulerSpec::linux(ticks_per_second, 0),
        classes: Vec::new(),
        cpu: cpu_side(source, &file.cpu)?,
        modules,
        hogs: source.small("competing_programs", &machine.competing_programs, 0..=10_000)?,
        first: match machine.first {
            file::First::Cpu => Path::Cpu,
            file::First::Module => Path::Module,
        },
        turn: 0,
        monitor: Nanos(source.within("monitor_ns", &machine.monitor_ns, 1..=*JOB_NS.end())?),
        jitter: f64::from(jitter) / 1e3,
        seed: 0,
        end_max: Nanos::from_millis(source.within("limit_s", &machine.limit_s, 1..=1_000_000)? * 1_000),
    })
}

fn cpu_side(source: &Source<'_>, cpu: &file::Cpu) -> Result<CpuSide, ScenarioError> {
    let cap = |cap: &file::Cap| {
        let share = source.small("share_permille", &cap.share_permille, 1..=1_024_000)?;
        let (holds_module_path, counts_interrupts) = (cap.holds_module_path, cap.counts_interrupts);
        Ok(CpuCap { share: f64::from(share) / 1e3, holds_module_path, counts_interrupts })
    };
    Ok(CpuSide {
        workers: source.small("workers", &cpu.workers, 1..=1_024)?,
        nice: source.within("nice", &cpu.nice, -20..=19)?,
        cap: cpu.cap.as_ref().map(cap).transpose()?,
        hand_over: hand_over(source, cpu.hand_over_ns.as_ref())?,
    })
}

fn module_side(source: &Source<'_>, module: &file::Module) -> Result<ModuleSide, ScenarioError> {
    let slow = |slow: &file::Slow| {
        let at = Nanos::from_millis(source.within("at_ms", &slow.at_ms, RUN_MS)?);
        Ok(Slowdown { at, factor: source.within("factor", &slow.factor, 1..=1_000)? })
    };
    let lost_at = module.lost_at_ms.as_ref().map(|at| source.within("lost_at_ms", at, RUN_MS)).transpose()?;
    let check_every =
        module.check_every.as_ref().map(|every| source.small("check_every", every, 1..=1_000_000));
    let faults = Faults {
        slow: module.slow.as_ref().map(slow).transpose()?,
        lost_at: lost_at.map(Nanos::from_millis),
    };
    Ok(ModuleSide {
        spec: ModuleSpec { units: source.small("units", &module.units, 1..=4_096)?, faults },
        costs: Vec::new(),
        path: match module.path {
            file::ModulePath::Direct => ModulePath::DIRECT,
            file::ModulePath::KernelWaits => ModulePath::KERNEL_WAITS,
            file::ModulePath::Interrupt => ModulePath::INTERRUPT,
        },
        depth: source.small("depth", &module.depth, 1..=4_096)?,
        priority: source.within("priority", &module.priority, -99..=99)?,
        hand_over: hand_over(source, module.hand_over_ns.as_ref())?,
        opening: Opening::default(),
        check_every: check_every.transpose()?.unwrap_or(0),
    })
}

fn hand_over(source: &Source<'_>, time: Option<&file::Number>) -> Result<Nanos, ScenarioError> {
    time.map_or(Ok(Nanos::ZERO), |ns| source.within("hand_over_ns", ns, JOB_NS).map(Nanos))
}

fn costs(source: &Source<'_>, rows: &[file::CostRow]) -> Result<CostTable, ScenarioError> {
    let cost = |row: &file::CostRow| {
        let c = Nanos(source.within("c_ns", &row.c_ns, 1..=*JOB_NS.end())?);
        module_cost(source, &row.d_ns, &row.h_ns).map(|cost| Cost { c, ..cost })
    };
    let rows: Result<Vec<_>, _> = rows.iter().map(|row| Ok((&row.bytes, cost(row)?))).collect();
    table(source, rows?)
}

fn own_costs(source: &Source<'_>, module: &file::Module) -> Result<Option<CostTable>, ScenarioError> {
    let Some(rows) = &module.costs else { return Ok(None) };
    let rows: Result<Vec<_>, _> =
        rows.iter().map(|row| Ok((&row.bytes, module_cost(source, &row.d_ns, &row.h_ns)?))).collect();
    table(source, rows?).map(Some)
}

fn module_cost(source: &Source<'_>, d: &file::Number, h: &file::Number) -> Result<Cost, ScenarioError> {
    let d = Nanos(source.within("d_ns", d, JOB_NS)?);
    Ok(Cost { c: Nanos::ZERO, d, h: Nanos(source.within("h_ns", h, JOB_NS)?) })
}

/// A table of costs over rising sizes.
fn table(source: &Source<'_>, rows: Vec<(&file::Number, Cost)>) -> Result<CostTable, ScenarioError> {
    for (bytes, _) in &rows {
        source.within("bytes", bytes, BYTES)?;
    }
    if let Some(pair) = rows.windows(2).find(|pair| pair[0].0.get_ref() >= pair[1].0.get_ref()) {
        return Err(source.error(&pair[1].0.span(), "bytes", "sizes do not rise"));
    }
    if rows.len() < 2 {
        let span = rows.first().map_or(0..0, |(bytes, _)| bytes.span());
        return Err(source.error(&span, "costs", "fewer than two sizes"));
    }
    Ok(CostTable::new(rows.into_iter().map(|(bytes, cost)| (*bytes.get_ref(), cost)).collect()))
}

fn policies(source: &Source<'_>, file: &File) -> Result<Vec<Policy>, ScenarioError> {
    let policy = |name: &Spanned<String>| {
        let unknown = |unknown: evener_core::plan::UnknownPolicy| {
            source.error(&name.span(), "policies", unknown.to_string())
        };
        Policy::from_str(name.get_ref()).map_err(unknown)
    };
    if file.policies.is_empty() {
        let at = source.text.find("policies").unwrap_or(0);
        return Err(source.error(&(at..at), "policies", "there is none"));
    }
    file.policies.iter().map(policy).collect()
}

fn chances(source: &Source<'_>, chance: &Spanned<file::Chance>) -> Result<Vec<Chance>, ScenarioError> {
    let (span, chance) = (chance.span(), chance.get_ref());
    let phases = &chance.tick_phases_permille;
    if chance.seeds.is_empty() || chance.seeds.len() != phases.len() {
        let reason = format!("{} seeds and {} tick phases make no runs", chance.seeds.len(), phases.len());
        return Err(source.error(&span, "chance", reason));
    }
    let one = |(&seed, phase)| {
        let tick_phase_permille = source.small("tick_phases_permille", phase, 0..=1_000)?;
        Ok(Chance { seed, tick_phase_permille })
    };
    chance.seeds.iter().zip(phases).map(one).collect()
}

/// The sizes of the classes, and the jobs.
fn work(source: &Source<'_>, work: &Spanned<file::Work>) -> Result<(Vec<u64>, Workload), ScenarioError> {
    let (span, work) = (work.span(), work.get_ref());
    let jobs: Vec<u64> = match (work.list, &work.jobs, &work.sizes) {
        (Some(list), None, None) => match list {
            file::List::Uniform8 => Mix::Uniform8.sizes(),
            file::List::Tls => Mix::Tls.sizes(),
        },
        (None, Some(jobs), Some(sizes)) => draw(source, source.small("jobs", jobs, JOBS)?, sizes, work.seed)?,
        _ => return Err(source.error(&span, "workload", "has either `list`, or `jobs` and `sizes`")),
    };
    let mut sizes = jobs.clone();
    sizes.sort_unstable();
    sizes.dedup();
    let class = |size| sizes.partition_point(|&listed| listed < size);
    let arrivals = arrivals(source, &work.arrivals)?;
    let workload = Workload::new(jobs.iter().map(|&size| class(size)), arrivals, work.seed);
    Ok((sizes, workload))
}

/// Sizes of so many jobs, drawn by their weights.
fn draw(
    source: &Source<'_>,
    jobs: u32,
    sizes: &Spanned<Vec<file::Weighted>>,
    seed: u64,
) -> Result<Vec<u64>, ScenarioError> {
    let mut ladder = Vec::new();
    let mut end = 0;
    for size in sizes.get_ref() {
        end += source.within("weight", &size.weight, 1..=1_000_000)?;
        ladder.push((end, source.within("bytes", &size.bytes, BYTES)?));
    }
    if ladder.is_empty() {
        return Err(source.error(&sizes.span(), "sizes", "there is none"));
    }
    let mut random = Random::new(seed);
    let mut one = || {
        let drawn = random.below(end);
        ladder[ladder.partition_point(|&(end, _)| end <= drawn)].1
    };
    Ok((0..jobs).map(|_| one()).collect())
}

fn arrivals(source: &Source<'_>, arrivals: &file::Arrivals) -> Result<Arrivals, ScenarioError> {
    let time = |key: &str, ns: &file::Number| source.within(key, ns, RUN_NS).map(Nanos);
    let file::Arrivals { kind, mean_ns, on_ns, off_ns } = arrivals;
    match (kind.get_ref(), mean_ns, on_ns, off_ns) {
        (file::Kind::AtOnce, None, None, None) => Ok(Arrivals::AtOnce),
        (file::Kind::Poisson, Some(mean), None, None) => {
            Ok(Arrivals::Poisson { mean: time("mean_ns", mean)? })
        }
        (file::Kind::Bursts, Some(mean), Some(on), Some(off)) => {
            let (mean, on) = (time("mean_ns", mean)?, time("on_ns", on)?);
            Ok(Arrivals::Bursts { mean, on, off: time("off_ns", off)? })
        }
        _ => {
            let reason =
                "`at_once` has no times, `poisson` has `mean_ns`, `bursts` has `mean_ns`, `on_ns`, `off_ns`";
            Err(source.error(&kind.span(), "kind", reason))
        }
    }
}
