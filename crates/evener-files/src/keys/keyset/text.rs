//! Keysets as text: JSON, and in it a protobuf message for each key.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use prost::Message as _;
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize as _, Zeroizing};

use super::{HkdfHash, StreamingKey};
use crate::error::FormatError;

/// The only kind of key that files are sealed with.
pub(super) const TYPE_URL: &str = "type.googleapis.com/google.crypto.tink.AesGcmHkdfStreamingKey";

/// Id of the primary key and the keys that are enabled. What stands in `json` is secret; no error repeats it.
pub(super) fn read(json: &[u8]) -> Result<(u32, Vec<StreamingKey>), FormatError> {
    // The derived code would take a list for an object.
    if !json.trim_ascii_start().starts_with(b"{") {
        return Err(wrong("not a JSON object".into()));
    }
    let document: Document = serde_json::from_slice(json).map_err(|error| malformed_json(&error))?;
    document.check()?;
    let enabled = document.key.into_iter().filter(|entry| entry.status == Status::Enabled);
    let keys = enabled.map(Entry::into_key).collect::<Result<Vec<StreamingKey>, FormatError>>()?;
    Ok((document.primary_key_id, keys))
}

/// The keyset of some keys.
pub(super) fn written(primary_id: u32, keys: &[StreamingKey]) -> Zeroizing<Vec<u8>> {
    let document = Document {
        encrypted_keyset: None,
        primary_key_id: primary_id,
        key: keys.iter().map(Entry::of_key).collect(),
    };
    // Room for all of it from the start, so that no copy is left behind by growing.
    let mut json = Zeroizing::new(Vec::with_capacity(1024 * (1 + keys.len())));
    serde_json::to_writer_pretty(&mut *json, &document).expect("plain strings and numbers");
    json.push(b'\n');
    json
}

// ---- JSON, field for field as in Tink's keyset protobuf

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    #[serde(default, skip_serializing)]
    encrypted_keyset: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    primary_key_id: u32,
    #[serde(default)]
    key: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    #[serde(default)]
    key_data: Option<KeyData>,
    status: Status,
    key_id: u32,
    /// Of no effect: streams carry no prefix, whatever stands here.
    #[serde(default)]
    output_prefix_type: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct KeyData {
    type_url: String,
    value: Secret,
    key_material_type: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Status {
    Enabled,
    Disabled,
    Destroyed,
}

/// Text that is wiped when dropped.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct Secret(String);

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl Document {
    fn check(&self) -> Result<(), FormatError> {
        if self.encrypted_keyset.is_some() {
            return Err(wrong("it is encrypted; only cleartext keysets are read".into()));
        }
        let mut ids: Vec<u32> = self.key.iter().map(|entry| entry.key_id).collect();
        ids.sort_unstable();
        if let Some(pair) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(wrong(format!("key id {} stands there twice", pair[0])));
        }
        match (self.key.is_empty(), ids.binary_search(&self.primary_key_id)) {
            (true, _) => Err(wrong("it holds no keys".into())),
            (false, Err(_)) => {
                Err(wrong(format!("the primary key {} is not among its keys", self.primary_key_id)))
            }
            (false, Ok(_)) => Ok(()),
        }
    }
}

impl Entry {
    fn into_key(self) -> Result<StreamingKey, FormatError> {
        let id = self.key_id;
        let about = |fact: &str| wrong(format!("key {id} {fact}"));
        let data = self.key_data.ok_or_else(|| about("has no key data"))?;
        if data.type_url != TYPE_URL {
            return Err(about(&format!("is of type {:?}, not an AES-GCM-HKDF streaming key", data.type_url)));
        }
        if data.key_material_type != "SYMMETRIC" {
            return Err(about("is not symmetric key material"));
        }
        let value = Zeroizing::new(BASE64.decode(&data.value.0).map_err(|_| about("is not base64"))?);
        let message = <Message as prost::Message>::decode(value.as_slice())
            .map_err(|_| about("is not the protobuf of a streaming key"))?;
        message.into_key(id).map_err(|fact| about(&fact))
    }

