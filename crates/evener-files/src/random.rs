//! Bytes from the kernel's random source, for salts, nonces, keys and temporary names.

use crate::error::FormatError;

/// Fills `bytes` from the kernel's random source.
pub(crate) fn fill_random(bytes: &mut [u8]) -> Result<(), FormatError> {
    getrandom::getrandom(bytes).map_err(|error| FormatError::Library(format!("no random bytes: {error}")))
}
