//! Tink streaming AEAD against files that Google's Python library (tink 1.16.1) wrote.
#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use common::pattern;
use evener_files::FormatError;
use evener_files::format::tink::Tink;
use evener_files::format::{Opener, Sealer};
use evener_files::keyset::{Keyset, Template};

/// Keysets of one key, bytes 0 to 39, by (derived key bytes, segment bytes, hash); then how many bytes, 0 to
/// n - 1, were encrypted under the associated data "bound", and the file.
const FILES: &[(&str, u8, &str)] = &[
    // 16, 50, SHA1
    (
        "EgYIMhAQGAEaKAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4fICEiIyQlJic=",
        0,
        "1821da0cb1864bc0bda9202adc203ea57a13a966fae32a37c2703e2a8f4b228a857d7c6487c26f00",
    ),
    // 16, 50, SHA256
    (
        "EgYIMhAQGAMaKAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4fICEiIyQlJic=",
        27,
        "18f711bfcf9b990836dfe5dff0e74af1823532fefe697ddc736f5585f42264cba32211360d322eb2ee4f0b3276af5057\
         e6424aba51290af244ac0a22eaecfa4b3efb2b11321fb494c1ffdf2fa06a72ea6ebd8b",
    ),
    // 32, 64, SHA512: first segment with space for 8, later ones for 48
    (
        "EgYIQBAgGAQaKAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4fICEiIyQlJic=",
        30,
        "28c4f516faa08ec7141d237ca01403385096d7aef158db9e47b5309f02691a14f6d9b308f80f5f532f22f47dbb91f76c\
         4605c58690e00d91d30b699d5b999a3b84f3f5504dc2b376100a52ea8137107da13b86370e8bb39a7b874da6bfb7f48f\
         d8df1a067afd",
    ),
    // 32, 80, SHA256
    (
        "EgYIUBAgGAMaKAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4fICEiIyQlJic=",
        8,
        "28b6611080829a8e5c46ea3ab04e1aaea81022b87a4db64ccd38a29af2cbfc7305850bbeddfc0244a73cc216e7b29840\
         c85f95d2d55057e4ee1470edf988041e",
    ),
    // 16, 45, SHA256: first segment with space for 5
    (
        "EgYILRAQGAMaKAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4fICEiIyQlJic=",
        6,
        "18d94044d9e02592470369f03d5bba9f0bff2f56f2c348145d171cf1dfe8652c42c5e82e55c25d7fad5a672cb61a608f\
         a8cf6628f2f369477f9e40606495",
    ),
];

fn keyset(values: &[&str]) -> Keyset {
    let key = |(id, value): (usize, &&str)| {
        format!(
            r#"{{"keyData":{{"typeUrl":"type.googleapis.com/google.crypto.tink.AesGcmHkdfStreamingKey",
                "value":"{value}","keyMaterialType":"SYMMETRIC"}},
                "status":"ENABLED","keyId":{id},"outputPrefixType":"RAW"}}"#
        )
    };
    let keys: Vec<String> = values.iter().enumerate().map(key).collect();
    Keyset::parse(format!(r#"{{"primaryKeyId":0,"key":[{}]}}"#, keys.join(",")).as_bytes()).unwrap()
}

fn opener(values: &[&str], associated_data: &[u8]) -> Opener {
    Opener::Tink(Tink::new(keyset(values), associated_data.to_vec()))
}

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |c: u8| char::from(c).to_digit(16).and_then(|d| u8::try_from(d).ok()).unwrap();
    hex.as_bytes().chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

#[test]
fn files_of_googles_library_are_opened() {
    for (value, count, file) in FILES {
        assert_eq!(
            common::open(&opener(&[value], b"bound"), &bytes(file)),
            Ok((0..*count).collect()),
            "{file}"
        );
    }
}

#[test]
fn any_key_of_a_keyset_opens_whatever_its_place_and_shape() {
    let all: Vec<&str> = FILES.iter().map(|row| row.0).collect();
    for (_, count, file) in FILES {
        let opened = common::open(&opener(&all, b"bound"), &bytes(file));
        assert_eq!(opened, Ok((0..*count).collect()), "{file}");
    }
}

#[test]
fn other_associated_data_opens_nothing() {
    for (value, _, file) in FILES {
        for other in [&b""[..], b"Bound", b"bound "] {
            let opened = common::open(&opener(&[value], other), &bytes(file));
            assert_eq!(opened, Err(FormatError::NotAuthentic { segment: 0 }), "{file}");
        }
    }
}

#[test]
fn what_is_cut_off_swapped_or_appended_is_found() {
    let (value, _, file) = FILES[1];
    let (opener, file) = (opener(&[value], b"bound"), bytes(file));
    for end in 0..file.len() {
        assert!(common::open(&opener, &file[..end]).is_err(), "{end}");
    }
    for place in 0..file.len() {
        let mut flipped = file.clone();
        flipped[place] ^= 1;
        assert!(common::open(&opener, &flipped).is_err(), "{place}");
    }
    assert!(common::open(&opener, &[&file[..], &file[50..]].concat()).is_err());
    assert!(common::open(&opener, &[&file[..], b"x"].concat()).is_err());
}

#[test]
fn headers_that_end_early_or_are_none_have_their_own_sentences() {
    let (opener, file) = (opener(&[FILES[0].0], b""), bytes(FILES[0].2));
    let sentence = |bytes: &[u8]| common::candidates(&opener, bytes).err().map(|error| error.to_string());
    assert_eq!(sentence(b"").unwrap(), "truncated: the file ends after 0 bytes, inside a header");
    assert_eq!(sentence(&file[..23]).unwrap(), "truncated: the file ends after 23 bytes, inside a header");
    assert_eq!(sentence(&file[..24]), None);
    assert_eq!(
        sentence(b"\x19").unwrap(),
        "not in the Tink streaming AEAD format: its first byte is not 24 or 40"
    );
    assert_eq!(sentence(&bytes(FILES[2].2)).unwrap(), "no key fits");
}

#[test]
fn what_is_sealed_is_opened_at_every_border() {
    for value in FILES.iter().map(|row| row.0) {
        let sealer = Sealer::Tink(Tink::new(keyset(&[value]), b"bound".to_vec()));
        for count in 0..200 {
            let file = common::seal(&sealer, &pattern(count));
            assert_eq!(common::open(&opener(&[value], b"bound"), &file), Ok(pattern(count)));
        }
    }
    for &template in Template::ALL {
        let made = Keyset::generate(template).unwrap();
        let read = Keyset::parse(&made.to_json()).unwrap();
        let (sealer, opener) = (Sealer::Tink(Tink::new(made, vec![])), Opener::Tink(Tink::new(read, vec![])));
        let border = usize::try_from(sealer.seal().unwrap().body.cut().full_plain_bytes(0)).unwrap();
        for count in [0, 1, border - 1, border, border + 1] {
            assert_eq!(common::open(&opener, &common::seal(&sealer, &pattern(count))), Ok(pattern(count)));
        }
    }
}

#[test]
fn no_two_files_share_salt_or_nonce_prefix() {
    let sealer = Sealer::Tink(Tink::new(keyset(&[FILES[0].0]), vec![]));
    let headers: Vec<Vec<u8>> = (0..100).map(|_| sealer.seal().unwrap().header).collect();
    for (i, header) in headers.iter().enumerate() {
        assert!(headers[..i].iter().all(|h| h[1..17] != header[1..17] && h[17..24] != header[17..24]));
    }
}
