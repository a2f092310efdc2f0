//! The age format, version 1 (<https://c2sp.org/age>).
//!
//! File = header (text: recipients, and a MAC; `keys::age` has it) || payload nonce (16 bytes) || chunks. The
//! payload's key is HKDF-SHA-256(file key, nonce, "payload"); a chunk is 64 KiB under ChaCha20-Poly1305.
//!
//! Armor (the file as text) is around all of this: read by [`is_armored`] -> [`dearmored`] -> the rest as usual; written by `armor.rs`.

use evener_core::{Algorithm, Direction};
use zeroize::Zeroizing;

use super::body::{Body, CipherKey, Ivs, Opened, Recognized, Sealing};
use super::segmentation::{Cut, Growth};
pub use crate::armor::{dearmored, is_armored};
use crate::error::FormatError;
use crate::keys::age::header::{Header, NONCE_BYTES, VERSION_LINE};
use crate::keys::age::{FileKey, Identities, Recipients, Stanza, StanzaMatcher, hkdf};
use crate::random::fill_random;

const CHUNK_BYTES: u64 = 64 << 10;
/// Longest header that is read. Assumed, not measured: 4 MiB, space for 30 000 recipients; the format
/// has no limit.
pub(super) const HEADER_BYTES_MAX: usize = 4 << 20;

pub(super) fn seal(recipients: &Recipients) -> Result<Sealing, FormatError> {
    let mut file_key: FileKey = Zeroizing::default();
    fill_random(&mut *file_key)?;
    let mut header = recipients.header(&file_key)?.written(&file_key);
    let start = header.len();
    header.resize(start + NONCE_BYTES, 0);
    fill_random(&mut header[start..])?;
    let body = body(&file_key, &header, Direction::Encrypt)?;
    Ok(Sealing { header, body })
}

/// The cut of a file that begins with `start`.
pub(super) fn cuts(start: &[u8]) -> Result<Opened<Cut>, FormatError> {
    let Some(header_bytes) = header_bytes(start)? else {
        return Ok(Opened::NeedMore { start_bytes: (start.len() * 2).clamp(4096, HEADER_BYTES_MAX) });
    };
    match header_bytes + NONCE_BYTES {
        start_bytes if start_bytes > start.len() => Ok(Opened::NeedMore { start_bytes }),
        header_bytes => Ok(Opened::Ready(vec![cut(header_bytes as u64)])),
    }
}

/// The cut of a file that may have been sealed before; of one without header where `start` is none of ours.
pub(super) fn cut_of_existing(start: &[u8]) -> Cut {
    let header_bytes = header_bytes(start).ok().flatten().map_or(0, |bytes| bytes + NONCE_BYTES);
    cut(header_bytes as u64)
}

pub(super) fn open(identities: &Identities, start: &[u8]) -> Result<Opened, FormatError> {
    let header = match header(start)? {
        Ok(header) => header,
        Err(start_bytes) => return Ok(Opened::NeedMore { start_bytes }),
    };
    let (taken_apart, _) = Header::read(header)?;
    let file_key = identities.file_key(taken_apart.stanzas())?;
    taken_apart.check(&file_key)?;
    Ok(Opened::Ready(vec![body(&file_key, header, Direction::Decrypt)?]))
}

/// Whether a file that begins with `start` was sealed for exactly these recipients.
pub(super) fn recognize(recipients: &Recipients, start: &[u8]) -> Result<Opened<Recognized>, FormatError> {
    let header = match header(start)? {
        Ok(header) => header,
        Err(start_bytes) => return Ok(Opened::NeedMore { start_bytes }),
    };
    let (taken_apart, _) = Header::read(header)?;
    let (stanzas, mut file_key) = (taken_apart.stanzas().to_vec(), None);
    let recognized = match (are_for(stanzas, recipients.matchers(), &mut file_key), file_key) {
        (Recognized::Named, Some(file_key)) => {
            // The MAC binds the stanzas to the file key.
            taken_apart.check(&file_key)?;
            Recognized::IfOpens(body(&file_key, header, Direction::Decrypt)?)
        }
        (recognized, _) => recognized,
    };
    Ok(Opened::Ready(vec![recognized]))
}

/// Whether stanzas are one for each of `matchers` and none for anyone else; a file key that they give is kept.
fn are_for(
    mut stanzas: Vec<Stanza>,
    matchers: &[StanzaMatcher],
    file_key: &mut Option<FileKey>,
) -> Recognized {
    stanzas.retain(|stanza| !stanza.kind.ends_with("-grease"));
    if stanzas.len() != matchers.len() {
        return Recognized::Other;
    }
    // Those that may be on several stanzas come last, and take what is left.
    let (vague, clear): (Vec<&StanzaMatcher>, Vec<&StanzaMatcher>) =
        matchers.iter().partition(|matcher| matcher.is_vague());
    for matcher in clear.iter().chain(&vague) {
        match stanzas.iter().position(|stanza| matcher.matches(stanza, file_key)) {
            Some(place) => drop(stanzas.swap_remove(place)),
            None => return Recognized::Other,
        }
    }
    if vague.is_empty() { Recognized::Named } else { Recognized::Unknown }
}

