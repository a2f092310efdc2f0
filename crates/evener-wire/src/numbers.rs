//! Numbers of virtio-crypto: services, operations, algorithms (virtio 1.2, 5.9; Linux include/uapi/linux/virtio_crypto.h).

/// Services, the upper byte of an operation's number.
pub mod service {
    /// Ciphers, alone or chained with a hash.
    pub const CIPHER: u32 = 0;
    /// Hashes.
    pub const HASH: u32 = 1;
    /// Keyed hashes.
    pub const MAC: u32 = 2;
    /// Authenticated encryption.
    pub const AEAD: u32 = 3;
}

/// Operations on sessions: service in the upper byte, 2 for create.
pub mod create {
    /// A session for a cipher.
    pub const CIPHER: u64 = 0x002;
    /// A session for a hash. No peer but ours asks for one by message.
    pub const HASH: u64 = 0x102;
    /// A session for a MAC. No peer but ours asks for one by message.
    pub const MAC: u64 = 0x202;
    /// A session for AEAD. No peer but ours asks for one by message.
    pub const AEAD: u64 = 0x302;
}

/// Operations on data: service in the upper byte, 0 for encryption, hash and MAC, 1 for decryption.
pub mod operation {
    /// Encryption by a cipher.
    pub const CIPHER_ENCRYPT: u32 = 0x000;
    /// Decryption by a cipher.
    pub const CIPHER_DECRYPT: u32 = 0x001;
    /// A hash.
    pub const HASH: u32 = 0x100;
    /// A MAC.
    pub const MAC: u32 = 0x200;
    /// Authenticated encryption.
    pub const AEAD_ENCRYPT: u32 = 0x300;
    /// Authenticated decryption.
    pub const AEAD_DECRYPT: u32 = 0x301;
}

/// Ciphers that we have a use for.
pub mod cipher {
    /// AES, electronic code book.
    pub const AES_ECB: u32 = 2;
    /// AES, cipher block chaining.
    pub const AES_CBC: u32 = 3;
    /// AES, counter mode.
    pub const AES_CTR: u32 = 4;
    /// AES, XTS; both halves of the key in one.
    pub const AES_XTS: u32 = 13;
}

/// Hashes that we have a use for.
pub mod hash {
    /// MD5.
    pub const MD5: u32 = 1;
    /// SHA-1.
    pub const SHA1: u32 = 2;
    /// SHA-256.
    pub const SHA256: u32 = 4;
}

/// MACs that we have a use for.
pub mod mac {
    /// HMAC with MD5.
    pub const HMAC_MD5: u32 = 1;
    /// HMAC with SHA-1.
    pub const HMAC_SHA1: u32 = 2;
    /// HMAC with SHA-256.
    pub const HMAC_SHA256: u32 = 4;
}

/// AEAD algorithms.
pub mod aead {
    /// AES in Galois/counter mode.
    pub const GCM: u32 = 1;
    /// ChaCha20 with Poly1305.
    pub const CHACHA20_POLY1305: u32 = 3;
}

/// What a session of service cipher does (`op_type`).
pub mod symmetric {
    /// A cipher alone.
    pub const CIPHER: u8 = 1;
    /// A cipher and a hash one after the other.
    pub const CHAIN: u8 = 2;
}

/// Directions of a session.
pub mod direction {
    /// Encryption.
    pub const ENCRYPT: u8 = 1;
    /// Decryption.
    pub const DECRYPT: u8 = 2;
}
