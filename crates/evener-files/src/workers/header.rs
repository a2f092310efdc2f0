//! The bytes of an output that a record keeps a digest of: a ciphertext's header, or 64 KiB at each end of a plaintext.

use std::io::IoSliceMut;

use crate::error::FileError;
use crate::input::source_file::SourceFile;
use crate::record::Header;
use crate::request::Task;
use crate::segments::START_BYTES;

/// What a row says of what an output holds: of an encrypted one its header. Plaintext has none; there its ends are taken, where the key is
/// so dear that it is worth to read them.
pub(super) fn header_of(task: &Task, existing: &SourceFile) -> Result<Header, FileError> {
    match task {
        Task::Encrypt(sealer) => {
            let cut = sealer.cut_of(&existing.read_start(START_BYTES)?);
            let header_bytes = usize::try_from(cut.header_bytes()).expect("a header is short");
            Ok(Header::of(&existing.read_start(header_bytes)?))
        }
        Task::Decrypt(_) if task.is_dear_to_open() => {
            let mut ends = existing.read_start(END_BYTES)?;
            let start_bytes = ends.len();
            ends.resize(2 * start_bytes, 0);
            existing.read(
                &mut [IoSliceMut::new(&mut ends[start_bytes..])],
                existing.len() - start_bytes as u64,
            )?;
            Ok(Header::of(&ends))
        }
        Task::Decrypt(_) => Ok(Header::default()),
    }
}

/// Bytes of each end of a plaintext. Assumed, not measured: 64 KiB, next to nothing beside the key.
const END_BYTES: usize = 64 << 10;
