//! Reports as they are kept: JSON packed by gzip, `NAME.json.gz`, a tenth of its length.

use std::path::Path;
use std::process::Command;

use crate::programs::{answer, run};

/// What ends the names of packed reports.
pub(super) const ENDING: &str = "json.gz";

/// Packs `NAME.json`, in whose place `NAME.json.gz` stands afterwards.
///
/// # Errors
///
/// Where gzip cannot be started or fails.
pub(super) fn pack(path: &Path) -> Result<(), String> {
    let mut gzip = Command::new("gzip");
    // Without a name and a time in it the same report is the same file.
    gzip.arg("-9nf").arg(path);
    run(gzip)
}

/// The text of a packed report.
///
/// # Errors
///
/// Where gzip cannot be started, or there is no such file.
pub(super) fn unpack(path: &Path) -> Result<String, String> {
    let mut gzip = Command::new("gzip");
    gzip.arg("-dc").arg(path);
    answer(gzip)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn a_packed_report_is_unpacked_as_it_was_and_is_the_same_file_each_time() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let plain = folder.path().join("a-counted.json");
        let packed = plain.with_extension(ENDING);
        let text = format!("{{ \"cells\": [{}] }}\n", "1.25, ".repeat(2_000));
        let mut made = Vec::new();
        for second in 1..3 {
            fs::write(&plain, &text)?;
            let written = SystemTime::UNIX_EPOCH + Duration::from_secs(second);
            File::options().write(true).open(&plain)?.set_modified(written)?;
            pack(&plain).map_err(std::io::Error::other)?;
            made.push(fs::read(&packed)?);
        }
        assert!(!plain.exists() && made[0].len() < text.len() / 10);
        assert_eq!(made[0], made[1]);
        assert_eq!(unpack(&packed).as_deref(), Ok(text.as_str()));
        assert!(unpack(&folder.path().join("gone.json.gz")).is_err());
        Ok(())
    }
}
