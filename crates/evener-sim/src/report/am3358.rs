//! The tables of papers 000 and 002: costs are read from the single-resource columns, and predict the other columns.

use evener_core::Cost;
use evener_core::plan::Policy;

use super::{Column, Model, ReportError, Standing, TableReport};
use crate::bounds::{fair_halves, work_conservation};
use crate::costs::JOBS;
use crate::papers::am3358::{self, Means, Series, predict};
use crate::papers::table::{SEED002_TABLE3, TableError};

pub(super) fn tables() -> Result<Vec<TableReport>, ReportError> {
    Ok(vec![paper_000()?, table_2()?, table_3()?, appendix(Series::Aes192)?, appendix(Series::Aes256)?])
}

fn paper_000() -> Result<TableReport, ReportError> {
    let series = Series::Paper000;
    let models = vec![halves(series), simulated(series, Policy::SharedQueue, Standing::Predicted)?];
    let mut columns = singles(series)?;
    columns.push(Column::modelled(&series.table().0, "module_and_cpu_ms", "both", models)?);
    table("000.2", "AES-256-CBC on the AM3358, 4000 files", "ms", series, columns)
}

fn appendix(series: Series) -> Result<TableReport, ReportError> {
    let (id, title) = match series {
        Series::Aes192 => ("002.A1", "AES-192-CBC on the AM3358, 4000 files"),
        _ => ("002.A2", "AES-256-CBC on the AM3358, 4000 files"),
    };
    let models = vec![halves(series), simulated(series, Policy::SharedQueue, Standing::Predicted)?];
    let mut columns = singles(series)?;
    columns.push(Column::modelled(&series.table().0, "proposed_ms", "proposed", models)?);
    table(id, title, "ms", series, columns)
}

fn table_2() -> Result<TableReport, ReportError> {
    let series = Series::Aes128;
    let printed = series.table().0;
    let half = f64::from(JOBS) / 2.0;
    let round_robin = vec![
        closed(series, WORK, COSTS, |_, cost| work_conservation(cost, [half, half])),
        simulated(series, Policy::RoundRobin, Standing::Predicted)?,
    ];
    let cpu = SEED002_TABLE3.numbers("proposed_cpu_files")?;
    let module = SEED002_TABLE3.numbers("proposed_module_files")?;
    let proposed = vec![
        closed(series, WORK, GIVEN_SPLIT, |row, cost| work_conservation(cost, [cpu[row], module[row]])),
        halves(series),
        simulated(series, Policy::SharedQueue, Standing::Chosen)?,
    ];
    let polling = vec![simulated(series, Policy::Polling, Standing::NotClaimed)?];
    let mut columns = singles(series)?;
    columns.push(Column::modelled(&printed, "round_robin_ms", "round robin", round_robin)?);
    columns.push(Column::modelled(&printed, "polling_ms", "polling", polling)?);
    columns.push(Column::modelled(&printed, "proposed_ms", "proposed", proposed)?);
    table("002.2", "AES-128-CBC on the AM3358, 4000 files", "ms", series, columns)
}

/// The split of the other policies is their definition: all on one side, or half and half.
fn table_3() -> Result<TableReport, ReportError> {
    let series = Series::Aes128;
    let split = |policy, standing| {
        let jobs = runs(series, policy)?.iter().map(|means| means.module_jobs).collect();
        Ok::<_, ReportError>(Model::new(EVENTS, basis(policy), jobs, standing))
    };
    let jobs = costs(series).map(|cost| fair_halves(cost, f64::from(JOBS)).1).collect();
    let proposed = vec![
        Model::new(HALVES, COSTS, jobs, Standing::Predicted),
        split(Policy::SharedQueue, Standing::Chosen)?,
    ];
    let polling = vec![split(Policy::Polling, Standing::NotClaimed)?];
    let columns = vec![
        Column::modelled(&SEED002_TABLE3, "polling_module_files", "polling", polling)?,
        Column::modelled(&SEED002_TABLE3, "proposed_module_files", "proposed", proposed)?,
    ];
    table("002.3", "AES-128-CBC on the AM3358, 4000 files, of these on the module", "files", series, columns)
}

fn table(
    id: &'static str,
    title: &'static str,
    unit: &'static str,
    series: Series,
    columns: Vec<Column>,
) -> Result<TableReport, ReportError> {
    let (printed, sizes) = series.table();
    Ok(TableReport { id, title, unit, sizes: printed.numbers(sizes)?, columns })
}

fn singles(series: Series) -> Result<Vec<Column>, TableError> {
    let printed = series.table().0;
    Ok(vec![
        Column::printed(&printed, "cpu_only_ms", "CPU only", INPUT)?,
        Column::printed(&printed, "module_only_ms", "module only", INPUT)?,
    ])
}

fn costs(series: Series) -> impl Iterator<Item = Cost> {
    series.fit().costs.into_iter().map(|(_, cost)| cost)
}

/// A closed form: nanoseconds for a cost and its row.
fn closed(
    series: Series,
    name: &'static str,
    basis: &'static str,
    nanoseconds: impl Fn(usize, Cost) -> f64,
) -> Model {
    let values = costs(series).enumerate().map(|(row, cost)| nanoseconds(row, cost) / 1e6).collect();
    Model::new(name, basis, values, Standing::Predicted)
}

fn halves(series: Series) -> Model {
    closed(series, HALVES, COSTS, |_, cost| fair_halves(cost, f64::from(JOBS)).0)
}

fn simulated(series: Series, policy: Policy, standing: Standing) -> Result<Model, ReportError> {
    let values = runs(series, policy)?.iter().map(|means| means.makespan_ms).collect();
    Ok(Model::new(EVENTS, basis(policy), values, standing))
}

fn runs(series: Series, policy: Policy) -> Result<Vec<Means>, ReportError> {
    let one = |cost| predict(cost, am3358::Model::L1 { hz: 250 }, policy);
    Ok(costs(series).map(one).collect::<Result<_, _>>()?)
}

fn basis(policy: Policy) -> &'static str {
    match policy {
        Policy::Polling => EVENTS_POLLING,
        _ => EVENTS_BASIS,
    }
}

const INPUT: &str = "input: the costs are read from it";
const WORK: &str = "work conservation";
const HALVES: &str = "halves of a core";
const EVENTS: &str = "events, HZ 250";

const COSTS: &str =
    "costs from the columns CPU only and module only and one published copy bandwidth; nothing fitted";
const GIVEN_SPLIT: &str = "costs from the columns CPU only and module only and one published copy bandwidth, and how \
                           many files each side took from table 3; nothing fitted";
const EVENTS_BASIS: &str = "costs from the columns CPU only and module only and one published copy bandwidth; one core \
                            under a fair-share scheduler with 250 ticks per second and a kernel thread with a third of \
                            the module path's core time, both chosen while looking at column proposed of 002.2";
const EVENTS_POLLING: &str = "as proposed by events, and a monitor that needs 2 us to hand over a file, a guess: how \
                              the paper's monitor waits and wakes is not described";
