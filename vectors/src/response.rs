//! Reads the response files of NIST's validation programme, and others' files in the same form.
//!
//! One case is a run of lines `Name = value`; an empty line or a `[section]` ends it; `#` starts a comment.

use crate::files::File;
use crate::{Case, Error};

/// The cases of `file`, in its order.
///
/// # Errors
///
/// [`Error`] with file and line of the first thing that is wrong.
pub(crate) fn read(file: &File) -> Result<Vec<Case>, Error> {
    let mut cases = Vec::new();
    let mut open: Option<Draft> = None;
    for (number, line) in file.text.lines().enumerate() {
        let place = Place { file, line: number + 1 };
        match line.trim() {
            comment if comment.starts_with('#') => {}
            end if end.is_empty() || end.starts_with('[') => close(&mut open, &mut cases)?,
            line => open.get_or_insert_with(|| Draft::new(&place)).add(line, &place)?,
        }
    }
    close(&mut open, &mut cases)?;
    Ok(cases)
}

fn close(open: &mut Option<Draft>, cases: &mut Vec<Case>) -> Result<(), Error> {
    if let Some(draft) = open.take() {
        cases.push(draft.finish()?);
    }
    Ok(())
}

struct Place<'a> {
    file: &'a File,
    line: usize,
}

impl Place<'_> {
    fn id(&self) -> String {
        format!("{}.rsp:{}", self.file.name, self.line)
    }
}

/// A case of which some lines have been read.
struct Draft {
    case: Case,
    message_bits: Option<usize>,
}

impl Draft {
    fn new(place: &Place<'_>) -> Self {
        let File { source, algorithm, .. } = *place.file;
        Self { case: Case::empty(source, place.id(), algorithm), message_bits: None }
    }

    fn add(&mut self, line: &str, place: &Place<'_>) -> Result<(), Error> {
        if line == "FAIL" {
            self.case.valid = false;
            return Ok(());
        }
        let (name, value) = line.split_once('=').ok_or_else(|| Error::BadLine { id: place.id() })?;
        let (name, value) = (name.trim(), value.trim());
        let bytes = match name.to_ascii_lowercase().as_str() {
            "count" | "dataunitlen" => return Ok(()),
            "len" => return self.set_length(value, place),
            "result" => return self.set_result(value, place),
            "key" => &mut self.case.key,
            "iv" | "i" => &mut self.case.iv,
            "aad" => &mut self.case.aad,
            "plaintext" | "pt" | "msg" => &mut self.case.plaintext,
            "ciphertext" | "ct" => &mut self.case.ciphertext,
            "tag" | "md" => &mut self.case.tag,
            _ => return Err(Error::UnknownField { id: place.id(), name: name.to_owned() }),
        };
        *bytes = from_hex(value).ok_or_else(|| Error::BadHex { id: place.id() })?;
        Ok(())
    }

    fn set_length(&mut self, value: &str, place: &Place<'_>) -> Result<(), Error> {
        let bits = value.parse().map_err(|_| Error::BadLine { id: place.id() })?;
        self.message_bits = Some(bits);
        Ok(())
    }

    /// OpenSSL's files name the error that is expected; they name nothing where all is well.
    fn set_result(&mut self, value: &str, place: &Place<'_>) -> Result<(), Error> {
        self.case.valid = false;
        let known = value == "CIPHERFINAL_ERROR";
        known.then_some(()).ok_or_else(|| Error::BadLine { id: place.id() })
    }

    fn finish(mut self) -> Result<Case, Error> {
        match self.message_bits {
            // The empty message is written as `Len = 0` and `Msg = 00`.
            Some(0) => self.case.plaintext.clear(),
            Some(bits) if bits != self.case.plaintext.len() * 8 => {
                return Err(Error::Length { id: self.case.id });
            }
            _ => {}
        }
        Ok(self.case)
    }
}

/// The bytes that `digits` stand for, or `None` where it is not hexadecimal.
fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let nibble = |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
    if digits.len() % 2 != 0 {
        return None;
    }
    digits.as_bytes().chunks(2).map(|pair| Some(nibble(pair[0])? << 4 | nibble(pair[1])?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &'static str) -> Result<Vec<Case>, Error> {
        read(&File { source: "a test", name: "planted", algorithm: "MD5", text })
    }

    #[test]
    fn fields_fill_a_case_and_an_empty_line_ends_it() {
        let cases =
            read_text("# head\n[ENCRYPT]\n\nKey = 00ff\n# note\nPT = 0A\n\n[DECRYPT]\nCT = 1b\nFAIL\n")
                .unwrap();
        assert_eq!(cases.len(), 2);
        assert_eq!((cases[0].key.as_slice(), cases[0].plaintext.as_slice()), (&[0, 255][..], &[10][..]));
        assert_eq!(cases[0].id, "planted.rsp:4");
        assert!(cases[0].valid && !cases[1].valid);
        assert_eq!(cases[1].ciphertext, [0x1b]);
    }

    #[test]
    fn the_empty_message_is_empty_although_a_byte_stands_there() {
        assert!(read_text("Len = 0\nMsg = 00\nMD = aa").unwrap()[0].plaintext.is_empty());
    }

    #[test]
    fn a_digit_that_is_none_is_refused_with_its_line() {
        let at = |line: u32| Err(Error::BadHex { id: format!("planted.rsp:{line}") });
        assert_eq!(read_text("Key = 0g"), at(1));
        assert_eq!(read_text("Key = 00\nPT = 123"), at(2));
        assert_eq!(read_text("Key = +1"), at(1));
        assert_eq!(read_text("Key = 0é"), at(1));
    }

    #[test]
    fn other_lines_that_mean_nothing_are_refused() {
        let id = || "planted.rsp:1".to_owned();
        assert_eq!(read_text("OK"), Err(Error::BadLine { id: id() }));
        assert_eq!(read_text("Len = x"), Err(Error::BadLine { id: id() }));
        assert_eq!(read_text("Result = WHATEVER"), Err(Error::BadLine { id: id() }));
        assert_eq!(read_text("Salt = 00"), Err(Error::UnknownField { id: id(), name: "Salt".into() }));
        assert_eq!(read_text("Len = 16\nMsg = 00"), Err(Error::Length { id: id() }));
    }
}
