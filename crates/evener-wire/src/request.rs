//! The header of a data request, 72 bytes in front of its data: the layout without the feature REVISION_1.
//!
//! Readable by the device: header, IV, source, associated data. Writable: destination, digest, and as the last byte the
//! [`Status`]. Of AEAD the tag stands behind the ciphertext, in the source of a decryption as in the destination of an
//! encryption. Framing is free: nothing depends on where one descriptor ends and the next begins.

use crate::WireError;
use crate::bytes::{le32_at, le64_at, put, put_all};
use crate::numbers::{operation, symmetric};

/// Bytes of the header.
pub const DATA_HEADER_BYTES: usize = 72;

/// How a request ended; the last byte that the device writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// All went well.
    Ok = 0,
    /// It failed for a reason that has no number.
    Error = 1,
    /// The data is not authentic.
    BadMessage = 2,
    /// The device does not do this.
    NotSupported = 3,
    /// There is no such session.
    InvalidSession = 4,
    /// The device has no space.
    NoSpace = 5,
}

impl Status {
    /// The status of this number; `None` for numbers that the specification does not have.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        let all = [
            Self::Ok,
            Self::Error,
            Self::BadMessage,
            Self::NotSupported,
            Self::InvalidSession,
            Self::NoSpace,
        ];
        all.get(usize::from(number)).copied()
    }
}

/// The operation of a request and the lengths of its parts, as its sender gives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A cipher alone.
    Cipher {
        /// Bytes of the IV.
        iv_bytes: u32,
        /// Bytes of the source.
        src_bytes: u32,
        /// Bytes of the destination.
        dst_bytes: u32,
    },
    /// A cipher and a hash.
    Chain {
        /// Bytes of the IV.
        iv_bytes: u32,
        /// Bytes of the source.
        src_bytes: u32,
        /// Bytes of the destination.
        dst_bytes: u32,
        /// Bytes of associated data.
        aad_bytes: u32,
        /// Bytes of the digest.
        hash_bytes: u32,
    },
    /// Authenticated encryption or decryption.
    Aead {
        /// Bytes of the nonce.
        iv_bytes: u32,
        /// Bytes of associated data.
        aad_bytes: u32,
        /// Bytes of the source, at decryption with the tag.
        src_bytes: u32,
        /// Bytes of the destination, at encryption with the tag.
        dst_bytes: u32,
        /// Bytes of the tag.
        tag_bytes: u32,
    },
    /// A hash or MAC.
    Digest {
        /// Bytes of the source.
        src_bytes: u32,
        /// Bytes of the digest.
        hash_bytes: u32,
    },
}

/// Bytes that the descriptors of a request must have at least; sums of fields of 32 bits, so they do not overflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths {
    /// Bytes that the device reads, header included.
    pub readable: u64,
    /// Bytes that the device writes, status included.
    pub writable: u64,
}

/// A data request without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataRequest {
    /// One of [`crate::numbers::operation`].
    pub opcode: u32,
    /// Number of the algorithm; a session knows it already, so a host may ignore it.
    pub algorithm: u32,
    /// The session.
    pub session: u64,
    /// The parts.
    pub operation: Operation,
}

impl DataRequest {
    /// Reads the header.
    ///
    /// # Errors
    ///
    /// An operation that is none of [`crate::numbers::operation`], or a cipher's that is neither alone nor chained.
    pub fn parse(bytes: &[u8; DATA_HEADER_BYTES]) -> Result<Self, WireError> {
        let opcode = le32_at(bytes, 0);
        Ok(Self {
            opcode,
            algorithm: le32_at(bytes, 4),
            session: le64_at(bytes, 8),
            operation: parse_operation(opcode, bytes)?,
        })
    }

