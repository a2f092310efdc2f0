//! The libraries that cores encrypt with, and which of them the user leaves out (`EVENER_DISABLE`).

use evener::core::{Algorithm, Direction};
use evener_driver_libcrypto::Libcrypto;
use evener_driver_multibuffer::{Multibuffer, Unavailable};

/// What is measured at once.
pub(crate) type Operation = (Algorithm, Direction);

pub(crate) fn libcrypto() -> Libcrypto {
    Libcrypto::new().expect("it was there when the machine was looked at")
}

/// The multi-buffer driver, unless the user does not want it.
pub(super) fn multibuffer() -> Result<Multibuffer, Unavailable> {
    if disabled().iter().any(|name| name == MULTIBUFFER) {
        return Err(Unavailable::Disabled);
    }
    Multibuffer::load()
}

const MULTIBUFFER: &str = "multibuffer";

/// What `EVENER_DISABLE` names.
fn disabled() -> Vec<String> {
    let named = std::env::var("EVENER_DISABLE").unwrap_or_default();
    named.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
}

/// A sentence for each name that switches nothing off, so that nothing is measured by mistake.
pub(super) fn unknown_drivers() -> Vec<String> {
    let unknown = disabled().into_iter().filter(|name| name != MULTIBUFFER);
    unknown.map(|name| format!("EVENER_DISABLE names {name:?}; only {MULTIBUFFER} can be left out")).collect()
}
