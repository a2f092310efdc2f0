//! The arbiter of this process: attached when the first module is opened that other processes may have, too.

use std::sync::OnceLock;

use evener::offload::SharedModule;
use evener_arbiter::{Arbiter, DIRECTORY_VARIABLE, Options, Participation};
use evener_fd::Directories;

use crate::config::{Complaint, Settings};
use crate::core::errors::Reason;
use crate::ffi;

/// One for all library contexts of the process.
static ARBITER: OnceLock<Option<Arbiter>> = OnceLock::new();

/// Where its segment may be named.
static DIRECTORIES: OnceLock<Directories> = OnceLock::new();

/// Looks at the environment, where a module is configured: when a provider is loaded, for later it may be under change.
pub(crate) fn prepare(settings: &Settings) {
    if !settings.modules.is_empty() && matches!(settings.arbiter, Participation::Weight(_)) {
        _ = DIRECTORIES.get_or_init(|| match ffi::has_raised_rights() {
            true => Directories::default(),
            false => Directories::from_environment(DIRECTORY_VARIABLE),
        });
    }
}

/// The arbiter, where it is wanted and can be had; that it cannot is said once. Called by one thread of the process at a time.
pub(super) fn arbiter(settings: &Settings, complaints: &mut Vec<Complaint>) -> Option<&'static Arbiter> {
    let Participation::Weight(weight) = settings.arbiter else { return None };
    // Set, not made inside: of a forked child another thread may have been about it.
    if ARBITER.get().is_none() {
        let directories = DIRECTORIES.get().cloned().unwrap_or_default();
        let complain = |why| {
            complaints.push(Complaint { reason: Reason::Unavailable, text: format!("arbiter = on: {why}") });
        };
        let options = Options { directories, weight, ..Options::default() };
        _ = ARBITER.set(Arbiter::attach(&options).map_err(complain).ok());
    }
    ARBITER.get().and_then(Option::as_ref)
}

/// A module as the arbiter knows it; nothing where it has no name that others have for it.
pub(super) fn shared(arbiter: Option<&Arbiter>, name: Option<String>, permits: u32) -> Option<SharedModule> {
    Some(SharedModule::new(arbiter?, &name?, permits))
}
