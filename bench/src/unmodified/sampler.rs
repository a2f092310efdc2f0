//! How `perf` is asked to sample a program.

use std::path::Path;

/// Words before a program's that have it sampled; `number` is that of the command in its run, from 1 on.
pub(super) fn record(file: &Path, number: u32) -> Vec<String> {
    let file = numbered(file, number);
    ["perf", "record", "-q", "-e", "cpu-clock", "-F", "1999", "-o", &file, "--"].map(str::to_owned).to_vec()
}

/// The file of one command's samples.
pub(super) fn numbered(file: &Path, number: u32) -> String {
    format!("{}.{number}", file.display())
}
