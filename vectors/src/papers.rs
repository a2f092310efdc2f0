//! The tables of the papers that Evener builds on, as they were printed; `papers/README.md` names the papers.

use crate::Error;

/// One table: named columns over rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table(&'static str);

/// Paper 000, table 2: AES-256-CBC on the AM3358, time for 4000 files by size and way.
pub const SEED000_TABLE2: Table = Table(include_str!("../papers/seed000_table2.csv"));
/// Paper 002, table 2: AES-128-CBC on the AM3358, time for 4000 files by size and policy.
pub const SEED002_TABLE2: Table = Table(include_str!("../papers/seed002_table2.csv"));
/// Paper 002, table 3: how many of the 4000 files each side took.
pub const SEED002_TABLE3: Table = Table(include_str!("../papers/seed002_table3.csv"));
/// Paper 002, table A.1: as table 2 with AES-192-CBC and fewer policies.
pub const SEED002_TABLE_A1: Table = Table(include_str!("../papers/seed002_tableA1.csv"));
/// Paper 002, table A.2: as table 2 with AES-256-CBC and fewer policies.
pub const SEED002_TABLE_A2: Table = Table(include_str!("../papers/seed002_tableA2.csv"));
/// Paper 004, table 2: AES-128-ECB on the Cell/B.E., one process, Mbit/s by size and system.
pub const SEED004_TABLE2: Table = Table(include_str!("../papers/seed004_table2.csv"));
/// Paper 004, table 3: AES-128-CBC, one process.
pub const SEED004_TABLE3: Table = Table(include_str!("../papers/seed004_table3.csv"));
/// Paper 004, table 4: AES-128-ECB, six processes.
pub const SEED004_TABLE4: Table = Table(include_str!("../papers/seed004_table4.csv"));
/// Paper 004, table 5: AES-128-CBC, six processes.
pub const SEED004_TABLE5: Table = Table(include_str!("../papers/seed004_table5.csv"));
/// Costs of one job on the AM3358 by key length and size, derived from paper 002 (see `papers/README.md`).
pub const AM3358_COSTS: Table = Table(include_str!("../papers/am3358_costs.csv"));

impl Table {
    /// The numbers of one column, from the top.
    ///
    /// # Errors
    ///
    /// [`Error::NoColumn`], [`Error::NotANumber`].
    pub fn numbers(&self, column: &str) -> Result<Vec<f64>, Error> {
        self.cells(column)?.map(|cell| number(column, cell)).collect()
    }

    /// The cells of one column as text, from the top.
    ///
    /// # Errors
    ///
    /// [`Error::NoColumn`].
    pub fn cells(&self, column: &str) -> Result<impl Iterator<Item = &'static str> + use<>, Error> {
        let mut lines = self.0.lines();
        let mut names = lines.next().unwrap_or_default().split(',');
        let at = names.position(|name| name == column).ok_or_else(|| Error::NoColumn(column.to_owned()))?;
        Ok(lines.map(move |line| line.split(',').nth(at).unwrap_or_default()))
    }
}

fn number(column: &str, cell: &str) -> Result<f64, Error> {
    cell.parse().map_err(|_| Error::NotANumber { column: column.to_owned(), cell: cell.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_headline_of_paper_002_stands_in_its_table() {
        let last = |column| *SEED002_TABLE2.numbers(column).unwrap().last().unwrap();
        assert_eq!(last("file_size_bytes"), 16384.0);
        assert!((last("cpu_only_ms") / last("proposed_ms") - 2.11).abs() < 0.005);
    }

    #[test]
    fn every_row_of_table_3_adds_up_to_4000_files() {
        for policy in ["cpu_only", "module_only", "round_robin", "polling", "proposed"] {
            let side = |side| SEED002_TABLE3.numbers(&format!("{policy}_{side}_files")).unwrap();
            let sums: Vec<f64> =
                side("cpu").iter().zip(side("module")).map(|(cpu, module)| cpu + module).collect();
            assert_eq!(sums, [4000.0; 8], "{policy}");
        }
    }

    #[test]
    fn the_costs_add_up_to_the_single_resource_columns_they_come_from() {
        let tables = [(128.0, SEED002_TABLE2), (192.0, SEED002_TABLE_A1), (256.0, SEED002_TABLE_A2)];
        let costs = |column| AM3358_COSTS.numbers(column).unwrap();
        let bits = costs("key_bits");
        for (row, size) in costs("size_bytes").into_iter().enumerate() {
            let table = tables.iter().find(|(key, _)| *key == bits[row]).unwrap().1;
            let sizes = table.numbers("file_size_bytes").unwrap();
            let at = sizes.iter().position(|listed| *listed == size).unwrap();
            let per_job_us = |column| table.numbers(column).unwrap()[at] * 1000.0 / 4000.0;
            assert!((per_job_us("cpu_only_ms") - costs("c_us")[row]).abs() < 0.01);
            assert!((per_job_us("module_only_ms") - costs("d_us")[row] - costs("h_us")[row]).abs() < 0.02);
        }
        assert_eq!(bits.len(), 24);
    }

    #[test]
    fn paper_004_has_ten_cells_per_system_and_mode() {
        let tables = [SEED004_TABLE2, SEED004_TABLE3, SEED004_TABLE4, SEED004_TABLE5];
        let all = tables.map(|table| table.numbers("proposed_mbps").unwrap().len());
        assert_eq!(all, [5; 4]);
        assert!(SEED004_TABLE3.cells("mode").unwrap().all(|mode| mode == "cbc"));
        assert_eq!(SEED000_TABLE2.numbers("module_and_cpu_ms").unwrap().len(), 9);
    }

    #[test]
    fn a_wrong_column_is_an_error_not_a_zero() {
        assert_eq!(SEED002_TABLE2.numbers("speed"), Err(Error::NoColumn("speed".into())));
        let text = Error::NotANumber { column: "mode".into(), cell: "cbc".into() };
        assert_eq!(SEED004_TABLE3.numbers("mode"), Err(text));
    }
}
