//! Files that are there whole or not at all, and files that the user named: no stranger's link leads to another place.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{
    AtFlags, FlockOperation, Gid, Mode, OFlags, RenameFlags, Uid, XattrFlags, fchmod, fchown, fgetxattr,
    flistxattr, flock, fremovexattr, fsetxattr, fstat, linkat, openat, renameat, renameat_with, statat,
    unlinkat,
};
use rustix::io::Errno;

use crate::{Named, close, open_named, text};

/// Writes a file with mode `mode`, whole or not at all.
///
/// # Errors
///
/// Where the system does not let it.
pub fn write(file: &Path, text: &str, mode: u32) -> io::Result<()> {
    replace(file, text.as_bytes(), mode, |_| Ok(()))
}

/// The same for what all users read, whatever the umask: the file has mode `mode`, and directories that are made for it have 0755.
///
/// # Errors
///
/// Where the system does not let it.
pub fn write_for_all(file: &Path, text: &str, mode: u32) -> io::Result<()> {
    make_for_all(&directory_and_name(file).0)?;
    replace(file, text.as_bytes(), mode, |new| Ok(fchmod(new, Mode::from_raw_mode(mode))?))
}

/// Makes a file whole or not at all that must not be lost, in the place of none: on the disk before it has its name, and the name too.
/// Of several that make one at the same time one does.
///
/// # Errors
///
/// `AlreadyExists` where something stands there; else where the system does not let it.
pub fn make_durably(file: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let (directory, name) = directory_and_name(file);
    let opened = made(&directory)?;
    let (mut draft_file, draft) = new_draft(&opened, name, mode)?;
    let written = draft_file
        .write_all(bytes)
        .and_then(|()| draft_file.sync_all())
        .and_then(|()| close(draft_file.into()))
        .and_then(|()| give_free_name(&opened, &draft, &directory, name));
    // After a link it is one of two names.
    unlinkat(&opened, &draft, AtFlags::empty()).ok();
    drafts().open.retain(|(_, open)| *open != draft);
    written?;
    sync_directory(&directory)
}

/// Makes a draft under a name that nothing has, and that no other draft of this process has in any directory; in other containers there may be a process of the same
/// number, whose drafts are not ours to remove.
fn new_draft(directory: &OwnedFd, name: &OsStr, mode: u32) -> io::Result<(File, OsString)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut drafts = drafts();
    if drafts.is_closed {
        return Err(io::ErrorKind::Interrupted.into());
    }
    // Before there is a draft: without descriptors for both, none is left.
    let held = directory.try_clone()?;
    loop {
        let mut draft = OsString::from(".");
        draft.push(name);
        draft.push(format!(".{}.{}", process::id(), NEXT.fetch_add(1, Relaxed)));
        match create(directory, &draft, mode) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(file) => {
                drafts.open.push((held, draft.clone()));
                return Ok((file, draft));
            }
        }
    }
}

/// Gives a draft a name that nothing has: by a link, where the file system knows none by a renaming that replaces nothing, and where
/// it knows neither after a look, one process of this machine at a time.
fn give_free_name(opened: &OwnedFd, draft: &OsStr, directory: &Path, name: &OsStr) -> io::Result<()> {
    match linkat(opened, draft, opened, name, AtFlags::empty()) {
        Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::MLINK | Errno::ACCESS) => {}
        linked => return Ok(linked?),
    }
    match renameat_with(opened, draft, opened, name, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
        renamed => return Ok(renamed?),
    }
    let locked = open_named(directory, OFlags::RDONLY | OFlags::DIRECTORY)?;
    flock(&locked, FlockOperation::LockExclusive).ok();
    match statat(opened, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(renameat(opened, draft, opened, name)?),
        Err(errno) => Err(errno.into()),
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
    }
}

