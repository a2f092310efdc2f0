//! Where Evener keeps what it has to know of its user from run to run, and no other user may read.

use std::env;
use std::path::PathBuf;

/// `EVENER_STATE_DIR`, or `evener` in the user's directory for state; `None` where there is none.
pub fn directory() -> Option<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // As the XDG base directory specification has it: a relative path counts as unset.
    let home = || set("HOME").map(|home| home.join(".local/state"));
    let states = || set("XDG_STATE_HOME").filter(|path| path.is_absolute()).or_else(home);
    set("EVENER_STATE_DIR").or_else(|| states().map(|states| states.join("evener")))
}
