//! Calls modules through AF_ALG, the kernel's crypto API by sockets, bound by the name of a driver.
//!
//! A key is a transform socket; each request in flight has a socket of its own, accepted from it, because several reads on
//! one socket do not keep CBC's chain on all drivers (smuellerDD/libkcapi#96). `AIO` brings nothing: the kernel
//! waits for the operation within `io_submit`, where nothing frees the calling thread (measured, Linux 6.1), so threads wait instead.
//!
//! Every socket is looked at before it is used or closed, for the program may have closed it and have another file at its number
//! (`evener_fd`). Between `sendmsg` and the `read` behind it nothing is looked at again: a caller that sends is in the kernel all that time.
//!
//! The path of a request: socket of the key (kept between requests) -> `sendmsg` with operation, IV and data -> `read`,
//! which sleeps until the driver has answered. A caller that waits for one alone does the former, and a thread of the driver the latter
//! (`deadline.rs`).

#[cfg(target_os = "linux")]
mod deadline;
mod discovery;
mod exchange;
#[cfg(target_os = "linux")]
mod ffi;
#[cfg(not(target_os = "linux"))]
#[path = "unsupported.rs"]
mod ffi;
#[cfg(test)]
mod partial_io;
mod proc_crypto;
#[cfg(target_os = "linux")]
mod reader;
mod transform;

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use evener_core::{Algorithm, Family};
use evener_fd::not_in_children;

#[cfg(target_os = "linux")]
pub(crate) use self::deadline::DeadlineDriver;
pub use self::discovery::{Listed, Standing, Survey, listed, survey, try_afalg};
use self::exchange::{WHOLE_BYTES_MAX, apart, chunk_bytes, run_on};
#[cfg(test)]
pub(crate) use self::ffi::put_over;
use self::proc_crypto::CryptoEntry;
use self::transform::Attempt;
pub(crate) use self::transform::Transform;
use crate::error::OpenError;
use crate::pool::device::{Device, Failure, Spec, Task};
use crate::pool::key_cache::why_refused;

/// Attempts at a request that signals cut short. Assumed, not measured: 4, because runners block all signals they can.
const ATTEMPTS_MAX: u32 = 4;

/// A driver of the kernel that AF_ALG lets us use.
#[derive(Clone, Debug)]
pub(crate) struct Afalg {
    entry: CryptoEntry,
    door: &'static str,
    /// Requests that it has answered, chunks counted each.
    answered: Arc<AtomicU64>,
}

impl Afalg {
    /// Looks for the driver `name`.
    pub(crate) fn open(name: &str) -> Result<Self, OpenError> {
        ffi::socket().map_err(|error| OpenError::Unavailable(discovery::no_family(&error)))?;
        let (entry, door) = chosen(name, discovery::list, discovery::bind)?;
        Ok(Self { entry, door, answered: Arc::default() })
    }

    pub(crate) fn algorithms(&self) -> Vec<Algorithm> {
        self.entry.algorithms()
    }

    /// What stands behind it, for people: constant, because kept costs go by it.
    pub(crate) fn detail(&self) -> String {
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        let what = if self.entry.is_hardware() { "asynchronous" } else { "the kernel's software, no module" };
        format!("Linux {release}, {} by AF_ALG, {what}", self.entry.name)
    }

    pub(crate) fn answered(&self) -> u64 {
        // Relaxed here and below: nothing else is read through it.
        self.answered.load(Ordering::Relaxed)
    }

    fn count(&self, algorithm: Algorithm, bytes: usize) {
        let chunks = if algorithm.is_cipher() { bytes.div_ceil(chunk_bytes(algorithm)) } else { 1 };
        self.answered.fetch_add(chunks.max(1) as u64, Ordering::Relaxed);
    }

    fn bind(&self) -> io::Result<OwnedFd> {
        let socket = ffi::socket()?;
        ffi::bind(socket.as_fd(), self.door, &self.entry.driver)?;
        Ok(socket)
    }
}

/// The driver `name` and its door, of a kernel that lists drivers and lets them be bound by door and name.
fn chosen(
    name: &str,
    list: impl Fn() -> Result<String, OpenError>,
    bind: impl Fn(&str, &str) -> io::Result<()>,
) -> Result<(CryptoEntry, &'static str), OpenError> {
    let find = || Ok(proc_crypto::find(&list()?, name));
    let (mut found, mut bound) = (find()?, Vec::new());
    if found.is_none() {
        // A template is made when it is first bound, and listed from then on. Not bound here where it is listed: at each door that
        // is not its own the kernel looks for a module to load, some 20 ms beside a slow core.
        bound.extend(["skcipher", "hash", "aead"].map(|door| bind(door, name)));
        found = find()?;
    }
    let Some(entry) = found else {
        let error = bound.into_iter().filter_map(Result::err).next();
        let errno = error.and_then(|error| error.raw_os_error()).unwrap_or(libc::ENOENT);
        return Err(OpenError::NoSuchDriver { name: name.to_owned(), errno });
    };
    let (Some(door), false) = (entry.door(), entry.algorithms().is_empty()) else {
        return Err(OpenError::NothingForUs { name: name.to_owned(), does: entry.name });
    };
    bind(door, &entry.driver).map_err(|error| OpenError::refused(name, &error))?;
    Ok((entry, door))
}

impl Device for Afalg {
    type Key = Transform;

    fn takes(&self, algorithm: Algorithm, text_bytes: usize, aad_bytes: usize) -> bool {
        match algorithm.family() {
            Family::Xts => text_bytes <= WHOLE_BYTES_MAX,
            // With nothing to read the kernel does not look at the tag.
            Family::Gcm | Family::ChaCha20Poly1305 => {
                (1..=WHOLE_BYTES_MAX).contains(&(text_bytes + aad_bytes))
            }
            _ => true,
        }
    }

