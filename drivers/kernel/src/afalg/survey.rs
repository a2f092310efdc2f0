//! What stands behind AF_ALG on this machine.

use std::io;
use std::os::fd::AsFd as _;

use super::ffi;
use super::listed::{self, Listed};
use crate::module::OpenError;

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

/// Looks at the kernel's list, and asks AF_ALG for every driver on it that a device stands behind.
#[must_use]
pub fn survey() -> Survey {
    let nothing = |why: String| Survey { hardware: Vec::new(), nothing: Some(why) };
    if let Err(error) = ffi::socket() {
        return nothing(no_family(&error));
    }
    let all = match listed() {
        Ok(all) => all,
        Err(error) => return nothing(error.to_string()),
    };
    let ours = |listed: &&Listed| listed.door().is_some() && !listed.algorithms().is_empty();
    let hardware: Vec<Standing> =
        all.iter().filter(ours).filter(|it| it.is_hardware()).map(standing).collect();
    if hardware.is_empty() {
        let software = all.iter().filter(ours).count();
        return nothing(format!(
            "behind AF_ALG stands no device, only the kernel's own software ({software} drivers)"
        ));
    }
    Survey { hardware, nothing: None }
}

fn standing(listed: &Listed) -> Standing {
    let door = listed.door().unwrap_or_default();
    let bound = ffi::socket().and_then(|socket| ffi::bind(socket.as_fd(), door, &listed.driver));
    // Kernels from 7.2 on list such drivers and let no program bind them.
    let refused = bound.err().map(|error| format!("AF_ALG of this kernel does not admit it: {error}"));
    Standing { driver: listed.driver.clone(), does: listed.name.clone(), refused }
}

fn listed() -> Result<Vec<Listed>, OpenError> {
    list().map(|text| listed::parse(&text))
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