/// The length of the header without nonce, and the types of its stanzas.
pub(super) fn kinds(start: &[u8]) -> Result<(usize, Vec<String>), FormatError> {
    let cut_off = FormatError::Truncated { cipher_bytes: start.len() as u64, place: "header" };
    let header_bytes = header_bytes(start)?.ok_or(cut_off)?;
    let kinds =
        Header::read(&start[..header_bytes])?.0.stanzas().iter().map(|stanza| stanza.kind.clone()).collect();
    Ok((header_bytes, kinds))
}

/// Whether no quantum computer opens a file with stanzas of these types, as `age-inspect` says it.
pub(super) fn is_postquantum(kinds: &[String]) -> &'static str {
    let of_one = |kind: &String| match kind.trim_start_matches("age-encryption.org/") {
        "X25519" | "ssh-rsa" | "ssh-ed25519" | "p256tag" | "piv-p256" => "no",
        "scrypt" | "mlkem768x25519" | "mlkem768p256tag" => "yes",
        _ => "unknown",
    };
    let of_all = kinds.iter().map(of_one);
    of_all
        .min_by_key(|answer| ["no", "unknown", "yes"].iter().position(|one| one == answer))
        .unwrap_or("unknown")
}

/// The header with the nonce at the start of a file; where `start` does not reach its end, how long it has to be.
fn header(start: &[u8]) -> Result<Result<&[u8], usize>, FormatError> {
    match cuts(start)? {
        Opened::Ready(cuts) => {
            let bytes = usize::try_from(cuts[0].header_bytes()).expect("it lies in memory");
            Ok(Ok(&start[..bytes]))
        }
        Opened::NeedMore { start_bytes } => Ok(Err(start_bytes)),
    }
}

/// The chunks behind a header that ends with the payload nonce.
fn body(file_key: &FileKey, header: &[u8], direction: Direction) -> Result<Body, FormatError> {
    let key = hkdf(&header[header.len() - NONCE_BYTES..], b"payload", &**file_key);
    let key = CipherKey { algorithm: Algorithm::ChaCha20Poly1305, direction, key: &*key };
    Body::unpadded(cut(header.len() as u64), Ivs::Counted, key)
}

pub(super) fn cut(header_bytes: u64) -> Cut {
    Cut::new(header_bytes, CHUNK_BYTES, CHUNK_BYTES, Growth::Tag { empty_last_is_read: false })
}

// ---- the text of a header

/// Length of the header without nonce, `None` where `start` does not reach its end.
///
/// Looks at lines only, for what they say is read when they are all there.
fn header_bytes(start: &[u8]) -> Result<Option<usize>, FormatError> {
    let compared = start.len().min(VERSION_LINE.len());
    if start[..compared] != VERSION_LINE[..compared] {
        return Err(malformed(wrong_start(start)));
    }
    let mut end = compared;
    let mut in_stanza = false;
    let looked_at = &start[..start.len().min(HEADER_BYTES_MAX)];
    for line in
        looked_at[compared..].split_inclusive(|&byte| byte == b'\n').filter(|line| line.ends_with(b"\n"))
    {
        end += line.len();
        let begins = line.starts_with(b"-> ") || line.starts_with(b"---");
        match (begins, in_stanza) {
            (true, true) => return Err(malformed("a stanza of its header has no last line")),
            (true, false) if line.starts_with(b"---") => return Ok(Some(end)),
            (true, false) => in_stanza = true,
            (false, _) => in_stanza = in_stanza && line.len() > 64,
        }
    }
    if looked_at.len() == HEADER_BYTES_MAX {
        Err(malformed("its header is longer than 4 MiB"))
    } else {
        Ok(None)
    }
}

fn wrong_start(start: &[u8]) -> &'static str {
    if is_armored(start) {
        "it is armored"
    } else if start.starts_with(b"age-encryption.org/") {
        "its version is not v1"
    } else {
        "it does not start with the line age-encryption.org/v1"
    }
}

// ---- errors

fn malformed(fact: &'static str) -> FormatError {
    FormatError::Header { format: "age", fact }
}

/// Space that a chunk needs in either form, in bytes.
pub(super) fn slot_bytes() -> u64 {
    cut(0).slot_bytes()
}
