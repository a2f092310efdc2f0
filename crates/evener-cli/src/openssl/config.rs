//! OpenSSL's configuration as far as it says which providers work: sections, names and values, files that it includes.
//!
//! Read as `crypto/conf/conf_def.c` does: a section may be opened again, the last of equal names counts and stands last, a
//! backslash continues a line, `#` begins a comment. Variables (`$name`) are left as they stand.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::input_file::{self, TEXT_BYTES_MAX};

/// The sections of a configuration.
#[derive(Debug, Default)]
pub(crate) struct Cnf {
    sections: BTreeMap<String, Vec<(String, String)>>,
}

/// The section of names that stand before the first one.
pub(crate) const TOP: &str = "default";

/// Files that include each other end here.
const DEPTH_MAX: usize = 8;

impl Cnf {
    /// Reads `file` and what it includes. An included file that is not there is left out, as OpenSSL does.
    pub(crate) fn read(file: &Path) -> std::io::Result<Self> {
        let text = input_file::regular(file, TEXT_BYTES_MAX)?;
        let mut cnf = Self::default();
        cnf.add(&String::from_utf8_lossy(&text), 0);
        Ok(cnf)
    }

    /// The value of a name.
    pub(crate) fn value(&self, section: &str, name: &str) -> Option<&str> {
        self.section(section).find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Names and values of a section, in the order in which OpenSSL acts on them.
    pub(crate) fn section(&self, section: &str) -> impl Iterator<Item = (&str, &str)> {
        self.sections.get(section).into_iter().flatten().map(|(name, value)| (&**name, &**value))
    }

    /// The section that a program starts from: OpenSSL's own, or Node's.
    pub(crate) fn start(&self) -> Option<&str> {
        self.value(TOP, "openssl_conf")
    }

    fn add(&mut self, text: &str, depth: usize) {
        let mut section = TOP.to_owned();
        for line in logical_lines(text) {
            let line = line.trim();
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
                name.trim().clone_into(&mut section);
                self.sections.entry(section.clone()).or_default();
            } else if let Some(path) = line.strip_prefix(".include") {
                let path = path.trim_start().trim_start_matches('=').trim();
                self.include(Path::new(path), depth + 1);
            } else if let Some((name, value)) = line.split_once('=').filter(|_| !line.starts_with('.')) {
                let (inside, name) = name.trim().split_once("::").unwrap_or_else(|| (&section, name.trim()));
                self.set(inside.to_owned(), name.to_owned(), unquoted(value.trim()));
            }
        }
    }

    fn set(&mut self, section: String, name: String, value: String) {
        let values = self.sections.entry(section).or_default();
        values.retain(|(known, _)| *known != name);
        values.push((name, value));
    }

    fn include(&mut self, path: &Path, depth: usize) {
        if depth > DEPTH_MAX {
            return;
        }
        let mut files = vec![path.to_owned()];
        if let Ok(entries) = fs::read_dir(path) {
            let is_cnf = |path: &PathBuf| path.extension().is_some_and(|end| end == "cnf" || end == "conf");
            files = entries.filter_map(Result::ok).map(|entry| entry.path()).filter(is_cnf).collect();
            files.sort();
        }
        for file in files {
            if let Ok(text) = input_file::regular(&file, TEXT_BYTES_MAX) {
                self.add(&String::from_utf8_lossy(&text), depth);
            }
        }
    }
}

/// Lines without comments, continued ones joined.
fn logical_lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in text.lines() {
        let line = without_comment(line);
        let (part, continued) = line.strip_suffix('\\').map_or((line, false), |part| (part, true));
        match lines.last_mut().filter(|_| goes_on) {
            Some(last) => last.push_str(part),
            None => lines.push(part.to_owned()),
        }
        goes_on = continued;
    }
    lines
}

fn without_comment(line: &str) -> &str {
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in line.char_indices() {
        match (c, quote) {
            _ if escaped => escaped = false,
            ('\\', _) => escaped = true,
            ('#', None) => return &line[..at],
            ('"' | '\'' | '`', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            _ => {}
        }
    }
    line
}

fn unquoted(value: &str) -> String {
    let inner = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    inner('"').or_else(|| inner('\'')).unwrap_or(value).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_read_as_openssl_reads_them() {
        let mut cnf = Cnf::default();
        cnf.add(
            "openssl_conf = start # begin here\n[ start ]\nproviders = \\\nmine\n[mine]\nb = 1\na = 2\n\
             other::name = \"a # b\"\n[start]\nrandom = r\n[ mine ]\nb = 3\n",
            0,
        );
        assert_eq!(cnf.start(), Some("start"));
        assert_eq!(cnf.section("start").collect::<Vec<_>>(), [("providers", "mine"), ("random", "r")]);
        assert_eq!(cnf.section("mine").collect::<Vec<_>>(), [("a", "2"), ("b", "3")]);
        assert_eq!(cnf.value("other", "name"), Some("a # b"));
        assert_eq!(cnf.section("yours").count(), 0);
    }

    #[test]
    fn a_file_that_includes_itself_ends() {
        let path = std::env::temp_dir().join(format!("evener-cnf-{}", std::process::id()));
        fs::write(&path, format!(".include {0}\n.include = {0}\nhere = yes\n", path.display())).unwrap();
        let cnf = Cnf::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(cnf.value(TOP, "here"), Some("yes"));
    }
}
