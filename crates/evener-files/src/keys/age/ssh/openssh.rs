//! OpenSSH's own form of a private key (PROTOCOL.key of OpenSSH): public key in clear, private one maybe under a passphrase.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use evener_evp::{Cipher, RsaKey};
use zeroize::Zeroizing;

use super::wire::Reader;
use super::{SshIdentity, SshRecipient, ed25519, public_key, rsa};
use crate::error::FormatError;
use crate::keys::age::facts::{no_ssh_key as no_key, wrong_ssh_passphrase as wrong_passphrase};

/// What such a file begins with.
pub(super) const FIRST_LINE: &str = "-----BEGIN OPENSSH PRIVATE KEY-----";
const LAST_LINE: &str = "-----END OPENSSH PRIVATE KEY-----";
const MAGIC: &[u8] = b"openssh-key-v1\0";
/// Most rounds of bcrypt that are run: 1000 take some seconds. ssh-keygen's default is 16 or 24.
const ROUNDS_MAX: u32 = 1000;

/// Names of OpenSSH's ciphers and libcrypto's.
const CIPHERS: &[(&str, &str)] = &[
    ("aes256-ctr", "AES-256-CTR"),
    ("aes192-ctr", "AES-192-CTR"),
    ("aes128-ctr", "AES-128-CTR"),
    ("aes256-cbc", "AES-256-CBC"),
    ("aes192-cbc", "AES-192-CBC"),
    ("aes128-cbc", "AES-128-CBC"),
    ("3des-cbc", "DES-EDE3-CBC"),
];

/// A key under a passphrase.
pub(in crate::keys::age) struct EncryptedKey {
    recipient: SshRecipient,
    cipher: Cipher,
    salt: Vec<u8>,
    rounds: u32,
    text: Vec<u8>,
}

/// What such a file holds.
pub(super) enum Read {
    Open(SshIdentity),
    Encrypted(EncryptedKey),
}

/// Reads a file.
pub(super) fn read(text: &str) -> Result<Read, FormatError> {
    let body = text.strip_prefix(FIRST_LINE).and_then(|text| text.split(LAST_LINE).next());
    let body: Zeroizing<String> =
        Zeroizing::new(body.ok_or_else(no_key)?.chars().filter(|c| !c.is_ascii_whitespace()).collect());
    let bytes = Zeroizing::new(BASE64_STANDARD.decode(&*body).map_err(|_| no_key())?);
    let mut reader = Reader(bytes.strip_prefix(MAGIC).ok_or_else(no_key)?);
    let parts = (|| {
        let (cipher, kdf, options) = (reader.text()?, reader.text()?, reader.string()?);
        (reader.number()? == 1).then_some(())?;
        Some((cipher, kdf, options, reader.string()?, reader.string()?))
    })();
    let (cipher, kdf, options, public, private) = parts.ok_or_else(no_key)?;
    let kind = Reader(public).text().ok_or_else(no_key)?;
    let recipient = public_key::of_public(kind, public)?;
    if (cipher, kdf) == ("none", "none") {
        return identity(private).ok_or_else(no_key).map(Read::Open);
    }
    encrypted(recipient, [cipher, kdf], options, private).map(Read::Encrypted)
}

fn encrypted(
    recipient: SshRecipient,
    [cipher, kdf]: [&str; 2],
    options: &[u8],
    text: &[u8],
) -> Result<EncryptedKey, FormatError> {
    let unsupported = || FormatError::Unsupported(format!("SSH keys encrypted with {cipher}, {kdf}"));
    let name = CIPHERS.iter().find(|row| row.0 == cipher && kdf == "bcrypt").ok_or_else(unsupported)?.1;
    let mut options = Reader(options);
    let (salt, rounds) = options.string().zip(options.number()).ok_or_else(no_key)?;
    if rounds > ROUNDS_MAX {
        return Err(FormatError::Unsupported(format!("SSH keys with {rounds} rounds of bcrypt")));
    }
    let cipher = Cipher::fetch(name).ok_or_else(unsupported)?;
    Ok(EncryptedKey { recipient, cipher, salt: salt.to_vec(), rounds, text: text.to_vec() })
}

impl EncryptedKey {
    pub(super) const fn recipient(&self) -> &SshRecipient {
        &self.recipient
    }

    pub(super) fn decrypted(&self, passphrase: &str) -> Result<SshIdentity, FormatError> {
        let (key_bytes, iv_bytes) = (self.cipher.key_bytes(), self.cipher.iv_bytes());
        let mut derived = Zeroizing::new(vec![0; key_bytes + iv_bytes]);
        bcrypt_pbkdf::bcrypt_pbkdf(passphrase, &self.salt, self.rounds, &mut derived)
            .map_err(|_| wrong_passphrase())?;
        let (key, iv) = derived.split_at(key_bytes);
        let library = |error: evener_evp::Refused| FormatError::Library(error.to_string());
        let mut stream = self.cipher.stream(false, key, iv).map_err(library)?;
        let mut text = Zeroizing::new(Vec::with_capacity(self.text.len() + 64));
        // A block cipher holds the last block back for its padding, of which this form has none: a block more brings it out.
        stream.update(&self.text, &mut text).map_err(library)?;
        stream.update(&[0; 16][..self.cipher.block_bytes().min(16)], &mut text).map_err(library)?;
        text.truncate(self.text.len());
        identity(&text).ok_or_else(wrong_passphrase)
    }
}

/// The key in the private part; `None` where it is damaged or was decrypted with another passphrase.
fn identity(private: &[u8]) -> Option<SshIdentity> {
    let mut reader = Reader(private);
    (reader.number()? == reader.number()?).then_some(())?;
    match reader.text()? {
        ed25519::KIND => {
            let (_, pair) = (reader.string()?, reader.string()?);
            let seed = Zeroizing::new(<[u8; 32]>::try_from(pair.get(..32)?).ok()?);
            ed25519::Identity::of_seed(&seed).map(SshIdentity::Ed25519)
        }
        rsa::KIND => {
            let (modulus, exponent, private) = (reader.large()?, reader.large()?, reader.large()?);
            let key = RsaKey::private(modulus, exponent, private).ok()?;
            Some(SshIdentity::Rsa(rsa::Identity::new(key, modulus.to_vec(), exponent.to_vec())))
        }
        _ => None,
    }
}
