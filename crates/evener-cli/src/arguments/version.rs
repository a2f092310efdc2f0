//! The version: of the command, of the commit that it was built from, and of the libraries that compute.

use crate::machine;
use crate::machine::options::ModuleOptions;

/// Lines: the command's own first, as programs look for it there.
pub(super) fn text() -> String {
    let commit = option_env!("EVENER_COMMIT").map(|commit| format!(" (commit {commit})")).unwrap_or_default();
    let mut text = format!("evener {}{commit}\n", env!("CARGO_PKG_VERSION"));
    match machine::whole(&ModuleOptions::default()) {
        Ok(machine) => {
            for library in
                [Some(&machine.libcrypto), machine.lanes.as_ref(), machine.library()].into_iter().flatten()
            {
                text += &format!("{}: {}\n", library.name, library.detail);
            }
        }
        Err(error) => text += &format!("no library: {error:#}\n"),
    }
    text
}
