//! Rounding to whole numbers.

/// The whole number nearest to `x`; 0 for what is below, or no number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates, as the text says"
)]
pub(crate) fn round(x: f64) -> u64 {
    x.round() as u64
}
