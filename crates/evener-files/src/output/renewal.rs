//! Renewal: a finished output whose contents are its source's gets what else changed of that: owner, attributes, access lists, mode, time.
//!
//! What is as it should be is not touched, so that the times of inodes stay, and a run passes of a user who may not change it.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{self, Mode, Stat};

use super::attributes::{Attributes, Before, copy_xattrs, kept_xattrs};
use crate::error::FileError;
use crate::input::source_file::SourceFile;
use crate::preservation::Keep;

/// Gives `output` what is kept of `source`; returns what the file system says of it then.
///
/// # Errors
///
/// [`FileError::OtherNames`] where it has other names than the one at hand, which may be another user's.
pub(crate) fn renew(
    output: &SourceFile,
    source: &SourceFile,
    is_ours: bool,
    keep: &Keep,
) -> Result<Stat, FileError> {
    let ((to, there), (from, wanted)) = (output.origin(), source.origin());
    let attributes = Attributes::of(wanted);
    let (to, from) = (to.as_fd(), from.as_fd());
    if attributes.stand_at(there, keep) && xattrs(from, keep)? == xattrs(to, keep)? {
        return Ok(*there);
    }
    // A name that a stranger made of a file of this user's would have that file given away.
    if there.st_nlink > 1 && !is_ours {
        return Err(FileError::OtherNames);
    }
    let is_own = attributes.set_owner(to, keep)?;
    if xattrs(from, keep)? != xattrs(to, keep)? {
        fs::fchmod(to, Mode::RUSR | Mode::WUSR).map_err(FileError::io("set the mode of the output"))?;
        copy_xattrs(from, to, keep, Before::Anything)?;
    }
    attributes.set_mode_and_time(to, is_own)?;
    fs::fstat(to).map_err(FileError::io("look at the output"))
}

/// As [`renew`] of a symbolic link, of which only owner and time are kept.
pub(crate) fn renew_link(
    link: &OwnedFd,
    source: &Stat,
    is_ours: bool,
    keep: &Keep,
) -> Result<Stat, FileError> {
    let look = || fs::fstat(link).map_err(FileError::io("look at the output"));
    let (there, attributes) = (look()?, Attributes::of(source));
    if attributes.stand_at_link(&there, keep) {
        return Ok(there);
    }
    if there.st_nlink > 1 && !is_ours {
        return Err(FileError::OtherNames);
    }
    attributes.give_link(link.as_fd(), keep)?;
    look()
}

/// What is kept, in an order of its own.
fn xattrs(of: BorrowedFd<'_>, keep: &Keep) -> Result<super::Xattrs, FileError> {
    let mut xattrs = kept_xattrs(of, keep)?;
    xattrs.sort_unstable();
    Ok(xattrs)
}
