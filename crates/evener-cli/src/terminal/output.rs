//! Lines on standard error, answers on standard output, paths as one line.

use std::fmt;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use evener_startup::was_closed;

use super::exit_status::Exit;
use super::signals;

/// One line on standard error. A standard error that is closed is no reason to stop.
pub(crate) fn line(text: impl fmt::Display) {
    writeln!(io::stderr(), "evener: {text}").ok();
}

/// One line about something that is done nevertheless.
pub(crate) fn warning(text: impl fmt::Display) {
    line(format_args!("warning: {text}"));
}

/// The line for an error that stopped everything before anything was done.
pub(crate) fn failure(error: &anyhow::Error) -> Exit {
    line(one_line(&format!("{error:#}")));
    Exit::NothingDone
}

/// Writes an answer to standard output. A reader that has closed it has seen enough: the process ends quietly, as `cat` does.
pub(crate) fn answer(text: &[u8]) -> anyhow::Result<Exit> {
    if was_closed(1) {
        bail!("standard output is closed");
    }
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text).and_then(|()| stdout.flush());
    if written.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
        signals::end_by_broken_pipe();
    }
    written.context("cannot write to standard output")?;
    Ok(Exit::Done)
}

/// A text without line ends.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A path as one line of plain characters: control characters and what is not UTF-8 appear escaped.
pub(crate) struct PathDisplay<'p>(pub(crate) &'p Path);

impl fmt::Display for PathDisplay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.as_os_str().as_bytes().utf8_chunks() {
            for character in chunk.valid().chars() {
                match character {
                    control if control.is_control() => write!(f, "{}", control.escape_default())?,
                    plain => write!(f, "{plain}")?,
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    #[test]
    fn a_path_is_shown_on_one_line_whatever_it_holds() {
        let shown = |bytes: &[u8]| PathDisplay(Path::new(OsStr::from_bytes(bytes))).to_string();
        assert_eq!(shown(b"a b/\xc3\xa4"), "a b/ä");
        assert_eq!(shown(b"a\nb\x1b[0m"), "a\\nb\\u{1b}[0m");
        assert_eq!(shown(b"\xffz"), "\\xffz");
    }
}
