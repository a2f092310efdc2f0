//! A slow pipeline for tests: runs every segment through RustCrypto's ciphers, so that a body's cut, keys and
//! IVs are judged by other hands than Evener's drivers.
#![allow(clippy::unwrap_used, clippy::panic, reason = "support of tests")]
#![allow(dead_code, reason = "each test uses its part")]

use aes::cipher::block_padding::{NoPadding, Pkcs7};
use aes::cipher::{
    BlockCipher, BlockDecryptMut, BlockEncryptMut, InnerIvInit as _, KeyInit, KeyIvInit as _,
    StreamCipher as _,
};
use aes_gcm::aead::Aead as _;
use aes_gcm::{Aes128Gcm, Aes256Gcm};
use chacha20poly1305::ChaCha20Poly1305;
use evener_core::{Algorithm, Padding, Session};
use evener_files::FormatError;
use evener_files::format::{Body, Iv, Opened, Opener, Sealer, Segment};

/// Text or ciphertext under a key stream.
macro_rules! ctr_apply {
    ($cipher:ty, $key:expr, $iv:expr, $text:expr) => {{
        let mut text = $text.to_vec();
        ctr::Ctr128BE::<$cipher>::new_from_slices($key, $iv).unwrap().apply_keystream(&mut text);
        text
    }};
}

/// The whole encrypted file.
pub(crate) fn seal(sealer: &Sealer, plain: &[u8]) -> Vec<u8> {
    let sealing = sealer.seal().unwrap();
    let layout = sealing.body.cut().of_plain(plain.len() as u64).unwrap();
    let mut file = sealing.header;
    assert_eq!(file.len() as u64, sealing.body.cut().header_bytes());
    if let Some(serial) = sealing.body.as_serial() {
        let mut text = serial.begin().unwrap();
        text.update(plain, &mut file).unwrap();
        text.finish(&mut file).unwrap();
        assert_eq!(file.len() as u64, layout.cipher_bytes());
        return file;
    }
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
    let mut error = FormatError::NoKeyFits { facts: String::new() };
    for body in candidates(opener, file)? {
        match open_body(&body, file) {
            Ok(plain) => return Ok(plain),
            Err(other) => error = other,
        }
    }
    Err(error)
}

/// Feeds the header as a reader does that knows nothing of its length: one byte more than was requested, at
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
    if let Some(serial) = body.as_serial() {
        let (mut text, start) = (serial.begin()?, usize::try_from(body.cut().header_bytes()).unwrap());
        text.update(&file[start..], &mut plain)?;
        return text.finish(&mut plain).map(|()| plain);
    }
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

/// "success" or "payload failure", and what came out before, as a reader sees it that learns only at its end how
/// long the file is.
pub(crate) fn open_until_bad(body: &Body, file: &[u8]) -> (&'static str, Vec<u8>) {
    let (cut, mut plain, mut index) = (body.cut(), Vec::new(), 0);
    loop {
        let mut segment = cut.full(index);
        segment.last = segment.cipher.end >= file.len() as u64;
        if segment.last {
            let cipher_bytes = file.len() as u64 - segment.cipher.start;
            let Ok(plain_bytes) = cut.last_plain_bytes(index, cipher_bytes) else {
                return ("payload failure", plain);
            };
            segment.plain.end = segment.plain.start + plain_bytes;
            segment.cipher.end = file.len() as u64;
        }
        match decrypt(body, &segment, file) {
            Some(opened) => plain.extend_from_slice(&opened),
            None => return ("payload failure", plain),
        }
        if segment.last {
            return ("success", plain);
        }
        index += 1;
    }
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
    let (key, nonce) = (session.key(), iv[..12].into());
    match session.algorithm() {
        Algorithm::Aes128Cbc => cbc_encrypt::<aes::Aes128>(session, &iv, plain),
        Algorithm::Aes192Cbc => cbc_encrypt::<aes::Aes192>(session, &iv, plain),
        Algorithm::Aes256Cbc => cbc_encrypt::<aes::Aes256>(session, &iv, plain),
        Algorithm::Aes128Gcm => Aes128Gcm::new_from_slice(key).unwrap().encrypt(nonce, plain).unwrap(),
        Algorithm::Aes256Gcm => Aes256Gcm::new_from_slice(key).unwrap().encrypt(nonce, plain).unwrap(),
        Algorithm::ChaCha20Poly1305 => {
            ChaCha20Poly1305::new_from_slice(key).unwrap().encrypt(nonce, plain).unwrap()
        }
        Algorithm::Aes128Ctr => with_tag(body, &iv, ctr_apply!(aes::Aes128, key, &iv, plain)),
        Algorithm::Aes192Ctr => with_tag(body, &iv, ctr_apply!(aes::Aes192, key, &iv, plain)),
        Algorithm::Aes256Ctr => with_tag(body, &iv, ctr_apply!(aes::Aes256, key, &iv, plain)),
        other => panic!("no format uses {other}"),
    }
}

