//! Keysets: what is read, made and refused, beside Tink's own field numbers.

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
    let mut bytes =
        vec![0x12, 7, 0x08, 0x80, 0x20, 0x10, derived, 0x18, hash, 0x1A, u8::try_from(key.len()).unwrap()];
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
    for variant in [json.replace("==", ""), json.replace("==", r"\u003d\u003d"), json.replace('/', r"\/")] {
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
        (keyset_json(7, &[good()]).replace("Hkdf", "Siv"), "key 7 is of type \"AesGcmSivStreamingKey\", not"),
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
