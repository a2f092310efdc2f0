//! Paper 001: what its figure 7 is said to show. The text has no numbers of it.

use super::{Claim, Finding, Tables, Verdict};
use crate::papers::table::TableError;

pub(super) const CLAIMS: &[Claim] = &[
    Claim {
        id: "C1",
        text: "without the scheduler throughput falls with processes, with it it stays level",
        check: figure,
    },
    Claim { id: "C2", text: "from about 500 processes on the scheduler is ahead", check: figure },
    Claim { id: "C3", text: "PKCS#11 was measured beside both", check: figure },
];

fn figure(_: &Tables) -> Result<Finding, TableError> {
    Ok(Finding::without_numbers(Verdict::NoNumbers, "figure 7 has no values in the text; shape only"))
}
