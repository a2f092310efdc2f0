//! The header of an age file: a line with the version, stanzas, and a MAC under the file key.

use hmac::{Hmac, Mac as _};
use sha2::Sha256;

use super::file_key::{FileKey, hkdf, malformed};
use super::stanza::{Stanza, decoded, encoded};
use crate::error::FormatError;

/// The line that age files begin with.
pub(crate) const VERSION_LINE: &[u8] = b"age-encryption.org/v1\n";
/// Length of the nonce behind the header, in bytes.
pub(crate) const NONCE_BYTES: usize = 16;

/// A header that was taken apart, or that is to be written.
pub(crate) struct Header {
    stanzas: Vec<Stanza>,
    /// What the MAC is of: all up to the mark before it.
    text: Vec<u8>,
    mac: Vec<u8>,
}

impl Header {
    pub(crate) fn new(stanzas: Vec<Stanza>) -> Self {
        let mut text = VERSION_LINE.to_vec();
        stanzas.iter().for_each(|stanza| stanza.write(&mut text));
        text.extend_from_slice(b"---");
        Self { stanzas, text, mac: Vec::new() }
    }

    /// The header at the start of a file, and what follows it.
    pub(crate) fn read(file: &[u8]) -> Result<(Self, &[u8]), FormatError> {
        let damaged = || malformed("its header is damaged");
        let mut rest = file.strip_prefix(VERSION_LINE).ok_or_else(damaged)?;
        let mut stanzas = Vec::new();
        while !rest.starts_with(b"---") {
            let (stanza, behind) = Stanza::read(rest).ok_or_else(damaged)?;
            stanzas.push(stanza);
            rest = behind;
        }
        let end = rest.iter().position(|&byte| byte == b'\n').ok_or_else(damaged)?;
        let mac = rest[..end].strip_prefix(b"--- ").and_then(|mac| std::str::from_utf8(mac).ok());
        let mac = mac.and_then(decoded).filter(|mac| mac.len() == 32).ok_or_else(damaged)?;
        if stanzas.is_empty() {
            return Err(damaged());
        }
        if stanzas.len() > 1 && stanzas.iter().any(|stanza| stanza.kind == "scrypt") {
            return Err(malformed("a passphrase stands beside other recipients in its header"));
        }
        let text = file[..file.len() - rest.len() + 3].to_vec();
        Ok((Self { stanzas, text, mac }, &rest[end + 1..]))
    }

    pub(crate) fn stanzas(&self) -> &[Stanza] {
        &self.stanzas
    }

    pub(super) fn is_of_passphrase(&self) -> bool {
        self.stanzas.iter().all(|stanza| stanza.kind == "scrypt")
    }

    /// The header as text, with the MAC that `file_key` gives it.
    pub(crate) fn written(&self, file_key: &FileKey) -> Vec<u8> {
        let mac = encoded(&self.authenticator(file_key).finalize().into_bytes());
        [&self.text, &b" "[..], mac.as_bytes(), b"\n"].concat()
    }

    /// Whether the MAC is that of `file_key`.
    pub(crate) fn check(&self, file_key: &FileKey) -> Result<(), FormatError> {
        let fits = self.authenticator(file_key).verify_slice(&self.mac);
        fits.map_err(|_| malformed("the MAC of its header does not fit"))
    }

    fn authenticator(&self, file_key: &FileKey) -> Hmac<Sha256> {
        let key = hkdf(b"", b"header", &**file_key);
        let mac = Hmac::<Sha256>::new_from_slice(&*key).expect("a MAC takes a key of any length");
        mac.chain_update(&self.text)
    }
}
