//! A part of a plaintext as text: `START-END`, `START-`, `-LAST` and `START+LENGTH`.

use evener_files::Part;

use crate::terminal::units::parse_bytes;

/// Reads a part; numbers may have the endings of sizes.
pub(super) fn parse(text: &str) -> Result<Part, String> {
    let refused = || format!("{text:?} is no part of a file: 0-499, 1M+64K, 500- or -500");
    let number = |text: &str| parse_bytes(text).map_err(|_| refused());
    if let Some((start, bytes)) = text.split_once('+') {
        return Ok(Part::From { start: number(start)?, bytes: Some(number(bytes)?) });
    }
    match text.split_once('-').ok_or_else(refused)? {
        ("", last) => Ok(Part::Last(number(last)?)),
        (start, "") => Ok(Part::From { start: number(start)?, bytes: None }),
        (start, end) => {
            let (start, end) = (number(start)?, number(end)?);
            // The end belongs to it, as in HTTP.
            let bytes = end.checked_sub(start).and_then(|bytes| bytes.checked_add(1)).ok_or_else(refused)?;
            Ok(Part::From { start, bytes: Some(bytes) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_as_in_http_and_by_length() {
        let from = |start, bytes| Ok(Part::From { start, bytes });
        assert_eq!(parse("0-499"), from(0, Some(500)));
        assert_eq!(parse("7-7"), from(7, Some(1)));
        assert_eq!(parse("500-"), from(500, None));
        assert_eq!(parse("-500"), Ok(Part::Last(500)));
        assert_eq!(parse("1M+64K"), from(1 << 20, Some(64 << 10)));
        for refused in ["", "7", "9-8", "a-b", "-", "+", "1+", "--1"] {
            assert!(parse(refused).is_err(), "{refused}");
        }
    }
}
