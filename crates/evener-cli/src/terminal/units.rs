//! Sizes, rates and shares as people write and read them.

/// The papers' sizes in bytes, at which jobs are measured unless others are asked for.
pub(crate) const USUAL_SIZES: &str = "8,16,64,256,1024,4096,8192,16384";

/// Reads a size: a whole number of bytes, or of KiB, MiB or GiB with the letter K, M or G behind it.
///
/// # Errors
///
/// A sentence that says how sizes are written.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        _ => return Err(format!("{text:?} is not a size; write 65536, 64K, 256M or 1G")),
    };
    let whole = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    whole.ok_or_else(|| format!("{text:?} is not a size; write 65536, 64K, 256M or 1G"))
}

/// A size with three digits that count: `512 B`, `1.50 GiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1_024 {
        return format!("{bytes} B");
    }
    let mut size = float(bytes) / 1_024.0;
    let mut unit = 0;
    while size >= 999.5 && unit + 1 < UNITS.len() {
        size /= 1_024.0;
        unit += 1;
    }
    let decimals = if size < 10.0 { 2 } else { usize::from(size < 100.0) };
    format!("{size:.decimals$} {}", UNITS[unit])
}

/// Bytes per second, as a size.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative; `as` saturates")]
pub(crate) fn rate(bytes_done: u64, seconds: f64) -> String {
    format!("{}/s", bytes((float(bytes_done) / seconds.max(1e-9)) as u64))
}

/// A part of a whole in per cent; nothing of nothing is nothing.
pub(crate) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * float(part) / float(whole) }
}

/// A time that has passed, in its greatest unit: `3 minutes`.
pub(crate) fn age(seconds: u64) -> String {
    match seconds {
        0..60 => counted(seconds, "second"),
        60..3_600 => counted(seconds / 60, "minute"),
        3_600..86_400 => counted(seconds / 3_600, "hour"),
        _ => counted(seconds / 86_400, "day"),
    }
}

/// `1 file`, `2 files`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[expect(clippy::cast_precision_loss, reason = "for the eye: 53 bits are plenty")]
const fn float(number: u64) -> f64 {
    number as f64
}

/// A time in the unit that suits it.
#[expect(clippy::cast_precision_loss, reason = "for the eye")]
pub(crate) fn time(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.3} us", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.3} ms", ns as f64 / 1e6),
        _ => format!("{:.3} s", ns as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_and_without_unit() {
        for (text, size) in [("0", 0), ("65536", 65_536), ("64K", 65_536), ("3m", 3 << 20), ("1GiB", 1 << 30)]
        {
            assert_eq!(parse_bytes(text), Ok(size), "{text}");
        }
        for wrong in ["", "M", "-1", "1.5G", "12X", "99999999999G", "1 000"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_are_shown_with_three_digits() {
        let shown = [0, 1_023, 1_024, 1_536, 10_240, 1_023_999, 1_048_576, 3 << 30, u64::MAX].map(bytes);
        let expected = [
            "0 B",
            "1023 B",
            "1.00 KiB",
            "1.50 KiB",
            "10.0 KiB",
            "0.98 MiB",
            "1.00 MiB",
            "3.00 GiB",
            "16384 PiB",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn an_age_is_told_in_its_greatest_unit() {
        let shown = [0, 1, 59, 60, 3_600, 7_199, 7_200, 86_399, 86_400, 864_000].map(age);
        let expected = [
            "0 seconds",
            "1 second",
            "59 seconds",
            "1 minute",
            "1 hour",
            "1 hour",
            "2 hours",
            "23 hours",
            "1 day",
            "10 days",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_share_of_nothing_is_nothing() {
        assert!((percent(0, 0), percent(1, 4)) == (0.0, 25.0));
    }
}
