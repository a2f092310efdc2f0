//! Tink keysets of streaming keys: what `tinkey` and Tink's libraries read and write, as JSON or binary, in clear or encrypted.
//!
//! Path of a parse: bytes -> JSON (`json.rs`) or protobuf (`proto.rs`), decrypted where that is needed (`encryption.rs`) -> entries -> the
//! enabled keys that files are sealed with (`streaming_key.rs`), checked. Entries of other kinds are kept and left aside.

mod encryption;
mod json;
mod proto;
mod streaming_key;

use prost::Message as _;
use zeroize::Zeroizing;

use self::json::Document;
use self::proto::{EncryptedKeyset, name_of};
use self::streaming_key::{DISABLED, ENABLED};
use crate::error::FormatError;
use crate::keys::text::decoded;

pub use self::encryption::KeyEncryption;
pub use self::streaming_key::{SegmentCipher, StreamingKey, TinkHash};

/// The keys that `keygen` makes, under the names of Tink's templates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Template {
    /// Name, as in Tink.
    pub name: &'static str,
    key_bytes: u8,
    segment_bytes: u32,
    cipher: SegmentCipher,
}

impl Template {
    const fn new(name: &'static str, key_bytes: u8, segment_bytes: u32, cipher: SegmentCipher) -> Self {
        Self { name, key_bytes, segment_bytes, cipher }
    }

    /// All of them; the first is the one to take.
    pub const ALL: &[Self] = &[
        Self::new("AES256_GCM_HKDF_1MB", 32, 1 << 20, SegmentCipher::Gcm),
        Self::new("AES256_GCM_HKDF_4KB", 32, 4 << 10, SegmentCipher::Gcm),
        Self::new("AES128_GCM_HKDF_1MB", 16, 1 << 20, SegmentCipher::Gcm),
        Self::new("AES128_GCM_HKDF_4KB", 16, 4 << 10, SegmentCipher::Gcm),
        Self::new("AES256_CTR_HMAC_SHA256_1MB", 32, 1 << 20, HMAC_SHA256),
        Self::new("AES256_CTR_HMAC_SHA256_4KB", 32, 4 << 10, HMAC_SHA256),
        Self::new("AES128_CTR_HMAC_SHA256_1MB", 16, 1 << 20, HMAC_SHA256),
        Self::new("AES128_CTR_HMAC_SHA256_4KB", 16, 4 << 10, HMAC_SHA256),
    ];
}

/// The MAC of Tink's templates.
const HMAC_SHA256: SegmentCipher = SegmentCipher::CtrHmac { hash: TinkHash::Sha256, tag_bytes: 32 };

impl std::str::FromStr for Template {
    type Err = FormatError;

    /// Finds a template by its name.
    fn from_str(name: &str) -> Result<Self, FormatError> {
        Self::ALL.iter().find(|template| template.name == name).copied().ok_or_else(|| {
            let known: Vec<&str> = Self::ALL.iter().map(|template| template.name).collect();
            FormatError::Unsupported(format!("template {name:?}; known are {}", known.join(", ")))
        })
    }
}

/// How a keyset is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeysetForm {
    /// As JSON.
    Json,
    /// As protobuf.
    Binary,
}

/// One entry of a keyset, as it may be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRow {
    /// Its name in the keyset.
    pub id: u32,
    /// `ENABLED`, `DISABLED`, `DESTROYED`.
    pub status: &'static str,
    /// The kind of key, without the path before it.
    pub kind: String,
    /// Whether new files are sealed with it.
    pub is_primary: bool,
    /// Whether files can be opened with it, if it is enabled.
    pub is_usable: bool,
}

/// A keyset: all entries, and the enabled keys among them that files are sealed with.
pub struct Keyset {
    entries: proto::Keyset,
    /// The primary one first, if it is among them.
    keys: Vec<StreamingKey>,
}

impl Drop for Keyset {
    fn drop(&mut self) {
        self.entries.wipe();
    }
}

