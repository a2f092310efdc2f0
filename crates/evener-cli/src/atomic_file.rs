//! Files that are there whole or not at all.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::{fs, io, process};

/// Writes a file with mode `mode`, whole or not at all.
pub(crate) fn write(file: &Path, text: &str, mode: u32) -> io::Result<()> {
    let directory = file.parent().unwrap_or_else(|| Path::new("."));
    fs::create_dir_all(directory)?;
    replace(file, text.as_bytes(), mode, |_| Ok(()))
}

/// The same for what must not be lost: on the disk before the name is changed, and the name too.
pub(crate) fn write_durably(file: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    replace(file, bytes, mode, fs::File::sync_all)?;
    let directory = file.parent().filter(|directory| !directory.as_os_str().is_empty());
    fs::File::open(directory.unwrap_or_else(|| Path::new(".")))?.sync_all()
}

fn replace(
    file: &Path,
    bytes: &[u8],
    mode: u32,
    settle: impl FnOnce(&fs::File) -> io::Result<()>,
) -> io::Result<()> {
    let directory = file.parent().unwrap_or_else(|| Path::new("."));
    let mut name = std::ffi::OsString::from(".");
    name.push(file.file_name().unwrap_or_default());
    name.push(format!(".{}", process::id()));
    let draft = directory.join(name);
    // What a killed process of the same number may have left.
    fs::remove_file(&draft).ok();
    let opened = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&draft);
    let written = opened
        .and_then(|mut opened| opened.write_all(bytes).map(|()| opened))
        .and_then(|opened| settle(&opened))
        .and_then(|()| fs::rename(&draft, file));
    if written.is_err() {
        fs::remove_file(&draft).ok();
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::env;

    #[test]
    fn a_file_is_replaced_whole_for_its_owner_only_and_leaves_no_draft() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = env::temp_dir().join(format!("evener-cache-{}", process::id()));
        let file = directory.join("a/costs.txt");
        for text in ["first\n", "second\n"] {
            write(&file, text, 0o600).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(directory.join("a")).unwrap().count(), 1);
        fs::create_dir(directory.join("b")).unwrap();
        assert!(write(&directory.join("b"), "over a directory", 0o600).is_err());
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 2);
        fs::remove_dir_all(directory).unwrap();
    }
}
