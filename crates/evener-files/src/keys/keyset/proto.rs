//! Tink's protobuf messages, field for field: keysets (tink.proto), streaming keys and the keys of keysets.

use prost::Message;
use zeroize::Zeroize as _;

/// `Keyset`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Keyset {
    #[prost(uint32, tag = "1")]
    pub(super) primary_key_id: u32,
    #[prost(message, repeated, tag = "2")]
    pub(super) key: Vec<Key>,
}

/// `Keyset.Key`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Key {
    #[prost(message, optional, tag = "1")]
    pub(super) key_data: Option<KeyData>,
    #[prost(int32, tag = "2")]
    pub(super) status: i32,
    #[prost(uint32, tag = "3")]
    pub(super) key_id: u32,
    #[prost(int32, tag = "4")]
    pub(super) output_prefix_type: i32,
}

/// `KeyData`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct KeyData {
    #[prost(string, tag = "1")]
    pub(super) type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) value: Vec<u8>,
    #[prost(int32, tag = "3")]
    pub(super) key_material_type: i32,
}

impl Keyset {
    /// Overwrites what is secret.
    pub(super) fn wipe(&mut self) {
        self.key.iter_mut().filter_map(|key| key.key_data.as_mut()).for_each(|data| data.value.zeroize());
    }
}

/// `EncryptedKeyset`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct EncryptedKeyset {
    #[prost(bytes = "vec", tag = "2")]
    pub(super) encrypted_keyset: Vec<u8>,
    #[prost(message, optional, tag = "3")]
    pub(super) keyset_info: Option<KeysetInfo>,
}

/// `KeysetInfo`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct KeysetInfo {
    #[prost(uint32, tag = "1")]
    pub(super) primary_key_id: u32,
    #[prost(message, repeated, tag = "2")]
    pub(super) key_info: Vec<KeyInfo>,
}

/// `KeysetInfo.KeyInfo`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct KeyInfo {
    #[prost(string, tag = "1")]
    pub(super) type_url: String,
    #[prost(int32, tag = "2")]
    pub(super) status: i32,
    #[prost(uint32, tag = "3")]
    pub(super) key_id: u32,
    #[prost(int32, tag = "4")]
    pub(super) output_prefix_type: i32,
}

/// `AesGcmHkdfStreamingKey` and `AesCtrHmacStreamingKey`, which differ in their parameters' last field only.
#[derive(Message)]
pub(super) struct StreamingKey {
    #[prost(uint32, tag = "1")]
    pub(super) version: u32,
    #[prost(message, optional, tag = "2")]
    pub(super) params: Option<StreamingParams>,
    #[prost(bytes = "vec", tag = "3")]
    pub(super) key_value: Vec<u8>,
}

/// `AesGcmHkdfStreamingParams`, `AesCtrHmacStreamingParams`.
#[derive(Message)]
pub(super) struct StreamingParams {
    #[prost(uint32, tag = "1")]
    pub(super) ciphertext_segment_size: u32,
    #[prost(uint32, tag = "2")]
    pub(super) derived_key_size: u32,
    #[prost(int32, tag = "3")]
    pub(super) hkdf_hash_type: i32,
    #[prost(message, optional, tag = "4")]
    pub(super) hmac_params: Option<HmacParams>,
}

/// `HmacParams`.
#[derive(Message)]
pub(super) struct HmacParams {
    #[prost(int32, tag = "1")]
    pub(super) hash: i32,
    #[prost(uint32, tag = "2")]
    pub(super) tag_size: u32,
}

/// `AesGcmKey` and `XChaCha20Poly1305Key`, whose key is field 3, and `ChaCha20Poly1305Key`, whose key is field 2.
#[derive(Message)]
pub(super) struct AeadKey {
    #[prost(uint32, tag = "1")]
    pub(super) version: u32,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) key_value_2: Vec<u8>,
    #[prost(bytes = "vec", tag = "3")]
    pub(super) key_value_3: Vec<u8>,
}

/// Names and numbers of an enum.
pub(super) type Names = [(i32, &'static str)];

/// `KeyStatusType`.
pub(super) const STATUS: &Names = &[(0, "UNKNOWN_STATUS"), (1, "ENABLED"), (2, "DISABLED"), (3, "DESTROYED")];
/// `OutputPrefixType`.
pub(super) const PREFIX: &Names = &[
    (0, "UNKNOWN_PREFIX"),
    (1, "TINK"),
    (2, "LEGACY"),
    (3, "RAW"),
    (4, "CRUNCHY"),
    (5, "WITH_ID_REQUIREMENT"),
];
/// `KeyData.KeyMaterialType`.
pub(super) const MATERIAL: &Names = &[
    (0, "UNKNOWN_KEYMATERIAL"),
    (1, "SYMMETRIC"),
    (2, "ASYMMETRIC_PRIVATE"),
    (3, "ASYMMETRIC_PUBLIC"),
    (4, "REMOTE"),
];

/// The name of a number; that of 0 for one that has none.
pub(super) fn name_of(names: &Names, number: i32) -> &'static str {
    names.iter().find(|row| row.0 == number).map_or(names[0].1, |row| row.1)
}