impl Keyset {
    /// A keyset of one new key.
    ///
    /// # Errors
    ///
    /// [`FormatError::Library`] where the kernel gives no random bytes.
    pub fn generate(template: Template) -> Result<Self, FormatError> {
        let key = new_key(template, &[])?;
        let entries = proto::Keyset { primary_key_id: key.id, key: vec![key.entry()] };
        Ok(Self { entries, keys: vec![key] })
    }

    /// Reads a cleartext keyset, JSON or binary.
    ///
    /// Keys that are not enabled and keys of other kinds are passed over. What stands in `bytes` is secret; no error repeats it.
    ///
    /// # Errors
    ///
    /// [`FormatError::Keyset`] with the first thing that is wrong.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        Self::checked(read_clear(bytes)?)
    }

    /// Reads an encrypted keyset, JSON or binary.
    ///
    /// # Errors
    ///
    /// As [`Keyset::parse`].
    pub fn parse_encrypted(bytes: &[u8], kek: &KeyEncryption) -> Result<Self, FormatError> {
        match read(bytes)? {
            Document::Encrypted(encrypted) => Self::checked(kek.decrypted(&encrypted.encrypted_keyset)?),
            Document::Clear(mut keyset) => {
                keyset.wipe();
                Err(wrong("it is not encrypted".into()))
            }
        }
    }

    /// Whether the file holds an encrypted keyset, and how it is written.
    ///
    /// # Errors
    ///
    /// As [`Keyset::parse`].
    pub fn form(bytes: &[u8]) -> Result<(KeysetForm, bool), FormatError> {
        let form = if json_text(bytes).is_some() { KeysetForm::Json } else { KeysetForm::Binary };
        match read(bytes)? {
            Document::Encrypted(_) => Ok((form, true)),
            Document::Clear(mut keyset) => {
                keyset.wipe();
                Ok((form, false))
            }
        }
    }

    fn checked(entries: proto::Keyset) -> Result<Self, FormatError> {
        let mut keyset = Self { entries, keys: Vec::new() };
        keyset.check()?;
        let enabled = keyset.entries.key.iter().filter(|entry| entry.status == ENABLED);
        let keys = enabled.filter_map(|entry| StreamingKey::of_entry(entry).transpose());
        keyset.keys = keys.collect::<Result<_, _>>()?;
        let primary_id = keyset.entries.primary_key_id;
        if let Some(place) = keyset.keys.iter().position(|key| key.id == primary_id) {
            keyset.keys[..=place].rotate_right(1);
        }
        if keyset.keys.is_empty() {
            return Err(keyset.no_usable_key());
        }
        Ok(keyset)
    }

    fn check(&self) -> Result<(), FormatError> {
        let mut ids: Vec<u32> = self.entries.key.iter().map(|entry| entry.key_id).collect();
        ids.sort_unstable();
        if let Some(pair) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(wrong(format!("key id {} stands there twice", pair[0])));
        }
        let primary_id = self.entries.primary_key_id;
        match self.entries.key.iter().find(|entry| entry.key_id == primary_id) {
            _ if ids.is_empty() => Err(wrong("it holds no keys".into())),
            None => Err(wrong(format!("the primary key {primary_id} is not among its keys"))),
            Some(primary) if primary.status != ENABLED => {
                Err(wrong(format!("the primary key {primary_id} is not enabled")))
            }
            Some(_) => Ok(()),
        }
    }

    fn no_usable_key(&self) -> FormatError {
        let primary = self.rows().into_iter().find(|row| row.is_primary);
        let primary =
            primary.map_or_else(String::new, |row| format!("key {} is of type {:?}", row.id, row.kind));
        wrong(format!("{primary}, not an AES-GCM-HKDF or AES-CTR-HMAC streaming key, and there is no other"))
    }

    /// The keyset in clear, all its entries, to be stored where only its owner can read it.
    #[must_use]
    pub fn written(&self, form: KeysetForm) -> Zeroizing<Vec<u8>> {
        match form {
            KeysetForm::Json => json::written(&self.entries),
            KeysetForm::Binary => Zeroizing::new(self.entries.encode_to_vec()),
        }
    }

    /// The keyset as Tink's JSON, in clear.
    #[must_use]
    pub fn to_json(&self) -> Zeroizing<Vec<u8>> {
        self.written(KeysetForm::Json)
    }

    /// The keyset encrypted.
    ///
    /// # Errors
    ///
    /// [`FormatError::Keyset`] where the key-encryption keyset's primary key is none for this.
    pub fn written_encrypted(
        &self,
        form: KeysetForm,
        kek: &KeyEncryption,
    ) -> Result<Zeroizing<Vec<u8>>, FormatError> {
        let encrypted = EncryptedKeyset {
            encrypted_keyset: kek.encrypted(&self.entries)?,
            keyset_info: Some(json::info(&self.entries)),
        };
        Ok(match form {
            KeysetForm::Json => json::written_encrypted(&encrypted),
            KeysetForm::Binary => Zeroizing::new(encrypted.encode_to_vec()),
        })
    }

    /// The key that seals.
    ///
    /// # Errors
    ///
    /// [`FormatError::Keyset`] where the primary key is of another kind.
    pub fn primary(&self) -> Result<&StreamingKey, FormatError> {
        let id = self.entries.primary_key_id;
        self.keys.first().filter(|key| key.id == id).ok_or_else(|| {
            wrong(format!(
                "the primary key {id} seals no files (evener keyset promote makes another one primary)"
            ))
        })
    }

    /// The keys that open, the primary one first.
    pub fn enabled_keys(&self) -> impl Iterator<Item = &StreamingKey> {
        self.keys.iter()
    }

    /// Every entry, as it may be shown.
    #[must_use]
    pub fn rows(&self) -> Vec<KeyRow> {
        let row = |entry: &proto::Key| {
            let url = entry.key_data.as_ref().map_or("", |data| &*data.type_url);
            KeyRow {
                id: entry.key_id,
                status: name_of(proto::STATUS, entry.status),
                kind: url.rsplit('.').next().unwrap_or_default().to_owned(),
                is_primary: entry.key_id == self.entries.primary_key_id,
                is_usable: [streaming_key::GCM_TYPE_URL, streaming_key::CTR_TYPE_URL].contains(&url),
            }
        };
        self.entries.key.iter().map(row).collect()
    }

    /// Adds a new key, enabled and not primary; returns its id.
    ///
    /// # Errors
    ///
    /// As [`Keyset::generate`].
    pub fn add(&mut self, template: Template) -> Result<u32, FormatError> {
        let taken: Vec<u32> = self.entries.key.iter().map(|entry| entry.key_id).collect();
        let key = new_key(template, &taken)?;
        let id = key.id;
        self.entries.key.push(key.entry());
        self.keys.push(key);
        Ok(id)
    }

    /// Makes an enabled key the one that seals.
    ///
    /// # Errors
    ///
    /// [`FormatError::Keyset`] where there is no such key, or it cannot seal.
    pub fn promote(&mut self, id: u32) -> Result<(), FormatError> {
        if self.entry(id)?.status != ENABLED {
            return Err(wrong(format!("key {id} is not enabled")));
        }
        let place = self.keys.iter().position(|key| key.id == id);
        let place = place.ok_or_else(|| wrong(format!("key {id} is of a kind that seals no files")))?;
        self.entries.primary_key_id = id;
        self.keys[..=place].rotate_right(1);
        Ok(())
    }

    /// Takes a key out of use or into use again.
    ///
    /// # Errors
    ///
    /// [`FormatError::Keyset`] where there is no such key, it is the primary one, or it was destroyed.
    pub fn set_enabled(&mut self, id: u32, is_enabled: bool) -> Result<(), FormatError> {
        let entry = self.entry(id)?;
        if ![ENABLED, DISABLED].contains(&entry.status) {
            return Err(wrong(format!("key {id} was destroyed")));
        }
        if id == self.entries.primary_key_id {
            return Err(wrong(format!("key {id} is the primary one: promote another first")));
        }
        let key = if is_enabled { StreamingKey::of_entry(self.entry(id)?)? } else { None };
        for entry in self.entries.key.iter_mut().filter(|entry| entry.key_id == id) {
            entry.status = if is_enabled { ENABLED } else { DISABLED };
        }
        self.keys.retain(|key| key.id != id);
        self.keys.extend(key);
        Ok(())
    }

    fn entry(&self, id: u32) -> Result<&proto::Key, FormatError> {
        let entry = self.entries.key.iter().find(|entry| entry.key_id == id);
        entry.ok_or_else(|| wrong(format!("there is no key {id}")))
    }
}

