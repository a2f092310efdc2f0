//! A slow pipeline for tests: runs every segment through RustCrypto's ciphers, so that a body's cut, keys and
//! IVs are judged by other hands than Evener's drivers.
#![allow(clippy::unwrap_used, clippy::panic, reason = "support of tests")]
#![allow(dead_code, reason = "each test uses its part")]

use aes_gcm::aead::{Aead as _, KeyInit as _};
use aes_gcm::{Aes128Gcm, Aes256Gcm};
use evener_core::Algorithm;
use evener_files::FormatError;
use evener_files::format::{Body, Iv, Opened, Opener, Sealer, Segment};

/// The whole encrypted file.
pub(crate) fn seal(sealer: &Sealer, plain: &[u8]) -> Vec<u8> {
    let sealing = sealer.seal().unwrap();
    let layout = sealing.body.cut().of_plain(plain.len() as u64).unwrap();
    let mut file = sealing.header;
    assert_eq!(file.len() as u64, sealing.body.cut().header_bytes());
    for segment in (0..layout.segment_count()).map(|index| layout.segment(index)) {
        let cipher = encrypt(&sealing.body, &segment, &plain[range(&segment.plain)], &file);
        assert_eq!(range(&segment.cipher), file.len()..file.len() + cipher.len());
        file.extend_from_slice(&cipher);
    }
    assert_eq!(file.len() as u64, layout.cipher_bytes());
    file
}

/// The plaintext under the first candidate that fits.
pub(crate) fn open(opener: &Opener, file: &[u8]) -> Result<Vec<u8>, FormatError> {
    let mut error = FormatError::NoKeyFits;
    for body in candidates(opener, file)? {
        match open_body(&body, file) {
            Ok(plain) => return Ok(plain),
            Err(other) => error = other,
        }
    }
    Err(error)
}

/// Feeds the header as a reader does that knows nothing of its length: one byte more than was asked for, at
/// first none.
pub(crate) fn candidates(opener: &Opener, file: &[u8]) -> Result<Vec<Body>, FormatError> {
    let mut given = 0;
    loop {
        match opener.open(&file[..given], given == file.len())? {
            Opened::Ready(bodies) => return Ok(bodies),
            Opened::NeedMore { start_bytes } => {
                assert!(start_bytes > given && given < file.len());
                given = start_bytes.min(file.len());
            }
        }
    }
}

pub(crate) fn open_body(body: &Body, file: &[u8]) -> Result<Vec<u8>, FormatError> {
    let layout = body.cut().of_cipher(file.len() as u64)?;
    let mut plain = Vec::new();
    for segment in (0..layout.segment_count()).map(|index| layout.segment(index)) {
        let opened =
            decrypt(body, &segment, file).ok_or(FormatError::NotAuthentic { segment: segment.index })?;
        let most = segment.plain.end - segment.plain.start;
        assert_eq!(segment.plain.start, plain.len() as u64);
        assert!(opened.len() as u64 == most || !layout.plain_bytes_is_exact());
        plain.extend_from_slice(&opened);
    }
    Ok(plain)
}

pub(crate) fn range(range: &std::ops::Range<u64>) -> std::ops::Range<usize> {
    usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()
}

fn iv(body: &Body, segment: &Segment, file: &[u8]) -> [u8; 16] {
    match body.iv(segment.index, segment.last).unwrap() {
        Iv::Known(iv) => iv,
        Iv::PreviousBlock => file[..range(&segment.cipher).start].last_chunk().copied().unwrap(),
    }
}

fn encrypt(body: &Body, segment: &Segment, plain: &[u8], file: &[u8]) -> Vec<u8> {
    let (session, iv) = (body.session(segment.last), iv(body, segment, file));
    match session.algorithm() {
        Algorithm::Aes128Gcm => {
            Aes128Gcm::new_from_slice(session.key()).unwrap().encrypt(iv[..12].into(), plain).unwrap()
        }
        Algorithm::Aes256Gcm => {
            Aes256Gcm::new_from_slice(session.key()).unwrap().encrypt(iv[..12].into(), plain).unwrap()
        }
        other => panic!("no format uses {other}"),
    }
}

fn decrypt(body: &Body, segment: &Segment, file: &[u8]) -> Option<Vec<u8>> {
    let (session, iv) = (body.session(segment.last), iv(body, segment, file));
    let cipher = &file[range(&segment.cipher)];
    match session.algorithm() {
        Algorithm::Aes128Gcm => {
            Aes128Gcm::new_from_slice(session.key()).unwrap().decrypt(iv[..12].into(), cipher).ok()
        }
        Algorithm::Aes256Gcm => {
            Aes256Gcm::new_from_slice(session.key()).unwrap().decrypt(iv[..12].into(), cipher).ok()
        }
        other => panic!("no format uses {other}"),
    }
}
