//! Lines on standard error, answers on standard output, paths as one line.

use std::fmt;
use std::io::{self, Write as _};

use anyhow::{Context as _, bail};
pub(crate) use evener_fd::text::{PathDisplay, one_line, plain};
use evener_startup::was_closed;

use super::exit_status::Exit;
use super::signals;

/// One line on standard error, in plain characters: all messages go through here. A standard error that is closed is no reason to stop.
pub(crate) fn line(text: impl fmt::Display) {
    writeln!(io::stderr(), "evener: {}", plain(&text.to_string())).ok();
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

/// Writes an answer to standard output, whole.
pub(crate) fn answer(text: &[u8]) -> anyhow::Result<Exit> {
    part_of_answer(text)?;
    end_answer()
}

/// Ends what was written in parts: some file systems tell only at a close that what was written does not fit.
pub(crate) fn end_answer() -> anyhow::Result<Exit> {
    if was_closed(1) {
        return Ok(Exit::Done);
    }
    let closed = evener_startup::duplicate(1).and_then(evener_fd::close);
    closed.context("cannot write to standard output")?;
    Ok(Exit::Done)
}

/// Writes to standard output. A reader that has closed it has seen enough: the process ends quietly, as `cat` does.
pub(crate) fn part_of_answer(text: &[u8]) -> anyhow::Result<()> {
    if was_closed(1) {
        bail!("standard output is closed");
    }
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text).and_then(|()| stdout.flush());
    if written.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
        signals::end_by_broken_pipe();
    }
    written.context("cannot write to standard output")
}

/// Writes an answer about what is done already: where it cannot be written, that is said after `done`, and the status is not that of nothing done.
pub(crate) fn answer_after(done: &str, text: &[u8]) -> Exit {
    answer(text).unwrap_or_else(|error| {
        line(one_line(&format!("{done}, but {error:#}")));
        Exit::SomeFailed
    })
}

/// Writes an answer, whatever became of the files in which it is kept as well: what was measured is not lost with one of them.
pub(crate) fn answer_beside(kept: anyhow::Result<()>, text: &[u8]) -> anyhow::Result<Exit> {
    let answered = answer(text)?;
    Ok(kept.map_or_else(
        |error| {
            line(one_line(&format!("{error:#}")));
            Exit::SomeFailed
        },
        |()| answered,
    ))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_broken_where_its_words_end() {
        assert_eq!(wrapped("  a  ", "one two three", 12), "  a  one two\n     three\n");
        assert_eq!(wrapped("", "one", 2), "one\n");
    }
}
