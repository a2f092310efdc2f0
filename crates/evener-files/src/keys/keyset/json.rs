//! Keysets as JSON, in every form that proto3's mapping allows: names in either style, numbers as text, enums by number, bytes in either
//! alphabet of base64, null for what is not there.

use std::fmt;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::de::{Error as _, IgnoredAny, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use zeroize::{Zeroize as _, Zeroizing};

use super::proto::{
    EncryptedKeyset, Key, KeyData, KeyInfo, Keyset, KeysetInfo, MATERIAL, Names, PREFIX, STATUS, name_of,
};
use super::wrong;
use crate::error::FormatError;

/// What a JSON document is.
pub(super) enum Document {
    Clear(Keyset),
    Encrypted(EncryptedKeyset),
}

/// Reads a document. What stands in `json` is secret; no error repeats it.
pub(super) fn read(json: &str) -> Result<Document, FormatError> {
    // The derived code would take a list for an object.
    if !json.trim_start().starts_with('{') {
        return Err(wrong("not a JSON object".into()));
    }
    let document: KeysetText = serde_json::from_str(json).map_err(|error| malformed_json(&error))?;
    if let Some(encrypted) = document.encrypted_keyset.0 {
        let encrypted_keyset =
            bytes(&encrypted).ok_or_else(|| wrong("its encrypted part is not base64".into()))?;
        return Ok(Document::Encrypted(EncryptedKeyset { encrypted_keyset, keyset_info: None }));
    }
    let keys = document.key.0.unwrap_or_default().into_iter().map(KeyText::into_key);
    Ok(Document::Clear(Keyset {
        primary_key_id: document.primary_key_id.0,
        key: keys.collect::<Result<_, _>>()?,
    }))
}

/// A cleartext keyset as Tink writes it.
pub(super) fn written(keyset: &Keyset) -> Zeroizing<Vec<u8>> {
    let document = ClearOut {
        primary_key_id: keyset.primary_key_id,
        key: keyset.key.iter().map(KeyOut::of_key).collect(),
    };
    // Space for all of it from the start, so that no copy is left behind by growing.
    pretty(&document, 1024 * (1 + keyset.key.len()))
}

/// An encrypted keyset as Tink writes it.
pub(super) fn written_encrypted(keyset: &EncryptedKeyset) -> Zeroizing<Vec<u8>> {
    let info = keyset.keyset_info.clone().unwrap_or_default();
    let document = EncryptedOut {
        encrypted_keyset: BASE64.encode(&keyset.encrypted_keyset),
        keyset_info: InfoOut {
            primary_key_id: info.primary_key_id,
            key_info: info.key_info.iter().map(KeyInfoOut::of).collect(),
        },
    };
    pretty(&document, 1024)
}

fn pretty(document: &impl Serialize, space: usize) -> Zeroizing<Vec<u8>> {
    let mut json = Zeroizing::new(Vec::with_capacity(space));
    serde_json::to_writer_pretty(&mut *json, document).expect("plain strings and numbers");
    json.push(b'\n');
    json
}

// ---- in

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct KeysetText {
    #[serde(default, alias = "encrypted_keyset")]
    encrypted_keyset: Nullable<Secret>,
    #[serde(default, alias = "keyset_info", rename = "keysetInfo")]
    _keyset_info: Nullable<IgnoredAny>,
    #[serde(default, alias = "primary_key_id")]
    primary_key_id: Number,
    #[serde(default)]
    key: Nullable<Vec<KeyText>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct KeyText {
    #[serde(default, alias = "key_data")]
    key_data: Nullable<DataText>,
    #[serde(default)]
    status: Status,
    #[serde(default, alias = "key_id")]
    key_id: Number,
    #[serde(default, alias = "output_prefix_type")]
    output_prefix_type: Prefix,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DataText {
    #[serde(default, alias = "type_url")]
    type_url: Nullable<String>,
    #[serde(default)]
    value: Nullable<Secret>,
    #[serde(default, alias = "key_material_type")]
    key_material_type: Material,
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

impl KeyText {
    fn into_key(self) -> Result<Key, FormatError> {
        let id = self.key_id.0;
        let data = match self.key_data.0 {
            None => None,
            Some(data) => {
                let value = match data.value.0 {
                    Some(text) => bytes(&text).ok_or_else(|| wrong(format!("key {id} is not base64")))?,
                    None => Vec::new(),
                };
                let type_url = data.type_url.0.unwrap_or_default();
                Some(KeyData { type_url, value, key_material_type: data.key_material_type.0 })
            }
        };
        Ok(Key {
            key_data: data,
            status: self.status.0,
            key_id: id,
            output_prefix_type: self.output_prefix_type.0,
        })
    }
}

/// What may be null, which means that it is not there.
struct Nullable<T>(Option<T>);

impl<T> Default for Nullable<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Nullable<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Option::deserialize(from).map(Self)
    }
}

/// A number of 32 bits: as number, as text, with an exponent as long as it is whole; null is 0.
#[derive(Clone, Copy, Default)]
struct Number(u32);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(AnyNumber(&[])).and_then(|number| {
            let number = u32::try_from(number).map_err(|_| D::Error::custom("no number of 32 bits"))?;
            Ok(Self(number))
        })
    }
}

