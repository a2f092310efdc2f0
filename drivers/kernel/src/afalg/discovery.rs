//! What stands behind AF_ALG on this machine.

use std::io;
use std::os::fd::AsFd as _;

use super::ffi;
use super::proc_crypto::{self, CryptoEntry};
use crate::error::OpenError;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Drivers with a device behind them that do something for us.
    pub hardware: Vec<Standing>,
    /// Where there is none: why, as one sentence.
    pub nothing: Option<String>,
}

/// A driver with a device behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its name, as in `--module afalg:NAME`.
    pub driver: String,
    /// What it does, in the kernel's words: `cbc(aes)`.
    pub does: String,
    /// Why AF_ALG does not let us use it, if so.
    pub refused: Option<String>,
}

/// Reads the kernel's list, and binds at AF_ALG every driver on it that has a device.
#[must_use]
pub fn survey() -> Survey {
    survey_of(ffi::socket().map(drop), list, bind)
}

/// What the kernel lists and Evener has work for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name, as in `--module afalg:NAME`.
    pub driver: String,
    /// What it does, in the kernel's words: `cbc(aes)`.
    pub does: String,
    /// How AF_ALG calls its kind: `skcipher`, `hash` or `aead`.
    pub door: &'static str,
    /// Whether a device stands behind it, as far as the kernel shows.
    pub is_hardware: bool,
}

/// Reads a text such as that of `/proc/crypto`, and leaves out what Evener has no work for.
#[must_use]
pub fn listed(text: &str) -> Vec<Listed> {
    let useful = |entry: CryptoEntry| {
        let door = entry.door().filter(|_| !entry.algorithms().is_empty())?;
        let is_hardware = entry.is_hardware();
        Some(Listed { driver: entry.driver, does: entry.name, door, is_hardware })
    };
    proc_crypto::parse(text).into_iter().filter_map(useful).collect()
}

/// Makes a socket of AF_ALG, and where a door and a driver are named binds it to these.
///
/// # Errors
///
/// The kernel's.
pub fn try_afalg(bound: Option<(&str, &str)>) -> io::Result<()> {
    let socket = ffi::socket()?;
    bound.map_or(Ok(()), |(door, driver)| ffi::bind(socket.as_fd(), door, driver))
}

/// Asks for a driver at a door.
pub(super) fn bind(door: &str, driver: &str) -> io::Result<()> {
    ffi::bind(ffi::socket()?.as_fd(), door, driver)
}

/// What a kernel shows that has the family or not, lists drivers, and lets them be bound by door and name.
fn survey_of(
    family: io::Result<()>,
    list: impl FnOnce() -> Result<String, OpenError>,
    bind: impl Fn(&str, &str) -> io::Result<()>,
) -> Survey {
    let nothing = |why: String| Survey { hardware: Vec::new(), nothing: Some(why) };
    if let Err(error) = family {
        return nothing(no_family(&error));
    }
    let all = match list() {
        Ok(text) => proc_crypto::parse(&text),
        Err(error) => return nothing(error.to_string()),
    };
    let is_usable = |entry: &&CryptoEntry| entry.door().is_some() && !entry.algorithms().is_empty();
    let standing = |entry: &CryptoEntry| {
        let bound = bind(entry.door().unwrap_or_default(), &entry.driver);
        // Kernels from 7.2 on list such drivers and let no program bind them.
        let refused = bound.err().map(|error| format!("AF_ALG of this kernel does not admit it: {error}"));
        Standing { driver: entry.driver.clone(), does: entry.name.clone(), refused }
    };
    let hardware: Vec<Standing> =
        all.iter().filter(is_usable).filter(|entry| entry.is_hardware()).map(standing).collect();
    if hardware.is_empty() {
        let software = all.iter().filter(is_usable).count();
        return nothing(format!(
            "behind AF_ALG stands no device, only the kernel's own software ({software} drivers)"
        ));
    }
    Survey { hardware, nothing: None }
}

