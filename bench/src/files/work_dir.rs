//! The folder that is measured in: what lies in it, which file system it is on, and what memory it will need.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::{MemfdFlags, memfd_create, statfs, statvfs, syncfs};
use tempfile::TempDir;

use crate::error::BenchError;

/// A folder of our own inside the one that the user chose; removed when dropped.
pub(super) struct WorkDir {
    folder: TempDir,
    file_system: &'static str,
}

/// Files and bytes of a file or a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) files: u64,
    pub(super) bytes: u64,
}

impl WorkDir {
    /// # Errors
    ///
    /// [`BenchError::Cell`] where there is no space for `space_bytes`.
    pub(super) fn new(folder: &Path, space_bytes: u64) -> Result<Self, BenchError> {
        let name = |error: rustix::io::Errno| wrong(folder)(error.into());
        let space = statvfs(folder).map_err(name)?;
        let free_bytes = space.f_bavail.saturating_mul(space.f_frsize);
        if free_bytes < space_bytes {
            let (needed, free) = (space_bytes >> 20, free_bytes >> 20);
            let place = folder.display();
            return Err(BenchError::Cell(format!("needed in {place}: {needed} MiB; free are {free} MiB")));
        }
        let file_system = file_system(statfs(folder).map_err(name)?.f_type);
        let inside = tempfile::Builder::new().prefix("evener-bench-").tempdir_in(folder);
        Ok(Self { folder: inside.map_err(wrong(folder))?, file_system })
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Its usual name, `other` where it is none that we know.
    pub(super) const fn file_system(&self) -> &'static str {
        self.file_system
    }

    pub(super) fn is_on_disk(&self) -> bool {
        self.file_system != TMPFS
    }

    /// Brings folder and memory into the same state before each turn: nothing is left to be written, and the
    /// memory that the next `bytes` of output will take has just been used. Memory that a host took back from a
    /// virtual machine costs several times as much at its next use, and would be charged to the contender that is next.
    pub(super) fn settle(&self, bytes: u64) -> Result<(), BenchError> {
        self.sync()?;
        let touched = memfd_create("evener-bench", MemfdFlags::CLOEXEC).map_err(io::Error::from);
        let touched = touched.and_then(|file| {
            let mut zeros = io::repeat(0).take(bytes + bytes / SPARE);
            io::copy(&mut zeros, &mut File::from(file))
        });
        touched.map(drop).map_err(|error| BenchError::Cell(format!("no memory for {bytes} bytes: {error}")))
    }

    /// Removes an output, unless it is a tree on a disk: ext4 makes files many times slower after some have
    /// been removed, so those stay to the end.
    pub(super) fn discard(&self, path: &Path, is_tree: bool) -> Result<(), BenchError> {
        match (is_tree, self.is_on_disk()) {
            (true, true) => Ok(()),
            (true, false) => fs::remove_dir_all(path).map_err(wrong(path)),
            (false, _) => fs::remove_file(path).map_err(wrong(path)),
        }
    }

    fn sync(&self) -> Result<(), BenchError> {
        let folder = self.folder.path();
        let synced = File::open(folder).and_then(|folder| syncfs(&folder).map_err(io::Error::from));
        synced.map_err(wrong(folder))
    }
}

impl Shape {
    pub(super) fn of(root: &Path) -> Result<Self, BenchError> {
        let mut shape = Self::default();
        for path in paths(root)? {
            let metadata = fs::symlink_metadata(&path).map_err(wrong(&path))?;
            if metadata.is_file() {
                shape.files += 1;
                shape.bytes += metadata.len();
            }
        }
        Ok(shape)
    }
}

/// A file of bytes without pattern.
pub(super) fn make_file(path: &Path, bytes: u64) -> Result<(), BenchError> {
    write_noise(path, bytes, &mut noise()?).map_err(wrong(path))
}

