//! HPKE (RFC 9180) as age uses it: one text from a sender without a name, HKDF-SHA-256, ChaCha20-Poly1305.
//!
//! Shared secret of a key encapsulation -> [`key_schedule`] -> key and nonce of the one text.

use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

/// Numbers of HKDF-SHA-256 and ChaCha20-Poly1305 in RFC 9180, 7.2 and 7.3.
const KDF: u16 = 0x0001;
const AEAD: u16 = 0x0003;

/// Key and nonce of the first text in base mode, for encapsulation `kem`.
pub(super) fn key_schedule(kem: u16, shared: &[u8], info: &[u8]) -> (Zeroizing<[u8; 32]>, [u8; 12]) {
    let suite = [&b"HPKE"[..], &kem.to_be_bytes(), &KDF.to_be_bytes(), &AEAD.to_be_bytes()].concat();
    let mut context = vec![0];
    context.extend_from_slice(&*extract(&suite, b"", b"psk_id_hash", b""));
    context.extend_from_slice(&*extract(&suite, b"", b"info_hash", info));
    let secret = extract(&suite, shared, b"secret", b"");
    let (mut key, mut nonce) = (Zeroizing::new([0; 32]), [0; 12]);
    expand(&suite, &secret, b"key", &context, &mut *key);
    expand(&suite, &secret, b"base_nonce", &context, &mut nonce);
    (key, nonce)
}

/// The shared secret of DHKEM(P-256, HKDF-SHA-256), number 0x0010, from what Diffie and Hellman's exchange gives.
pub(super) fn dh_secret(kem: u16, exchanged: &[u8], enc: &[u8], recipient: &[u8]) -> Zeroizing<[u8; 32]> {
    let suite = [&b"KEM"[..], &kem.to_be_bytes()].concat();
    let extracted = extract(&suite, b"", b"eae_prk", exchanged);
    let mut secret = Zeroizing::new([0; 32]);
    expand(&suite, &extracted, b"shared_secret", &[enc, recipient].concat(), &mut *secret);
    secret
}

fn extract(suite: &[u8], salt: &[u8], label: &[u8], secret: &[u8]) -> Zeroizing<[u8; 32]> {
    let labelled = Zeroizing::new([b"HPKE-v1", suite, label, secret].concat());
    Zeroizing::new(Hkdf::<Sha256>::extract(Some(salt), &labelled).0.into())
}

fn expand(suite: &[u8], secret: &[u8; 32], label: &[u8], info: &[u8], to: &mut [u8]) {
    let bytes = u16::try_from(to.len()).expect("keys are short").to_be_bytes();
    let info = [&bytes[..], b"HPKE-v1", suite, label, info].concat();
    let keyed = Hkdf::<Sha256>::from_prk(secret).expect("32 bytes are a key");
    keyed.expand(&info, to).expect("keys are short");
}
