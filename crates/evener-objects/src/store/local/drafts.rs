//! An output in a directory on its way to its name: a file without one or, where that cannot be, a draft that has one and a lock, its owner's alone
//! until it is whole. The kernel drops the lock with the process, so a draft without one is a dead run's.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Seek as _;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use rustix::fs::{self, AtFlags, Dir, FlockOperation, Mode, OFlags, RenameFlags, XattrFlags};
use rustix::io::Errno;

use super::{MARK, of, of_io, written_state};
use crate::outcome::{Failure, Kind};
use crate::spared::is_file;
use crate::store::{Making, Rules, Upload};

/// What names of drafts begin with; 16 hexadecimal digits follow.
const DRAFT: &str = ".evener-draft-";
const DRAFT_DIGITS: usize = 16;

const DRAFTED: OFlags = OFlags::RDWR.union(OFlags::CLOEXEC);
/// The umask takes from it.
const OUTPUT_MODE: u32 = 0o666;

/// Whether a name is that of a draft.
pub(super) fn is_draft(name: &str) -> bool {
    let is_digit = |digit: u8| digit.is_ascii_digit() || matches!(digit, b'a'..=b'f');
    name.strip_prefix(DRAFT)
        .is_some_and(|digits| digits.len() == DRAFT_DIGITS && digits.bytes().all(is_digit))
}

/// What all drafts of a run have.
pub(super) struct Drafts {
    rules: Rules,
    /// Whether a mark was put on one.
    keeps_marks: AtomicBool,
    /// Directories in which drafts of dead runs were looked for.
    cleaned: Mutex<HashSet<(u64, u64)>>,
}

/// An output on its way to its name.
pub(super) struct Draft {
    of: Arc<Drafts>,
    file: File,
    folder: OwnedFd,
    making: Making,
    /// The name that it has until then, where the file system has no files without one.
    draft_name: Option<String>,
    /// Whether it has got its own.
    is_named: AtomicBool,
}

impl Drop for Draft {
    fn drop(&mut self) {
        // The name is gone where the output has got its own.
        if let Some(draft) = &self.draft_name {
            fs::unlinkat(&self.folder, draft, AtFlags::empty()).ok();
        }
    }
}

impl Drafts {
    pub(super) fn new(rules: Rules) -> Self {
        Self { rules, keeps_marks: AtomicBool::new(false), cleaned: Mutex::default() }
    }

    /// Begins an output in its directory.
    pub(super) fn begin(self: &Arc<Self>, folder: OwnedFd, making: &Making) -> Result<Draft, Failure> {
        if is_draft(own_name(making)) {
            return Err(Failure::never("its output would have the name of a draft of evener's own"));
        }
        let mode = Mode::from_raw_mode(OUTPUT_MODE);
        let draft = match fs::openat(&folder, ".", DRAFTED | OFlags::TMPFILE, mode) {
            Ok(fd) => self.draft(folder, making, File::from(fd), None),
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => {
                self.begin_named(folder, making)?
            }
            Err(errno) => return Err(of(errno)),
        };
        // At once, before anything is computed and named for nothing.
        if self.rules.needs_marks && !self.keeps_marks.load(Ordering::Relaxed) {
            self.put_mark(&draft.file, "")?;
        }
        Ok(draft)
    }

    /// The same where the file system has no files without names.
    fn begin_named(self: &Arc<Self>, folder: OwnedFd, making: &Making) -> Result<Draft, Failure> {
        self.clean(&folder);
        let (name, file) = new_draft(&folder)?;
        Ok(self.draft(folder, making, file, Some(name)))
    }

    fn draft(
        self: &Arc<Self>,
        folder: OwnedFd,
        making: &Making,
        file: File,
        draft_name: Option<String>,
    ) -> Draft {
        let (of, making, is_named) = (Arc::clone(self), making.clone(), AtomicBool::new(false));
        Draft { of, file, folder, making, draft_name, is_named }
    }

