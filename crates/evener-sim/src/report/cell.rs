//! Paper 004's tables: the proposal with six processes by mean value analysis, the rest as printed.

use super::{Column, Model, Standing, TableReport};
use crate::papers::cell::{FITTED_SIZES, Mode, Queue, six_processes};
use crate::papers::table::{
    SEED004_TABLE2, SEED004_TABLE3, SEED004_TABLE4, SEED004_TABLE5, Table, TableError,
};

pub(super) fn tables() -> Result<Vec<TableReport>, TableError> {
    let single = "input: the time of a call is read from it";
    Ok(vec![
        table("004.2", "AES-128-ECB on the Cell/B.E., one process", &SEED004_TABLE2, |table_data| {
            Column::printed(table_data, "proposed_mbps", "proposed", single)
        })?,
        table("004.3", "AES-128-CBC on the Cell/B.E., one process", &SEED004_TABLE3, |table_data| {
            Column::printed(table_data, "proposed_mbps", "proposed", single)
        })?,
        table("004.4", "AES-128-ECB on the Cell/B.E., six processes", &SEED004_TABLE4, |table_data| {
            proposed(table_data, Mode::Ecb)
        })?,
        table("004.5", "AES-128-CBC on the Cell/B.E., six processes", &SEED004_TABLE5, |table_data| {
            proposed(table_data, Mode::Cbc)
        })?,
    ])
}

fn table(
    id: &'static str,
    title: &'static str,
    printed: &Table,
    proposed: impl Fn(&Table) -> Result<Column, TableError>,
) -> Result<TableReport, TableError> {
    let not_modelled = "not modelled: not the proposal";
    let columns = vec![
        proposed(printed)?,
        Column::printed(printed, "mars_mbps", "Mars", not_modelled)?,
        Column::printed(printed, "ppe_mbps", "PPE only", not_modelled)?,
        Column::printed(printed, "core2duo_mbps", "Core2Duo", not_modelled)?,
    ];
    Ok(TableReport { id, title, unit: "Mbit/s", sizes: printed.numbers("data_size_bytes")?, columns })
}

fn proposed(table: &Table, mode: Mode) -> Result<Column, TableError> {
    let cells = six_processes(FITTED_SIZES, Queue::MeanValue)?;
    let cells: Vec<_> = cells.into_iter().filter(|cell| cell.mode == mode).collect();
    let standing = |fitted: bool| if fitted { Standing::Fitted } else { Standing::Predicted };
    let model = Model {
        name: "mean value analysis",
        basis: "time of a call from the one-process table; its serial part is s0 + s1 size, both fitted on the ECB cells \
                of 16 and 8192 B with six processes",
        values: cells.iter().map(|cell| cell.predicted_mbps).collect(),
        standing: cells.iter().map(|cell| standing(cell.fitted)).collect(),
    };
    Column::modelled(table, "proposed_mbps", "proposed", vec![model])
}
