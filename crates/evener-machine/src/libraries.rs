//! The libraries that cores encrypt with, and which of them the user leaves out (`EVENER_DISABLE`).

use evener::core::{Algorithm, Direction};
use evener_driver_lanes::Lanes;
use evener_driver_libcrypto::Libcrypto;
use evener_driver_multibuffer::{Multibuffer, Unavailable};
use evener_kernels::hashes::Means;

/// What is measured at once.
pub type Operation = (Algorithm, Direction);

/// The plain driver. Whether OpenSSL offers anything at all was looked at before, where it is needed.
pub fn libcrypto() -> Libcrypto {
    Libcrypto::put_off()
}

/// The multi-buffer driver, unless the user does not want it.
pub(crate) fn multibuffer() -> Result<Multibuffer, Unavailable> {
    match is_disabled(MULTIBUFFER) {
        true => Err(Unavailable::Disabled),
        false => Multibuffer::load(),
    }
}

/// The kernels of our own, where there are some for this processor and the user wants them.
pub(crate) fn lanes() -> Option<Lanes> {
    if is_disabled(LANES) {
        return None;
    }
    let lanes = if is_disabled(AES) { Lanes::without_aes() } else { Lanes::new() };
    lanes.map(|lanes| lanes.hashing_by(means_of_hashes()))
}

/// The instructions that hashes are computed by, where this processor has any and the user wants them.
pub fn means_of_hashes() -> Option<Means> {
    without(Means::best(), is_disabled)
}

/// What is left of instructions.
fn without(means: Option<Means>, is_disabled: impl Fn(&str) -> bool) -> Option<Means> {
    let bits = if is_disabled(AVX512) { 256 } else { 512 };
    let means = means.filter(|_| !is_disabled(LANES))?.up_to(bits)?;
    if is_disabled(SHA) { means.without_sha() } else { Some(means) }
}

/// What they compute, encryption at least.
pub(crate) fn algorithms_of_lanes() -> Vec<Algorithm> {
    let is_encrypted = |algorithm: &Algorithm| Lanes::are_for(*algorithm, Direction::Encrypt);
    Algorithm::ALL.iter().copied().filter(is_encrypted).collect()
}

const MULTIBUFFER: &str = "multibuffer";
const LANES: &str = "lanes";
/// Instructions for AES: without them CBC encryption is bitsliced, as on processors that have none.
const AES: &str = "aes";
/// The SHA extensions.
const SHA: &str = "sha";
/// Registers of 512 bits for hashes.
const AVX512: &str = "avx512";
const ALL: [&str; 5] = [MULTIBUFFER, LANES, AES, SHA, AVX512];

fn is_disabled(name: &str) -> bool {
    disabled().iter().any(|disabled| disabled == name)
}

/// What `EVENER_DISABLE` names.
fn disabled() -> Vec<String> {
    let named = std::env::var("EVENER_DISABLE").unwrap_or_default();
    named.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
}

/// A sentence for each name that switches nothing off, so that nothing is measured by mistake.
pub fn unknown_drivers() -> Vec<String> {
    let unknown = disabled().into_iter().filter(|name| !ALL.contains(&name.as_str()));
    let told = |name| format!("EVENER_DISABLE names {name:?}; only {} can be left out", ALL.join(", "));
    unknown.map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_all_that_hashes_lack() {
        for means in Means::all() {
            let left = |names: &[&str]| without(Some(means), |name| names.contains(&name));
            let has = |left: Option<Means>| left.map_or((false, 0), |left| (left.has_sha(), left.bits()));
            let (has_sha, bits) = has(Some(means));
            assert_eq!(has(left(&[])), (has_sha, bits));
            assert_eq!(has(left(&[MULTIBUFFER])), (has_sha, bits));
            assert_eq!(has(left(&[SHA])), (false, bits));
            assert_eq!(has(left(&[AVX512])), (has_sha, bits.min(256)));
            assert_eq!(has(left(&[SHA, AVX512])), (false, bits.min(256)));
            assert_eq!(left(&[LANES]), None);
        }
        assert_eq!(without(None, |_| false), None);
    }
}