    /// Puts a mark on a file. Where the file system keeps none, another run would make each output again, or take it for another program's.
    fn put_mark(&self, file: &File, mark: &str) -> Result<(), Failure> {
        match fs::fsetxattr(file, MARK, mark.as_bytes(), XattrFlags::empty()) {
            Ok(()) => self.keeps_marks.store(true, Ordering::Relaxed),
            Err(Errno::OPNOTSUPP) if self.rules.needs_marks => {
                return Err(Failure::new(
                    Kind::EndsRun,
                    "the file system of DEST keeps no extended attributes (user.*), so no later run could tell finished outputs; --force makes all of them again in each run",
                ));
            }
            Err(Errno::OPNOTSUPP) => {}
            Err(errno) => return Err(of(errno)),
        }
        Ok(())
    }

    /// Removes what dead runs left in a directory, once. That it cannot be adds nothing to what this run does.
    fn clean(&self, folder: &OwnedFd) {
        let Ok(stat) = fs::fstat(folder) else { return };
        let is_new =
            self.cleaned.lock().unwrap_or_else(PoisonError::into_inner).insert((stat.st_dev, stat.st_ino));
        let Some(entries) = is_new.then(|| Dir::read_from(folder).ok()).flatten() else { return };
        for entry in entries.map_while(Result::ok) {
            let Some(name) = entry.file_name().to_str().ok().filter(|name| is_draft(name)) else { continue };
            let flags = DRAFTED | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
            let Ok(file) = fs::openat(folder, name, flags, Mode::empty()) else { continue };
            let is_dead = fs::fstat(&file).is_ok_and(|stat| is_file(&stat))
                && fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
            if is_dead {
                fs::unlinkat(folder, name, AtFlags::empty()).ok();
            }
        }
    }
}

fn own_name(making: &Making) -> &str {
    making.name.rsplit('/').next().unwrap_or_default()
}

/// A draft with a name, its owner's alone, and the lock on it.
fn new_draft(folder: &OwnedFd) -> Result<(String, File), Failure> {
    loop {
        let name = random_name()?;
        let flags = DRAFTED | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let fd = fs::openat(folder, &name, flags, Mode::RUSR | Mode::WUSR).map_err(of)?;
        let file = File::from(fd);
        lock(&file);
        // Another run may have taken it for a dead one's before the lock was there.
        match fs::statat(folder, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => {}
            found => return found.map(|_| (name, file)).map_err(of),
        }
    }
}

/// Shows other runs that this one lives. Where there are no locks no run takes a draft for a dead one's.
fn lock(file: &File) {
    while fs::flock(file, FlockOperation::LockExclusive) == Err(Errno::INTR) {}
}

impl Upload for Draft {
    fn part(&self, _: usize, place: u64, bytes: Bytes) -> Result<(), Failure> {
        self.file.write_all_at(&bytes, place).map_err(|error| of_io(&error))
    }

    fn complete(&self) -> Result<(), Failure> {
        // What failed in an earlier try may have been the sync of the directory alone.
        if !self.is_named.load(Ordering::Relaxed) {
            self.give_name()?;
            self.is_named.store(true, Ordering::Relaxed);
        }
        fs::fsync(&self.folder).map_err(of)
    }

    // A draft goes when it is dropped.
    fn abort(&self) {}
}

impl Draft {
    fn give_name(&self) -> Result<(), Failure> {
        self.settle(&self.file, self.draft_name.is_some())?;
        let (own, replaces) = (own_name(&self.making), self.making.replaces);
        if let Some(draft) = &self.draft_name {
            return self.rename(draft, own);
        }
        if replaces {
            self.of.clean(&self.folder);
            lock(&self.file);
        }
        let name = if replaces { random_name()? } else { own.to_owned() };
        match self.link(&name) {
            Ok(()) if replaces => self.rename_or_remove(&name, own),
            Ok(()) => Ok(()),
            Err(errno) if has_no_links(errno) => {
                // With its lock until it has its name.
                let (draft, _file) = self.copy()?;
                self.rename_or_remove(&draft, own)
            }
            Err(errno) => Err(of(errno)),
        }
    }