/// A new key whose id is none of some.
fn new_key(template: Template, taken: &[u32]) -> Result<StreamingKey, FormatError> {
    let mut bytes = Zeroizing::new(vec![0; usize::from(template.key_bytes)]);
    crate::random::fill_random(&mut bytes)?;
    let mut id = [0; 4];
    // Tink takes 0 for "not set".
    while u32::from_ne_bytes(id) == 0 || taken.contains(&u32::from_ne_bytes(id)) {
        crate::random::fill_random(&mut id)?;
    }
    Ok(StreamingKey {
        id: u32::from_ne_bytes(id),
        segment_bytes: template.segment_bytes,
        derived_key_bytes: bytes.len(),
        hash: TinkHash::Sha256,
        cipher: template.cipher,
        bytes,
    })
}

/// What a file holds.
fn read(bytes: &[u8]) -> Result<Document, FormatError> {
    if let Some(json) = json_text(bytes) {
        return json::read(&json);
    }
    let clear = proto::Keyset::decode(bytes).ok().filter(|keyset| keyset.primary_key_id != 0);
    if let Some(keyset) = clear {
        return Ok(Document::Clear(keyset));
    }
    let encrypted = EncryptedKeyset::decode(bytes).ok().filter(|keyset| !keyset.encrypted_keyset.is_empty());
    encrypted
        .map(Document::Encrypted)
        .ok_or_else(|| wrong("neither JSON nor the protobuf of a keyset".into()))
}

