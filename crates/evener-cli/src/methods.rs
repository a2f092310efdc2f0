//! The method table of this machine, kept between runs in a small text file.
//!
//! [`Methods::load`] -> [`Methods::measure`] what is asked for and not known -> [`Methods::save`]. Nothing
//! here stops a run: a table that cannot be read is measured again, one that cannot be written is used once.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use evener::SystemClock;
use evener::core::method::{NEVER, SIZE_CLASS_BYTES};
use evener::core::{Algorithm, Direction, InlineDriver, MethodTable};

use crate::cache;

/// One row of the table: what is measured at once.
pub(crate) type Row = (Algorithm, Direction);

/// The table of one machine, as far as it is known.
pub(crate) struct Methods {
    /// Processor and drivers that the figures belong to, one line each.
    machine: String,
    /// `None` where no directory is known.
    file: Option<PathBuf>,
    pub(crate) table: MethodTable,
    known: Vec<Row>,
}

impl Methods {
    /// Reads what earlier runs measured on a machine that describes itself by `machine`.
    ///
    /// The second value is a sentence about a file that could not be used.
    pub(crate) fn load(machine: String, directory: Option<&Path>) -> (Self, Option<String>) {
        let file = directory.map(|directory| directory.join(cache::file_name("methods", &machine)));
        let mut methods = Self { machine, file, table: MethodTable::plain_only(), known: Vec::new() };
        let complaint = methods.read().err();
        (methods, complaint)
    }

    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Those of `asked` that were not measured yet.
    pub(crate) fn unknown(&self, asked: &[Row]) -> Vec<Row> {
        asked.iter().filter(|row| !self.known.contains(row)).copied().collect()
    }

    /// Measures `asked`, known or not: 2 to 8 ms for each that both drivers do.
    pub(crate) fn measure(
        &mut self,
        asked: &[Row],
        plain: &mut dyn InlineDriver,
        multi: &mut dyn InlineDriver,
    ) {
        evener::calibrate::measure(plain, multi, asked, &SystemClock, &mut self.table);
        self.known.extend(self.unknown(asked));
    }

    /// Writes the file, whole or not at all.
    pub(crate) fn save(&self) -> io::Result<()> {
        let no_place = || io::Error::new(io::ErrorKind::NotFound, "no directory for caches is known");
        let file = self.file.as_ref().ok_or_else(no_place)?;
        cache::write(file, &self.text(), 0o600)
    }

    fn read(&mut self) -> Result<(), String> {
        let Some(file) = &self.file else { return Ok(()) };
        let about = |fact: &str| format!("{}: {fact}; measuring again", crate::say::Shown(file));
        let text = match fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(about(&error.to_string())),
        };
        let rest = text.strip_prefix(&self.head()).ok_or_else(|| about("is not for this machine"))?;
        let whole = rest.is_empty() || rest.ends_with('\n');
        let lines: Option<Vec<_>> = rest.lines().map(parse_line).collect();
        for ((algorithm, direction), widths) in lines.filter(|_| whole).ok_or_else(|| about("is damaged"))? {
            for (class, width) in widths.into_iter().enumerate() {
                self.table.set_width_min(algorithm, direction, class, width);
            }
            self.known.push((algorithm, direction));
        }
        Ok(())
    }

    fn head(&self) -> String {
        format!(
            "# Evener: from how many jobs on multi-buffer beats plain, by size class; measured, may be deleted\n\
             {}\nclasses {SIZE_CLASS_BYTES:?}\n",
            self.machine.trim_end()
        )
    }

    fn text(&self) -> String {
        let mut text = self.head();
        for &(algorithm, direction) in &self.known {
            write!(text, "{algorithm} {direction}").expect("a String takes everything");
            for class in 0..SIZE_CLASS_BYTES.len() {
                match self.table.width_min(algorithm, direction, class) {
                    NEVER => text.push_str(" -"),
                    width => write!(text, " {width}").expect("a String takes everything"),
                }
            }
            text.push('\n');
        }
        text
    }
}

fn parse_line(line: &str) -> Option<(Row, [u16; SIZE_CLASS_BYTES.len()])> {
    let mut words = line.split(' ');
    let algorithm = words.next()?.parse().ok()?;
    let direction = match words.next()? {
        "encrypt" => Direction::Encrypt,
        "decrypt" => Direction::Decrypt,
        _ => return None,
    };
    let widths: Vec<u16> = words.map(parse_width).collect::<Option<_>>()?;
    Some(((algorithm, direction), widths.try_into().ok()?))
}

fn parse_width(word: &str) -> Option<u16> {
    match word {
        "-" => Some(NEVER),
        number => number.parse().ok().filter(|&width| width > 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{env, process};

    const ROW: Row = (Algorithm::Aes128Cbc, Direction::Encrypt);
    const WIDTHS: [u16; 6] = [1, 2, NEVER, 4, 16, 8];

    fn load(directory: &Path) -> (Methods, Option<String>) {
        Methods::load("processor X\nlibcrypto 3".to_owned(), Some(directory))
    }

    fn saved(name: &str) -> (PathBuf, PathBuf) {
        let directory = env::temp_dir().join(format!("evener-methods-{name}-{}", process::id()));
        let (mut methods, complaint) = load(&directory);
        assert_eq!(complaint, None);
        for (class, width) in WIDTHS.into_iter().enumerate() {
            methods.table.set_width_min(ROW.0, ROW.1, class, width);
        }
        methods.known.push(ROW);
        methods.save().unwrap();
        (methods.file.unwrap(), directory)
    }

    #[test]
    fn what_was_saved_is_known_afterwards_and_nothing_else() {
        let (_, directory) = saved("kept");
        let (methods, complaint) = load(&directory);
        assert_eq!(complaint, None);
        let widths: Vec<u16> = (0..6).map(|class| methods.table.width_min(ROW.0, ROW.1, class)).collect();
        assert_eq!(widths, WIDTHS);
        let other = (Algorithm::Aes128Cbc, Direction::Decrypt);
        assert_eq!(methods.unknown(&[ROW, other]), [other]);
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_file_that_is_not_ours_is_named_and_not_used() {
        let (file, directory) = saved("damaged");
        let text = fs::read_to_string(&file).unwrap();
        let wrong = [
            text.replace("processor X", "processor Y"),
            text.replace("AES-128-CBC", "AES-129-CBC"),
            text.replace("encrypt 1", "encrypt 0"),
            text.replace(" 16 8", " 16"),
            text[..text.len() - 4].to_owned(),
            String::new(),
        ];
        for text in wrong {
            fs::write(&file, &text).unwrap();
            let (methods, complaint) = load(&directory);
            assert!(complaint.is_some_and(|sentence| sentence.contains("measuring again")), "{text}");
            assert_eq!(methods.unknown(&[ROW]), [ROW], "{text}");
        }
        fs::remove_dir_all(directory).unwrap();
    }
}
