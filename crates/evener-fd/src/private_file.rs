//! A file that processes of one user share and map, in a directory that is theirs alone.

use std::io;

use rustix::fs::{self, FallocateFlags, FileType, Mode, OFlags};
use rustix::process::geteuid;

use crate::{CheckedFd, Directories, may_begin, may_extend_to};

/// Opens the file of that name in the first of `places` that the effective user may use. A file that is missing is made, with so many bytes, which
/// are zero and have their blocks: a full file system would otherwise stop, with a signal, who writes into its mapping.
///
/// # Errors
///
/// The system's, `PermissionDenied` where a filter of system calls has come that might end the program here ([`may_begin`]), and `InvalidData` where what has that name is no file of so many bytes that only this user may use.
pub fn open_private_file(places: &Directories, name: &str, bytes: u64) -> io::Result<CheckedFd> {
    if !may_begin() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    // Before anything is made: a signal would end a program that does not know of the file.
    may_extend_to(bytes)?;
    let directory = CheckedFd::new(places.open_or_make(geteuid().as_raw())?)?;
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = fs::openat(directory.checked()?, name, flags, Mode::RUSR | Mode::WUSR)?;
    let file = CheckedFd::new(file)?;
    if !is_private(&file, bytes)? {
        return Err(io::ErrorKind::InvalidData.into());
    }
    fs::fallocate(file.checked()?, FallocateFlags::empty(), 0, bytes)?;
    Ok(file)
}

/// Whether it is a file of that length, or a new one, that only this user may use.
fn is_private(file: &CheckedFd, bytes: u64) -> io::Result<bool> {
    let about = fs::fstat(file.checked()?)?;
    let is_file = FileType::from_raw_mode(about.st_mode) == FileType::RegularFile;
    let has_length = u64::try_from(about.st_size).is_ok_and(|length| length == 0 || length == bytes);
    Ok(is_file && has_length && about.st_uid == geteuid().as_raw() && about.st_mode & 0o077 == 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::path::Path;
    use std::{fs, io};

    use super::*;

    fn places(directory: &Path) -> Directories {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).unwrap();
        Directories::only(directory.to_owned())
    }

    #[test]
    fn a_file_is_made_with_zeros_for_its_owner_alone_and_found_again_as_it_was_left() {
        let directory = tempfile::tempdir().unwrap();
        let (places, path) = (places(directory.path()), directory.path().join("choices"));
        drop(open_private_file(&places, "choices", 12).unwrap());
        assert_eq!(fs::read(&path).unwrap(), [0; 12]);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::write(&path, [7; 12]).unwrap();
        drop(open_private_file(&places, "choices", 12).unwrap());
        assert_eq!(fs::read(&path).unwrap(), [7; 12]);
    }

    #[test]
    fn what_is_no_such_file_is_refused_and_left_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let (places, path) = (places(directory.path()), directory.path().join("choices"));
        let refused = |kind: Option<io::ErrorKind>| {
            let error = open_private_file(&places, "choices", 12).map(drop).unwrap_err();
            assert!(kind.is_none_or(|kind| error.kind() == kind), "{error}");
        };
        fs::write(&path, [7; 13]).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        refused(Some(io::ErrorKind::InvalidData));
        assert_eq!(fs::read(&path).unwrap(), [7; 13]);
        fs::write(&path, [7; 12]).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o620)).unwrap();
        refused(Some(io::ErrorKind::InvalidData));
        fs::remove_file(&path).unwrap();
        fs::write(directory.path().join("other"), [7; 12]).unwrap();
        symlink("other", &path).unwrap();
        refused(None);
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        refused(None);
    }
}
