//! The libraries that cores encrypt with, and which of them the user leaves out (`EVENER_DISABLE`).

use evener::core::{Algorithm, Direction};
use evener_driver_lanes::Lanes;
use evener_driver_libcrypto::Libcrypto;
use evener_driver_multibuffer::{Multibuffer, Unavailable};

/// What is measured at once.
pub(crate) type Operation = (Algorithm, Direction);

/// The plain driver. Whether OpenSSL offers anything at all was looked at before, where it is needed.
pub(crate) fn libcrypto() -> Libcrypto {
    Libcrypto::put_off()
}

/// The multi-buffer driver, unless the user does not want it.
pub(super) fn multibuffer() -> Result<Multibuffer, Unavailable> {
    match is_disabled(MULTIBUFFER) {
        true => Err(Unavailable::Disabled),
        false => Multibuffer::load(),
    }
}

/// The kernels of our own, where this processor has their instructions and the user wants them.
pub(super) fn lanes() -> Option<Lanes> {
    if is_disabled(LANES) { None } else { Lanes::new() }
}

/// What they compute, encryption at least.
pub(super) fn algorithms_of_lanes() -> Vec<Algorithm> {
    let is_encrypted = |algorithm: &Algorithm| Lanes::are_for(*algorithm, Direction::Encrypt);
    Algorithm::ALL.iter().copied().filter(is_encrypted).collect()
}

const MULTIBUFFER: &str = "multibuffer";
const LANES: &str = "lanes";

fn is_disabled(name: &str) -> bool {
    disabled().iter().any(|disabled| disabled == name)
}

/// What `EVENER_DISABLE` names.
fn disabled() -> Vec<String> {
    let named = std::env::var("EVENER_DISABLE").unwrap_or_default();
    named.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
}

/// A sentence for each name that switches nothing off, so that nothing is measured by mistake.
pub(super) fn unknown_drivers() -> Vec<String> {
    let unknown = disabled().into_iter().filter(|name| name != MULTIBUFFER && name != LANES);
    let told =
        |name| format!("EVENER_DISABLE names {name:?}; only {MULTIBUFFER} and {LANES} can be left out");
    unknown.map(told).collect()
}
