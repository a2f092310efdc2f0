//! `evener sum -c`: lists are read line by line, and what they name is digested and compared, in their order.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};

use evener_files::sums::{Digested, Input, Method, Told, digest_all};
use evener_startup::duplicate;

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

/// A list, of which whichever thread is next reads lines.
struct List<'a> {
    arguments: &'a Sum,
    file: &'a Path,
    lines: BufReader<File>,
    /// Whether a line may be long in coming.
    is_slow: bool,
    /// Whether it was said that the next one is.
    is_announced: bool,
    reader: &'a mut Reader,
    /// Of the last line.
    number: u64,
    /// Takes the digest of each file that a line names.
    wanted: Sender<Vec<u8>>,
    /// Of lines alone.
    tally: Tally,
}

/// Checks all lists.
pub(super) fn all(arguments: &Sum, files: &[PathBuf], method: Method) -> anyhow::Result<Exit> {
    let mut exit = Exit::Done;
    let mut reader = Reader::new(method.hash);
    for file in files {
        let opened = if is_stdin(file) { duplicate(0).map(File::from) } else { File::open(file) };
        let lines = match opened {
            Ok(opened) => opened,
            Err(error) => {
                output::line(format_args!("{}: cannot read: {error}", PathDisplay(file)));
                exit = Exit::SomeFailed;
                continue;
            }
        };
        let tally = check(arguments, file, lines, &mut reader, method)?;
        tally.tell(arguments, file);
        if !tally.is_good(arguments) {
            exit = Exit::SomeFailed;
        }
    }
    Ok(exit)
}

fn check(
    arguments: &Sum,
    file: &Path,
    lines: File,
    reader: &mut Reader,
    method: Method,
) -> anyhow::Result<Tally> {
    let (wanted, digests) = channel();
    let mut list = List {
        arguments,
        file,
        is_slow: !lines.metadata().is_ok_and(|it| it.is_file()),
        lines: BufReader::new(lines),
        is_announced: false,
        reader,
        number: 0,
        wanted,
        tally: Tally::default(),
    };
    let (mut answers, mut tally) = (Answers::default(), Tally::default());
    digest_all(list.by_ref(), method, |told| match told {
        Told::File(digested) => tally.compare(arguments, digested, &digests, &mut answers),
        Told::Flush => answers.flush(),
    })?;
    answers.end()?;
    let Tally { proper, improper, broken, .. } = list.tally;
    Ok(Tally { proper, improper, broken, ..tally })
}

impl Iterator for List<'_> {
    type Item = Input;

    /// The file of the next line that names one.
    fn next(&mut self) -> Option<Input> {
        let mut line = Vec::new();
        loop {
            line.clear();
            self.is_announced = !self.is_announced && self.is_slow && !self.lines.buffer().contains(&b'\n');
            if self.is_announced {
                return Some(Input::Later);
            }
            match read_line(&mut self.lines, &mut line) {
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
            let entry = entry.filter(|entry| !(is_stdin(self.file) && is_stdin(&entry.path)));
            let Some(entry) = entry else {
                self.count_improper();
                continue;
            };
            self.tally.proper += 1;
            // Who takes it is there as long as this is asked.
            self.wanted.send(entry.digest).ok();
            return Some(if is_stdin(&entry.path) { Input::Stdin } else { Input::File(entry.path) });
        }
    }
}

/// Longest line that is kept: a name of so many bytes, each escaped, leads nowhere on Linux (`PATH_MAX`).
const LINE_BYTES_MAX: usize = 64 << 10;

/// Reads a line with its end; what is longer than any proper one is read and not kept, and what is left of it is none. 0 at the end.
fn read_line(lines: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<usize> {
    let mut total = 0;
    loop {
        let read = lines.by_ref().take(LINE_BYTES_MAX as u64).read_until(b'\n', line)?;
        total += read;
        if read < LINE_BYTES_MAX || line.ends_with(b"\n") {
            return Ok(total);
        }
        // It is too long already, and stays so: its first byte is no digit any more.
        line.clear();
        line.push(b'?');
    }
}

impl List<'_> {
    fn count_improper(&mut self) {
        self.tally.improper += 1;
        if self.arguments.warn {
            let (file, number) = (PathDisplay(self.file), self.number);
            output::line(format_args!("{file}: line {number} is none of a list of checksums"));
        }
    }
}

impl Tally {
    fn compare(
        &mut self,
        arguments: &Sum,
        Digested { path, digest }: Digested,
        wanted: &Receiver<Vec<u8>>,
        answers: &mut Answers,
    ) -> anyhow::Result<()> {
        let wanted = wanted.recv()?;
        let said = match digest {
            Ok(digest) if digest == wanted => {
                self.matched += 1;
                (!arguments.quiet).then_some("OK")
            }
            Ok(_) => {
                self.unlike += 1;
                Some("FAILED")
            }
            Err(error) if arguments.ignore_missing && error.is_absence() => None,
            Err(error) => {
                self.unread += 1;
                answers.flush()?;
                failed(&path, &error);
                Some("FAILED open or read")
            }
        };
        match said.filter(|_| !arguments.status) {
            Some(said) => answers.add(&answer(&path, said)),
            None => Ok(()),
        }
    }

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
