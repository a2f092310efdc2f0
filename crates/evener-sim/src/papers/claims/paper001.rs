//! Paper 001: what the text says of its figure 7. The text gives no numbers for it.

use super::{Claim, Finding, Tables, Verdict};
use crate::papers::table::TableError;

pub(super) const CLAIMS: &[Claim] = claims! {
    "C1" "without the scheduler throughput falls with processes, with it it stays level" => figure;
    "C2" "from about 500 processes on the scheduler is ahead" => figure;
    "C3" "PKCS#11 was measured beside both" => figure;
};

fn figure(_: &Tables) -> Result<Finding, TableError> {
    Ok(Finding::without_numbers(Verdict::NoNumbers, "figure 7 has no values in the text; shape only"))
}
