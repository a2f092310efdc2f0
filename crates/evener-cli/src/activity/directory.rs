//! The directory that the environment names for statistics, where the provider would not count in it.

use std::env;
use std::path::{Path, PathBuf};

use evener::counts_file::DIRECTORY_VARIABLE;
use evener_fd::text::PathDisplay;
use evener_fd::{Unusable, open_private};

/// Why one is refused in which the provider counts nothing: what lies elsewhere is not asked for.
pub(super) fn refusal(uid: u32) -> Option<String> {
    let named = env::var_os(DIRECTORY_VARIABLE).filter(|named| !named.is_empty()).map(PathBuf::from)?;
    let why = match open_private(&named, uid) {
        _ if !named.is_absolute() => {
            "this is no absolute path, so programs take the usual directory".to_owned()
        }
        Ok(_) => return None,
        Err(Unusable::Missing) if named.parent().is_some_and(Path::is_dir) => return None,
        Err(Unusable::Missing) => "it is not there, nor the directory in which it would be made".to_owned(),
        Err(Unusable::NotPrivate) => "it must be a directory of this user, with mode 0700".to_owned(),
        Err(Unusable::Refused(errno)) => errno.to_string(),
    };
    Some(format!("{DIRECTORY_VARIABLE} names {}, where no program counts: {why}", PathDisplay(&named)))
}
