//! The arbiter as runs see it (docs/design/arbiter.md): the runs of its user's processes take turns at modules that several of them have.

use std::env;

use evener_arbiter::{Arbiter, DIRECTORY_VARIABLE, NoArbiter, Options, Participation};
use evener_fd::Directories;

use crate::observer::Observer;

/// The same as for the provider: `on`, `off`, or a weight.
const SWITCH: &str = "EVENER_ARBITER";

/// Attaches, unless that is switched off. Why it cannot be is said, and the run goes on alone.
pub(crate) fn arbiter(observer: &dyn Observer) -> Option<Arbiter> {
    let Participation::Weight(weight) = participation(observer) else { return None };
    let directories = Directories::from_environment(DIRECTORY_VARIABLE);
    let options = Options { directories, weight, ..Options::default() };
    let alone =
        |why: NoArbiter| observer.warn(&format!("{why}; modules are used as if nobody else had them"));
    Arbiter::attach(&options).map_err(alone).ok()
}

fn participation(observer: &dyn Observer) -> Participation {
    let Ok(value) = env::var(SWITCH) else { return Participation::default() };
    value.parse().unwrap_or_else(|()| {
        observer.warn(&format!("{SWITCH} is on, off or a weight from 1 to 64; it is taken for on"));
        Participation::default()
    })
}
