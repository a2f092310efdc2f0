//! Text of key files, as editors of several systems leave it: with a byte order mark or none, in UTF-8 or UTF-16.

use zeroize::Zeroizing;

/// The text of a file, its byte order mark taken off; `None` where it is none. May be secret, so it is wiped when dropped.
pub(crate) fn decoded(bytes: &[u8]) -> Option<Zeroizing<String>> {
    let (units, big_end_first) = match bytes {
        [0xEF, 0xBB, 0xBF, rest @ ..] => return owned(rest),
        [0xFF, 0xFE, rest @ ..] => (rest, false),
        [0xFE, 0xFF, rest @ ..] => (rest, true),
        _ => return owned(bytes),
    };
    let unit = |pair: &[u8]| {
        let pair = [pair[0], pair[1]];
        if big_end_first { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) }
    };
    // Three bytes of UTF-8 for each unit at most: space for all from the start, so that no copy is left behind.
    let mut text = Zeroizing::new(String::with_capacity(3 * units.len() / 2));
    for character in char::decode_utf16(units.chunks_exact(2).map(unit)) {
        text.push(character.ok()?);
    }
    (units.len() % 2 == 0).then_some(text)
}

fn owned(bytes: &[u8]) -> Option<Zeroizing<String>> {
    std::str::from_utf8(bytes).ok().map(|text| Zeroizing::new(text.to_owned()))
}

/// Lines that say something, with their numbers from 1.
pub(crate) fn entries(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(place, line)| (place + 1, line.trim()));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_text() {
        for bytes in [
            &b"key \xC3\xA4\r\n"[..],
            b"\xEF\xBB\xBFkey \xC3\xA4\r\n",
            b"\xFF\xFEk\0e\0y\0 \0\xE4\0\r\0\n\0",
            b"\xFE\xFF\0k\0e\0y\0 \0\xE4\0\r\0\n",
        ] {
            assert_eq!(decoded(bytes).unwrap().as_str(), "key \u{e4}\r\n");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        for bytes in [&b"\xFF"[..], b"\xFF\xFEk", b"\xFF\xFE\0\xD8"] {
            assert!(decoded(bytes).is_none(), "{bytes:?}");
        }
    }
}
