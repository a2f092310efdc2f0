//! What a process says at its end.

use std::io::Read as _;
use std::process::Child;

/// How a process ended, and the last line that it wrote to standard error.
pub(super) fn last_words(child: &mut Child) -> String {
    let mut text = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        stderr.read_to_string(&mut text).ok();
    }
    let status = child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
    match text.lines().last() {
        Some(line) => line.trim_start_matches("evener: ").to_owned(),
        None => status,
    }
}
