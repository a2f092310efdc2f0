//! What a program needs to start in the guest: its loader, its shared libraries and theirs.
//!
//! Files are read, not run, so it works for other processors too. What is opened at run time (`dlopen`) is not seen here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, str};

use object::elf::{DT_NEEDED, FileHeader32, FileHeader64, PT_INTERP};
use object::read::elf::{Dyn as _, ElfFile, FileHeader, ProgramHeader as _};
use object::{Endianness, FileKind};

use crate::error::{Error, at};

/// Files of the host by the paths that they get in the guest.
#[derive(Debug, Default)]
pub(crate) struct Needed(pub(crate) BTreeMap<String, PathBuf>);

impl Needed {
    /// Adds what the ELF file at `program` needs; nothing where it is another kind of file, as a script.
    ///
    /// Libraries are searched in `folders` below `root` and go into the first of them.
    ///
    /// # Errors
    ///
    /// [`Error::NoLibrary`], or [`Error::Io`] where a file cannot be read.
    pub(crate) fn add(&mut self, program: &Path, root: &Path, folders: &[&str]) -> Result<(), Error> {
        let bytes = fs::read(program).map_err(|error| at(program, error))?;
        let Some(needs) = needs(&bytes) else { return Ok(()) };
        let below = |path: &str| root.join(path.trim_start_matches('/'));
        if let Some(loader) = needs.loader {
            let source = below(&loader);
            self.0.insert(loader, source);
        }
        for name in needs.libraries {
            let path = format!("{}/{name}", folders[0]);
            if self.0.contains_key(&path) {
                continue;
            }
            let places = folders.iter().map(|folder| below(folder).join(&name));
            let found = places.into_iter().find(|file| file.is_file());
            let library = found.ok_or_else(|| Error::NoLibrary {
                program: program.display().to_string(),
                library: name,
                searched: folders.iter().map(|&folder| folder.to_owned()).collect(),
            })?;
            self.0.insert(path, library.clone());
            self.add(&library, root, folders)?;
        }
        Ok(())
    }
}

/// What one ELF file needs.
#[derive(Debug, PartialEq, Eq)]
struct Needs {
    loader: Option<String>,
    libraries: Vec<String>,
}

fn needs(bytes: &[u8]) -> Option<Needs> {
    match FileKind::parse(bytes).ok()? {
        FileKind::Elf32 => needs_by::<FileHeader32<Endianness>>(bytes),
        FileKind::Elf64 => needs_by::<FileHeader64<Endianness>>(bytes),
        _ => None,
    }
}

fn needs_by<Header: FileHeader<Endian = Endianness>>(bytes: &[u8]) -> Option<Needs> {
    let file = ElfFile::<'_, Header>::parse(bytes).ok()?;
    let (endian, sections) = (file.endian(), file.elf_section_table());
    let interpreter = file.elf_program_headers().iter().find(|part| part.p_type(endian) == PT_INTERP);
    let loader = interpreter.and_then(|part| part.data(endian, bytes).ok());
    let loader = loader.and_then(|text| str::from_utf8(text.strip_suffix(b"\0")?).ok()).map(str::to_owned);
    let mut libraries = Vec::new();
    if let Some((entries, strings)) = sections.dynamic(endian, bytes).ok()? {
        let strings = sections.strings(endian, bytes, strings).ok()?;
        for entry in entries.iter().filter(|entry| entry.tag32(endian) == Some(DT_NEEDED)) {
            libraries.push(String::from_utf8_lossy(entry.string(endian, strings).ok()?).into_owned());
        }
    }
    Some(Needs { loader, libraries })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::process::Command;

    use crate::profile::Profile;

    #[test]
    fn the_same_libraries_are_found_as_the_loader_finds() {
        let program = std::env::current_exe().unwrap();
        let Ok(output) = Command::new("ldd").arg(&program).output() else {
            return println!("skipped: no ldd here");
        };
        let listing = String::from_utf8(output.stdout).unwrap();
        let words = listing.lines().filter_map(|line| line.split_whitespace().next());
        let name = |path: &str| path.rsplit('/').next().map(str::to_owned);
        let expected: BTreeSet<String> =
            words.filter(|name| !name.starts_with("linux-vdso")).filter_map(name).collect();
        let mut needed = Needed::default();
        needed.add(&program, Path::new("/"), Profile::X86_64.facts().library_folders).unwrap();
        let found: BTreeSet<String> = needed.0.keys().filter_map(|path| name(path)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_script_needs_nothing() {
        assert_eq!(needs(b"#!/bin/sh\nexit 0\n"), None);
    }
}
