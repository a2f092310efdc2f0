//! Paper 002's experiment in memory: sizes against contenders, visited in turn, run by run.

pub mod bound;
pub mod contender;
mod experiment;
pub mod neighbours;
mod packets;
pub mod report;
mod round_budget;
mod rounds;
mod sync_requests;
mod visit;
pub mod workload;

pub use experiment::{Experiment, Sizes, Visits, Work};

use std::thread;

use evener::{DriverFactory, Report};
use evener_core::{Estimator, Method, Nanos};

use crate::crypt::contender::{Contender, Modules, Visit, VisitPlan};
use crate::crypt::neighbours::{NeighbourReport, NeighbourSpec, beside};
use crate::crypt::report::{
    BesideResult, CellResult, ContenderResult, RequestTimes, Results, RoundFacts, RoundTimes,
};
use crate::crypt::workload::{Workload, log_normal_sizes, uniform_sizes};
use crate::error::BenchError;
use crate::medians::Spread;

/// Measures all cells; `tell` is told what is being done. Costs go in and out by `learned`.
///
/// # Errors
///
/// A [`BenchError`]; a contender with a wrong result ends everything, because then no figure means anything.
pub fn measure(
    experiment: &Experiment,
    driver_factory: &dyn DriverFactory,
    learned: &mut Estimator,
    mut tell: impl FnMut(&str),
) -> Result<Results, BenchError> {
    let cells: Vec<(String, Vec<usize>)> = match &experiment.work.sizes {
        Sizes::Each(sizes) => {
            sizes.iter().map(|&size| (size.to_string(), vec![size; experiment.work.count])).collect()
        }
        Sizes::LogNormal => vec![("log-normal".into(), log_normal_sizes(experiment.work.count))],
        Sizes::Uniform => vec![("uniform".into(), uniform_sizes(experiment.work.count))],
    };
    let mut results = Vec::with_capacity(cells.len());
    for (name, sizes) in cells {
        tell(&format!("{} {} {name}", experiment.work.algorithm, experiment.work.direction));
        results.push(measure_cell(experiment, &name, &sizes, driver_factory, learned)?);
    }
    let mut results = Results::new(experiment, results);
    results.modules = packets::of_modules(&experiment.work, driver_factory, learned);
    Ok(results)
}

fn measure_cell(
    experiment: &Experiment,
    name: &str,
    sizes: &[usize],
    driver_factory: &dyn DriverFactory,
    learned: &mut Estimator,
) -> Result<CellResult, BenchError> {
    let Work { algorithm, direction, layout, .. } = experiment.work;
    let load = Workload::new(algorithm, direction, layout, sizes, experiment.workers)?;
    let able: Vec<&Contender> =
        experiment.contenders.iter().filter(|contender| contender.can_do(&load)).collect();
    let mut visits: Vec<Vec<Visit>> = vec![Vec::new(); able.len()];
    let budget = experiment.visits.budget();
    let mut alone = Vec::new();
    for run in 0..experiment.visits.runs {
        alone.extend(experiment.beside.map(|spec| left_alone(spec, budget)));
        // Another goes first in each run, so that no one always follows the same.
        for place in 0..able.len() {
            let place = (place + run) % able.len();
            let plan = VisitPlan { budget, verify: run == 0, driver_factory, learned };
            let visit = match experiment.beside {
                None => able[place].visit(&load, plan)?,
                Some(who) => able[place].visit_beside(&load, plan, who)?,
            };
            // The next visit starts informed, as short programs do by the costs that are kept.
            if let Some(report) = &visit.report {
                learned.clone_from(&report.learned);
            }
            visits[place].push(visit);
        }
    }
    let contenders =
        able.iter().zip(&visits).map(|(contender, visits)| summarise(contender, visits, &alone, &load));
    let contenders: Vec<ContenderResult> = contenders.collect();
    let ratios =
        able.iter().enumerate().map(|(at, contender)| ratios_of(at, contender, &able, &visits)).collect();
    Ok(CellResult {
        cell: name.to_owned(),
        round: RoundFacts { jobs: load.job_count(), plain_bytes: load.plain_bytes() },
        contenders: with_ratios(contenders, ratios),
        nobody: BesideResult::alone(&alone),
    })
}

