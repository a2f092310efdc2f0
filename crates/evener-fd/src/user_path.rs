//! Files that the user named: links on the way to them are followed only where they belong to root or to the user, so that
//! no other user leads anywhere.
//!
//! [`Named::find`]: one name after the other, each opened in the directory before it, up to the last that is no link.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path};

use rustix::fs::{self, FileType, Mode, OFlags, PROC_SUPER_MAGIC, ResolveFlags};
use rustix::io::Errno;

/// Links that are followed on the way to one file, as in the kernel.
const LINKS_MAX: u32 = 40;

const LOOK: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const ON_THE_WAY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Where a file that the user named stands, or is to stand: a directory, and a name in it that is no link.
#[derive(Debug)]
pub struct Named {
    dir: OwnedFd,
    name: OsString,
    /// Whether the name is a link of the kernel's own, below /proc, which leads to an open file.
    is_magic: bool,
}

impl Named {
    /// Goes to `path`, whose last name need not exist.
    ///
    /// # Errors
    ///
    /// What the system answers; or a sentence about a link on the way that belongs to another user.
    pub fn find(path: &Path) -> io::Result<Self> {
        let mut rest: VecDeque<OsString> = names(path).collect();
        let mut dir = fs::open(start(path), ON_THE_WAY, Mode::empty())?;
        let mut links = 0;
        while let Some(name) = rest.pop_front() {
            let is_last = rest.is_empty();
            let found = match fs::openat(&dir, &name, LOOK, Mode::empty()) {
                Err(Errno::NOENT) if is_last => return Ok(Self { dir, name, is_magic: false }),
                found => found?,
            };
            let stat = fs::fstat(&found)?;
            if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
                if is_last {
                    return Ok(Self { dir, name, is_magic: false });
                }
                dir = found;
                continue;
            }
            links += 1;
            if links > LINKS_MAX {
                return Err(Errno::LOOP.into());
            }
            if stat.st_uid != 0 && stat.st_uid != rustix::process::geteuid().as_raw() {
                return Err(stranger(&name, stat.st_uid));
            }
            if fs::fstatfs(&found)?.f_type == PROC_SUPER_MAGIC {
                if is_last {
                    return Ok(Self { dir, name, is_magic: true });
                }
                dir = fs::openat(&dir, &name, ON_THE_WAY, Mode::empty())?;
                continue;
            }
            let target = OsString::from_vec(fs::readlinkat(&found, c"", Vec::new())?.into_bytes());
            let target = Path::new(&target);
            if target.is_absolute() {
                dir = fs::open(c"/", ON_THE_WAY, Mode::empty())?;
            }
            for name in names(target).collect::<Vec<_>>().into_iter().rev() {
                rest.push_front(name);
            }
        }
        Ok(Self { dir, name: ".".into(), is_magic: false })
    }

    /// Its directory, for calls that change what stands there.
    #[must_use]
    pub const fn dir(&self) -> &OwnedFd {
        &self.dir
    }

    /// Its name in the directory.
    #[must_use]
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// Opens it; a link that takes its place meanwhile is not followed.
    ///
    /// # Errors
    ///
    /// What the system answers.
    pub fn open(&self, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        let links = if self.is_magic { OFlags::empty() } else { OFlags::NOFOLLOW };
        Ok(fs::openat(&self.dir, &self.name, flags | links | OFlags::CLOEXEC, mode)?)
    }
}

/// Opens a file that the user named, and that exists.
///
/// # Errors
///
/// As [`Named::find`] and [`Named::open`].
pub fn open_named(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    // In one call where there is no link, which is the usual case.
    match fs::openat2(fs::CWD, path, flags | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Err(Errno::LOOP | Errno::NOSYS | Errno::PERM | Errno::INVAL | Errno::AGAIN) => {
            Named::find(path)?.open(flags, Mode::empty())
        }
        opened => Ok(opened?),
    }
}

fn start(path: &Path) -> &'static OsStr {
    OsStr::from_bytes(if path.is_absolute() { b"/" } else { b"." })
}

fn names(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    })
}

fn stranger(name: &OsStr, uid: u32) -> io::Error {
    let name = name.to_string_lossy();
    let sentence = format!(
        "the link {name:?} on the way belongs to another user (uid {uid}) and is not followed; name what it points to"
    );
    io::Error::new(io::ErrorKind::PermissionDenied, sentence)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::fs::{chown, lchown, symlink};
    use std::path::PathBuf;

    use super::*;

    /// `real/file`, and links to it: `own`, `dir -> real`, `far -> dir/file`, `absolute`, `round -> round`.
    fn place(name: &str) -> PathBuf {
        let place = std::env::temp_dir().join(format!("evener-named-{name}-{}", std::process::id()));
        std::fs::create_dir_all(place.join("real")).unwrap();
        std::fs::write(place.join("real/file"), "text").unwrap();
        for (target, link) in [("real/file", "own"), ("real", "dir"), ("dir/file", "far"), ("round", "round")]
        {
            symlink(target, place.join(link)).unwrap();
        }
        symlink(place.join("real/file"), place.join("absolute")).unwrap();
        place
    }

    /// By the kernel where there is no link, and name by name.
    fn read(path: &Path) -> [io::Result<String>; 2] {
        let text = |fd: io::Result<OwnedFd>| {
            let mut text = String::new();
            std::fs::File::from(fd?).read_to_string(&mut text)?;
            Ok(text)
        };
        let by_name = Named::find(path).and_then(|named| named.open(OFlags::RDONLY, Mode::empty()));
        [text(open_named(path, OFlags::RDONLY)), text(by_name)]
    }

    #[test]
    fn own_links_lead_where_the_system_would_go() {
        let place = place("own");
        for path in
            ["real/file", "own", "dir/file", "far", "absolute", "real/../dir/./file", "round", "none/x"]
        {
            let path = place.join(path);
            let judge = std::fs::read_to_string(&path).map_err(|error| error.raw_os_error());
            for text in read(&path) {
                assert_eq!(text.map_err(|error| error.raw_os_error()), judge, "{path:?}");
            }
        }
        std::fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn an_open_file_is_named_by_its_descriptor() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        rustix::io::write(&writer, b"text").unwrap();
        drop(writer);
        let path = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
        let [text, _] = read(Path::new(&path));
        assert_eq!(text.unwrap(), "text");
    }

    #[test]
    fn a_link_of_another_user_is_not_followed_and_named() {
        let place = place("stranger");
        if lchown(place.join("own"), Some(65_534), None).is_err() {
            println!("skipped: only root can make a link another user's");
            return;
        }
        lchown(place.join("dir"), Some(65_534), None).unwrap();
        for (path, link) in [("own", "own"), ("dir/file", "dir"), ("far", "dir")] {
            for text in read(&place.join(path)) {
                let error = text.unwrap_err().to_string();
                assert!(error.contains(&format!("{link:?}")) && error.contains("uid 65534"), "{error}");
            }
        }
        // What is no link may belong to any user.
        chown(place.join("real"), Some(65_534), None).unwrap();
        chown(place.join("real/file"), Some(65_534), None).unwrap();
        assert!(read(&place.join("real/file")).into_iter().all(|text| text.is_ok()));
        std::fs::remove_dir_all(place).unwrap();
    }
}
