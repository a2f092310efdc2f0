//! Archives in cpio's "newc" form, which the kernel unpacks as its first file system (Linux,
//! Documentation/driver-api/early-userspace/buffer-format.rst) and in which the guest sends files back.
//!
//! Steps of an archive: entries are written one after the other, each folder before what lies in it -> `finish`
//! writes the trailer. Several archives behind each other are unpacked as one.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::Path;

/// What each header starts with.
const MAGIC: &[u8] = b"070701";
/// Magic and thirteen numbers of eight hexadecimal digits.
const HEADER_BYTES: usize = 110;
/// Name of the last entry.
const TRAILER: &str = "TRAILER!!!";

const FOLDER: u32 = 0o040_755;
const LINK: u32 = 0o120_777;
const PROGRAM: u32 = 0o100_755;

/// Writes an archive.
pub(crate) struct Writer<W: Write> {
    out: W,
    /// A number for each entry: those of one number would be taken for hard links.
    entry_count: u32,
    folders: BTreeSet<String>,
}

impl<W: Write> Writer<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out, entry_count: 0, folders: BTreeSet::new() }
    }

    /// Writes a folder and those above it, each once.
    pub(crate) fn folder(&mut self, path: &str) -> io::Result<()> {
        let path = path.trim_start_matches('/');
        if path.is_empty() || self.folders.contains(path) {
            return Ok(());
        }
        self.parents(path)?;
        self.folders.insert(path.to_owned());
        self.entry(path, FOLDER, &[])
    }

    /// Writes a file that may be run, and the folders above it.
    pub(crate) fn file(&mut self, path: &str, bytes: &[u8]) -> io::Result<()> {
        self.parents(path)?;
        self.entry(path.trim_start_matches('/'), PROGRAM, bytes)
    }

    /// Writes a symbolic link to `target`, and the folders above it.
    pub(crate) fn link(&mut self, path: &str, target: &str) -> io::Result<()> {
        self.parents(path)?;
        self.entry(path.trim_start_matches('/'), LINK, target.as_bytes())
    }

    /// Writes the trailer and gives back what was written to.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.entry(TRAILER, 0, &[])?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn parents(&mut self, path: &str) -> io::Result<()> {
        match path.rsplit_once('/') {
            Some((above, _)) => self.folder(above),
            None => Ok(()),
        }
    }

    fn entry(&mut self, name: &str, mode: u32, bytes: &[u8]) -> io::Result<()> {
        self.entry_count += 1;
        let too_large = |_| io::Error::new(io::ErrorKind::InvalidInput, "cpio: 4 GiB and more do not fit");
        let len = u32::try_from(bytes.len()).map_err(too_large)?;
        let name_len = u32::try_from(name.len() + 1).map_err(too_large)?;
        self.out.write_all(MAGIC)?;
        // inode, mode, owner, group, links, time, length, two device numbers of two parts, length of the name, sum
        for number in [self.entry_count, mode, 0, 0, 1, 0, len, 0, 0, 0, 0, name_len, 0] {
            write!(self.out, "{number:08x}")?;
        }
        write!(self.out, "{name}\0")?;
        self.pad(HEADER_BYTES + name.len() + 1)?;
        self.out.write_all(bytes)?;
        self.pad(bytes.len())
    }

    fn pad(&mut self, len_bytes: usize) -> io::Result<()> {
        self.out.write_all(&[0; 3][..padding(len_bytes)])
    }
}

/// Bytes up to the next multiple of four.
fn padding(len_bytes: usize) -> usize {
    len_bytes.wrapping_neg() % 4
}

/// The regular files of an archive by their names, without `./` before them.
///
/// # Errors
///
/// [`io::ErrorKind::InvalidData`] where `archive` is no whole archive.
pub(crate) fn files(mut archive: &[u8]) -> io::Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    loop {
        let (entry, rest) = split_entry(archive)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "cpio: no whole archive"))?;
        if entry.name == TRAILER {
            return Ok(files);
        }
        if entry.mode & 0o170_000 == 0o100_000 {
            files.insert(entry.name.trim_start_matches("./").to_owned(), entry.bytes.to_vec());
        }
        archive = rest;
    }
}

struct Entry<'a> {
    name: &'a str,
    mode: u32,
    bytes: &'a [u8],
}

fn split_entry(archive: &[u8]) -> Option<(Entry<'_>, &[u8])> {
    let header = archive.get(..HEADER_BYTES)?.strip_prefix(MAGIC)?;
    let number = |index: usize| {
        let digits = std::str::from_utf8(header.get(8 * index..8 * index + 8)?).ok()?;
        u32::from_str_radix(digits, 16).ok()
    };
    let (mode, len, name_len) =
        (number(1)?, usize::try_from(number(6)?).ok()?, usize::try_from(number(11)?).ok()?);
    let name_end = HEADER_BYTES.checked_add(name_len)?;
    let name = std::str::from_utf8(archive.get(HEADER_BYTES..name_end)?.strip_suffix(b"\0")?).ok()?;
    let start = name_end + padding(name_end);
    let end = start.checked_add(len)?;
    let bytes = archive.get(start..end)?;
    // The last entry's padding may be missing.
    let rest = archive.get(end + padding(end - start)..).unwrap_or_default();
    Some((Entry { name, mode, bytes }, rest))
}

/// Writes the file at `source` into `archive` under `path`.
pub(crate) fn copy<W: Write>(archive: &mut Writer<W>, path: &str, source: &Path) -> io::Result<()> {
    let bytes = std::fs::read(source).map_err(|error| crate::error::at(source, error))?;
    archive.file(path, &bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn sample() -> Vec<u8> {
        let mut archive = Writer::new(Vec::new());
        archive.file("a/b/one", b"1").unwrap();
        archive.file("/a/b/four", b"1234").unwrap();
        archive.link("a/link", "b/one").unwrap();
        archive.finish().unwrap()
    }

    #[test]
    fn what_was_written_is_read_again() {
        let files = files(&sample()).unwrap();
        let expected = [("a/b/four", b"1234".to_vec()), ("a/b/one", b"1".to_vec())];
        assert_eq!(files, expected.map(|(name, bytes)| (name.to_owned(), bytes)).into());
    }

    #[test]
    fn an_archive_that_is_cut_anywhere_is_refused() {
        let archive = sample();
        // Up to three bytes of padding may be missing at the end.
        for end in 0..archive.len() - 3 {
            assert!(files(&archive[..end]).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn another_cpio_unpacks_the_same_names() {
        let Ok(mut child) =
            Command::new("cpio").args(["-t", "--quiet"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()
        else {
            return println!("skipped: no cpio here");
        };
        child.stdin.take().unwrap().write_all(&sample()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "a\na/b\na/b/one\na/b/four\na/link\n");
    }
}