/// The keyset in a file that is not encrypted.
fn read_clear(bytes: &[u8]) -> Result<proto::Keyset, FormatError> {
    match read(bytes)? {
        Document::Clear(keyset) => Ok(keyset),
        Document::Encrypted(_) => {
            Err(wrong("it is encrypted (--key-encryption names the keyset that opens it)".into()))
        }
    }
}

/// The file as text where it is JSON: whatever is text and does not begin like protobuf.
fn json_text(bytes: &[u8]) -> Option<Zeroizing<String>> {
    let is_protobuf = matches!(bytes.first(), Some(0x08 | 0x12 | 0x1A));
    if is_protobuf { None } else { decoded(bytes) }
}

fn wrong(fact: String) -> FormatError {
    FormatError::Keyset(fact)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;

    use super::json::BASE64;
    use super::streaming_key::GCM_TYPE_URL as TYPE_URL;
    use super::*;

    /// A keyset as Google's libraries write it: one enabled key of each kind of hash, one disabled, one
    /// destroyed.
    fn key_json(id: u32, status: &str, proto: &[u8]) -> String {
        format!(
            r#"{{"keyData":{{"typeUrl":"{TYPE_URL}","value":"{}","keyMaterialType":"SYMMETRIC"}},
                "status":"{status}","keyId":{id},"outputPrefixType":"RAW"}}"#,
            BASE64.encode(proto)
        )
    }

    fn keyset_json(primary: u32, keys: &[String]) -> String {
        format!(r#"{{"primaryKeyId":{primary},"key":[{}]}}"#, keys.join(","))
    }

    /// The protobuf by hand: params {segment size 4096 (2 bytes of varint), derived size, hash}, key.
    fn proto(derived: u8, hash: u8, key: &[u8]) -> Vec<u8> {
        let mut bytes = vec![
            0x12,
            7,
            0x08,
            0x80,
            0x20,
            0x10,
            derived,
            0x18,
            hash,
            0x1A,
            u8::try_from(key.len()).unwrap(),
        ];
        bytes.extend_from_slice(key);
        bytes
    }

    fn good() -> String {
        key_json(7, "ENABLED", &proto(16, 3, &[5; 17]))
    }

    #[test]
    fn the_fields_of_every_template_are_those_of_tink() {
        for (template, derived, segment) in [
            ("AES128_GCM_HKDF_4KB", 16, 4096),
            ("AES128_GCM_HKDF_1MB", 16, 1 << 20),
            ("AES256_GCM_HKDF_4KB", 32, 4096),
            ("AES256_GCM_HKDF_1MB", 32, 1 << 20),
        ] {
            let keyset = Keyset::generate(template.parse().unwrap()).unwrap();
            let json: serde_json::Value = serde_json::from_slice(&keyset.to_json()).unwrap();
            let key = &json["key"][0];
            assert_eq!(json["primaryKeyId"], key["keyId"]);
            assert_eq!((&key["status"], &key["outputPrefixType"]), (&"ENABLED".into(), &"RAW".into()));
            assert_eq!(key["keyData"]["typeUrl"], TYPE_URL);
            assert_eq!(key["keyData"]["keyMaterialType"], "SYMMETRIC");
            let value = BASE64.decode(key["keyData"]["value"].as_str().unwrap()).unwrap();
            let mut expected = vec![0x12, if segment == 4096 { 7 } else { 8 }, 0x08];
            expected.extend_from_slice(if segment == 4096 { &[0x80, 0x20] } else { &[0x80, 0x80, 0x40] });
            expected.extend_from_slice(&[0x10, derived, 0x18, 3, 0x1A, derived]);
            expected.extend_from_slice(keyset.primary().unwrap().bytes());
            assert_eq!(value, expected, "{template}");
            assert_eq!(keyset.primary().unwrap().bytes().len(), usize::from(derived));
        }
    }

    #[test]
    fn a_generated_keyset_is_read_back_and_no_two_are_alike() {
        let made: Vec<Keyset> = (0..4).map(|_| Keyset::generate(Template::ALL[0]).unwrap()).collect();
        for (i, keyset) in made.iter().enumerate() {
            let read = Keyset::parse(&keyset.to_json()).unwrap();
            let fields = |k: &Keyset| {
                let key = k.primary().unwrap();
                (key.id(), key.segment_bytes(), key.derived_key_bytes(), key.hash(), key.bytes().to_vec())
            };
            assert_eq!(fields(&read), fields(keyset));
            assert!(
                made[..i]
                    .iter()
                    .all(|other| other.primary().unwrap().bytes() != keyset.primary().unwrap().bytes())
            );
        }
    }

    #[test]
    fn enabled_keys_open_the_primary_one_first() {
        let keys = [
            key_json(1, "ENABLED", &proto(16, 1, &[1; 16])),
            key_json(2, "DISABLED", &proto(16, 1, &[2; 16])),
            key_json(3, "ENABLED", &proto(32, 4, &[3; 40])),
            r#"{"status":"DESTROYED","keyId":4,"outputPrefixType":"TINK"}"#.into(),
            key_json(5, "ENABLED", &proto(16, 3, &[5; 16])),
        ];
        let keyset = Keyset::parse(keyset_json(3, &keys).as_bytes()).unwrap();
        let read: Vec<_> = keyset.enabled_keys().map(|k| (k.id(), k.hash(), k.derived_key_bytes())).collect();
        assert_eq!(read, [(3, TinkHash::Sha512, 32), (1, TinkHash::Sha1, 16), (5, TinkHash::Sha256, 16)]);
        assert_eq!(keyset.primary().unwrap().bytes(), [3; 40]);
    }

    #[test]
    fn escaped_text_and_missing_base64_padding_are_read() {
        let json = keyset_json(7, &[good()]);
        assert!(json.contains("=="));
        for variant in [json.replace("==", ""), json.replace("==", r"\u003d\u003d"), json.replace('/', r"\/")]
        {
            assert_eq!(
                Keyset::parse(variant.as_bytes()).unwrap().primary().unwrap().bytes(),
                [5; 17],
                "{variant}"
            );
        }
    }

    #[test]
    fn each_fault_has_its_own_sentence_without_the_key() {
        let with = |proto: &[u8]| keyset_json(7, &[key_json(7, "ENABLED", proto)]);
        let mut version = proto(16, 3, &[5; 16]);
        version.extend_from_slice(&[0x08, 2]);
        let small = [0x12, 6, 0x08, 40, 0x10, 16, 0x18, 3, 0x1A, 1, 9];
        let cases = [
            ("{".to_owned(), "not JSON at line 1, column 1"),
            ("[3]".to_owned(), "not a JSON object"),
            (r#"{"primaryKeyId":-1}"#.to_owned(), "not as in a Tink keyset at line 1, column 19"),
            (keyset_json(7, &[good()]).replace("ENABLED", "SECRET"), "not as in a Tink keyset at line 2"),
            (r#"{"primaryKeyId":1}"#.to_owned(), "it holds no keys"),
            (
                r#"{"encryptedKeyset":"AAAA"}"#.to_owned(),
                "it is encrypted (--key-encryption names the keyset that opens it)",
            ),
            (keyset_json(8, &[good()]), "the primary key 8 is not among its keys"),
            (keyset_json(7, &[good(), good()]), "key id 7 stands there twice"),
            (keyset_json(7, &[good().replace("ENABLED", "DISABLED")]), "the primary key 7 is not enabled"),
            (
                keyset_json(7, &[good()]).replace("Hkdf", "Siv"),
                "key 7 is of type \"AesGcmSivStreamingKey\", not",
            ),
            (keyset_json(7, &[good()]).replace("SYMMETRIC", "REMOTE"), "key 7 is not symmetric key material"),
            (keyset_json(7, &[good()]).replace("==", "=?"), "key 7 is not base64"),
            (with(&[0xFF; 9]), "key 7 is not the protobuf of a streaming key"),
            (with(&version), "key 7 is of version 2, not 0"),
            (with(&proto(24, 3, &[5; 32])), "key 7 derives keys of 24 bytes, not 16 or 32"),
            (with(&proto(32, 3, &[5; 31])), "key 7 is too short: 31 bytes, at least 32 are needed"),
            (with(&small), "key 7 has segments of 40 bytes, at least 41 are needed"),
            (with(&proto(16, 2, &[5; 16])), "key 7 has hash 2, not SHA1, SHA256 or SHA512"),
            (with(&[]), "key 7 derives keys of 0 bytes"),
        ];
        for (json, sentence) in cases {
            let error = Keyset::parse(json.as_bytes()).err().unwrap().to_string();
            assert!(error.starts_with(&format!("keyset: {sentence}")), "{error} | {sentence} | {json}");
            assert!(!error.contains('\n') && !error.contains("BQUF") && !error.contains("SECRET"), "{error}");
        }
        let missing = keyset_json(7, &[good()]).replace("keyData", "other");
        let error = Keyset::parse(missing.as_bytes()).err().unwrap();
        assert_eq!(error.to_string(), "keyset: key 7 has no key data");
    }

    #[test]
    fn a_segment_with_space_for_one_byte_is_the_smallest() {
        let small = [0x12, 6, 0x08, 41, 0x10, 16, 0x18, 3, 0x1A, 16];
        let json = keyset_json(7, &[key_json(7, "ENABLED", &[&small[..], &[9; 16]].concat())]);
        assert_eq!(Keyset::parse(json.as_bytes()).unwrap().primary().unwrap().segment_bytes(), 41);
    }

    #[test]
    fn an_unknown_template_is_answered_with_the_known_ones() {
        let error = "AES512_GCM".parse::<Template>().unwrap_err().to_string();
        assert!(error.contains("AES512_GCM") && error.contains("AES256_GCM_HKDF_1MB"), "{error}");
    }
}
