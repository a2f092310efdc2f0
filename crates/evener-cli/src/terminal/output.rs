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
    writeln!(io::stderr(), "evener: {}", without_numbers(&text.to_string())).ok();
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

/// A text without line ends, and without the system's numbers for what it says in words.
pub(crate) fn one_line(text: &str) -> String {
    without_numbers(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// A text without ` (os error 28)` and the like: the words before it say the same.
pub(crate) fn without_numbers(text: &str) -> String {
    const NUMBER: &str = " (os error ";
    let (mut rest, mut plain) = (text, String::with_capacity(text.len()));
    while let Some((before, after)) = rest.split_once(NUMBER) {
        plain += before;
        let end = after.find(')').filter(|end| after[..*end].bytes().all(|byte| byte.is_ascii_digit()));
        rest = match end {
            Some(end) => &after[end + 1..],
            None => {
                plain += NUMBER;
                after
            }
        };
    }
    plain + rest
}

/// `text` behind `prefix`, in lines of `width` columns; further lines stand behind as many spaces.
pub(crate) fn wrapped(prefix: &str, text: &str, width: usize) -> String {
    let indent = " ".repeat(prefix.len());
    let (mut lines, mut line) = (String::new(), prefix.to_owned());
    for word in text.split_whitespace() {
        let is_begun = line.len() > indent.len();
        if is_begun && line.len() + 1 + word.len() > width {
            lines += &std::mem::replace(&mut line, indent.clone());
            lines.push('\n');
        } else if is_begun {
            line.push(' ');
        }
        line += word;
    }
    lines + &line + "\n"
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

    #[test]
    fn what_the_system_says_in_words_is_not_said_in_numbers_too() {
        for number in [1, 2, 28] {
            let error = io::Error::from_raw_os_error(number).to_string();
            assert!(error.contains("(os error"), "{error}");
            let words = one_line(&format!("a: {error};\n b: {error}"));
            assert_eq!(words, without_numbers(&words));
            assert!(words.starts_with("a: ") && !words.contains("os error"), "{words}");
        }
        assert_eq!(without_numbers("x (os error y) z (os error 7"), "x (os error y) z (os error 7");
    }

    #[test]
    fn a_text_is_broken_where_its_words_end() {
        assert_eq!(wrapped("  a  ", "one two three", 12), "  a  one two\n     three\n");
        assert_eq!(wrapped("", "one", 2), "one\n");
    }
}
