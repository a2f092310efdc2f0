//! A device behind the kernel, as the threads that call it see it: keys, requests that own their memory, and why one failed.

use std::io;

use evener_core::{Algorithm, Direction, JobError, TAG_BYTES_MAX};
use rustix::io::Errno;
use zeroize::Zeroizing;

/// What a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spec {
    pub(crate) algorithm: Algorithm,
    pub(crate) direction: Direction,
}

/// A kind of thing that works on one request per calling thread.
pub(crate) trait Device: Send + Sync + 'static {
    /// A key in the kernel, gone when it is dropped.
    type Key: Send + Sync + 'static;

    /// Whether a request of these lengths is for it.
    fn takes(&self, algorithm: Algorithm, text_bytes: usize, aad_bytes: usize) -> bool;

    /// Puts a key into the kernel. May sleep.
    fn open_key(&self, spec: Spec, key: &[u8]) -> Result<Self::Key, Failure>;

    /// Works on a request and sleeps until it is done.
    fn run(&self, key: &Self::Key, task: &mut Task) -> Result<(), Failure>;

    /// Works on whole blocks of a cipher from `input` to `output`, which is as long, and sleeps until it is done. After a failure
    /// anything may stand in `output`.
    fn work(
        &self,
        key: &Self::Key,
        spec: Spec,
        iv: [u8; 16],
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), Failure> {
        let mut task = Task::over(0, spec, iv, Zeroizing::new(input.to_vec()), input.len());
        self.run(key, &mut task)?;
        output.copy_from_slice(task.text());
        Ok(())
    }
}

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// There is no space for one more key.
    Full,
    /// It takes other keys and not this one, by its number for that.
    KeyRefused(i32),
    /// The tag does not fit.
    NotAuthentic,
    /// The device is gone.
    Lost,
    /// Anything else, by its number.
    Errno(i32),
}

impl Failure {
    /// What the kernel's number says.
    pub(crate) fn of(errno: Errno) -> Self {
        match errno {
            Errno::BADMSG => Self::NotAuthentic,
            Errno::NODEV | Errno::NXIO | Errno::SHUTDOWN | Errno::NOENT
            // So says CUSE of a node whose process has ended, of requests on the way and of later ones.
            | Errno::CONNABORTED | Errno::NOTCONN
            // So says a descriptor that the program closed.
            | Errno::BADF => Self::Lost,
            errno => Self::Errno(errno.raw_os_error()),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::of(Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }
}

/// A request with all memory that it needs, so that it may outlive its submitter.
pub(crate) struct Task {
    /// Its number at this driver.
    pub(crate) number: u64,
    pub(crate) spec: Spec,
    pub(crate) iv: [u8; 16],
    pub(crate) aad_bytes: usize,
    pub(crate) text_bytes: usize,
    /// Associated data, text, and of an AEAD the tag; the result replaces them.
    pub(crate) space: Zeroizing<Vec<u8>>,
    /// Digest of a hash.
    pub(crate) tag: [u8; TAG_BYTES_MAX],
    /// Whether `space` is the job's own memory.
    pub(crate) is_in_jobs_space: bool,
    pub(crate) answer: Result<(), Failure>,
}

impl Task {
    /// One over a text alone, which lies at the front of `space`.
    pub(crate) fn over(
        number: u64,
        spec: Spec,
        iv: [u8; 16],
        space: Zeroizing<Vec<u8>>,
        text_bytes: usize,
    ) -> Self {
        let tag = [0; TAG_BYTES_MAX];
        Self {
            number,
            spec,
            iv,
            aad_bytes: 0,
            text_bytes,
            space,
            tag,
            is_in_jobs_space: false,
            answer: Ok(()),
        }
    }

    /// The text, and after a run what has replaced it.
    pub(crate) fn text(&self) -> &[u8] {
        &self.space[self.aad_bytes..self.aad_bytes + self.text_bytes]
    }

    pub(crate) fn text_mut(&mut self) -> &mut [u8] {
        let (start, bytes) = (self.aad_bytes, self.text_bytes);
        &mut self.space[start..start + bytes]
    }
}

/// The error of a job after a failure.
pub(crate) fn error_of(failure: Failure, spec: Spec) -> JobError {
    let opens = spec.algorithm.is_aead() && spec.direction == Direction::Decrypt;
    match failure {
        Failure::Full => JobError::ModuleFull,
        Failure::KeyRefused(code) => JobError::KeyRefused { code },
        Failure::Lost => JobError::ModuleLost,
        Failure::NotAuthentic if opens => JobError::NotAuthentic,
        Failure::NotAuthentic => JobError::Module { code: libc::EBADMSG },
        Failure::Errno(code) => JobError::Module { code },
    }
}

/// Whether `bytes` are whole blocks of a cipher, of which the device takes so many.
pub(crate) fn is_for_callers(device: &impl Device, algorithm: Algorithm, bytes: usize) -> bool {
    let is_plain = algorithm.is_cipher() && !algorithm.is_aead();
    is_plain && bytes > 0 && device.takes(algorithm, bytes, 0)
}

/// What devices of tests have in common that keep no keys: they take whatever comes.
#[cfg(test)]
macro_rules! takes_everything_without_keys {
    () => {
        type Key = ();

        fn takes(&self, _: evener_core::Algorithm, _: usize, _: usize) -> bool {
            true
        }

        fn open_key(
            &self,
            _: crate::pool::device::Spec,
            _: &[u8],
        ) -> Result<(), crate::pool::device::Failure> {
            Ok(())
        }
    };
}
#[cfg(test)]
pub(crate) use takes_everything_without_keys;
