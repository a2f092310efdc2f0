//! The file in which processes of one user keep what they settled, in a directory that is theirs alone: a word for each class of messages, and behind those as many
//! for what the inner cipher has worked in all of them while it was open who does it.
//!
//! Its name says for what machine, libcrypto and version of ours it was measured, so that nothing in it can be out of date. Both ways are right:
//! nonsense in it chooses between them.

use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;
use std::{env, io};

use evener::counts_file::Directories;
use evener_fd::open_private_file;
use evener_kernels::Level;
use evener_ring::{Mapping, Words as _};

use super::class::Class;
use super::prov;
use crate::ffi;
use crate::state::rows::{CipherRow, Native};

/// What of the environment a file is found by.
struct Surroundings {
    places: Directories,
    /// Masks what OpenSSL uses of the processor.
    mask: Option<OsString>,
}

static SURROUNDINGS: OnceLock<Surroundings> = OnceLock::new();

/// Looks at the environment: when a provider is loaded, for later it may be under change.
pub(super) fn prepare() {
    let look = || Surroundings { places: ffi::private_directories(), mask: env::var_os("OPENSSL_ia32cap") };
    SURROUNDINGS.get_or_init(look);
}

/// Words of the file.
const WORDS: usize = 2 * Class::COUNT;

/// What is settled of a class; a word that is none says nothing.
pub(super) fn settled(file: &Mapping, class: Class) -> Option<&AtomicU32> {
    file.words().get(class.index())
}

/// Nanoseconds of work of a class.
pub(super) fn worked(file: &Mapping, class: Class) -> Option<&AtomicU32> {
    file.words().get(Class::COUNT + class.index())
}

/// The file of this machine and libcrypto, made where it is missing.
pub(super) fn open(row: &CipherRow, native: &Native) -> io::Result<Mapping> {
    let surroundings = SURROUNDINGS.get().ok_or(io::ErrorKind::NotFound)?;
    let name = name(row, native, surroundings);
    let file = open_private_file(&surroundings.places, &name, (WORDS * size_of::<u32>()) as u64)?;
    Mapping::shared(file.checked()?, WORDS)
}

fn name(row: &CipherRow, native: &Native, surroundings: &Surroundings) -> String {
    let mut hasher = DefaultHasher::new();
    (
        env!("CARGO_PKG_VERSION"),
        WORDS,
        native.level.name(),
        Level::processor(),
        prov(row).core.setting(c"openssl-version"),
    )
        .hash(&mut hasher);
    surroundings.mask.hash(&mut hasher);
    format!("kernels.{:016x}", hasher.finish())
}
