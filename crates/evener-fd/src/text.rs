//! What messages to people are made of: paths and errors as one line of plain characters.

use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// A text without line ends, in plain characters, and without the system's numbers for what it says in words.
#[must_use]
pub fn one_line(text: &str) -> String {
    plain(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// A text for a terminal: what it quotes tells the terminal nothing, for strangers give names to files and to members of archives. Control
/// characters appear escaped, but for ends of lines and tabs; and the system's numbers are gone.
#[must_use]
pub fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\t' => plain.push(character),
            control if control.is_control() => plain.extend(control.escape_default()),
            _ => plain.push(character),
        }
    }
    without_numbers(&plain)
}

/// A text without ` (os error 28)` and the like: the words before it say the same.
pub(crate) fn without_numbers(text: &str) -> String {
    const NUMBER: &str = " (os error ";
    let (mut rest, mut plain) = (text, String::with_capacity(text.len()));
    while let Some((before, after)) = rest.split_once(NUMBER) {
        plain += before;
        let end = after.find(')').filter(|end| after[..*end].bytes().all(|byte| byte.is_ascii_digit()));
        rest = match end {
            Some(end) => &after[end + 1..],
            None => {
                plain += NUMBER;
                after
            }
        };
    }
    plain + rest
}

/// A path as one line of plain characters: control characters and what is not UTF-8 appear escaped.
pub struct PathDisplay<'p>(pub &'p Path);

impl fmt::Display for PathDisplay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.as_os_str().as_bytes().utf8_chunks() {
            for character in chunk.valid().chars() {
                match character {
                    control if control.is_control() => write!(f, "{}", control.escape_default())?,
                    plain => write!(f, "{plain}")?,
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::io;

    #[test]
    fn a_path_is_shown_on_one_line_whatever_it_holds() {
        let shown = |bytes: &[u8]| PathDisplay(Path::new(OsStr::from_bytes(bytes))).to_string();
        assert_eq!(shown(b"a b/\xc3\xa4"), "a b/ä");
        assert_eq!(shown(b"a\nb\x1b[0m"), "a\\nb\\u{1b}[0m");
        assert_eq!(shown(b"\xffz"), "\\xffz");
    }

    #[test]
    fn nothing_that_a_message_quotes_speaks_to_the_terminal() {
        let text = "a\u{1b}[31mred\u{7}\u{9b}2J \r\n b\tc\u{7f}";
        assert_eq!(plain(text), "a\\u{1b}[31mred\\u{7}\\u{9b}2J \\r\n b\tc\\u{7f}");
        assert_eq!(one_line(text), "a\\u{1b}[31mred\\u{7}\\u{9b}2J b c\\u{7f}");
    }

    #[test]
    fn what_the_system_says_in_words_is_not_said_in_numbers_too() {
        for number in [1, 2, 28] {
            let error = io::Error::from_raw_os_error(number).to_string();
            assert!(error.contains("(os error"), "{error}");
            let words = one_line(&format!("a: {error};\n b: {error}"));
            assert_eq!(words, without_numbers(&words));
            assert!(words.starts_with("a: ") && !words.contains("os error"), "{words}");
        }
        assert_eq!(without_numbers("x (os error y) z (os error 7"), "x (os error y) z (os error 7");
    }
}
