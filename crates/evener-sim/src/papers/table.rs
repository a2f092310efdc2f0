//! The tables of the papers, as they were printed, and the reference predictions; `vectors/papers/README.md`
//! names the source of each.

/// One table: named columns over rows. Cells may stand in double quotes, which may contain commas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table(&'static str);

macro_rules! tables {
    ($($name:ident: $file:literal, $what:literal;)*) => {
        $(
            #[doc = $what]
            pub const $name: Table = Table(include_str!(concat!("../../../../vectors/papers/", $file)));
        )*
    };
}

tables! {
    SEED000_TABLE2: "seed000_table2.csv", "Paper 000, table 2: AES-256-CBC, ms for 4000 files by size and way.";
    SEED002_TABLE2: "seed002_table2.csv", "Paper 002, table 2: AES-128-CBC, ms for 4000 files by size and policy.";
    SEED002_TABLE3: "seed002_table3.csv", "Paper 002, table 3: how many of the 4000 files each side took.";
    SEED002_TABLE_A1: "seed002_tableA1.csv", "Paper 002, table A.1: as table 2 with AES-192-CBC, three policies.";
    SEED002_TABLE_A2: "seed002_tableA2.csv", "Paper 002, table A.2: as table 2 with AES-256-CBC, three policies.";
    WORKLOAD_UNIFORM8: "golden/workload_mixed_uniform8.csv", "Sizes of 4000 jobs, evenly over those of paper 002.";
    WORKLOAD_TLS: "golden/workload_mixed_tls.csv", "Sizes of 4000 jobs, many small and many of 16384 bytes.";
    AM3358_COSTS: "am3358_costs.csv", "Costs of one job on the AM3358 by key length and size, derived from paper 002.";
    SEED003_TABLE1: "seed003_table1.csv", "Paper 003, table 1: ms for an upload by size, with the module and without.";
    SEED004_TABLE2: "seed004_table2.csv", "Paper 004, table 2: AES-128-ECB, one process, Mbit/s by size and system.";
    SEED004_TABLE3: "seed004_table3.csv", "Paper 004, table 3: AES-128-CBC, one process.";
    SEED004_TABLE4: "seed004_table4.csv", "Paper 004, table 4: AES-128-ECB, six processes.";
    SEED004_TABLE5: "seed004_table5.csv", "Paper 004, table 5: AES-128-CBC, six processes.";
}

/// What is wrong with a table or with the question to it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The table has no column of this name.
    #[error("no column `{0}`")]
    NoColumn(String),
    /// A cell is not a number.
    #[error("column `{column}`: `{cell}` is not a number")]
    NotANumber {
        /// The column's name.
        column: String,
        /// What stands there.
        cell: String,
    },
}

impl Table {
    /// A table from text: a line of names, then rows.
    #[must_use]
    pub const fn new(text: &'static str) -> Self {
        Self(text)
    }

    /// The numbers of one column, from the top.
    ///
    /// # Errors
    ///
    /// [`TableError`] where there is no such column, or a cell in it is no number.
    pub fn numbers(&self, column: &str) -> Result<Vec<f64>, TableError> {
        let number = |cell: String| match cell.parse() {
            Ok(number) => Ok(number),
            Err(_) => Err(TableError::NotANumber { column: column.to_owned(), cell }),
        };
        self.cells(column)?.into_iter().map(number).collect()
    }

    /// The cells of one column as text, from the top.
    ///
    /// # Errors
    ///
    /// [`TableError::NoColumn`].
    pub fn cells(&self, column: &str) -> Result<Vec<String>, TableError> {
        let mut rows = self.0.lines().map(split);
        let names = rows.next().unwrap_or_default();
        let Some(at) = names.iter().position(|name| name == column) else {
            return Err(TableError::NoColumn(column.to_owned()));
        };
        Ok(rows.map(|row| row.get(at).cloned().unwrap_or_default()).collect())
    }
}

/// The cells of one line.
pub(crate) fn split(line: &str) -> Vec<String> {
    let (mut cells, mut quoted) = (vec![String::new()], false);
    for sign in line.chars() {
        match sign {
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            _ => cells.last_mut().expect("there is always a last cell").push(sign),
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_cell_may_contain_commas() {
        let table = Table::new("id,claim,holds\nC1,\"a, b\",yes\nC2,c,no\n");
        assert_eq!(table.cells("claim").unwrap(), ["a, b", "c"]);
        assert_eq!(table.cells("holds").unwrap(), ["yes", "no"]);
    }

    #[test]
    fn a_wrong_column_and_a_word_in_a_column_of_numbers_are_errors() {
        let table = Table::new("a,b\n1,x\n");
        assert_eq!(table.numbers("c"), Err(TableError::NoColumn("c".into())));
        assert_eq!(table.numbers("b"), Err(TableError::NotANumber { column: "b".into(), cell: "x".into() }));
    }

    #[test]
    fn the_headline_of_paper_002_stands_in_its_table() {
        let last = |column| *SEED002_TABLE2.numbers(column).unwrap().last().unwrap();
        assert_eq!(last("file_size_bytes"), 16384.0);
        assert!((last("cpu_only_ms") / last("proposed_ms") - 2.11).abs() < 0.005);
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
        assert!(SEED004_TABLE3.cells("mode").unwrap().iter().all(|mode| mode == "cbc"));
        assert_eq!(SEED000_TABLE2.numbers("module_and_cpu_ms").unwrap().len(), 9);
    }
}