    fn open_key(&self, spec: Spec, key: &[u8]) -> Result<Transform, Failure> {
        let socket = self.bind()?;
        if !key.is_empty() {
            // On a socket of its own, as each key has one.
            let takes = |key: &[u8]| self.bind().and_then(|it| ffi::set_key(it.as_fd(), key)).is_ok();
            ffi::set_key(socket.as_fd(), key)
                .map_err(|error| why_refused(error.raw_os_error().unwrap_or(libc::EIO), key, takes))?;
        }
        if spec.algorithm.is_aead() {
            ffi::set_tag_bytes(socket.as_fd(), spec.algorithm.tag_bytes())?;
        }
        Ok(Transform::new(not_in_children(socket)?))
    }

    fn run(&self, key: &Transform, task: &mut Task) -> Result<(), Failure> {
        let input_kept = Attempt::keeps_input(task);
        for _ in 0..ATTEMPTS_MAX {
            let socket = key.request_socket()?;
            match run_on(&socket, task) {
                // A socket on which something went wrong may still hold data: only sound ones are used again.
                Ok(()) => {
                    self.count(task.spec.algorithm, task.text_bytes);
                    key.keep(socket);
                    return Ok(());
                }
                Err(Attempt::Short { is_intact }) if is_intact || input_kept => {}
                Err(Attempt::Short { .. }) => return Err(Failure::Errno(libc::EINTR)),
                Err(Attempt::Failed(errno)) => return Err(Failure::of(errno)),
            }
        }
        Err(Failure::Errno(libc::EINTR))
    }

    fn work(
        &self,
        key: &Transform,
        spec: Spec,
        iv: [u8; 16],
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), Failure> {
        for _ in 0..ATTEMPTS_MAX {
            let socket = key.request_socket()?;
            match apart(&socket, spec, iv, input, output) {
                Ok(()) => {
                    self.count(spec.algorithm, input.len());
                    key.keep(socket);
                    return Ok(());
                }
                // The input is never touched.
                Err(Attempt::Short { .. }) => {}
                Err(Attempt::Failed(errno)) => return Err(Failure::of(errno)),
            }
        }
        Err(Failure::Errno(libc::EINTR))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// As a kernel lists them: one for us, one with an algorithm that we lack, and one that no socket reaches.
    const LISTED: &str = "name : cbc(aes)\ndriver : device-cbc\ntype : skcipher\nasync : yes\n\n\
                          name : crc32c\ndriver : crc32c-generic\ntype : shash\n\n\
                          name : aes\ndriver : aes-generic\ntype : cipher\n\n";
    const MADE: &str = "name : cbc(aes)\ndriver : cryptd(device-cbc)\ntype : skcipher\nasync : yes\n\n";

    fn errno(number: i32) -> io::Error {
        io::Error::from_raw_os_error(number)
    }

    fn chosen_of(name: &str, bind: impl Fn(&str, &str) -> io::Result<()>) -> Result<(), OpenError> {
        chosen(name, || Ok(LISTED.to_owned()), bind).map(drop)
    }

    #[test]
    fn a_driver_that_no_door_knows_is_none_and_the_kernel_s_number_says_so() {
        let bound = Cell::new(0);
        let bind = |_: &str, name: &str| {
            assert_eq!(name, "nobodys");
            bound.set(bound.get() + 1);
            Err(errno(libc::ENOENT))
        };
        let error = chosen_of("nobodys", bind).unwrap_err();
        assert_eq!(error, OpenError::NoSuchDriver { name: "nobodys".to_owned(), errno: libc::ENOENT });
        assert_eq!(bound.get(), 3, "it might be one of each kind");
        assert_eq!(
            error.to_string(),
            "the kernel has no driver \"nobodys\" that AF_ALG admits (No such file or directory (os error 2))"
        );
    }

    #[test]
    fn a_driver_that_does_nothing_of_ours_is_told_from_one_that_is_not_there() {
        for (driver, does) in [("crc32c-generic", "crc32c"), ("aes-generic", "aes")] {
            let error = chosen_of(driver, |_, _| unreachable!("there is nothing to ask for")).unwrap_err();
            assert_eq!(error, OpenError::NothingForUs { name: driver.to_owned(), does: does.to_owned() });
        }
    }

    #[test]
    fn a_driver_that_is_listed_and_cannot_be_bound_is_refused_with_the_kernel_s_reason() {
        let bind = |door: &str, driver: &str| {
            assert_eq!((door, driver), ("skcipher", "device-cbc"), "bound once, at its own door");
            Err(errno(libc::EPERM))
        };
        let error = chosen_of("device-cbc", bind).unwrap_err();
        let reason = "Operation not permitted (os error 1)".to_owned();
        assert_eq!(error, OpenError::Refused { name: "device-cbc".to_owned(), reason });
        assert_eq!(chosen_of("device-cbc", |_, _| Ok(())), Ok(()));
    }

    #[test]
    fn a_template_is_made_by_asking_for_it() {
        let is_made = Cell::new(false);
        let list = || Ok(if is_made.get() { [LISTED, MADE].concat() } else { LISTED.to_owned() });
        let bind = |door: &str, name: &str| {
            assert_eq!(name, "cryptd(device-cbc)");
            is_made.set(is_made.get() || door == "skcipher");
            if door == "skcipher" { Ok(()) } else { Err(errno(libc::ENOENT)) }
        };
        let (entry, door) = chosen("cryptd(device-cbc)", list, bind).unwrap();
        assert_eq!((entry.driver.as_str(), door), ("cryptd(device-cbc)", "skcipher"));
    }
}
