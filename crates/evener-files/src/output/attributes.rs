//! Owner, mode, times, extended attributes and access lists, which an output gets from its source.
//!
//! All by descriptor, in this order: the owner, because the system takes set-user-ID bits and capabilities away with a new
//! one; extended attributes with access lists, because these change the mode; the mode; the times.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;

use rustix::fs::{self, AtFlags, Gid, Mode, Stat, Timespec, Timestamps, UTIME_OMIT, Uid, XattrFlags};
use rustix::io::Errno;

use crate::error::FileError;
use crate::preservation::Keep;

/// What of a source its output gets.
#[derive(Clone, Copy)]
pub(crate) struct Attributes {
    mode: Mode,
    owner: Uid,
    group: Gid,
    time: Timespec,
}

impl Attributes {
    pub(crate) fn of(source: &Stat) -> Self {
        Self {
            mode: Mode::from_raw_mode(source.st_mode & 0o7777),
            owner: Uid::from_raw(source.st_uid),
            group: Gid::from_raw(source.st_gid),
            time: mtime_of(source),
        }
    }

    /// As an archive tells them; the time in seconds and nanoseconds.
    pub(crate) fn told(mode: u32, (owner, group): (u32, u32), (seconds, nanoseconds): (i64, u32)) -> Self {
        Self {
            mode: Mode::from_raw_mode(mode & 0o7777),
            owner: Uid::from_raw(owner),
            group: Gid::from_raw(group),
            time: Timespec { tv_sec: seconds, tv_nsec: nanoseconds.into() },
        }
    }

    pub(super) fn times(&self) -> Timestamps {
        let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
        Timestamps { last_access, last_modification: self.time }
    }

    /// The mode with which an output is made; it gets its own at the end.
    pub(super) fn mode(&self) -> Mode {
        self.mode & Mode::from_raw_mode(0o777)
    }

    /// Gives an output all of them, and of `from` the extended attributes `names`.
    pub(super) fn give(
        &self,
        to: BorrowedFd<'_>,
        (from, names): (BorrowedFd<'_>, Vec<CString>),
        keep: &Keep,
        before: Before,
    ) -> Result<(), FileError> {
        let is_own = self.set_owner(to, keep)?;
        let_owner_write(to, before)?;
        copy_named_xattrs(from, to, names, keep, before)?;
        self.set_mode_and_time(to, is_own)
    }

    /// What a file is to be made with so that it needs no more than its time; `None` where that is not all, or would show others for a
    /// moment what they are not to see: the group is the directory's, whose owner may give it another at any time.
    pub(super) fn birth(&self, keep: &Keep, before: Before) -> Option<Birth> {
        let owner = (keep.owners && is_root()).then_some((self.owner.as_raw(), self.group.as_raw()));
        let (group, others) = (self.mode.bits() >> 3 & 0o7, self.mode.bits() & 0o7);
        let is_open = owner.is_none() || group & !others == 0;
        (before == Before::Nothing && self.mode == self.mode() && is_open)
            .then_some(Birth { mode: self.mode, owner })
    }

    /// Gives a new output all of them, and `xattrs`.
    pub(super) fn give_told(
        &self,
        to: BorrowedFd<'_>,
        xattrs: &Xattrs,
        keep: &Keep,
        before: Before,
    ) -> Result<(), FileError> {
        let is_own = self.set_owner(to, keep)?;
        let_owner_write(to, before)?;
        if before != Before::Nothing {
            remove_acls(to)?;
        }
        set_xattrs(to, xattrs, keep)?;
        self.set_mode_and_time(to, is_own)
    }

    /// Whether what stands there has owner, mode and time of its source, as far as they are kept.
    pub(super) fn stand_at(&self, there: &Stat, keep: &Keep) -> bool {
        let is_own = self.owns(there);
        let mode = if is_own { self.mode } else { self.mode - LENT };
        (is_own || !(keep.owners && is_root()))
            && Mode::from_raw_mode(there.st_mode & 0o7777) == mode
            && is_rounded(mtime_of(there), self.time)
    }

    /// As [`Attributes::stand_at`] of a symbolic link, which has no mode of its own.
    pub(super) fn stand_at_link(&self, there: &Stat, keep: &Keep) -> bool {
        (self.owns(there) || !(keep.owners && is_root())) && is_rounded(mtime_of(there), self.time)
    }

    fn owns(&self, there: &Stat) -> bool {
        (there.st_uid, there.st_gid) == (self.owner.as_raw(), self.group.as_raw())
    }

    /// Gives an output its owner, as root. Returns whether it has that of its source, as far as that matters to the mode.
    pub(super) fn set_owner(&self, fd: BorrowedFd<'_>, keep: &Keep) -> Result<bool, FileError> {
        let sets = keep.owners && is_root();
        if !sets && !self.mode.intersects(LENT) {
            return Ok(false);
        }
        let stat = fs::fstat(fd).map_err(FileError::io("look at the output"))?;
        let is_own = self.owns(&stat);
        if is_own || !sets {
            return Ok(is_own);
        }
        let set = fs::fchown(fd, Some(self.owner), Some(self.group));
        set.map_err(FileError::io("keep the owner (--no-owner leaves it out)"))?;
        Ok(true)
    }

    /// Mode and time. Bits that lend the rights of an owner go with that owner only.
    pub(super) fn set_mode_and_time(&self, fd: BorrowedFd<'_>, is_own: bool) -> Result<(), FileError> {
        let mode = if is_own { self.mode } else { self.mode - LENT };
        fs::fchmod(fd, mode).map_err(FileError::io("set the mode of the output"))?;
        self.set_time(fd)
    }

    pub(super) fn set_time(&self, fd: BorrowedFd<'_>) -> Result<(), FileError> {
        fs::futimens(fd, &self.times()).map_err(FileError::io("set the time of the output"))
    }

    /// Gives a symbolic link its owner and time.
    pub(super) fn give_link(&self, link: BorrowedFd<'_>, keep: &Keep) -> Result<(), FileError> {
        if keep.owners && is_root() {
            let set = fs::chownat(link, c"", Some(self.owner), Some(self.group), AtFlags::EMPTY_PATH);
            set.map_err(FileError::io("keep the owner (--no-owner leaves it out)"))?;
        }
        match fs::utimensat(link, c"", &self.times(), AtFlags::EMPTY_PATH) {
            // Before Linux 5.8 the time of a link is set by its name only, under which another file may stand by now.
            Ok(()) | Err(Errno::INVAL | Errno::NOENT) => Ok(()),
            Err(errno) => Err(FileError::io("set the time of the output")(errno)),
        }
    }
}

/// Mode of a new file, and owner and group where they are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Birth {
    pub(super) mode: Mode,
    owner: Option<(u32, u32)>,
}

