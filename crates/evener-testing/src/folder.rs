//! A folder of a test's own, and what stands in it afterwards.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

/// A folder that is removed at the end of a test.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// A new one in `root`.
    #[must_use]
    pub fn new_in(root: &Path) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = root.join(format!("evener-{}-{number}", process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    /// A new one for temporary files.
    #[must_use]
    pub fn temporary() -> Self {
        Self::new_in(&env::temp_dir())
    }

    /// A new one that other users can reach and write to as well.
    #[must_use]
    pub fn open_to_all() -> Self {
        let folder = Self::temporary();
        allow(&folder.0, 0o777);
        folder
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Where `name` in it is.
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file, and makes the folders that lead to it.
    pub fn write(&self, name: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    /// A file that only its owner can read.
    pub fn write_secret(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.write(name, bytes);
        allow(&path, 0o600);
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// Sets the permissions of a file.
pub fn allow(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Every entry below `root` by its path: kind, mode, time and bytes.
#[must_use]
pub fn tree(root: &Path) -> BTreeMap<PathBuf, Entry> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![PathBuf::new()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(root.join(&folder)).unwrap() {
            let path = folder.join(entry.unwrap().file_name());
            let metadata = fs::symlink_metadata(root.join(&path)).unwrap();
            if metadata.is_dir() {
                waiting.push(path.clone());
            }
            let bytes = metadata.is_file().then(|| fs::read(root.join(&path)).unwrap());
            let time = (metadata.mtime(), metadata.mtime_nsec());
            found.insert(path, Entry { mode: metadata.mode(), time, bytes });
        }
    }
    found
}

/// What stands under a path; `bytes` for files only.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    /// Kind and permissions.
    pub mode: u32,
    /// When it was changed: seconds and nanoseconds.
    pub time: (i64, i64),
    /// What is in it.
    pub bytes: Option<Vec<u8>>,
}

/// Paths of the regular files below `root`, hidden ones too; none where `root` does not exist.
#[must_use]
pub fn files(root: &Path) -> Vec<PathBuf> {
    if !root.exists() {
        return Vec::new();
    }
    tree(root).into_iter().filter(|(_, entry)| entry.bytes.is_some()).map(|(path, _)| path).collect()
}
