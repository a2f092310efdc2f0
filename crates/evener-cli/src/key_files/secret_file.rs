//! Files that hold keys, whole in memory.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use evener_fd::{atomic_file, open_named};
use rustix::fs::OFlags;
use zeroize::Zeroizing;

use crate::terminal::{PathDisplay, output};

/// The name that stands for standard input.
pub(crate) const STDIN: &str = "-";

/// Longest file that is taken for a key, so that a wrong path does not read a whole disk. Assumed, not measured: 16 MiB, far
/// beyond any key.
const SECRET_BYTES_MAX: usize = 16 << 20;

/// Reads a file that holds a secret; a line on standard error where others can read it too.
pub(crate) fn read_secret(path: &Path) -> anyhow::Result<Zeroizing<Vec<u8>>> {
    if path == Path::new(STDIN) {
        return read_all(&mut std::io::stdin().lock(), 0, path);
    }
    let mut file = open(path)?;
    let metadata = file.metadata().with_context(|| cannot_read(path))?;
    if metadata.is_file() && metadata.mode() & 0o044 != 0 {
        let mode = metadata.mode() & 0o777;
        output::warning(format_args!(
            "others can read {} (mode {mode:04o}); chmod 600 helps",
            PathDisplay(path)
        ));
    }
    let expected = usize::try_from(metadata.len()).unwrap_or_default();
    read_all(&mut file, expected, path)
}

/// Reads an open file that holds a secret.
pub(crate) fn read_held(file: &mut File, path: &Path) -> anyhow::Result<Zeroizing<Vec<u8>>> {
    read_all(file, 0, path)
}

/// Reads a file that holds public keys.
pub(crate) fn read_public(path: &Path) -> anyhow::Result<Zeroizing<Vec<u8>>> {
    if path == Path::new(STDIN) {
        return read_all(&mut std::io::stdin().lock(), 0, path);
    }
    read_all(&mut open(path)?, 0, path)
}

fn read_all(from: &mut impl Read, expected: usize, path: &Path) -> anyhow::Result<Zeroizing<Vec<u8>>> {
    // Space for all of it and a byte from the start, so that no copy is left behind by growing.
    let space = expected.clamp(64 << 10, SECRET_BYTES_MAX) + 1;
    let mut secret = Zeroizing::new(Vec::with_capacity(space));
    let limit = SECRET_BYTES_MAX as u64 + 1;
    from.take(limit).read_to_end(&mut secret).with_context(|| cannot_read(path))?;
    if secret.len() > SECRET_BYTES_MAX {
        bail!("{} is longer than a key can be", PathDisplay(path));
    }
    Ok(secret)
}

/// Opens a file that the user named; a stranger's link leads nowhere.
fn open(path: &Path) -> anyhow::Result<File> {
    open_named(path, OFlags::RDONLY | OFlags::CLOEXEC).map(File::from).with_context(|| cannot_read(path))
}

fn cannot_read(path: &Path) -> String {
    format!("cannot read {}", PathDisplay(path))
}

/// Writes a file that did not exist, readable and writable by its owner only; all of it or none.
pub(crate) fn write_secret(file: &Path, secret: &[u8]) -> anyhow::Result<()> {
    atomic_file::write_new(file, secret).with_context(|| format!("cannot make {}", PathDisplay(file)))
}