/// `count` files of `bytes`, a hundred in a folder.
pub(super) fn make_tree(root: &Path, count: u64, bytes: u64) -> Result<(), BenchError> {
    let mut noise = noise()?;
    for number in 0..count {
        let folder = root.join(format!("folder-{:03}", number / 100));
        let path = folder.join(format!("file-{:02}", number % 100));
        fs::create_dir_all(&folder).map_err(wrong(&folder))?;
        write_noise(&path, bytes, &mut noise).map_err(wrong(&path))?;
    }
    Ok(())
}

/// The folders of `source`, empty, as `target`: for programs that make none.
pub(super) fn make_folders_like(source: &Path, target: &Path) -> Result<(), BenchError> {
    for path in paths(source)?.iter().filter(|path| path.is_dir()) {
        let relative = path.strip_prefix(source).expect("paths() starts them all with it");
        let path = target.join(relative);
        fs::create_dir_all(&path).map_err(wrong(&path))?;
    }
    Ok(())
}

/// Sees to it that all programs would do the same with a file or tree: they differ in links and devices, `age -d` makes no file of nothing, and a line end
/// would end a name in a list.
pub(super) fn check_plain(root: &Path) -> Result<(), BenchError> {
    for path in paths(root)? {
        let metadata = fs::symlink_metadata(&path).map_err(wrong(&path))?;
        let is_plain = metadata.is_dir() || metadata.is_file() && metadata.len() > 0;
        if !is_plain || path.as_os_str().as_encoded_bytes().contains(&b'\n') {
            let path = path.display().to_string().replace('\n', "\\n");
            let why =
                "not all programs make the same of links, devices, empty files and names with line ends";
            return Err(BenchError::Cell(format!("{path}: {why}")));
        }
    }
    Ok(())
}

/// The files below `root`, one on a line, as they are called from there.
pub(super) fn list(root: &Path) -> Result<String, BenchError> {
    let files = paths(root)?.into_iter().filter(|path| path.is_file());
    let name = |path: PathBuf| path.strip_prefix(root).ok().map(|name| format!("{}\n", name.display()));
    Ok(files.filter_map(name).collect())
}

/// Whether two files, or two trees, hold the same names and bytes.
pub(super) fn same(one: &Path, other: &Path) -> Result<bool, BenchError> {
    let (ours, theirs) = (paths(one)?, paths(other)?);
    let names = |root: &Path, paths: &[PathBuf]| -> Vec<PathBuf> {
        paths.iter().filter_map(|path| path.strip_prefix(root).ok().map(Path::to_owned)).collect()
    };
    if names(one, &ours) != names(other, &theirs) {
        return Ok(false);
    }
    for (left, right) in ours.iter().zip(&theirs).filter(|pair| pair.0.is_file()) {
        if !same_bytes(left, right).map_err(wrong(left))? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn same_bytes(one: &Path, other: &Path) -> io::Result<bool> {
    let (one, other) = (File::open(one)?, File::open(other)?);
    let (mut left, mut right) = (Vec::new(), Vec::new());
    loop {
        left.clear();
        right.clear();
        (&one).take(CHUNK_BYTES).read_to_end(&mut left)?;
        (&other).take(CHUNK_BYTES).read_to_end(&mut right)?;
        if left != right || left.is_empty() {
            return Ok(left == right);
        }
    }
}

/// A path and everything below it, in the order of names.
fn paths(root: &Path) -> Result<Vec<PathBuf>, BenchError> {
    let walk = walkdir::WalkDir::new(root).sort_by_file_name().into_iter();
    walk.map(|entry| entry.map(walkdir::DirEntry::into_path))
        .collect::<Result<_, _>>()
        .map_err(|error| wrong(root)(error.into()))
}

/// A chunk without pattern.
fn noise() -> Result<Vec<u8>, BenchError> {
    let mut noise = Vec::new();
    let source = Path::new("/dev/urandom");
    let read = File::open(source).and_then(|file| file.take(CHUNK_BYTES).read_to_end(&mut noise));
    read.map(|_| noise).map_err(wrong(source))
}

/// Writes `bytes` of noise; every chunk differs from all others.
fn write_noise(path: &Path, bytes: u64, noise: &mut [u8]) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    let mut left = bytes;
    while left > 0 {
        let number = u64::from_le_bytes(noise[..8].try_into().expect("eight bytes"));
        noise[..8].copy_from_slice(&number.wrapping_add(1).to_le_bytes());
        let part = usize::try_from(left).map_or(noise.len(), |left| left.min(noise.len()));
        file.write_all(&noise[..part])?;
        left -= part as u64;
    }
    Ok(())
}

/// Whether a folder is in memory; one that cannot be looked at is not.
pub(super) fn is_tmpfs(folder: &Path) -> bool {
    statfs(folder).is_ok_and(|found| file_system(found.f_type) == TMPFS)
}

/// On 32-bit processors a number has 32 bits, the first of which is its sign.
fn file_system(magic: impl Into<i64>) -> &'static str {
    let magic = magic.into() & 0xFFFF_FFFF;
    FILE_SYSTEMS.iter().find(|row| row.0 == magic).map_or("other", |row| row.1)
}

