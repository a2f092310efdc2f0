//! `evener sum -c`: lists are read line by line, and what they name is digested and compared, in their order.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use evener_files::sums::{Digested, Input, Method, digest_all};

use super::line::{Reader, escaped};
use super::{Answers, Sum, failed, is_stdin};
use crate::terminal::{Exit, PathDisplay, output, units};

/// What came of a list.
#[derive(Default)]
struct Tally {
    proper: u64,
    improper: u64,
    matched: u64,
    unlike: u64,
    unread: u64,
    /// Why the list was not read to its end.
    broken: Option<io::Error>,
}

/// A list on its way, of which threads take lines in turns.
struct List {
    state: Mutex<State>,
}

struct State {
    lines: Box<dyn BufRead + Send>,
    reader: Reader,
    /// Of the last line.
    number: u64,
    /// Digests of lines that were taken and are not compared yet.
    wanted: VecDeque<Vec<u8>>,
    tally: Tally,
}

/// Checks all lists.
pub(super) fn all(arguments: &Sum, files: &[PathBuf], method: Method) -> anyhow::Result<Exit> {
    let mut exit = Exit::Done;
    for file in files {
        let lines: Box<dyn BufRead + Send> = match file {
            file if is_stdin(file) => Box::new(BufReader::new(io::stdin())),
            file => match File::open(file) {
                Ok(opened) => Box::new(BufReader::new(opened)),
                Err(error) => {
                    output::line(format_args!("{}: cannot read: {error}", PathDisplay(file)));
                    exit = Exit::SomeFailed;
                    continue;
                }
            },
        };
        let state = State {
            lines,
            reader: Reader::new(method.hash),
            number: 0,
            wanted: VecDeque::new(),
            tally: Tally::default(),
        };
        let list = List { state: Mutex::new(state) };
        list.check(arguments, file, method)?;
        let tally = list.state.into_inner().unwrap_or_else(PoisonError::into_inner).tally;
        tally.tell(arguments, file);
        if !tally.is_good(arguments) {
            exit = Exit::SomeFailed;
        }
    }
    Ok(exit)
}

impl List {
    fn check(&self, arguments: &Sum, file: &Path, method: Method) -> anyhow::Result<()> {
        let mut answers = Answers::new();
        let inputs = std::iter::from_fn(|| self.lock().next(arguments, file));
        digest_all::<anyhow::Error>(inputs, method, |Digested { path, digest, .. }| {
            let mut state = self.lock();
            let wanted = state.wanted.pop_front().unwrap_or_default();
            let said = match digest {
                Ok(digest) if digest == wanted => {
                    state.tally.matched += 1;
                    (!arguments.quiet).then_some("OK")
                }
                Ok(_) => {
                    state.tally.unlike += 1;
                    Some("FAILED")
                }
                Err(error) if arguments.ignore_missing && error.is_absence() => None,
                Err(error) => {
                    state.tally.unread += 1;
                    answers.end()?;
                    failed(&path, &error);
                    Some("FAILED open or read")
                }
            };
            match said.filter(|_| !arguments.status) {
                Some(said) => answers.add(&answer(&path, said)),
                None => Ok(()),
            }
        })?;
        answers.end()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The file of the next line that names one.
    fn next(&mut self, arguments: &Sum, file: &Path) -> Option<Input> {
        let mut line = Vec::new();
        loop {
            line.clear();
            match self.lines.read_until(b'\n', &mut line) {
                Ok(0) => return None,
                Ok(_) => self.number += 1,
                Err(error) => {
                    self.tally.broken = Some(error);
                    return None;
                }
            }
            let text = line.strip_suffix(b"\n").unwrap_or(&line);
            let text = text.strip_suffix(b"\r").unwrap_or(text);
            if text.is_empty() || text.starts_with(b"#") {
                continue;
            }
            let entry = self.reader.entry(text);
            // A list that comes from standard input cannot name it.
            let Some(entry) = entry.filter(|entry| !(is_stdin(file) && is_stdin(&entry.path))) else {
                self.tally.improper += 1;
                if arguments.warn {
                    let (file, number) = (PathDisplay(file), self.number);
                    output::line(format_args!("{file}: line {number} is none of a list of checksums"));
                }
                continue;
            };
            self.tally.proper += 1;
            self.wanted.push_back(entry.digest);
            return Some(if is_stdin(&entry.path) { Input::Stdin } else { Input::File(entry.path) });
        }
    }
}

impl Tally {
    fn tell(&self, arguments: &Sum, file: &Path) {
        let file = PathDisplay(file);
        if let Some(error) = &self.broken {
            return output::line(format_args!("{file}: cannot read: {error}"));
        }
        if self.proper == 0 {
            return output::line(format_args!("{file}: no line of a list of checksums"));
        }
        if arguments.status {
            return;
        }
        let told = [
            (self.improper, "line", "is none of a list of checksums", "are none of a list of checksums"),
            (self.unread, "listed file", "could not be read", "could not be read"),
            (self.unlike, "computed checksum", "did not match", "did not match"),
        ];
        for (count, what, of_one, of_some) in told.into_iter().filter(|(count, ..)| *count > 0) {
            let did = if count == 1 { of_one } else { of_some };
            output::warning(format_args!("{} {did}", units::counted(count, what)));
        }
        if arguments.ignore_missing && self.matched == 0 {
            output::line(format_args!("{file}: no file was verified"));
        }
    }

    /// As coreutils take it.
    fn is_good(&self, arguments: &Sum) -> bool {
        let is_strict = !arguments.strict || self.improper == 0;
        self.broken.is_none() && self.matched > 0 && self.unlike == 0 && self.unread == 0 && is_strict
    }
}

/// What is said of a file. As coreutils 9.1 have it, only a name with a newline is escaped here.
fn answer(path: &Path, said: &str) -> Vec<u8> {
    let name = path.as_os_str().as_bytes();
    let escaped = if name.contains(&b'\n') { escaped(name) } else { None };
    let mut line: Vec<u8> = escaped.iter().map(|_| b'\\').collect();
    line.extend_from_slice(escaped.as_deref().unwrap_or(name));
    line.extend_from_slice(format!(": {said}\n").as_bytes());
    line
}
