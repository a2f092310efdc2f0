//! The tables of papers 000 and 002: what costs that were read from the single-resource columns make of the rest.

use evener_core::Cost;

use super::{Column, Model, Standing, TableReport};
use crate::bounds::{fair_halves, work_conservation};
use crate::costs::{JOBS, SingleResource, fit};
use crate::papers::table::{
    SEED000_TABLE2, SEED002_TABLE_A1, SEED002_TABLE_A2, SEED002_TABLE2, SEED002_TABLE3, Table, TableError,
};

const INPUT: &str = "input: the costs are read from it";
const WORK: &str = "work conservation";
const HALVES: &str = "halves of a core";
const COSTS: &str =
    "costs from the columns CPU only and module only and one published copy bandwidth; nothing fitted";
const GIVEN_SPLIT: &str = "costs as before; how many jobs each side took is given by table 3; nothing fitted";

/// A table of times with the costs that its single-resource columns give.
struct Times {
    table: Table,
    sizes: Vec<f64>,
    costs: Vec<Cost>,
}

impl Times {
    fn read(table: Table, sizes: &str, slope_from: u64) -> Result<Self, TableError> {
        let sizes = table.numbers(sizes)?;
        let single = table.numbers("cpu_only_ms")?.into_iter().zip(table.numbers("module_only_ms")?);
        let columns: Vec<SingleResource> = sizes
            .iter()
            .zip(single)
            .map(|(&size, (cpu_only_ms, module_only_ms))| SingleResource {
                bytes: crate::round(size),
                cpu_only_ms,
                module_only_ms,
            })
            .collect();
        let costs = fit(&columns, slope_from).costs.into_iter().map(|(_, cost)| cost).collect();
        Ok(Self { table, sizes, costs })
    }

    fn singles(&self) -> Result<Vec<Column>, TableError> {
        Ok(vec![
            Column::printed(&self.table, "cpu_only_ms", "CPU only", INPUT)?,
            Column::printed(&self.table, "module_only_ms", "module only", INPUT)?,
        ])
    }

    /// A model that gives nanoseconds for each cost, told the row.
    fn model(
        &self,
        name: &'static str,
        basis: &'static str,
        nanoseconds: impl Fn(usize, Cost) -> f64,
    ) -> Model {
        let values = self.costs.iter().enumerate().map(|(row, &cost)| nanoseconds(row, cost) / 1e6).collect();
        Model::new(name, basis, values, Standing::Predicted)
    }

    /// The shared queue in closed form.
    fn halves(&self) -> Model {
        self.model(HALVES, COSTS, |_, cost| fair_halves(cost, f64::from(JOBS)).0)
    }

    fn report(
        self,
        id: &'static str,
        title: &'static str,
        combined: Vec<Column>,
    ) -> Result<TableReport, TableError> {
        let mut columns = self.singles()?;
        columns.extend(combined);
        Ok(TableReport { id, title, unit: "ms", sizes: self.sizes, columns })
    }
}

pub(super) fn tables() -> Result<Vec<TableReport>, TableError> {
    Ok(vec![
        paper_000()?,
        table_2()?,
        table_3()?,
        appendix(SEED002_TABLE_A1, "002.A1", "AES-192-CBC on the AM3358, 4000 files")?,
        appendix(SEED002_TABLE_A2, "002.A2", "AES-256-CBC on the AM3358, 4000 files")?,
    ])
}

fn paper_000() -> Result<TableReport, TableError> {
    let times = Times::read(SEED000_TABLE2, "file_size_bytes_nominal", 100)?;
    let both = Column::modelled(&times.table, "module_and_cpu_ms", "both", vec![times.halves()])?;
    times.report("000.2", "AES-256-CBC on the AM3358, 4000 files", vec![both])
}

fn appendix(table: Table, id: &'static str, title: &'static str) -> Result<TableReport, TableError> {
    let times = Times::read(table, "file_size_bytes", 256)?;
    let proposed = Column::modelled(&times.table, "proposed_ms", "proposed", vec![times.halves()])?;
    times.report(id, title, vec![proposed])
}

fn table_2() -> Result<TableReport, TableError> {
    let times = Times::read(SEED002_TABLE2, "file_size_bytes", 256)?;
    let half = f64::from(JOBS) / 2.0;
    let round_robin = times.model(WORK, COSTS, |_, cost| work_conservation(cost, [half, half]));
    let [on_cpu, on_module] =
        [SEED002_TABLE3.numbers("proposed_cpu_files")?, SEED002_TABLE3.numbers("proposed_module_files")?];
    let given =
        times.model(WORK, GIVEN_SPLIT, |row, cost| work_conservation(cost, [on_cpu[row], on_module[row]]));
    let combined = vec![
        Column::modelled(&times.table, "round_robin_ms", "round robin", vec![round_robin])?,
        Column::printed(
            &times.table,
            "polling_ms",
            "polling",
            "how the monitor waits and wakes is not described",
        )?,
        Column::modelled(&times.table, "proposed_ms", "proposed", vec![given, times.halves()])?,
    ];
    times.report("002.2", "AES-128-CBC on the AM3358, 4000 files", combined)
}

fn table_3() -> Result<TableReport, TableError> {
    let times = Times::read(SEED002_TABLE2, "file_size_bytes", 256)?;
    let split = times.costs.iter().map(|&cost| fair_halves(cost, f64::from(JOBS)).1).collect();
    let halves = Model::new(HALVES, COSTS, split, Standing::Predicted);
    let columns = vec![
        Column::printed(
            &SEED002_TABLE3,
            "polling_module_files",
            "polling",
            "how the monitor waits is not described",
        )?,
        Column::modelled(&SEED002_TABLE3, "proposed_module_files", "proposed", vec![halves])?,
    ];
    let title = "AES-128-CBC on the AM3358, files on the module";
    Ok(TableReport { id: "002.3", title, unit: "files", sizes: times.sizes, columns })
}
