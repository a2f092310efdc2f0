//! An armored source among others: in a text no segment lies at a known place. So the text is decoded into a binary file
//! without a name, which lies beside the output if there is one, and that is read like any other.

use std::fs::File;
use std::io::{self, BufReader, Seek as _, Write as _};
use std::os::fd::OwnedFd;

use crate::armor::{ARMOR_START_BYTES, Armor};
use crate::error::FileError;
use crate::input::interruptible::read_error;
use crate::input::source_file::SourceFile;

/// The binary file inside `source` where that is armored, else `source`. The copy goes with the last use of it; it
/// holds ciphertext only.
pub(super) fn dearmored(
    armor: Option<Armor>,
    source: SourceFile,
    copy_to: impl FnOnce() -> Result<OwnedFd, FileError>,
    is_stopped: impl Fn() -> bool,
) -> Result<SourceFile, FileError> {
    // A format without a text form is not looked at for one.
    let Some(armor) = armor else { return Ok(source) };
    if !armor.is_armored(&source.read_start(ARMOR_START_BYTES)?) {
        return Ok(source);
    }
    let mut text = File::from(source.fd.try_clone().map_err(read_error)?);
    text.rewind().map_err(read_error)?;
    let mut binary = File::from(copy_to()?);
    let mut bytes = armor.dearmored(BufReader::new(text)).map_err(read_error)?;
    let bytes = copy(&mut bytes, &mut binary, is_stopped)?;
    source.check_unchanged()?;
    source.replaced_by(binary.into(), bytes)
}

/// As [`io::copy`], but returns whether reading or writing failed, and can be stopped.
fn copy(from: &mut impl io::Read, to: &mut File, is_stopped: impl Fn() -> bool) -> Result<u64, FileError> {
    let (mut part, mut total) = (vec![0; PART_BYTES], 0);
    loop {
        if is_stopped() {
            return Err(FileError::Stopped);
        }
        match from.read(&mut part) {
            Ok(0) => return Ok(total),
            Ok(bytes) => {
                let written = to.write_all(&part[..bytes]);
                written.map_err(FileError::io("write the output"))?;
                total += bytes as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(read_error(error)),
        }
    }
}

/// Bytes that are copied at a time. Assumed, not measured: 64 KiB, one age chunk.
const PART_BYTES: usize = 64 << 10;