/// The same for a file that is there, whose owner, group, mode, access list and other extended attributes the new one gets.
///
/// # Errors
///
/// Where the system does not let it: nothing has changed then, but where only the directory could not be synced.
pub fn replace_kept(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let there = File::from(open_named(file, OFlags::RDONLY | OFlags::CLOEXEC)?);
    replace(file, bytes, 0o600, |new| {
        give_as_of(new, &there)?;
        new.sync_all()
    })?;
    sync_directory(&directory_and_name(file).0)
}

/// Gives a file, which is its owner's alone, what another has beside its contents: what lets others read it comes last.
fn give_as_of(new: &File, other: &File) -> io::Result<()> {
    let (is, wanted) = (fstat(new)?, fstat(other)?);
    if (is.st_uid, is.st_gid) != (wanted.st_uid, wanted.st_gid) {
        let (owner, group) = (Uid::from_raw(wanted.st_uid), Gid::from_raw(wanted.st_gid));
        fchown(new, Some(owner), Some(group)).map_err(|errno| {
            let why = text::without_numbers(&io::Error::from(errno).to_string());
            io::Error::new(errno.kind(), format!("its owner and group cannot be kept: {why}"))
        })?;
    }
    // One that its directory gave, whose names the mode would let in.
    match fremovexattr(new, ACL) {
        Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP) => {}
        Err(errno) => return Err(errno.into()),
    }
    let names = xattr_names(other)?;
    let has_acl = names.iter().any(|name| name == ACL);
    // Those of a security module it decides itself.
    let others = names.iter().filter(|name| *name != ACL && !name.starts_with(b"security."));
    let mut value = vec![0; XATTR_BYTES_MAX];
    for name in others.map(Vec::as_slice).chain(has_acl.then_some(ACL)) {
        let bytes = fgetxattr(other, name, &mut value[..])?;
        fsetxattr(new, name, &value[..bytes], XattrFlags::empty())?;
    }
    Ok(fchmod(new, Mode::from_raw_mode(wanted.st_mode & 0o7777))?)
}

/// The attribute that is a file's access list.
const ACL: &[u8] = b"system.posix_acl_access";

fn xattr_names(file: &File) -> io::Result<Vec<Vec<u8>>> {
    let mut names = vec![0; XATTR_NAMES_BYTES_MAX];
    match flistxattr(file, &mut names[..]) {
        Ok(length) => {
            let names = names[..length].split(|byte| *byte == 0);
            Ok(names.filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect())
        }
        Err(Errno::OPNOTSUPP) => Ok(Vec::new()),
        Err(errno) => Err(errno.into()),
    }
}

/// The largest that Linux knows (xattr(7)): 64 KiB of names, and of one value.
const XATTR_NAMES_BYTES_MAX: usize = 64 << 10;
const XATTR_BYTES_MAX: usize = 64 << 10;

fn sync_directory(directory: &Path) -> io::Result<()> {
    File::from(open_named(directory, OFlags::RDONLY | OFlags::DIRECTORY)?).sync_all()
}

