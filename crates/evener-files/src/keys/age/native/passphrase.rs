//! Passphrases: scrypt, one derivation at a time in the whole process.

use std::sync::{Mutex, PoisonError};

use scrypt::{Params, scrypt};
use secrecy::{ExposeSecret as _, SecretString};
use zeroize::Zeroizing;

use crate::error::FormatError;
use crate::keys::age::file_key::{
    FileKey, Unwrap, WRAPPED_BYTES, Wrap, Wrapped, ZERO_NONCE, malformed, open, random, seal,
};
use crate::keys::age::stanza::{Stanza, decoded, encoded};

/// The word of its stanzas.
const KIND: &str = "scrypt";
const SALT_PREFIX: &[u8] = b"age-encryption.org/v1/scrypt";
const SALT_BYTES: usize = 16;
/// Bytes of memory for each unit of work: 128 times scrypt's r, which is 8.
const BYTES_PER_WORK: u64 = 1024;

/// Serves one caller after the other, because each takes hundreds of MiB.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// What keys of passphrases cost: scrypt's work factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkFactors {
    /// Of new files.
    pub new: u8,
    /// The highest that is accepted in files that are read.
    pub most: u8,
}

impl Default for WorkFactors {
    /// New files as age makes them, 2^18: about a second and 256 MiB of memory. Read up to 2^20, 1 GiB: more is no program's default.
    fn default() -> Self {
        Self { new: 18, most: 20 }
    }
}

impl WorkFactors {
    /// The highest that is made or read, as in age: 2^22, 4 GiB.
    pub const HIGHEST: u8 = 22;

    /// The highest that scrypt has space for, at 1 KiB for each of 2^factor blocks.
    #[must_use]
    pub fn within(memory_bytes: u64) -> u8 {
        let factor = (memory_bytes / BYTES_PER_WORK).checked_ilog2().unwrap_or(0);
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

/// A passphrase, as recipient and as identity.
#[derive(Clone)]
pub(in crate::keys::age) struct Passphrase {
    text: SecretString,
    factors: WorkFactors,
}

impl Passphrase {
    pub(in crate::keys::age) fn new(text: SecretString, factors: WorkFactors) -> Self {
        Self { text, factors }
    }

    fn key(&self, salt: &[u8; SALT_BYTES], work_factor: u8) -> Result<Zeroizing<[u8; 32]>, FormatError> {
        let library = |error: String| FormatError::Library(format!("scrypt: {error}"));
        let params = Params::new(work_factor, 8, 1, 32).map_err(|error| library(error.to_string()))?;
        let salt = [SALT_PREFIX, salt].concat();
        let mut key = Zeroizing::new([0; 32]);
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        if !can_be_had(BYTES_PER_WORK << work_factor) {
            let cost = WorkFactors::cost(work_factor);
            return Err(FormatError::Library(format!(
                "the key of its passphrase takes {cost}: that memory cannot be had (ulimit -v)"
            )));
        }
        scrypt(self.text.expose_secret().as_bytes(), &salt, &params, &mut *key)
            .map_err(|error| library(error.to_string()))?;
        Ok(key)
    }
}

/// Whether there is so much memory. The library that takes it would end the process where there is not.
fn can_be_had(bytes: u64) -> bool {
    usize::try_from(bytes).is_ok_and(|bytes| Vec::<u8>::new().try_reserve_exact(bytes).is_ok())
}

impl Wrap for Passphrase {
    fn wrap(&self, file_key: &FileKey) -> Result<Wrapped, FormatError> {
        if self.factors.new > WorkFactors::HIGHEST {
            return Err(FormatError::TooMuchWork { most: WorkFactors::HIGHEST });
        }
        let salt = random::<SALT_BYTES>()?;
        let key = self.key(&salt, self.factors.new)?;
        let args = [encoded(&*salt), self.factors.new.to_string()];
        let body = seal(&key, &ZERO_NONCE, &**file_key);
        // A label of its own: a passphrase goes with nothing else.
        let label = encoded(&*random::<16>()?);
        Ok(Wrapped::one(Stanza::new(KIND, &[&args[0], &args[1]], &body)).labelled(&label))
    }
}

impl Unwrap for Passphrase {
    fn unwrap(&self, stanzas: &[Stanza]) -> Result<Option<FileKey>, FormatError> {
        let Some(stanza) = stanzas.iter().find(|stanza| stanza.kind == KIND) else { return Ok(None) };
        let [salt, work_factor] = &stanza.args[..] else {
            return Err(malformed("a scrypt stanza of its header has another number of arguments"));
        };
        let salt = decoded(salt).and_then(|salt| <[u8; SALT_BYTES]>::try_from(salt).ok());
        let salt = salt.ok_or_else(|| malformed("a scrypt stanza of its header holds no salt"))?;
        let work_factor = factor(work_factor)?;
        if stanza.body.len() != WRAPPED_BYTES {
            return Err(malformed("a scrypt stanza of its header has another length"));
        }
        if work_factor > self.factors.most {
            let (cost, accepted) = (WorkFactors::cost(work_factor), self.factors.most);
            return Err(FormatError::ExcessiveWork { required: work_factor, cost, accepted });
        }
        Ok(open(&*self.key(&salt, work_factor)?, &ZERO_NONCE, &stanza.body))
    }

    fn name(&self) -> String {
        "the passphrase".to_owned()
    }
}

/// A work factor as the format writes it: digits, no zero before them.
fn factor(text: &str) -> Result<u8, FormatError> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    if !is_plain || text.is_empty() {
        return Err(malformed("a scrypt stanza of its header holds no work factor"));
    }
    let factor = text.parse::<u8>().ok().filter(|factor| *factor <= WorkFactors::HIGHEST);
    factor.ok_or(FormatError::TooMuchWork { most: WorkFactors::HIGHEST })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_fits_the_memory_that_scrypt_takes_for_it() {
        // RFC 7914: 128 * r * N bytes; r is 8 in age.
        for factor in 1..=30 {
            let bytes = 128 * 8 * (1_u64 << factor);
            assert_eq!((WorkFactors::within(bytes), WorkFactors::within(bytes - 1)), (factor, factor - 1));
        }
        assert_eq!((WorkFactors::within(0), WorkFactors::within(u64::MAX)), (0, 53));
    }

    #[test]
    fn costs_are_told_in_units_that_one_reads_and_never_overflow() {
        assert_eq!(WorkFactors::cost(18), "256 MiB of memory and about 1 s");
        assert_eq!(WorkFactors::cost(20), "1 GiB of memory and about 4 s");
        assert_eq!(WorkFactors::cost(10), "1 MiB of memory and about 1 s");
        for factor in 0..=u8::MAX {
            assert!(!WorkFactors::cost(factor).is_empty());
        }
    }
}
