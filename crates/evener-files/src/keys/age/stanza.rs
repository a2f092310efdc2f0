//! Stanzas, the parts of a header and of the talk with plugins: a line of words, and a body in base64.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use zeroize::Zeroizing;

/// Columns of a full line.
const LINE_LEN: usize = 64;

/// A stanza: `-> KIND ARGUMENT...`, and lines of base64 of which the last one is short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stanza {
    pub(crate) kind: String,
    pub(crate) args: Vec<String>,
    pub(crate) body: Zeroizing<Vec<u8>>,
}

impl Stanza {
    pub(crate) fn new(kind: &str, args: &[&str], body: &[u8]) -> Self {
        let args = args.iter().map(|&arg| arg.to_owned()).collect();
        Self { kind: kind.to_owned(), args, body: Zeroizing::new(body.to_vec()) }
    }

    /// Appends it as text.
    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(b"-> ");
        to.extend_from_slice(self.kind.as_bytes());
        for arg in &self.args {
            to.push(b' ');
            to.extend_from_slice(arg.as_bytes());
        }
        to.push(b'\n');
        let body = Zeroizing::new(encoded(&self.body));
        for line in body.as_bytes().chunks(LINE_LEN) {
            to.extend_from_slice(line);
            to.push(b'\n');
        }
        if body.len() % LINE_LEN == 0 {
            to.push(b'\n');
        }
    }

    /// The stanza at the start of `text` and what follows it; `None` where it is damaged or not whole.
    pub(crate) fn read(text: &[u8]) -> Option<(Self, &[u8])> {
        let (line, mut rest) = line(text.strip_prefix(b"-> ")?)?;
        let words = std::str::from_utf8(line).ok()?;
        let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| (33..=126).contains(&byte));
        if !words.split(' ').all(is_word) {
            return None;
        }
        let mut words = words.split(' ').map(str::to_owned);
        let mut body = Zeroizing::new(String::new());
        loop {
            let (line, behind) = self::line(rest)?;
            body.push_str(std::str::from_utf8(line).ok()?);
            rest = behind;
            match line.len() {
                LINE_LEN => {}
                0..LINE_LEN => break,
                _ => return None,
            }
        }
        let body = Zeroizing::new(decoded(&body)?);
        Some((Self { kind: words.next()?, args: words.collect(), body }, rest))
    }
}

fn line(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().position(|&byte| byte == b'\n')?;
    Some((&text[..end], &text[end + 1..]))
}

/// Base64 without padding.
pub(crate) fn encoded(bytes: &[u8]) -> String {
    BASE64_STANDARD_NO_PAD.encode(bytes)
}

/// The bytes of canonical base64 without padding.
pub(crate) fn decoded(text: &str) -> Option<Vec<u8>> {
    BASE64_STANDARD_NO_PAD.decode(text).ok()
}
