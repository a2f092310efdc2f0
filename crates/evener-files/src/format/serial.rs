//! A cipher that no driver has: a file goes through it from its first byte to its last.

use std::fmt;
use std::sync::Arc;

use evener_core::Direction;
use evener_evp::{Cipher, CipherStream};
use zeroize::Zeroizing;

use crate::error::FormatError;

/// One of libcrypto's ciphers with key, IV and direction.
pub struct SerialCipher {
    cipher: Arc<Cipher>,
    direction: Direction,
    key: Zeroizing<Vec<u8>>,
    iv: Vec<u8>,
}

impl fmt::Debug for SerialCipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SerialCipher({:?}, key hidden)", self.direction)
    }
}

/// A text on its way through a [`SerialCipher`].
pub struct SerialText {
    stream: CipherStream,
    direction: Direction,
}

impl SerialCipher {
    pub(super) fn new(cipher: Arc<Cipher>, direction: Direction, key: &[u8], iv: &[u8]) -> Self {
        Self { cipher, direction, key: Zeroizing::new(key.to_vec()), iv: iv.to_vec() }
    }

    /// Begins a text.
    ///
    /// # Errors
    ///
    /// [`FormatError::Library`] where libcrypto refuses.
    pub fn begin(&self) -> Result<SerialText, FormatError> {
        let stream = self.cipher.stream(self.direction == Direction::Encrypt, &self.key, &self.iv);
        let stream = stream.map_err(|error| FormatError::Library(error.to_string()))?;
        Ok(SerialText { stream, direction: self.direction })
    }
}

impl SerialText {
    /// Appends what `input` gives to `output`; up to a block is held back.
    ///
    /// # Errors
    ///
    /// [`FormatError::Library`] where libcrypto refuses.
    pub fn update(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<(), FormatError> {
        self.stream.update(input, output).map_err(|error| FormatError::Library(error.to_string()))
    }

    /// Appends the end.
    ///
    /// # Errors
    ///
    /// [`FormatError::BadPadding`] where the end of a ciphertext is none.
    pub fn finish(self, output: &mut Vec<u8>) -> Result<(), FormatError> {
        let failed = match self.direction {
            Direction::Decrypt => FormatError::BadPadding,
            Direction::Encrypt => FormatError::Library("libcrypto refused the end of a text".into()),
        };
        self.stream.finish(output).map_err(|_| failed)
    }
}