    /// The header as bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; DATA_HEADER_BYTES] {
        let mut bytes = [0; DATA_HEADER_BYTES];
        put_all!(bytes, to_le_bytes, 0: self.opcode, 4: self.algorithm, 8: self.session);
        let mut fields = |list: &[(usize, u32)]| {
            list.iter().for_each(|(at, field)| put(&mut bytes, *at, field.to_le_bytes()));
        };
        match self.operation {
            Operation::Cipher { iv_bytes, src_bytes, dst_bytes } => {
                let kind = (OP_TYPE_AT, symmetric::CIPHER.into());
                fields(&[(24, iv_bytes), (28, src_bytes), (32, dst_bytes), kind]);
            }
            Operation::Chain { iv_bytes, src_bytes, dst_bytes, aad_bytes, hash_bytes } => {
                let kind = (OP_TYPE_AT, symmetric::CHAIN.into());
                fields(&[
                    (24, iv_bytes),
                    (28, src_bytes),
                    (32, dst_bytes),
                    (52, aad_bytes),
                    (56, hash_bytes),
                    kind,
                ]);
            }
            Operation::Aead { iv_bytes, aad_bytes, src_bytes, dst_bytes, tag_bytes } => {
                fields(&[(24, iv_bytes), (28, aad_bytes), (32, src_bytes), (36, dst_bytes), (40, tag_bytes)]);
            }
            Operation::Digest { src_bytes, hash_bytes } => fields(&[(24, src_bytes), (28, hash_bytes)]),
        }
        bytes
    }

    /// What the descriptors must hold.
    #[must_use]
    pub fn lengths(&self) -> Lengths {
        let (readable, writable): (&[u32], &[u32]) = match &self.operation {
            Operation::Cipher { iv_bytes, src_bytes, dst_bytes } => (&[*iv_bytes, *src_bytes], &[*dst_bytes]),
            Operation::Chain { iv_bytes, src_bytes, dst_bytes, aad_bytes, hash_bytes } => {
                (&[*iv_bytes, *src_bytes, *aad_bytes], &[*dst_bytes, *hash_bytes])
            }
            Operation::Aead { iv_bytes, aad_bytes, src_bytes, dst_bytes, .. } => {
                (&[*iv_bytes, *src_bytes, *aad_bytes], &[*dst_bytes])
            }
            Operation::Digest { src_bytes, hash_bytes } => (&[*src_bytes], &[*hash_bytes]),
        };
        let sum = |parts: &[u32]| parts.iter().map(|part| u64::from(*part)).sum::<u64>();
        Lengths { readable: DATA_HEADER_BYTES as u64 + sum(readable), writable: sum(writable) + 1 }
    }
}

fn parse_operation(opcode: u32, bytes: &[u8; DATA_HEADER_BYTES]) -> Result<Operation, WireError> {
    let field = |offset: usize| le32_at(bytes, offset);
    match opcode {
        operation::CIPHER_ENCRYPT | operation::CIPHER_DECRYPT => {
            let (iv_bytes, src_bytes, dst_bytes) = (field(24), field(28), field(32));
            match field(OP_TYPE_AT) {
                kind if kind == symmetric::CIPHER.into() => {
                    Ok(Operation::Cipher { iv_bytes, src_bytes, dst_bytes })
                }
                kind if kind == symmetric::CHAIN.into() => {
                    let (aad_bytes, hash_bytes) = (field(52), field(56));
                    Ok(Operation::Chain { iv_bytes, src_bytes, dst_bytes, aad_bytes, hash_bytes })
                }
                kind => Err(WireError::Number { what: "kind of symmetric operation", number: kind.into() }),
            }
        }
        operation::AEAD_ENCRYPT | operation::AEAD_DECRYPT => Ok(Operation::Aead {
            iv_bytes: field(24),
            aad_bytes: field(28),
            src_bytes: field(32),
            dst_bytes: field(36),
            tag_bytes: field(40),
        }),
        operation::HASH | operation::MAC => {
            Ok(Operation::Digest { src_bytes: field(24), hash_bytes: field(28) })
        }
        number => Err(WireError::Number { what: "operation", number: number.into() }),
    }
}