/// The kernel's list.
pub(super) fn list() -> Result<String, OpenError> {
    let text = std::fs::read_to_string("/proc/crypto");
    text.map_err(|error| OpenError::Unavailable(format!("/proc/crypto cannot be read: {error}")))
}

/// Why there is no AF_ALG.
pub(super) fn no_family(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EAFNOSUPPORT | libc::ESOCKTNOSUPPORT | libc::EPROTONOSUPPORT) => {
            format!("this kernel has no AF_ALG ({error})")
        }
        _ => format!("AF_ALG cannot be used: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: &str = "name : cbc(aes)\ndriver : virtio_crypto_aes_cbc\ninternal : no\ntype : skcipher\nasync : yes\n\
                          min keysize : 16\nmax keysize : 32\n\n";
    const SOFTWARE: &str = "name : sha256\ndriver : sha256-generic\ninternal : no\ntype : shash\n\n\
                            name : cbc(aes)\ndriver : cbc-aes-aesni\ninternal : no\ntype : skcipher\nasync : yes\n\n";

    fn errno(number: i32) -> io::Error {
        io::Error::from_raw_os_error(number)
    }

    #[test]
    fn a_driver_that_is_listed_and_not_admitted_is_shown_with_the_kernel_s_reason() {
        let list = || Ok([DEVICE, SOFTWARE].concat());
        let bind = |door: &str, driver: &str| {
            assert_eq!((door, driver), ("skcipher", "virtio_crypto_aes_cbc"), "no software driver is bound");
            Err(errno(libc::ENOENT))
        };
        let Survey { hardware, nothing } = survey_of(Ok(()), list, bind);
        assert_eq!((hardware.len(), nothing), (1, None));
        let refused = hardware[0].refused.as_deref().unwrap();
        assert!(refused.starts_with("AF_ALG of this kernel does not admit it: No such file"), "{refused}");
        let list = || Ok(DEVICE.to_owned());
        assert_eq!(survey_of(Ok(()), list, |_, _| Ok(())).hardware[0].refused, None);
    }

    #[test]
    fn where_no_device_stands_behind_it_that_is_said_and_why() {
        let why = |family, list: Result<&str, OpenError>| {
            let survey = survey_of(family, || list.map(str::to_owned), |_, _| unreachable!("nothing to ask"));
            assert_eq!(survey.hardware, []);
            survey.nothing.unwrap()
        };
        assert_eq!(
            why(Ok(()), Ok(SOFTWARE)),
            "behind AF_ALG stands no device, only the kernel's own software (2 drivers)"
        );
        let none = why(Err(errno(libc::EAFNOSUPPORT)), Ok(SOFTWARE));
        assert!(none.starts_with("this kernel has no AF_ALG (Address family not supported"), "{none}");
        let shut = why(Err(errno(libc::EACCES)), Ok(SOFTWARE));
        assert!(shut.starts_with("AF_ALG cannot be used: Permission denied"), "{shut}");
        let unreadable = OpenError::Unavailable("/proc/crypto cannot be read".to_owned());
        assert_eq!(why(Ok(()), Err(unreadable)), "/proc/crypto cannot be read");
    }

    #[test]
    fn a_process_that_may_have_no_socket_of_the_family_gets_that_reason() {
        let opened = std::thread::spawn(|| {
            crate::devcrypto::mock_node::forbid(libc::AF_ALG, libc::EPERM)?;
            let opened = crate::Module::open(&"afalg:virtio_crypto_aes_cbc".parse().unwrap());
            io::Result::Ok((survey(), opened.map(drop)))
        });
        let Ok((survey, opened)) = opened.join().unwrap() else {
            return println!("skipped: no filter for system calls");
        };
        let why = "AF_ALG cannot be used: Operation not permitted (os error 1)".to_owned();
        assert_eq!(survey, Survey { hardware: vec![], nothing: Some(why.clone()) });
        assert_eq!(opened, Err(OpenError::Unavailable(why)));
    }
}
