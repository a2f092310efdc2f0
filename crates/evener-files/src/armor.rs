//! Armor, an encrypted file as text: how it is recognized, the binary file inside, and how it is written.
//!
//! [`Armor::is_armored`] -> [`Armor::dearmored`] -> the rest as usual; an [`Encoder`] takes a file's parts, one after the other. Lines have
//! 64 columns. age's armor is strict PEM; what `openssl enc -a` makes is base64 and nothing else.

use std::io::{self, BufRead, Read};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

const BEGIN_LINE: &[u8] = b"-----BEGIN AGE ENCRYPTED FILE-----";
const END_LINE: &[u8] = b"-----END AGE ENCRYPTED FILE-----";
/// White space that may stand before and behind armor, as in the reference implementation.
const WHITE_BYTES_MAX: usize = 1024;
/// Columns of a line.
const LINE_LEN: usize = 64;
/// Bytes in a line.
const LINE_BYTES: usize = 48;

/// The byte order mark of UTF-8, which editors put before a text.
const MARK: &[u8] = "\u{feff}".as_bytes();

/// Bytes of a file that show whether it is armored.
pub(crate) const ARMOR_START_BYTES: usize = MARK.len() + WHITE_BYTES_MAX + BEGIN_LINE.len();

/// A text form of encrypted files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Armor {
    /// age's.
    Age,
    /// That of `openssl enc -a`: base64 in lines, or with `-A` in one.
    Base64,
    /// The same of a file that begins with no salt: it is known by its letters alone.
    UnsaltedBase64,
}

/// What base64 of `Salted__` begins with.
const SALTED: &[u8] = b"U2FsdGVkX1";

impl Armor {
    /// Whether a file whose first bytes are `start` has this form; [`ARMOR_START_BYTES`] are enough.
    pub(crate) fn is_armored(self, start: &[u8]) -> bool {
        match self {
            Self::Age => is_armored(start),
            Self::Base64 => start[blank_lines_bytes(start)..].starts_with(SALTED),
            Self::UnsaltedBase64 => {
                is_base64(&start[blank_lines_bytes(start)..], start.len() < ARMOR_START_BYTES)
            }
        }
    }

    /// The binary file inside. Reading fails with [`io::ErrorKind::InvalidData`] where the text is damaged.
    pub(crate) fn dearmored<'r>(
        self,
        mut reader: impl BufRead + Send + 'r,
    ) -> io::Result<Box<dyn Read + Send + 'r>> {
        Ok(match self {
            Self::Age => Box::new(dearmored(reader)?),
            Self::Base64 | Self::UnsaltedBase64 => {
                skip_mark(&mut reader)?;
                Box::new(Base64Reader { reader, held: Vec::new(), decoded: Vec::new(), given: 0 })
            }
        })
    }

    /// What takes a new file's parts.
    pub(crate) fn encoder(self) -> Encoder {
        Encoder { armor: self, held: Vec::new(), is_begun: false }
    }
}

/// Makes text of a file's parts.
pub(crate) struct Encoder {
    armor: Armor,
    /// Bytes that do not fill a line yet.
    held: Vec<u8>,
    is_begun: bool,
}

impl Encoder {
    /// Appends the lines that a part fills.
    pub(crate) fn push(&mut self, part: &[u8], text: &mut Vec<u8>) {
        self.begin(text);
        let wanted = (LINE_BYTES - self.held.len()).min(part.len());
        self.held.extend_from_slice(&part[..wanted]);
        if self.held.len() < LINE_BYTES {
            return;
        }
        line_of(&std::mem::take(&mut self.held), text);
        let lines = part[wanted..].chunks_exact(LINE_BYTES);
        self.held.extend_from_slice(lines.remainder());
        lines.for_each(|bytes| line_of(bytes, text));
    }

    /// Appends the rest and the end.
    pub(crate) fn finish(mut self, text: &mut Vec<u8>) {
        self.begin(text);
        if !self.held.is_empty() {
            line_of(&self.held, text);
        }
        if self.armor == Armor::Age {
            text.extend_from_slice(END_LINE);
            text.push(b'\n');
        }
    }

    fn begin(&mut self, text: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.is_begun, true) && self.armor == Armor::Age {
            text.extend_from_slice(BEGIN_LINE);
            text.push(b'\n');
        }
    }
}

fn line_of(bytes: &[u8], text: &mut Vec<u8>) {
    text.extend_from_slice(BASE64_STANDARD.encode(bytes).as_bytes());
    text.push(b'\n');
}

/// Whether a file whose first bytes are `start` is armored. 1060 bytes are enough.
#[must_use]
pub fn is_armored(start: &[u8]) -> bool {
    start[blank_lines_bytes(start)..].starts_with(BEGIN_LINE)
}

/// Letters of base64 without a line's end that are taken for text: ciphertext looks so in one of 2^46 cases. In one line that is
/// ended, as `-a` writes it, four will do: one of 2^16.
const LETTERS_WITHOUT_LINE: usize = 24;

/// Whether this is base64, or its beginning.
fn is_base64(text: &[u8], is_whole: bool) -> bool {
    let ends = text.iter().filter(|byte| **byte == b'\n').count();
    let is_line = ends == 1 && text.ends_with(b"\n");
    let letters: Vec<u8> = text.iter().copied().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    let stem = letters.strip_suffix(b"==").or_else(|| letters.strip_suffix(b"=")).unwrap_or(&letters);
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let least = if is_line { 4 } else { LETTERS_WITHOUT_LINE };
    letters.len() >= least && stem.iter().all(is_letter) && (!is_whole || letters.len() % 4 == 0)
}

