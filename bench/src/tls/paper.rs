//! Paper 003's uploads: what its browser measured, and whether its claims hold for what a browser measures here.

use evener_sim::papers::android::Uploads;
use evener_sim::papers::claims::{self, Checked};
use serde::{Deserialize, Serialize};

/// A row of the paper's table 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PaperUpload {
    /// Of the file.
    pub bytes: u64,
    /// With the crypto module.
    pub with_ms: f64,
    /// Without it.
    pub without_ms: f64,
}

/// A claim of the paper, held against what was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// `C1`, as the simulator counts them.
    pub id: String,
    /// What the paper says.
    pub claim: String,
    /// Whether the paper's own table says so.
    pub holds_in_the_paper: bool,
    /// Whether it holds here.
    pub holds: bool,
    /// The numbers behind it.
    pub because: String,
}

/// Table 1.
#[must_use]
pub(super) fn uploads() -> Vec<PaperUpload> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sizes in bytes, as printed")]
    let row = |row: &evener_sim::papers::android::Upload| PaperUpload {
        bytes: row.size_bytes as u64,
        with_ms: row.ms[0],
        without_ms: row.ms[1],
    };
    Uploads::printed().map(|uploads| uploads.rows.iter().map(row).collect()).unwrap_or_default()
}

/// The paper's nine sizes.
#[must_use]
pub fn sizes() -> Vec<u64> {
    uploads().iter().map(|row| row.bytes).collect()
}

/// Holds the paper's claims against uploads: bytes, milliseconds with offload and without; none where not all of the paper's
/// sizes are there.
#[must_use]
pub(super) fn claims(measured: &[(u64, f64, f64)]) -> Vec<Claim> {
    let mut rows = Vec::new();
    for bytes in sizes() {
        let Some(&(_, with_ms, without_ms)) = measured.iter().find(|row| row.0 == bytes) else {
            return Vec::new();
        };
        #[expect(clippy::cast_precision_loss, reason = "sizes are below 2^53")]
        rows.push((bytes as f64, [with_ms, without_ms]));
    }
    let printed = Uploads::printed().map(|uploads| claims::of_uploads(&uploads)).unwrap_or_default();
    let here = claims::of_uploads(&Uploads::measured(&rows));
    let pair = |(here, printed): (Checked, Checked)| Claim {
        id: here.id.to_owned(),
        claim: here.claim.to_owned(),
        holds_in_the_paper: printed.finding.verdict == claims::Verdict::True,
        holds: here.finding.verdict == claims::Verdict::True,
        because: here.finding.because,
    };
    here.into_iter().zip(printed).map(pair).collect()
}
