//! What the papers claim, held against their own tables.
//!
//! Path of one verdict: the tables ([`Tables`]) -> a function per claim, which recomputes what the claim says
//! (one file per paper) -> a [`Finding`]: a verdict with the numbers behind it -> [`check`] lists them all. Where a
//! claim is a word ("near", "about"), the constant that gives it a meaning stands beside its function.

/// A paper's claims as a table: number within the paper, what is claimed, what recomputes it.
macro_rules! claims {
    ($($id:literal $text:literal => $check:expr;)*) => {
        &[$(Claim { id: $id, text: $text, check: $check }),*]
    };
}

mod paper000;
mod paper001;
mod paper002;
mod paper003;
mod paper004;
mod sizes;

use super::android::Uploads;
use super::table::{
    SEED000_TABLE2, SEED002_TABLE2, SEED002_TABLE3, SEED003_TABLE1, SEED004_TABLE2, SEED004_TABLE3,
    SEED004_TABLE4, SEED004_TABLE5, Table, TableError,
};

/// Whether a claim agrees with the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The tables say so too.
    True,
    /// The tables say something else.
    False,
    /// The tables say so for a part of what is claimed.
    Partly,
    /// The tables are compatible with the claim and with its opposite.
    Undecidable,
    /// The paper claims it, but did not measure it.
    NotMeasured,
    /// Measured or quoted, but the text gives no numbers from which it could be checked.
    NoNumbers,
}

impl Verdict {
    /// The verdict in one or two words.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "true",
            Self::False => "false",
            Self::Partly => "partly",
            Self::Undecidable => "undecidable",
            Self::NotMeasured => "not measured",
            Self::NoNumbers => "no numbers",
        }
    }
}

/// The result of checking a claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Whether the claim holds.
    pub verdict: Verdict,
    /// The numbers that decided, in the order in which `because` gives them.
    pub numbers: Vec<f64>,
    /// One sentence with these numbers.
    pub because: String,
}

impl Finding {
    fn new(verdict: Verdict, numbers: Vec<f64>, because: impl Into<String>) -> Self {
        Self { verdict, numbers, because: because.into() }
    }

    /// Holds or does not hold.
    fn that(holds: bool, numbers: Vec<f64>, because: impl Into<String>) -> Self {
        Self::new(if holds { Verdict::True } else { Verdict::False }, numbers, because)
    }

    /// Partly where some but not all of `parts` hold.
    fn of_parts(parts: &[bool], numbers: Vec<f64>, because: impl Into<String>) -> Self {
        let verdict = match parts.iter().filter(|&&holds| holds).count() {
            0 => Verdict::False,
            all if all == parts.len() => Verdict::True,
            _ => Verdict::Partly,
        };
        Self::new(verdict, numbers, because)
    }

    fn without_numbers(verdict: Verdict, because: &str) -> Self {
        Self::new(verdict, Vec::new(), because)
    }
}

/// The tables that claims are held against.
#[derive(Clone, Copy, Debug)]
pub struct Tables {
    /// Paper 000, table 2.
    pub seed000_table2: Table,
    /// Paper 002, table 2.
    pub seed002_table2: Table,
    /// Paper 002, table 3.
    pub seed002_table3: Table,
    /// Paper 003, table 1.
    pub seed003_table1: Table,
    /// Paper 004, tables 2 to 5: ECB and CBC with one process, ECB and CBC with six.
    pub seed004: [Table; 4],
}

impl Tables {
    /// The tables as they were printed.
    pub const PRINTED: Self = Self {
        seed000_table2: SEED000_TABLE2,
        seed002_table2: SEED002_TABLE2,
        seed002_table3: SEED002_TABLE3,
        seed003_table1: SEED003_TABLE1,
        seed004: [SEED004_TABLE2, SEED004_TABLE3, SEED004_TABLE4, SEED004_TABLE5],
    };
}

/// A claim of a paper.
struct Claim {
    /// Number within its paper; those of paper 002 as in `vectors/papers/seed002_claims.csv`.
    id: &'static str,
    /// What is claimed.
    text: &'static str,
    /// Recomputes it.
    check: fn(&Tables) -> Result<Finding, TableError>,
}

/// A claim with its finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// Paper: `000` to `004`.
    pub paper: &'static str,
    /// Number within the paper: `C1`, `C2`.
    pub id: &'static str,
    /// What is claimed.
    pub claim: &'static str,
    /// What the tables say.
    pub finding: Finding,
}

/// Checks every claim of the papers against `tables`.
///
/// # Errors
///
/// [`TableError`] where a column is missing or a cell is no number; [`Tables::PRINTED`] is whole.
///
/// # Panics
///
/// Where a table has not the rows of the printed one.
pub fn check(tables: &Tables) -> Result<Vec<Checked>, TableError> {
    let papers = [
        ("000", paper000::CLAIMS),
        ("001", paper001::CLAIMS),
        ("002", paper002::CLAIMS),
        ("003", paper003::CLAIMS),
        ("004", paper004::CLAIMS),
    ];
    let claims =
        papers.into_iter().flat_map(|(paper, claims)| claims.iter().map(move |claim| (paper, claim)));
    let checked = claims.map(|(paper, claim)| {
        let finding = (claim.check)(tables)?;
        Ok(Checked { paper, id: claim.id, claim: claim.text, finding })
    });
    checked.collect()
}

/// Checks the claims of paper 003 against `uploads` that were measured elsewhere.
#[must_use]
pub fn of_uploads(uploads: &Uploads) -> Vec<Checked> {
    let claims = paper003::CLAIMS.iter().zip(paper003::of_uploads(uploads));
    claims
        .map(|(claim, finding)| Checked { paper: "003", id: claim.id, claim: claim.text, finding })
        .collect()
}

#[cfg(test)]
mod tests;
