//! The arbiter as the command sees it (docs/design/arbiter.md): the runs of its user's processes take turns at modules that several of them have.

use std::env;

use evener_arbiter::{Arbiter, DIRECTORY_VARIABLE, NoArbiter, Options, Participation};
use evener_fd::Directories;

use crate::terminal::output;

/// The same as for the provider: `on`, `off`, or a weight.
const SWITCH: &str = "EVENER_ARBITER";

/// Attaches, unless that is switched off. Why it cannot be is said, and the run goes on alone.
pub(super) fn arbiter() -> Option<Arbiter> {
    let Participation::Weight(weight) = participation() else { return None };
    let directories = Directories::from_environment(DIRECTORY_VARIABLE);
    let options = Options { directories, weight, ..Options::default() };
    let alone =
        |why: NoArbiter| output::warning(format_args!("{why}; modules are used as if nobody else had them"));
    Arbiter::attach(&options).map_err(alone).ok()
}

fn participation() -> Participation {
    let Ok(value) = env::var(SWITCH) else { return Participation::default() };
    value.parse().unwrap_or_else(|()| {
        output::warning(format_args!("{SWITCH} is on, off or a weight from 1 to 64; it is taken for on"));
        Participation::default()
    })
}