/// What neighbours get of the machine while no contender works.
fn left_alone(spec: NeighbourSpec, time: Nanos) -> NeighbourReport {
    beside(spec, |all| all.watch(|| thread::sleep(time.into())).1)
}

fn with_ratios(
    mut results: Vec<ContenderResult>,
    ratios: Vec<Vec<(String, Spread)>>,
) -> Vec<ContenderResult> {
    for (result, ratios) in results.iter_mut().zip(ratios) {
        result.faster_than = ratios.into_iter().collect();
    }
    results
}

/// How many times faster a contender was than each that it is compared with, from pairs of visits in the same run.
fn ratios_of(
    at: usize,
    contender: &Contender,
    able: &[&Contender],
    visits: &[Vec<Visit>],
) -> Vec<(String, Spread)> {
    let baselines = able.iter().enumerate().filter(|(_, other)| contender.is_compared_with(other));
    let against = baselines.filter_map(|(other, baseline)| {
        let pairs = visits[other].iter().zip(&visits[at]);
        let ratios: Vec<f64> = pairs.map(|(theirs, ours)| seconds(theirs) / seconds(ours)).collect();
        Some((baseline.name(), Spread::of(&ratios)?))
    });
    against.collect()
}

/// The median of a visit's rounds.
fn seconds(visit: &Visit) -> f64 {
    let rounds: Vec<f64> = visit.rounds.iter().map(|round| round.as_secs_f64()).collect();
    Spread::of(&rounds).map_or(f64::NAN, |spread| spread.median)
}

fn micros(time: Nanos) -> f64 {
    time.as_secs_f64() * 1e6
}

fn summarise(
    contender: &Contender,
    visits: &[Visit],
    alone: &[NeighbourReport],
    load: &Workload,
) -> ContenderResult {
    let values =
        |value: fn(&Visit) -> Option<f64>| Spread::of(&visits.iter().filter_map(value).collect::<Vec<_>>());
    let reports = visits.iter().filter_map(|visit| visit.report.as_ref());
    let seconds = values(|visit| Some(seconds(visit))).expect("there is at least one visit");
    #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
    let megabytes = load.plain_bytes() as f64 / 1e6;
    ContenderResult {
        contender: contender.name(),
        emulated: matches!(contender, Contender::Evener { modules: Modules::Emulated, .. }),
        rounds: visits.iter().map(|visit| visit.rounds.len()).sum(),
        crowded_rounds: visits.iter().map(|visit| visit.crowded).sum(),
        round: RoundTimes {
            milliseconds: seconds.scaled(1e3),
            megabytes_per_second: seconds.inverse(megabytes),
            core_milliseconds: values(|visit| visit.core.map(|core| core.as_secs_f64() * 1e3)),
            paper_clock_milliseconds: values(|visit| visit.paper_clock.map(|time| time.as_secs_f64() * 1e3)),
        },
        request: RequestTimes {
            request_microseconds: values(|visit| visit.requests.map(|known| micros(known.median))),
            request_p99_microseconds: values(|visit| visit.requests.map(|known| micros(known.p99))),
        },
        shares: shares(reports),
        faster_than: Vec::new(),
        beside: BesideResult::of(visits, alone),
    }
}

/// Jobs per worker and method over all visits.
fn shares<'r>(reports: impl Iterator<Item = &'r Report>) -> Vec<(String, u64)> {
    let mut shares: Vec<(String, u64)> = Vec::new();
    let mut add = |name: String, jobs: u64| match shares.iter_mut().find(|(known, _)| *known == name) {
        Some((_, sum)) => *sum += jobs,
        None if jobs > 0 => shares.push((name, jobs)),
        None => (),
    };
    for worker in reports.flat_map(|report| &report.workers) {
        for method in Method::ALL {
            add(format!("{} {}", worker.name, method.name()), worker.methods[method as usize].jobs);
        }
        if let Some(module) = &worker.module {
            add(worker.name.clone(), module.tally.jobs);
        }
    }
    shares
}