const OP_TYPE_AT: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// Four bytes per number, little-endian, from the start of the header.
    fn image(fields: [u32; 18]) -> [u8; DATA_HEADER_BYTES] {
        let mut image = [0; DATA_HEADER_BYTES];
        for (place, field) in fields.iter().enumerate() {
            put(&mut image, place * 4, field.to_le_bytes());
        }
        image
    }

    fn same(request: DataRequest, image: [u8; DATA_HEADER_BYTES], readable: u64, writable: u64) {
        assert_eq!(DataRequest::parse(&image), Ok(request));
        assert_eq!(request.to_bytes(), image);
        assert_eq!(request.lengths(), Lengths { readable, writable });
    }

    #[test]
    fn a_cipher_request_has_the_layout_of_linuxs_struct() {
        let image = image([1, 3, 7, 1, 0, 0, 16, 4096, 4096, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
        let operation = Operation::Cipher { iv_bytes: 16, src_bytes: 4096, dst_bytes: 4096 };
        let request = DataRequest { opcode: 1, algorithm: 3, session: 1 << 32 | 7, operation };
        same(request, image, 72 + 16 + 4096, 4097);
    }

    #[test]
    fn a_chain_has_its_associated_data_and_digest_behind_the_ranges() {
        let image = image([0, 3, 7, 0, 0, 0, 16, 64, 64, 0, 0, 0, 0, 13, 20, 0, 2, 0]);
        let operation =
            Operation::Chain { iv_bytes: 16, src_bytes: 64, dst_bytes: 64, aad_bytes: 13, hash_bytes: 20 };
        same(
            DataRequest { opcode: 0, algorithm: 3, session: 7, operation },
            image,
            72 + 16 + 64 + 13,
            64 + 20 + 1,
        );
    }

    #[test]
    fn an_aead_request_counts_its_tag_once() {
        let image = image([0x301, 1, 7, 0, 0, 0, 12, 20, 116, 100, 16, 0, 0, 0, 0, 0, 0, 0]);
        let operation =
            Operation::Aead { iv_bytes: 12, aad_bytes: 20, src_bytes: 116, dst_bytes: 100, tag_bytes: 16 };
        let request = DataRequest { opcode: 0x301, algorithm: 1, session: 7, operation };
        same(request, image, 72 + 12 + 116 + 20, 101);
    }

    #[test]
    fn hashes_and_macs_have_two_lengths() {
        for opcode in [0x100, 0x200] {
            let image = image([opcode, 4, 7, 0, 0, 0, 1000, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            let operation = Operation::Digest { src_bytes: 1000, hash_bytes: 32 };
            same(DataRequest { opcode, algorithm: 4, session: 7, operation }, image, 1072, 33);
        }
    }

    #[test]
    fn lengths_beyond_four_gigabytes_do_not_wrap() {
        let most = Operation::Cipher { iv_bytes: u32::MAX, src_bytes: u32::MAX, dst_bytes: u32::MAX };
        let request = DataRequest { opcode: 0, algorithm: 3, session: 0, operation: most };
        assert_eq!(request.lengths().readable, 72 + 2 * u64::from(u32::MAX));
    }

    #[test]
    fn operations_that_there_are_not_are_named() {
        let parse = |opcode, kind| {
            DataRequest::parse(&image([opcode, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, kind, 0]))
        };
        let error = |what, number| Err(WireError::Number { what, number });
        assert_eq!(parse(0, 3), error("kind of symmetric operation", 3));
        assert_eq!(parse(0x400, 0), error("operation", 0x400));
        assert_eq!(parse(2, 1), error("operation", 2));
    }

    #[test]
    fn a_status_is_one_of_six_numbers() {
        let names = [0, 1, 2, 3, 4, 5, 6].map(Status::from_number);
        let known =
            [Status::Ok, Status::Error, Status::BadMessage, Status::NotSupported, Status::InvalidSession];
        assert_eq!(names[..5], known.map(Some));
        assert_eq!(names[5..], [Some(Status::NoSpace), None]);
    }
}