fn replace(
    file: &Path,
    bytes: &[u8],
    mode: u32,
    settle: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<()> {
    let (directory, name) = directory_and_name(file);
    let directory = made(&directory)?;
    let (mut opened, draft) = new_draft(&directory, name, mode)?;
    let written = opened
        .write_all(bytes)
        .and_then(|()| settle(&opened))
        .and_then(|()| close(opened.into()))
        .and_then(|()| Ok(renameat(&directory, &draft, &directory, name)?));
    if written.is_err() {
        unlinkat(&directory, &draft, AtFlags::empty()).ok();
    }
    drafts().open.retain(|(_, open)| *open != draft);
    written
}

/// Removes what is half written, and lets nothing be begun any more: for a process that ends at once.
pub fn abandon() {
    let mut drafts = drafts();
    drafts.is_closed = true;
    for (directory, draft) in &drafts.open {
        unlinkat(directory, draft, AtFlags::empty()).ok();
    }
}

/// Files on their way to their names: each by its directory and its name for the time being.
struct Drafts {
    open: Vec<(OwnedFd, OsString)>,
    is_closed: bool,
}

fn drafts() -> MutexGuard<'static, Drafts> {
    static DRAFTS: Mutex<Drafts> = Mutex::new(Drafts { open: Vec::new(), is_closed: false });
    DRAFTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes a file that the user named, as it stands there: it may be a device or a pipe.
///
/// # Errors
///
/// Where the system does not let it.
pub fn write_named(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOCTTY;
    let opened = Named::find(file)?.open(flags, Mode::from_raw_mode(0o666))?;
    let mut file = File::from(opened);
    file.write_all(bytes)?;
    close(file.into())
}

/// Writes a file that did not exist, for its owner only; all of it or none.
///
/// # Errors
///
/// Where one is there, or the system does not let it.
pub fn write_new(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let named = Named::find(file)?;
    let mut made = {
        let mut drafts = drafts();
        let held = named.dir().try_clone()?;
        let made = create(named.dir(), named.name(), 0o600)?;
        drafts.open.push((held, named.name().to_owned()));
        made
    };
    let written = made.write_all(bytes).and_then(|()| made.sync_all()).and_then(|()| close(made.into()));
    if written.is_err() {
        // Half a key is worse than none; that it cannot be removed adds nothing to the error.
        unlinkat(named.dir(), named.name(), AtFlags::empty()).ok();
    }
    drafts().open.retain(|(_, open)| open != named.name());
    written
}

fn create(directory: &OwnedFd, name: &OsStr, mode: u32) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(directory, name, flags, Mode::from_raw_mode(mode))?.into())
}

fn directory_and_name(file: &Path) -> (PathBuf, &OsStr) {
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    (directory.unwrap_or_else(|| Path::new(".")).to_owned(), file.file_name().unwrap_or_default())
}

/// Opens a directory, making it and those above it where they do not exist: only after a look that no stranger's link is on the way.
fn made(directory: &Path) -> io::Result<OwnedFd> {
    let open = || open_named(directory, OFlags::PATH | OFlags::DIRECTORY);
    match open() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            std::fs::create_dir_all(directory)?;
            open()
        }
        opened => opened,
    }
}

/// Makes a directory and those above it where they do not exist, after the same look.
fn make_for_all(directory: &Path) -> io::Result<()> {
    match open_named(directory, OFlags::PATH | OFlags::DIRECTORY) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let is_missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
            let missing: Vec<_> = directory.ancestors().take_while(is_missing).collect();
            missing.iter().rev().try_for_each(|path| {
                std::fs::create_dir(path)?;
                std::fs::set_permissions(path, Permissions::from_mode(0o755))
            })
        }
        opened => opened.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{env, fs};

    #[test]
    fn a_file_is_replaced_whole_for_its_owner_only_and_leaves_no_draft() {
        let directory = env::temp_dir().join(format!("evener-cache-{}", process::id()));
        let file = directory.join("a/costs.txt");
        for text in ["first\n", "second\n"] {
            write(&file, text, 0o600).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(directory.join("a")).unwrap().count(), 1);
        make_durably(&directory.join("c/key"), b"durably", 0o600).unwrap();
        let again = make_durably(&directory.join("c/key"), b"once more", 0o600);
        assert_eq!(again.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(directory.join("c/key")).unwrap(), b"durably");
        assert_eq!(fs::read_dir(directory.join("c")).unwrap().count(), 1);
        // A process of the same number in another container, in the midst of it.
        let name = directory.join("c/key");
        let late = replace(&name, b"whole", 0o600, |_| write(&name, "other", 0o600));
        late.unwrap();
        assert_eq!(fs::read(&name).unwrap(), b"whole");
        assert_eq!(fs::read_dir(directory.join("c")).unwrap().count(), 1);
        fs::create_dir(directory.join("b")).unwrap();
        assert!(write(&directory.join("b"), "over a directory", 0o600).is_err());
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 3);
        fs::remove_dir_all(directory).unwrap();
    }
}