fn skip_mark(reader: &mut impl BufRead) -> io::Result<()> {
    if reader.fill_buf()?.starts_with(MARK) {
        reader.consume(MARK.len());
    }
    Ok(())
}

/// The binary file inside an armored one. Reading fails with [`io::ErrorKind::InvalidData`] where the armor is
/// damaged.
///
/// # Errors
///
/// Those of `reader`.
pub fn dearmored<R: BufRead>(mut reader: R) -> io::Result<impl Read> {
    skip_mark(&mut reader)?;
    let mut left = WHITE_BYTES_MAX;
    while left > 0 && reader.fill_buf()?.first().is_some_and(u8::is_ascii_whitespace) {
        reader.consume(1);
        left -= 1;
    }
    Ok(ArmorReader { reader, state: State::Begin, decoded: Vec::new(), given: 0 })
}

/// Of the mark and white space before the text.
fn blank_lines_bytes(start: &[u8]) -> usize {
    let mark = if start.starts_with(MARK) { MARK.len() } else { 0 };
    let start = &start[..start.len().min(mark + WHITE_BYTES_MAX)];
    start[mark..]
        .iter()
        .position(|byte| !byte.is_ascii_whitespace())
        .map_or(start.len(), |white| mark + white)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Begin,
    Lines,
    /// A short line was read; only the last line may follow.
    Short,
    End,
}

/// Reads armor line by line.
struct ArmorReader<R> {
    reader: R,
    state: State,
    decoded: Vec<u8>,
    given: usize,
}

impl<R: BufRead> Read for ArmorReader<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while self.given == self.decoded.len() && self.state != State::End {
            (self.decoded, self.given) = (Vec::new(), 0);
            self.next_line()?;
        }
        let bytes = to.len().min(self.decoded.len() - self.given);
        to[..bytes].copy_from_slice(&self.decoded[self.given..self.given + bytes]);
        self.given += bytes;
        Ok(bytes)
    }
}

impl<R: BufRead> ArmorReader<R> {
    fn next_line(&mut self) -> io::Result<()> {
        let line = self.line()?;
        match self.state {
            State::Begin if line == BEGIN_LINE => self.state = State::Lines,
            State::Lines | State::Short if line == END_LINE => {
                self.check_rest()?;
                self.state = State::End;
            }
            State::Lines if (1..=LINE_LEN).contains(&line.len()) => {
                self.decoded = BASE64_STANDARD.decode(&line).map_err(|_| damaged("a line is not base64"))?;
                if self.decoded.len() < LINE_BYTES {
                    self.state = State::Short;
                }
            }
            _ => return Err(damaged("a line has no place there")),
        }
        Ok(())
    }

    /// The next line without its end.
    fn line(&mut self) -> io::Result<Vec<u8>> {
        let mut line = Vec::with_capacity(LINE_LEN + 2);
        self.reader.by_ref().take(LINE_LEN as u64 + 2).read_until(b'\n', &mut line)?;
        let ends = [&b"\r\n"[..], b"\n"].iter().find(|end| line.ends_with(end)).map(|end| end.len());
        match ends {
            Some(end_len) => line.truncate(line.len() - end_len),
            None if line == END_LINE => {}
            None => return Err(damaged("it ends early, or a line is too long")),
        }
        Ok(line)
    }

    /// Nothing but white space may follow.
    fn check_rest(&mut self) -> io::Result<()> {
        let mut rest = Vec::new();
        self.reader.by_ref().take(WHITE_BYTES_MAX as u64 + 1).read_to_end(&mut rest)?;
        let is_white = rest.len() <= WHITE_BYTES_MAX && rest.iter().all(u8::is_ascii_whitespace);
        if is_white { Ok(()) } else { Err(damaged("something follows it")) }
    }
}

/// Reads base64 with white space anywhere; what follows padding is none of it.
struct Base64Reader<R> {
    reader: R,
    /// Characters of an unfinished group of four.
    held: Vec<u8>,
    decoded: Vec<u8>,
    given: usize,
}

impl<R: BufRead> Read for Base64Reader<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while self.given == self.decoded.len() {
            (self.decoded, self.given) = (Vec::new(), 0);
            let text = self.reader.fill_buf()?;
            let bytes = text.len();
            if bytes == 0 {
                return if self.held.is_empty() { Ok(0) } else { Err(damaged("it ends early")) };
            }
            self.held.extend(text.iter().filter(|byte| !byte.is_ascii_whitespace()));
            self.reader.consume(bytes);
            let whole: Vec<u8> = self.held.drain(..self.held.len() / 4 * 4).collect();
            self.decoded = BASE64_STANDARD.decode(whole).map_err(|_| damaged("it is not base64"))?;
        }
        let bytes = to.len().min(self.decoded.len() - self.given);
        to[..bytes].copy_from_slice(&self.decoded[self.given..self.given + bytes]);
        self.given += bytes;
        Ok(bytes)
    }
}

fn damaged(fact: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("its text form is damaged: {fact}"))
}