    /// Gives a file that is whole its mark, and its mode where it was its owner's alone, and has it on the disk.
    fn settle(&self, file: &File, is_draft: bool) -> Result<(), Failure> {
        let state = written_state(&fs::fstat(file).map_err(of)?);
        self.of.put_mark(file, &format!("{} {state}", self.making.mark))?;
        if is_draft {
            fs::fchmod(file, Mode::from_raw_mode(OUTPUT_MODE & !umask())).map_err(of)?;
        }
        file.sync_all().map_err(|error| of_io(&error))
    }

    /// Gives the file without a name one.
    fn link(&self, own: &str) -> Result<(), Errno> {
        let file = format!("/proc/self/fd/{}", self.file.as_fd().as_raw_fd());
        let flags = AtFlags::SYMLINK_FOLLOW;
        fs::linkat(fs::CWD, OsStr::new(&file), &self.folder, own, flags)
    }

    /// Gives the draft `draft` the name of the output.
    fn rename(&self, draft: &str, own: &str) -> Result<(), Failure> {
        let folder = &self.folder;
        if self.making.replaces {
            let stands = fs::statat(folder, own, AtFlags::SYMLINK_NOFOLLOW).ok();
            if let Some(what) = stands.and_then(|stat| self.of.rules.spared.what(&stat)) {
                return Err(Failure::never(format_args!("its output would take the place of {what}")));
            }
            return fs::renameat(folder, draft, folder, own).map_err(of_draft);
        }
        match fs::linkat(folder, draft, folder, own, AtFlags::empty()) {
            Ok(()) => fs::unlinkat(folder, draft, AtFlags::empty()).map_err(of),
            Err(errno) if has_no_links(errno) => {
                let renamed = fs::renameat_with(folder, draft, folder, own, RenameFlags::NOREPLACE);
                renamed.map_err(|errno| match errno {
                    Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP => Failure::never(
                        "its file system has neither hard links nor a rename that replaces nothing, so no output gets its name there",
                    ),
                    _ => of_draft(errno),
                })
            }
            Err(errno) => Err(of_draft(errno)),
        }
    }

    /// The same for a draft that got its name for this alone.
    fn rename_or_remove(&self, draft: &str, own: &str) -> Result<(), Failure> {
        self.rename(draft, own).inspect_err(|_| {
            fs::unlinkat(&self.folder, draft, AtFlags::empty()).ok();
        })
    }

    /// A draft with a name that has all that the file without one has.
    fn copy(&self) -> Result<(String, File), Failure> {
        self.of.clean(&self.folder);
        let (name, file) = new_draft(&self.folder)?;
        let copied = (&self.file).rewind().and_then(|()| std::io::copy(&mut &self.file, &mut &file));
        let settled = copied.map_err(|error| of_io(&error)).and_then(|_| self.settle(&file, true));
        if settled.is_err() {
            fs::unlinkat(&self.folder, &name, AtFlags::empty()).ok();
        }
        settled.map(|()| (name, file))
    }
}

/// What the naming of a draft failed with. One that is gone was taken for a dead run's, where locks of other machines are not seen.
fn of_draft(errno: Errno) -> Failure {
    match errno {
        Errno::NOENT => Failure::new(Kind::Exhausted, "its draft was removed by another run"),
        _ => of(errno),
    }
}

/// Whether a file system refuses a hard link because it has none.
const fn has_no_links(errno: Errno) -> bool {
    matches!(errno, Errno::OPNOTSUPP | Errno::NOSYS | Errno::PERM)
}

fn random_name() -> Result<String, Failure> {
    let mut random = [0; 8];
    getrandom::getrandom(&mut random).map_err(Failure::never)?;
    Ok(format!("{DRAFT}{:016x}", u64::from_ne_bytes(random)))
}

