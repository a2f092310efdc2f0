//! The file in which processes of one user keep what they settled: a word for each length of key, in a directory that is theirs alone.
//!
//! Its name says for what machine, libcrypto and version of ours it was measured, so that nothing in it can be out of date. Both ways are right:
//! nonsense in it chooses between them.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::{env, io};

use super::gcm::prov;
use crate::ffi;
use crate::state::rows::{CipherRow, Native};
use evener::counts_file::{DIRECTORY_VARIABLE, Directories};
use evener_fd::open_private_file;
use evener_kernels::Level;
use evener_ring::Mapping;

/// Lengths of keys: 16, 24 and 32 bytes.
pub(super) const KEYS: usize = 3;

/// The file of this machine and libcrypto, made where it is missing.
pub(super) fn open(row: &CipherRow, native: &Native) -> io::Result<Mapping> {
    let places = if ffi::has_raised_rights() {
        Directories::default()
    } else {
        Directories::from_environment(DIRECTORY_VARIABLE)
    };
    let file = open_private_file(&places, &name(row, native), (KEYS * size_of::<u32>()) as u64)?;
    Mapping::shared(file.checked()?, KEYS)
}

fn name(row: &CipherRow, native: &Native) -> String {
    let mut hasher = DefaultHasher::new();
    (
        env!("CARGO_PKG_VERSION"),
        native.kernel.0.name(),
        Level::processor(),
        prov(row).core.setting(c"openssl-version"),
    )
        .hash(&mut hasher);
    // Masks what OpenSSL uses of the processor.
    env::var_os("OPENSSL_ia32cap").hash(&mut hasher);
    format!("kernels.{:016x}", hasher.finish())
}
