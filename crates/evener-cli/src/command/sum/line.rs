//! A line of a list, as coreutils write and read it.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use evener_files::sums::Hash;

/// How lines are written.
pub(super) struct Style {
    pub(super) hash: Hash,
    pub(super) has_tag: bool,
    pub(super) ends_with_zero: bool,
    pub(super) is_binary: bool,
}

impl Style {
    /// The line of a file, with its end.
    pub(super) fn line(&self, path: &Path, digest: &[u8]) -> Vec<u8> {
        let name = path.as_os_str().as_bytes();
        let escaped = if self.ends_with_zero { None } else { escaped(name) };
        let mut line = Vec::with_capacity(2 * digest.len() + name.len() + 16);
        line.extend(escaped.iter().map(|_| b'\\'));
        let name = escaped.as_deref().unwrap_or(name);
        if self.has_tag {
            line.extend_from_slice(tag(self.hash).as_bytes());
            line.extend_from_slice(b" (");
            line.extend_from_slice(name);
            line.extend_from_slice(b") = ");
        }
        line.extend(digest.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(digit));
        if !self.has_tag {
            line.extend_from_slice(if self.is_binary { b" *" } else { b"  " });
            line.extend_from_slice(name);
        }
        line.push(if self.ends_with_zero { 0 } else { b'\n' });
        line
    }
}

fn digit(value: u8) -> u8 {
    b"0123456789abcdef"[usize::from(value)]
}

/// The name that BSD's lines have for a hash.
fn tag(hash: Hash) -> String {
    hash.name().to_ascii_uppercase()
}

/// A name on one line; none where it is on one as it is.
pub(super) fn escaped(name: &[u8]) -> Option<Vec<u8>> {
    let escape = |byte: u8| match byte {
        b'\\' => Some(b'\\'),
        b'\n' => Some(b'n'),
        b'\r' => Some(b'r'),
        _ => None,
    };
    name.iter().any(|byte| escape(*byte).is_some()).then(|| {
        let mut text = Vec::with_capacity(name.len() + 8);
        for byte in name {
            match escape(*byte) {
                Some(letter) => text.extend_from_slice(&[b'\\', letter]),
                None => text.push(*byte),
            }
        }
        text
    })
}

/// The name that was escaped so; none where it was not.
fn unescaped(text: &[u8]) -> Option<Vec<u8>> {
    let mut name = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        name.push(match byte {
            b'\\' => match bytes.next()? {
                b'\\' => b'\\',
                b'n' => b'\n',
                b'r' => b'\r',
                _ => return None,
            },
            0 => return None,
            byte => *byte,
        });
    }
    Some(name)
}

/// What a line says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) digest: Vec<u8>,
    pub(super) path: PathBuf,
}

/// Lists that are read line by line.
pub(super) struct Reader {
    hash: Hash,
    tag: String,
    /// Whether names begin right behind the blank, as `md5 -r` of BSD writes them; not known before the first such line.
    has_bare_names: Option<bool>,
}

impl Reader {
    pub(super) fn new(hash: Hash) -> Self {
        Self { hash, tag: tag(hash), has_bare_names: None }
    }

    /// What a line without its end says; none where it is no line of a list.
    pub(super) fn entry(&mut self, line: &[u8]) -> Option<Entry> {
        let text = without_blanks(line);
        let (is_escaped, text) = match text.strip_prefix(b"\\") {
            Some(text) => (true, text),
            None => (false, text),
        };
        let (digits, name) = match text.strip_prefix(self.tag.as_bytes()) {
            Some(rest) => tagged(rest.strip_prefix(b" ").unwrap_or(rest).strip_prefix(b"(")?)?,
            None => self.plain(text)?,
        };
        let digest = bytes_of(digits, self.hash.digest_bytes())?;
        // A name of C's ends there.
        let name = if is_escaped { unescaped(name)? } else { name.split(|byte| *byte == 0).next()?.to_vec() };
        Some(Entry { digest, path: OsString::from_vec(name).into() })
    }

    /// Digits, a blank, a blank or a star, and a name.
    fn plain<'l>(&mut self, text: &'l [u8]) -> Option<(&'l [u8], &'l [u8])> {
        let digits = 2 * self.hash.digest_bytes();
        let least = digits + 2 + usize::from(text.first() == Some(&b'\\'));
        if text.len() < least {
            return None;
        }
        let (digits, rest) = text.split_at(digits);
        let rest = rest.strip_prefix(b" ").or_else(|| rest.strip_prefix(b"\t"))?;
        // Not before the digits are seen to be some: a line that is none settles nothing.
        bytes_of(digits, self.hash.digest_bytes())?;
        let is_bare = rest.len() == 1 || !matches!(rest.first(), Some(b' ' | b'*'));
        match (is_bare, self.has_bare_names) {
            (true, Some(false)) => None,
            (true, _) => {
                self.has_bare_names = Some(true);
                Some((digits, rest))
            }
            (false, Some(true)) => Some((digits, rest)),
            (false, _) => {
                self.has_bare_names = Some(false);
                Some((digits, &rest[1..]))
            }
        }
    }
}

/// What is behind the opening bracket: a name, a closing one, `=` and digits.
fn tagged(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().rposition(|byte| *byte == b')')?;
    let rest = without_blanks(&text[end + 1..]).strip_prefix(b"=")?;
    Some((without_blanks(rest), &text[..end]))
}

/// So many bytes, by digits of either case.
fn bytes_of(digits: &[u8], count: usize) -> Option<Vec<u8>> {
    let value = |digit: &u8| char::from(*digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let bytes: Option<Vec<u8>> =
        digits.chunks(2).map(|pair| Some(value(pair.first()?)? << 4 | value(pair.get(1)?)?)).collect();
    bytes.filter(|bytes| bytes.len() == count)
}

/// A text without blanks at its start.
fn without_blanks(text: &[u8]) -> &[u8] {
    let from = text.iter().position(|byte| !matches!(byte, b' ' | b'\t')).unwrap_or(text.len());
    &text[from..]
}