    fn of_key(key: &StreamingKey) -> Self {
        let mut message = Message::of_key(key);
        let value = Zeroizing::new(message.encode_to_vec());
        message.key_value.zeroize();
        let key_data = KeyData {
            type_url: TYPE_URL.into(),
            value: Secret(BASE64.encode(&*value)),
            key_material_type: "SYMMETRIC".into(),
        };
        Self {
            key_data: Some(key_data),
            status: Status::Enabled,
            key_id: key.id,
            output_prefix_type: "RAW".into(),
        }
    }
}

// ---- protobuf, message AesGcmHkdfStreamingKey of Tink's aes_gcm_hkdf_streaming.proto

#[derive(prost::Message)]
struct Message {
    #[prost(uint32, tag = "1")]
    version: u32,
    #[prost(message, optional, tag = "2")]
    params: Option<Params>,
    #[prost(bytes = "vec", tag = "3")]
    key_value: Vec<u8>,
}

#[derive(prost::Message)]
struct Params {
    #[prost(uint32, tag = "1")]
    ciphertext_segment_size: u32,
    #[prost(uint32, tag = "2")]
    derived_key_size: u32,
    #[prost(int32, tag = "3")]
    hkdf_hash_type: i32,
}

impl Message {
    /// The key, or what is wrong with it.
    fn into_key(mut self, id: u32) -> Result<StreamingKey, String> {
        let bytes = Zeroizing::new(std::mem::take(&mut self.key_value));
        if self.version != 0 {
            return Err(format!("is of version {}, not 0", self.version));
        }
        let params = self.params.unwrap_or_default();
        let (derived_key_bytes, hash) = params.checked()?;
        if bytes.len() < derived_key_bytes {
            let fact =
                format!("is too short: {} bytes, at least {derived_key_bytes} are needed", bytes.len());
            return Err(fact);
        }
        Ok(StreamingKey { id, segment_bytes: params.ciphertext_segment_size, derived_key_bytes, hash, bytes })
    }

    fn of_key(key: &StreamingKey) -> Self {
        let params = Params {
            ciphertext_segment_size: key.segment_bytes,
            derived_key_size: if key.derived_key_bytes == 16 { 16 } else { 32 },
            hkdf_hash_type: HASHES.iter().find(|row| row.1 == key.hash).map_or(0, |row| row.0),
        };
        Self { version: 0, params: Some(params), key_value: key.bytes.to_vec() }
    }
}

impl Params {
    /// Length of the derived key and the hash, or what is wrong.
    fn checked(&self) -> Result<(usize, HkdfHash), String> {
        let derived_key_bytes = match self.derived_key_size {
            16 => 16,
            32 => 32,
            other => return Err(format!("derives keys of {other} bytes, not 16 or 32")),
        };
        let (segment_bytes, least) =
            (self.ciphertext_segment_size, self.derived_key_size + OVERHEAD_BYTES + 1);
        if segment_bytes < least {
            return Err(format!("has segments of {segment_bytes} bytes, at least {least} are needed"));
        }
        let hash = HASHES.iter().find(|row| row.0 == self.hkdf_hash_type);
        let (_, hash) =
            hash.ok_or_else(|| format!("has hash {}, not SHA1, SHA256 or SHA512", self.hkdf_hash_type))?;
        Ok((derived_key_bytes, *hash))
    }
}

pub(super) fn wrong(fact: String) -> FormatError {
    FormatError::Keyset(fact)
}

/// Position only: serde's own texts may repeat what stands in the file.
fn malformed_json(error: &serde_json::Error) -> FormatError {
    let category = match error.classify() {
        serde_json::error::Category::Data => "not as in a Tink keyset",
        _ => "not JSON",
    };
    wrong(format!("{category} at line {}, column {}", error.line(), error.column()))
}

/// Numbers of Tink's enum HashType.
const HASHES: [(i32, HkdfHash); 3] = [(1, HkdfHash::Sha1), (3, HkdfHash::Sha256), (4, HkdfHash::Sha512)];
/// What segment 0 holds beside the salt and plaintext: length byte, nonce prefix, tag.
const OVERHEAD_BYTES: u32 = 1 + 7 + 16;
/// Written with padding, as Tink does; read with or without.
pub(super) const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);
