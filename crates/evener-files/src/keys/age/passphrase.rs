//! Passphrases: scrypt, one derivation at a time in the whole process.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use age::{DecryptError, EncryptError, Identity, Recipient, scrypt};
use age_core::format::{FileKey, Stanza};
use age_core::secrecy::SecretString;

/// scrypt's work factor for new files, as in age: 2^18, about a second and 256 MiB of memory.
pub(super) const WORK_FACTOR: u8 = 18;
/// The highest that is read, as in age: 2^22, 4 GiB.
const WORK_FACTOR_MAX: u8 = 22;
/// Serves one caller after the other, because each takes hundreds of MiB.
pub(super) struct OneAtATime<T>(pub(super) T);

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

pub(super) fn passphrase_identity(passphrase: SecretString) -> OneAtATime<scrypt::Identity> {
    let mut identity = scrypt::Identity::new(passphrase);
    identity.set_max_work_factor(WORK_FACTOR_MAX);
    OneAtATime(identity)
}

impl<T: Recipient> Recipient for OneAtATime<T> {
    fn wrap_file_key(&self, file_key: &FileKey) -> Result<(Vec<Stanza>, HashSet<String>), EncryptError> {
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.wrap_file_key(file_key)
    }
}

impl<T: Identity> Identity for OneAtATime<T> {
    fn unwrap_stanza(&self, stanza: &Stanza) -> Option<Result<FileKey, DecryptError>> {
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.unwrap_stanza(stanza)
    }
}
