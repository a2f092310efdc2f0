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

/// The arbiter, where it is wanted and can be had; that it cannot is said once.
pub(super) fn arbiter(settings: &Settings, complaints: &mut Vec<Complaint>) -> Option<&'static Arbiter> {
    let Participation::Weight(weight) = settings.arbiter else { return None };
    ARBITER.get_or_init(|| {
        let directories = match ffi::has_raised_rights() {
            true => Directories::default(),
            false => Directories::from_environment(DIRECTORY_VARIABLE),
        };
        let complain = |why| {
            complaints.push(Complaint { reason: Reason::Unavailable, text: format!("arbiter = on: {why}") });
        };
        Arbiter::attach(&Options { directories, weight, ..Options::default() }).map_err(complain).ok()
    });
    ARBITER.get().and_then(Option::as_ref)
}

/// A module as the arbiter knows it; nothing where it has no name that others have for it.
pub(super) fn shared(arbiter: Option<&Arbiter>, name: Option<String>, permits: u32) -> Option<SharedModule> {
    Some(SharedModule::new(arbiter?, &name?, permits))
}