fn with_tag(body: &Body, iv: &[u8; 16], mut cipher: Vec<u8>) -> Vec<u8> {
    if let Some(mac) = body.mac() {
        let mut tag = vec![0; mac.tag_bytes()];
        mac.authenticate(iv, &cipher, &mut tag);
        cipher.extend_from_slice(&tag);
    }
    cipher
}

/// The ciphertext before a tag that fits.
fn without_tag<'c>(body: &Body, iv: &[u8; 16], cipher: &'c [u8]) -> Option<&'c [u8]> {
    let Some(mac) = body.mac() else { return Some(cipher) };
    let (cipher, tag) = cipher.split_at_checked(cipher.len().checked_sub(mac.tag_bytes())?)?;
    mac.is_authentic(iv, cipher, tag).then_some(cipher)
}

fn decrypt(body: &Body, segment: &Segment, file: &[u8]) -> Option<Vec<u8>> {
    let (session, iv) = (body.session(segment.last), iv(body, segment, file));
    let (key, nonce) = (session.key(), iv[..12].into());
    let cipher = &file[range(&segment.cipher)];
    match session.algorithm() {
        Algorithm::Aes128Cbc => cbc_decrypt::<aes::Aes128>(session, &iv, cipher),
        Algorithm::Aes192Cbc => cbc_decrypt::<aes::Aes192>(session, &iv, cipher),
        Algorithm::Aes256Cbc => cbc_decrypt::<aes::Aes256>(session, &iv, cipher),
        Algorithm::Aes128Gcm => Aes128Gcm::new_from_slice(key).unwrap().decrypt(nonce, cipher).ok(),
        Algorithm::Aes256Gcm => Aes256Gcm::new_from_slice(key).unwrap().decrypt(nonce, cipher).ok(),
        Algorithm::ChaCha20Poly1305 => {
            ChaCha20Poly1305::new_from_slice(key).unwrap().decrypt(nonce, cipher).ok()
        }
        Algorithm::Aes128Ctr => Some(ctr_apply!(aes::Aes128, key, &iv, without_tag(body, &iv, cipher)?)),
        Algorithm::Aes192Ctr => Some(ctr_apply!(aes::Aes192, key, &iv, without_tag(body, &iv, cipher)?)),
        Algorithm::Aes256Ctr => Some(ctr_apply!(aes::Aes256, key, &iv, without_tag(body, &iv, cipher)?)),
        other => panic!("no format uses {other}"),
    }
}

fn cbc_encrypt<C: BlockEncryptMut + BlockCipher + KeyInit>(
    session: &Session,
    iv: &[u8],
    plain: &[u8],
) -> Vec<u8> {
    let cipher =
        cbc::Encryptor::<C>::inner_iv_slice_init(C::new_from_slice(session.key()).unwrap(), iv).unwrap();
    match session.padding() {
        Padding::None => cipher.encrypt_padded_vec_mut::<NoPadding>(plain),
        Padding::Pkcs7 => cipher.encrypt_padded_vec_mut::<Pkcs7>(plain),
    }
}

fn cbc_decrypt<C: BlockDecryptMut + BlockCipher + KeyInit>(
    session: &Session,
    iv: &[u8],
    text: &[u8],
) -> Option<Vec<u8>> {
    let cipher =
        cbc::Decryptor::<C>::inner_iv_slice_init(C::new_from_slice(session.key()).unwrap(), iv).unwrap();
    match session.padding() {
        Padding::None => cipher.decrypt_padded_vec_mut::<NoPadding>(text).ok(),
        Padding::Pkcs7 => cipher.decrypt_padded_vec_mut::<Pkcs7>(text).ok(),
    }
}

/// `count` bytes that differ from place to place, with a period that fits no segment.
pub(crate) fn pattern(count: usize) -> Vec<u8> {
    (0..=250).cycle().take(count).collect()
}
