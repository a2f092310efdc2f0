//! AES-GCM over short texts, such as keysets: keys of 16 or 32 bytes, the tag behind the ciphertext, no associated data.

use zeroize::Zeroizing;

use crate::Refused;
use crate::ffi::gcm;

/// Encrypts a text.
///
/// # Errors
///
/// [`Refused`] where the key has another length.
pub fn seal(key: &[u8], nonce: &[u8; 12], text: &[u8]) -> Result<Vec<u8>, Refused> {
    gcm::seal(key, nonce, text)
}

/// Decrypts what [`seal`] made.
///
/// # Errors
///
/// [`Refused`] where it is not authentic.
pub fn open(key: &[u8], nonce: &[u8; 12], sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, Refused> {
    gcm::open(key, nonce, sealed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standards_text_comes_out_and_a_changed_one_does_not() {
        // McGrew and Viega, The Galois/Counter Mode of Operation, test case 14: 16 bytes of zeros under zeros.
        let (key, nonce) = ([0; 32], [0; 12]);
        let mut sealed = seal(&key, &nonce, &[0; 16]).unwrap();
        let published = [
            0xCE, 0xA7, 0x40, 0x3D, 0x4D, 0x60, 0x6B, 0x6E, 0x07, 0x4E, 0xC5, 0xD3, 0xBA, 0xF3, 0x9D, 0x18,
            0xD0, 0xD1, 0xC8, 0xA7, 0x99, 0x99, 0x6B, 0xF0, 0x26, 0x5B, 0x98, 0xB5, 0xD4, 0x8A, 0xB9, 0x19,
        ];
        assert_eq!(sealed, published);
        assert_eq!(*open(&key, &nonce, &sealed).unwrap(), [0; 16]);
        sealed[3] ^= 1;
        assert!(open(&key, &nonce, &sealed).is_err());
    }
}