/// What this process takes from modes of files that it makes. It is read, for only who changes it is told by a call.
fn umask() -> u32 {
    static UMASK: OnceLock<u32> = OnceLock::new();
    *UMASK.get_or_init(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
        // Unknown, it is taken for one that lets no other user in.
        line.and_then(|digits| u32::from_str_radix(digits.trim(), 8).ok()).unwrap_or(0o077)
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    use evener_testing::Folder;

    use super::*;
    use crate::spared::Spared;
    use crate::store::Store as _;
    use crate::store::local::Local;

    /// Names in a directory.
    fn names(folder: &Path) -> Vec<String> {
        std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    fn local(folder: &Folder) -> Local {
        let rules = Rules { spared: Spared::default(), needs_marks: true };
        Local::open(folder.path().to_str().unwrap(), rules).unwrap()
    }

    fn named(local: &Local, making: &Making) -> Draft {
        local.drafts.begin_named(local.made_folder("").unwrap(), making).unwrap()
    }

    #[test]
    fn a_try_that_fails_leaves_no_draft_with_or_without_a_name() {
        let folder = Folder::temporary();
        std::fs::create_dir(folder.join("output")).unwrap();
        let local = local(&folder);
        for replaces in [true, false] {
            let making = Making { name: "output".to_owned(), mark: "mark".to_owned(), replaces };
            // No file takes the place of a directory.
            local.put(&making, Bytes::from_static(b"sealed")).unwrap_err();
            let draft = named(&local, &making);
            assert_eq!(names(folder.path()).len(), 2);
            draft.part(0, 0, Bytes::from_static(b"sealed")).unwrap();
            draft.complete().unwrap_err();
            drop(draft);
            assert_eq!(names(folder.path()), ["output"]);
            // One that goes well leaves its output alone, also where it is completed once more.
            let making = Making { name: format!("other-{replaces}"), ..making };
            for draft in
                [named(&local, &making), local.drafts.begin(local.made_folder("").unwrap(), &making).unwrap()]
            {
                draft.complete().unwrap();
                draft.complete().unwrap();
                drop(draft);
                assert_eq!(names(folder.path()).len(), 2);
                assert_eq!(local.standing(&making.name).unwrap().unwrap().mark.as_deref(), Some("mark"));
                std::fs::remove_file(folder.join(&making.name)).unwrap();
            }
        }
    }

    #[test]
    fn a_draft_is_its_owners_alone_until_it_is_whole_and_gone_with_the_next_run_if_its_own_died() {
        let folder = Folder::temporary();
        let making = Making { name: "output".to_owned(), mark: "mark".to_owned(), replaces: false };
        let (one, other) = (local(&folder), local(&folder));
        // As a run leaves it that is killed, and what only looks like one.
        let dead = format!("{DRAFT}0123456789abcdef");
        for name in [&dead, ".evener-draft-notes", ".evener-draft-0123456789ABCDEF"] {
            std::fs::write(folder.join(name), "plain").unwrap();
        }
        let mode = |name: &str| std::fs::metadata(folder.join(name)).unwrap().permissions().mode() & 0o777;
        let draft = named(&one, &making);
        assert!(!folder.join(&dead).exists());
        let own = draft.draft_name.clone().unwrap();
        assert_eq!(mode(&own), 0o600);
        // Another run sees that this one lives.
        drop(named(&other, &making));
        assert!(folder.join(&own).exists());
        draft.complete().unwrap();
        std::fs::write(folder.join("usual"), "").unwrap();
        assert_eq!(mode("output"), mode("usual"));
        drop(draft);
        assert_eq!(names(folder.path()).len(), 4);
        // What replaces an output has a name for a moment, so it cleans too.
        std::fs::write(folder.join(&dead), "plain").unwrap();
        let third = local(&folder);
        third.put(&Making { replaces: true, ..making }, Bytes::from_static(b"sealed")).unwrap();
        assert!(!folder.join(&dead).exists());
    }
}
