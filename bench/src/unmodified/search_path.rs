//! The `PATH` by which programs are found and run, for whatever user.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Where an administrator's programs lie, which are not in each user's `PATH`.
const FOLDERS: [&str; 3] = ["/usr/sbin", "/sbin", "/usr/local/sbin"];

pub(super) fn search_path() -> OsString {
    with_folders(&std::env::var_os("PATH").unwrap_or_default())
}

fn with_folders(path: &OsStr) -> OsString {
    let all = std::env::split_paths(path).chain(FOLDERS.map(PathBuf::from));
    // Folders that come out of a PATH have no colon.
    std::env::join_paths(all).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_users_path_comes_before_an_administrators_folders() {
        assert_eq!(with_folders("/a:/b".as_ref()), "/a:/b:/usr/sbin:/sbin:/usr/local/sbin");
    }
}