pub(super) fn wrong(path: &Path) -> impl Fn(io::Error) -> BenchError {
    let path = path.display().to_string();
    move |error| BenchError::File { path: path.clone(), error: error.to_string() }
}

const CHUNK_BYTES: u64 = 1 << 20;
/// Which part of its output a program may need as memory besides. Assumed, not measured: a quarter, 256 MiB for 1 GiB.
const SPARE: u64 = 4;

const TMPFS: &str = "tmpfs";
/// `f_type` of statfs(2), from linux/magic.h.
const FILE_SYSTEMS: [(i64, &str); 7] = [
    (0x0102_1994, TMPFS),
    (0xEF53, "ext4"),
    (0x5846_5342, "xfs"),
    (0x9123_683E, "btrfs"),
    (0xF2F5_2010, "f2fs"),
    (0x2FC1_2FC1, "zfs"),
    (0x794C_7630, "overlayfs"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn work_dir() -> WorkDir {
        WorkDir::new(&std::env::temp_dir(), 1 << 20).unwrap()
    }

    #[test]
    fn a_tree_has_the_files_it_was_asked_for_and_no_two_are_alike() {
        let work_dir = work_dir();
        let root = work_dir.path("tree");
        make_tree(&root, 205, 100).unwrap();
        assert_eq!(Shape::of(&root).unwrap(), Shape { files: 205, bytes: 20_500 });
        let files = paths(&root).unwrap().into_iter().filter(|path| path.is_file());
        let contents: std::collections::BTreeSet<_> = files.map(|path| fs::read(path).unwrap()).collect();
        assert_eq!(contents.len(), 205);
    }

    #[test]
    fn one_changed_byte_or_name_is_a_difference() {
        let work_dir = work_dir();
        let [one, other] = ["one", "other"].map(|name| work_dir.path(name));
        make_tree(&one, 3, 2_000_000).unwrap();
        make_folders_like(&one, &other).unwrap();
        for file in paths(&one).unwrap().iter().filter(|path| path.is_file()) {
            fs::copy(file, other.join(file.strip_prefix(&one).unwrap())).unwrap();
        }
        assert!(same(&one, &other).unwrap());
        let last = other.join("folder-000/file-02");
        let mut bytes = fs::read(&last).unwrap();
        bytes[1_999_999] ^= 1;
        fs::write(&last, &bytes).unwrap();
        assert!(!same(&one, &other).unwrap());
        bytes[1_999_999] ^= 1;
        fs::write(other.join("folder-000/file-03"), &bytes).unwrap();
        fs::remove_file(&last).unwrap();
        assert!(!same(&one, &other).unwrap());
    }

    #[test]
    fn a_folder_without_space_is_refused_before_anything_is_written() {
        let refused = WorkDir::new(&std::env::temp_dir(), u64::MAX).err().unwrap();
        assert!(matches!(refused, BenchError::Cell(_)), "{refused}");
    }

    #[test]
    fn shared_memory_is_a_tmpfs() {
        if Path::new("/dev/shm").is_dir() {
            let work_dir = WorkDir::new(Path::new("/dev/shm"), 0).unwrap();
            assert_eq!((work_dir.file_system(), work_dir.is_on_disk()), ("tmpfs", false));
        }
    }
}
