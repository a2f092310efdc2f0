//! Where the test bed lies: `target/testbed` of this workspace. Nothing else on the host is written to.

use std::io;
use std::path::{Path, PathBuf};
use std::{env, fs};

use crate::error::at;

/// The folder of the test bed.
#[must_use]
pub fn root() -> PathBuf {
    workspace().join("target/testbed")
}

/// The folder of the workspace that this crate was built in.
pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies below the workspace").to_owned()
}

/// `name` below the root, as a folder that is there.
pub(crate) fn folder(name: &str) -> io::Result<PathBuf> {
    let path = root().join(name);
    fs::create_dir_all(&path).map_err(|error| at(&path, error))?;
    Ok(path)
}

/// Writes `bytes` under `path` in one step: a reader sees all or nothing.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let above = path.parent().expect("a file below the root");
    let mut draft = tempfile::NamedTempFile::new_in(above)?;
    io::Write::write_all(&mut draft, bytes)?;
    draft.persist(path).map_err(|error| at(path, error.error))?;
    Ok(())
}

/// The program `name` on the search path.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    // Not every shell of a service searches these.
    let more = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    env::split_paths(&folders).chain(more).map(|folder| folder.join(name)).find(|path| path.is_file())
}
