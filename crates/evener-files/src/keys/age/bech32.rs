//! Bech32 (BIP 173) without its limit of length: how age writes recipients and identities.
//!
//! Text = human-readable part || `1` || data, five bits a character || checksum of six characters.

use zeroize::Zeroizing;

const CHARACTERS: &[u8; 32] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";
const CHECKSUM_LEN: usize = 6;

/// The human-readable part, in lower case, and the data of a text; `None` where it is not Bech32.
pub(super) fn decode(text: &str) -> Option<(String, Zeroizing<Vec<u8>>)> {
    let lower = Zeroizing::new(text.to_ascii_lowercase());
    if *lower != *text && text.to_ascii_uppercase() != *text {
        return None;
    }
    let (prefix, data) = lower.rsplit_once('1')?;
    let is_plain = !prefix.is_empty() && prefix.bytes().all(|byte| (33..=126).contains(&byte));
    let value = |byte: u8| CHARACTERS.iter().position(|&other| other == byte);
    let mut values = Zeroizing::new(Vec::with_capacity(data.len()));
    for byte in data.bytes() {
        values.push(u8::try_from(value(byte)?).ok()?);
    }
    let end = values.len().checked_sub(CHECKSUM_LEN)?;
    if !is_plain || checksum(prefix, &values) != 1 {
        return None;
    }
    Some((prefix.to_owned(), bytes(&values[..end])?))
}

/// The text of some data, in lower case.
pub(super) fn encode(prefix: &str, data: &[u8]) -> Zeroizing<String> {
    let mut values = fives(data);
    let data_len = values.len();
    values.extend_from_slice(&[0; CHECKSUM_LEN]);
    let checksum = checksum(prefix, &values) ^ 1;
    for (place, value) in values[data_len..].iter_mut().enumerate() {
        *value = u8::try_from(checksum >> (5 * (CHECKSUM_LEN - 1 - place)) & 31).expect("five bits");
    }
    let mut text = Zeroizing::new(String::with_capacity(prefix.len() + 1 + values.len()));
    text.push_str(prefix);
    text.push('1');
    text.extend(values.iter().map(|&value| char::from(CHARACTERS[usize::from(value)])));
    text
}

/// Five bits a byte, filled up with zeros at the end.
fn fives(data: &[u8]) -> Zeroizing<Vec<u8>> {
    let (mut values, left, bits) = regrouped(data, 8, 5);
    if bits > 0 {
        values.push(u8::try_from(left << (5 - bits) & 31).expect("five bits"));
    }
    values
}

/// Bytes again; `None` where what is left at the end is a whole character or not zero.
fn bytes(values: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let (data, left, bits) = regrouped(values, 5, 8);
    (bits < 5 && left == 0).then_some(data)
}

/// Values of `from` bits as values of `to` bits; what is left at the end, and how many bits that is. Space is for all from the start, and
/// for a check sum besides, so that no copy is left behind by growing.
fn regrouped(values: &[u8], from: u32, to: u32) -> (Zeroizing<Vec<u8>>, u32, u32) {
    let (mut all, mut left, mut bits) =
        (Zeroizing::new(Vec::with_capacity(values.len() * 8 / 5 + 2 + CHECKSUM_LEN)), 0u32, 0);
    for &value in values {
        left = left << from | u32::from(value);
        bits += from;
        while bits >= to {
            bits -= to;
            all.push(u8::try_from(left >> bits & ((1 << to) - 1)).expect("eight bits at most"));
        }
        left &= (1 << bits) - 1;
    }
    (all, left, bits)
}

/// BIP 173's polynomial over the prefix and the values.
fn checksum(prefix: &str, values: &[u8]) -> u32 {
    const GENERATOR: [u32; 5] = [0x3B6A_57B2, 0x2650_8E6D, 0x1EA1_19FA, 0x3D42_33DD, 0x2A14_62B3];
    let high = prefix.bytes().map(|byte| byte >> 5);
    let low = prefix.bytes().map(|byte| byte & 31);
    let all = high.chain(std::iter::once(0)).chain(low).chain(values.iter().copied());
    all.fold(1, |sum, value| {
        let next = (sum & 0x01FF_FFFF) << 5 ^ u32::from(value);
        let high_bits = (0..5).filter(|bit| sum >> 25 >> bit & 1 == 1);
        high_bits.fold(next, |sum, bit| sum ^ GENERATOR[bit])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_the_standard_are_read_and_written() {
        // BIP 173, test vectors: valid ones, the last with data.
        for (text, prefix, data) in [
            ("A12UEL5L", "a", &[][..]),
            ("?1ezyfcl", "?", &[]),
            ("split1checkupstagehandshakeupstreamerranterredcaperred2y9e3w", "split", &SPLIT),
        ] {
            let (read_prefix, read) = decode(text).unwrap();
            assert_eq!((&*read_prefix, &**read), (prefix, data), "{text}");
            assert_eq!(*encode(prefix, data), text.to_lowercase());
        }
    }

    /// The data of the standard's word chain, from eight bits a byte.
    const SPLIT: [u8; 30] = [
        0xC5, 0xF3, 0x8B, 0x70, 0x30, 0x5F, 0x51, 0x9B, 0xF6, 0x6D, 0x85, 0xFB, 0x6C, 0xF0, 0x30, 0x58, 0xF3,
        0xDD, 0xE4, 0x63, 0xEC, 0xD7, 0x91, 0x8F, 0x2D, 0xC7, 0x43, 0x91, 0x8F, 0x2D,
    ];

    #[test]
    fn texts_that_the_standard_refuses_are_refused() {
        for text in [
            "",
            "1nwldj5",
            "x1b4n0q5v",
            "li1dgmt3",
            "A1G7SGD8",
            "10a06t8",
            "1qzzfhee",
            "a12UEL5L",
            "pzry9x0s0muk",
        ] {
            assert!(decode(text).is_none(), "{text}");
        }
    }
}