impl Birth {
    /// Whether a file has them.
    pub(super) fn is_of(&self, file: &Stat) -> bool {
        Mode::from_raw_mode(file.st_mode & 0o7777) == self.mode
            && self.owner.is_none_or(|owner| owner == (file.st_uid, file.st_gid))
    }
}

/// Bits by which a file lends its owner's or group's rights.
const LENT: Mode = Mode::SUID.union(Mode::SGID);

/// The time of a file's last change.
fn mtime_of(stat: &Stat) -> Timespec {
    Timespec { tv_sec: stat.st_mtime, tv_nsec: i64::try_from(stat.st_mtime_nsec).unwrap_or(0) }
}

/// Whether a time is another as some file system rounds it: down, to one of the units that there are.
fn is_rounded(time: Timespec, of: Timespec) -> bool {
    let ns = |time: Timespec| i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
    let (time, of) = (ns(time), ns(of));
    TIME_UNITS_NS.iter().any(|unit| time == of - of.rem_euclid(*unit))
}

/// Units of times of change: of most, NTFS, UDF and others, exFAT, ext3, FAT.
const TIME_UNITS_NS: [i128; 6] = [1, 100, 1_000, 10_000_000, 1_000_000_000, 2_000_000_000];

/// Asked once: a process of ours stays who it is.
pub(super) fn is_root() -> bool {
    static IS_ROOT: OnceLock<bool> = OnceLock::new();
    *IS_ROOT.get_or_init(|| rustix::process::geteuid().is_root())
}

/// What an output may have before it is given anything.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    Nothing,
    /// An access list, which its directory gives to what is new in it: never kept, for it lets others in.
    AclOfDirectory,
    /// What stood there may have had anything.
    Anything,
}

/// Gives `to` the extended attributes and access lists of `from`, and takes those away of the same kinds that `from` has not.
pub(super) fn copy_xattrs(
    from: BorrowedFd<'_>,
    to: BorrowedFd<'_>,
    keep: &Keep,
    before: Before,
) -> Result<(), FileError> {
    let names = names(from, keep)?;
    copy_named_xattrs(from, to, names, keep, before)
}

/// As [`copy_xattrs`] of those with these names.
fn copy_named_xattrs(
    from: BorrowedFd<'_>,
    to: BorrowedFd<'_>,
    mut names: Vec<CString>,
    keep: &Keep,
    before: Before,
) -> Result<(), FileError> {
    // Access lists last: one may take away the right to set the others.
    names.sort_by_key(|name| is_acl(name));
    if before != Before::Nothing {
        let acls = keep.acls || before == Before::AclOfDirectory;
        let those = self::names(to, &Keep { acls, ..*keep })?;
        for name in those.iter().filter(|name| !names.contains(name)) {
            match fs::fremovexattr(to, name.as_c_str()) {
                Ok(()) | Err(Errno::NODATA) => {}
                Err(errno) => return Err(FileError::io(doing(name))(errno)),
            }
        }
    }
    for name in &names {
        let Some(value) = value(from, name)? else { continue };
        // Nothing is asked of the system that need not be: the directory may be another user's.
        if before == Before::Nothing || self::value(to, name).ok().flatten().as_ref() != Some(&value) {
            let set = fs::fsetxattr(to, name.as_c_str(), &value, XattrFlags::empty());
            set.map_err(FileError::io(doing(name)))?;
        }
    }
    Ok(())
}

