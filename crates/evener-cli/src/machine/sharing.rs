//! The arbiter as the command sees it (docs/arbiter.md): the runs of its user's processes take turns at modules that several of them have.

use std::env;

use evener_arbiter::{Arbiter, DIRECTORY_VARIABLE, NoArbiter, Options};
use evener_fd::Directories;

use crate::terminal::output;

/// The same as for the provider: `off` knows of nobody.
const SWITCH: &str = "EVENER_ARBITER";

/// Attaches, unless that is switched off. Why it cannot be is said, and the run goes on alone.
pub(super) fn arbiter() -> Option<Arbiter> {
    if env::var_os(SWITCH).is_some_and(|value| value == "off") {
        return None;
    }
    let directories = Directories::from_environment(DIRECTORY_VARIABLE);
    let options = Options { directories, ..Options::default() };
    let alone =
        |why: NoArbiter| output::warning(format_args!("{why}; modules are used as if nobody else had them"));
    Arbiter::attach(&options).map_err(alone).ok()
}