/// A value of an enum: its name, or its number in any form; null is 0.
macro_rules! enums {
    ($($name:ident: $names:ident;)*) => {$(
        #[derive(Clone, Copy, Default)]
        struct $name(i32);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let number = from.deserialize_any(AnyNumber($names))?;
                i32::try_from(number).map(Self).map_err(|_| D::Error::custom("no number of an enum"))
            }
        }
    )*};
}

enums! {
    Status: STATUS;
    Prefix: PREFIX;
    Material: MATERIAL;
}

/// A number in any form, or one of some names for one.
struct AnyNumber(&'static Names);

impl Visitor<'_> for AnyNumber {
    type Value = i64;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a number")
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<i64, E> {
        i64::try_from(number).map_err(|_| E::invalid_value(Unexpected::Other("a large number"), &self))
    }

    fn visit_i64<E>(self, number: i64) -> Result<i64, E> {
        Ok(number)
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<i64, E> {
        let is_whole = number.fract() == 0.0 && number.abs() <= f64::from(u32::MAX);
        // Whole and of 33 bits at most, so that nothing is lost by way of text.
        let whole = is_whole.then(|| format!("{number:.0}").parse().ok()).flatten();
        whole.ok_or_else(|| E::invalid_value(Unexpected::Other("a fraction"), &self))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<i64, E> {
        if let Some((number, _)) = self.0.iter().find(|row| row.1 == text) {
            return Ok((*number).into());
        }
        if let Ok(number) = text.parse::<i64>() {
            return Ok(number);
        }
        let number = text.parse::<f64>().ok().filter(|_| text.starts_with(|c: char| c.is_ascii_digit()));
        match number {
            Some(number) => self.visit_f64(number),
            None => Err(E::invalid_value(Unexpected::Other("other text"), &self)),
        }
    }

    fn visit_unit<E>(self) -> Result<i64, E> {
        Ok(0)
    }
}

fn bytes(text: &Secret) -> Option<Vec<u8>> {
    BASE64.decode(&text.0).or_else(|_| BASE64_URL.decode(&text.0)).ok()
}

/// Position only: serde's own texts may repeat what stands in the file.
fn malformed_json(error: &serde_json::Error) -> FormatError {
    let category = match error.classify() {
        serde_json::error::Category::Data => "not as in a Tink keyset",
        _ => "not JSON",
    };
    wrong(format!("{category} at line {}, column {}", error.line(), error.column()))
}

const ANY_PADDING: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
/// Written with padding, as Tink does; read with or without.
pub(super) const BASE64: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, ANY_PADDING);
const BASE64_URL: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, ANY_PADDING);

// ---- out

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ClearOut {
    primary_key_id: u32,
    key: Vec<KeyOut>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct KeyOut {
    #[serde(skip_serializing_if = "Option::is_none")]
    key_data: Option<DataOut>,
    status: &'static str,
    key_id: u32,
    output_prefix_type: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DataOut {
    type_url: String,
    value: Secret,
    key_material_type: &'static str,
}

impl KeyOut {
    fn of_key(key: &Key) -> Self {
        let data = key.key_data.as_ref().map(|data| DataOut {
            type_url: data.type_url.clone(),
            value: Secret(BASE64.encode(&data.value)),
            key_material_type: name_of(MATERIAL, data.key_material_type),
        });
        Self {
            key_data: data,
            status: name_of(STATUS, key.status),
            key_id: key.key_id,
            output_prefix_type: name_of(PREFIX, key.output_prefix_type),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EncryptedOut {
    encrypted_keyset: String,
    keyset_info: InfoOut,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InfoOut {
    primary_key_id: u32,
    key_info: Vec<KeyInfoOut>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct KeyInfoOut {
    type_url: String,
    status: &'static str,
    key_id: u32,
    output_prefix_type: &'static str,
}

impl KeyInfoOut {
    fn of(info: &KeyInfo) -> Self {
        Self {
            type_url: info.type_url.clone(),
            status: name_of(STATUS, info.status),
            key_id: info.key_id,
            output_prefix_type: name_of(PREFIX, info.output_prefix_type),
        }
    }
}

/// What may be told of a keyset that is encrypted.
pub(super) fn info(keyset: &Keyset) -> KeysetInfo {
    let one = |key: &Key| KeyInfo {
        type_url: key.key_data.as_ref().map(|data| data.type_url.clone()).unwrap_or_default(),
        status: key.status,
        key_id: key.key_id,
        output_prefix_type: key.output_prefix_type,
    };
    KeysetInfo { primary_key_id: keyset.primary_key_id, key_info: keyset.key.iter().map(one).collect() }
}