/// Lets the owner of a new file set attributes, where the directory's access list may have taken that right away.
fn let_owner_write(to: BorrowedFd<'_>, before: Before) -> Result<(), FileError> {
    match before {
        Before::AclOfDirectory => {
            fs::fchmod(to, Mode::RUSR | Mode::WUSR).map_err(FileError::io("set the mode of the output"))
        }
        Before::Nothing | Before::Anything => Ok(()),
    }
}

/// Takes away the access lists that a directory gives to what is new in it.
pub(super) fn remove_acls(to: BorrowedFd<'_>) -> Result<(), FileError> {
    for name in [ACL, DEFAULT_ACL] {
        match fs::fremovexattr(to, name) {
            Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP) => {}
            Err(errno) => return Err(FileError::io(doing(name))(errno)),
        }
    }
    Ok(())
}

/// Extended attributes by their names.
pub(crate) type Xattrs = Vec<(CString, Vec<u8>)>;

/// The extended attributes of a file that are kept, and access lists.
pub(crate) fn kept_xattrs(from: BorrowedFd<'_>, keep: &Keep) -> Result<Xattrs, FileError> {
    let mut kept = Vec::new();
    for name in names(from, keep)? {
        kept.extend(value(from, &name)?.map(|value| (name, value)));
    }
    Ok(kept)
}

/// Gives `to`, in which there are none, those of `xattrs` that are kept.
pub(super) fn set_xattrs(to: BorrowedFd<'_>, xattrs: &Xattrs, keep: &Keep) -> Result<(), FileError> {
    // Access lists last: one may take away the right to set the others.
    let (acls, others): (Vec<_>, Vec<_>) =
        xattrs.iter().filter(|(name, _)| is_kept(name, keep)).partition(|(name, _)| is_acl(name));
    for (name, value) in others.into_iter().chain(acls) {
        let set = fs::fsetxattr(to, name.as_c_str(), value, XattrFlags::empty());
        set.map_err(FileError::io(doing(name)))?;
    }
    Ok(())
}

/// Whether what is made in a directory gets an access list from it.
pub(super) fn gives_acls(dir: impl AsFd) -> bool {
    !matches!(fs::fgetxattr(dir, DEFAULT_ACL, &mut [0; 64]), Err(errno) if errno != Errno::RANGE)
}

const ACL: &CStr = c"system.posix_acl_access";
const DEFAULT_ACL: &CStr = c"system.posix_acl_default";

fn is_acl(name: &CStr) -> bool {
    name == ACL || name == DEFAULT_ACL
}

/// Whether an attribute goes with a file to where it is copied. Labels and seals of the `security` kind are its machine's.
fn is_kept(name: &CStr, keep: &Keep) -> bool {
    let starts = |prefix: &[u8]| name.to_bytes().starts_with(prefix);
    let is_privileged = starts(b"trusted.") || name == c"security.capability";
    (is_acl(name) && keep.acls)
        || (keep.xattrs && (starts(b"user.") || (is_privileged && keep.owners && is_root())))
}

fn doing(name: &CStr) -> &'static str {
    if is_acl(name) {
        "keep the access list (--no-acls leaves it out)"
    } else {
        "keep the extended attributes (--no-xattrs leaves them out)"
    }
}

/// Names of the attributes that are kept; none where the file system has none.
pub(super) fn names(fd: BorrowedFd<'_>, keep: &Keep) -> Result<Vec<CString>, FileError> {
    if !keep.acls && !keep.xattrs {
        return Ok(Vec::new());
    }
    let listed = grown(|space| fs::flistxattr(fd, space));
    let list = match listed {
        Ok(list) => list,
        Err(Errno::OPNOTSUPP) => return Ok(Vec::new()),
        Err(errno) => return Err(FileError::io("read the extended attributes")(errno)),
    };
    let names =
        list.split_inclusive(|byte| *byte == 0).filter_map(|name| CStr::from_bytes_with_nul(name).ok());
    Ok(names.filter(|name| is_kept(name, keep)).map(CStr::to_owned).collect())
}

/// An attribute's value; `None` where it has gone meanwhile.
fn value(fd: BorrowedFd<'_>, name: &CStr) -> Result<Option<Vec<u8>>, FileError> {
    match grown(|space| fs::fgetxattr(fd, name, space)) {
        Ok(value) => Ok(Some(value)),
        Err(Errno::NODATA) => Ok(None),
        Err(errno) => Err(FileError::io("read the extended attributes")(errno)),
    }
}

/// What `read` puts into a buffer that is large enough.
fn grown(mut read: impl FnMut(&mut [u8]) -> Result<usize, Errno>) -> Result<Vec<u8>, Errno> {
    let mut small = [0; 256];
    match read(&mut small) {
        Ok(bytes) => return Ok(small[..bytes].to_vec()),
        Err(Errno::RANGE) => {}
        Err(errno) => return Err(errno),
    }
    // The most that Linux has, of a list and of a value.
    let mut space = vec![0; 64 << 10];
    let bytes = read(&mut space)?;
    space.truncate(bytes);
    Ok(space)
}
