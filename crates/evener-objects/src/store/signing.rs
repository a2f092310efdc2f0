//! What requests are signed with: libcrypto, which this program has for TLS already.

use object_store::client::{
    CryptoProvider, DigestAlgorithm, DigestContext, HmacContext, Signer, SigningAlgorithm,
};
use object_store::{Error, Result};
use openssl::error::ErrorStack;
use openssl::hash::{Hasher, MessageDigest};
use openssl::pkey::{PKey, Private};

/// Digests, HMACs and signatures by libcrypto.
#[derive(Debug)]
pub(super) struct Libcrypto;

impl CryptoProvider for Libcrypto {
    fn digest(&self, algorithm: DigestAlgorithm) -> Result<Box<dyn DigestContext>> {
        let hasher = Hasher::new(sha_256(&algorithm)?).map_err(refused)?;
        Ok(Box::new(Digest { hasher, made: Vec::new() }))
    }

    fn hmac(&self, algorithm: DigestAlgorithm, secret: &[u8]) -> Result<Box<dyn HmacContext>> {
        sha_256(&algorithm)?;
        let key = PKey::hmac(secret).map_err(refused)?;
        Ok(Box::new(Hmac { key, text: Vec::new(), made: Vec::new() }))
    }

    fn sign(&self, algorithm: SigningAlgorithm, pem: &[u8]) -> Result<Box<dyn Signer>> {
        match algorithm {
            SigningAlgorithm::RS256 => Ok(Box::new(Rsa(PKey::private_key_from_pem(pem).map_err(refused)?))),
            other => Err(unknown(&other)),
        }
    }
}

struct Digest {
    hasher: Hasher,
    made: Vec<u8>,
}

impl DigestContext for Digest {
    fn update(&mut self, data: &[u8]) {
        // Fails in a state only that this never gets into: the digest is then wrong, and the store refuses it.
        self.hasher.update(data).ok();
    }

    fn finish(&mut self) -> Result<&[u8]> {
        self.made = self.hasher.finish().map_err(refused)?.to_vec();
        Ok(&self.made)
    }
}

/// What is signed is short: it is kept until all of it is there.
struct Hmac {
    key: PKey<Private>,
    text: Vec<u8>,
    made: Vec<u8>,
}

impl HmacContext for Hmac {
    fn update(&mut self, data: &[u8]) {
        self.text.extend_from_slice(data);
    }

    fn finish(&mut self) -> Result<&[u8]> {
        self.made = signed(&self.key, &self.text)?;
        Ok(&self.made)
    }
}

struct Rsa(PKey<Private>);

impl Signer for Rsa {
    fn sign(&self, text: &[u8]) -> Result<Vec<u8>> {
        signed(&self.0, text)
    }
}

fn signed(key: &PKey<Private>, text: &[u8]) -> Result<Vec<u8>> {
    let mut signer = openssl::sign::Signer::new(MessageDigest::sha256(), key).map_err(refused)?;
    signer.sign_oneshot_to_vec(text).map_err(refused)
}

fn sha_256(algorithm: &DigestAlgorithm) -> Result<MessageDigest> {
    match algorithm {
        DigestAlgorithm::Sha256 => Ok(MessageDigest::sha256()),
        other => Err(unknown(other)),
    }
}

fn unknown(algorithm: &dyn std::fmt::Debug) -> Error {
    Error::NotSupported { source: format!("requests signed by {algorithm:?}").into() }
}

fn refused(error: ErrorStack) -> Error {
    Error::Generic { store: "libcrypto", source: Box::new(error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn digests_and_hmacs_are_those_of_the_standards() {
        let mut digest = Libcrypto.digest(DigestAlgorithm::Sha256).unwrap();
        digest.update(b"a");
        digest.update(b"bc");
        // FIPS 180-4, "abc".
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hex(digest.finish().unwrap()), abc);
        let mut hmac = Libcrypto.hmac(DigestAlgorithm::Sha256, b"Jefe").unwrap();
        hmac.update(b"what do ya want ");
        hmac.update(b"for nothing?");
        // RFC 4231, test case 2.
        let case_2 = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(hex(hmac.finish().unwrap()), case_2);
    }

    #[test]
    fn a_signature_of_a_service_account_is_verified_by_its_public_key() {
        let key = PKey::from_rsa(openssl::rsa::Rsa::generate(2048).unwrap()).unwrap();
        let pem = key.private_key_to_pem_pkcs8().unwrap();
        let signature =
            Libcrypto.sign(SigningAlgorithm::RS256, &pem).unwrap().sign(b"header.claims").unwrap();
        let mut verifier = openssl::sign::Verifier::new(MessageDigest::sha256(), &key).unwrap();
        assert!(verifier.verify_oneshot(&signature, b"header.claims").unwrap());
        assert!(Libcrypto.sign(SigningAlgorithm::RS256, b"no key").is_err());
    }
}
