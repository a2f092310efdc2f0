//! Passphrases: scrypt, one derivation at a time in the whole process.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use age::{DecryptError, EncryptError, Identity, Recipient, scrypt};
use age_core::format::{FileKey, Stanza};
use age_core::secrecy::SecretString;

/// What keys of passphrases cost: scrypt's work factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkFactors {
    /// Of new files.
    pub new: u8,
    /// The highest that is accepted in files that are read.
    pub most: u8,
}

impl Default for WorkFactors {
    /// New files as age makes them, 2^18: about a second and 256 MiB of memory. Read up to 2^20, 1 GiB: more is nobody's default.
    fn default() -> Self {
        Self { new: 18, most: 20 }
    }
}

impl WorkFactors {
    /// The highest that scrypt has room for, at 1 KiB for each of 2^factor blocks.
    #[must_use]
    pub fn within(memory_bytes: u64) -> u8 {
        let factor = (memory_bytes >> 10).checked_ilog2().unwrap_or(0);
        u8::try_from(factor).unwrap_or(u8::MAX)
    }

    /// What a factor costs, in words; the time is that of a core of 2020.
    #[must_use]
    pub fn cost(factor: u8) -> String {
        let mib = 1_u64.checked_shl(u32::from(factor).saturating_sub(10)).unwrap_or(u64::MAX);
        let memory = if mib < 1_024 { format!("{mib} MiB") } else { format!("{} GiB", mib >> 10) };
        let seconds = 1_u64.checked_shl(u32::from(factor).saturating_sub(18)).unwrap_or(u64::MAX);
        format!("{memory} of memory and about {seconds} s")
    }
}

/// Serves one caller after the other, because each takes hundreds of MiB.
pub(super) struct OneAtATime<T> {
    pub(super) inner: T,
    pub(super) factors: WorkFactors,
}

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

pub(super) fn passphrase_identity(
    passphrase: SecretString,
    factors: WorkFactors,
) -> OneAtATime<scrypt::Identity> {
    let mut identity = scrypt::Identity::new(passphrase);
    identity.set_max_work_factor(factors.most);
    OneAtATime { inner: identity, factors }
}

impl<T: Recipient> Recipient for OneAtATime<T> {
    fn wrap_file_key(&self, file_key: &FileKey) -> Result<(Vec<Stanza>, HashSet<String>), EncryptError> {
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        self.inner.wrap_file_key(file_key)
    }
}

impl<T: Identity> Identity for OneAtATime<T> {
    fn unwrap_stanza(&self, stanza: &Stanza) -> Option<Result<FileKey, DecryptError>> {
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        match self.inner.unwrap_stanza(stanza) {
            // The crate tells what this machine does in a second, not what is accepted.
            Some(Err(DecryptError::ExcessiveWork { required, .. })) => {
                Some(Err(DecryptError::ExcessiveWork { required, target: self.factors.most }))
            }
            unwrapped => unwrapped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_fits_the_memory_that_its_blocks_take() {
        // RFC 7914: 128 * r * N bytes, with the r = 8 of age.
        for factor in [10_u8, 18, 22] {
            let bytes = 128 * 8 * (1_u64 << factor);
            assert_eq!((WorkFactors::within(bytes), WorkFactors::within(bytes - 1)), (factor, factor - 1));
        }
        assert_eq!(WorkFactors::cost(18), "256 MiB of memory and about 1 s");
        assert_eq!(WorkFactors::cost(22), "4 GiB of memory and about 16 s");
    }
}
