//! Names of modules as a configuration writes them, and from which request on modules are worth a question.

use std::fmt;
use std::str::FromStr;

use evener_driver_kernel as kernel;
use evener_driver_virtio as hosted;

/// Shortest request for which modules are considered where nothing else is configured, beside a core with AES instructions and one
/// without. The query takes some 20 ns: too much of the 1 us that 1 KiB takes on the former, nothing of the 67 us on a core as slow
/// as paper 000's, where a module pays from 1136 bytes.
const MODULE_BYTES_MIN: usize = 4 << 10;
const MODULE_BYTES_MIN_SLOW: usize = 1 << 10;

/// The shortest request for which modules are considered on this core.
pub(crate) fn bytes_min() -> usize {
    if has_aes() { MODULE_BYTES_MIN } else { MODULE_BYTES_MIN_SLOW }
}

/// Whether this core has AES instructions. 32-bit ARM as it is found beside engines has none; other processors are unknown.
fn has_aes() -> bool {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    return std::arch::is_x86_feature_detected!("aes");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("aes");
    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
    return cfg!(not(target_arch = "arm"));
}

/// A module's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ModuleName {
    /// Of another process.
    Hosted(hosted::ModuleName),
    /// Behind the kernel.
    Kernel(kernel::ModuleName),
}

impl FromStr for ModuleName {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let hosted = || text.parse().map(Self::Hosted).map_err(drop);
        text.parse().map(Self::Kernel).or_else(|_| hosted())
    }
}

impl fmt::Display for ModuleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hosted(name) => name.fmt(f),
            Self::Kernel(name) => name.fmt(f),
        }
    }
}

/// Names with spaces between them; nothing where one is none.
pub(crate) fn names(text: &str) -> Option<Vec<ModuleName>> {
    text.split_whitespace().map(|name| name.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_side_by_side_and_each_has_to_be_one() {
        let shown = |text| names(text).map(|all| all.iter().map(ModuleName::to_string).collect::<Vec<_>>());
        let two = "hosted:/run/evener.sock,offer=all afalg:virtio_crypto_aes_cbc";
        assert_eq!(shown(two), Some(two.split(' ').map(str::to_owned).collect()));
        assert_eq!(shown("devcrypto"), Some(vec!["devcrypto:/dev/crypto".to_owned()]));
        assert_eq!(shown("  "), Some(vec![]));
        for wrong in ["emulated:am3358", "afalg:", "hosted:", "hosted:/a evener", "qat"] {
            assert_eq!(shown(wrong), None, "{wrong}");
        }
    }
}
