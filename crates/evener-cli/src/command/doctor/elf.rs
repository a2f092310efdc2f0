//! What a program's file contains, read without running it: libraries, symbols, well-known texts.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::Context as _;
use object::elf::{DT_NEEDED, DT_RPATH, DT_RUNPATH};
use object::read::elf::{Dyn as _, ElfFile64};
use object::{Endianness, Object as _, ObjectSection as _, ObjectSymbol as _};

use crate::input_file::{self, PROGRAM_BYTES_MAX};

/// A program or library.
pub(super) struct Elf {
    pub(super) path: PathBuf,
    /// Names of the libraries that it needs (DT_NEEDED).
    pub(super) needed: Vec<String>,
    /// Functions that it calls in others.
    pub(super) imports: BTreeSet<String>,
    /// Functions that others may call in it.
    pub(super) exports: BTreeSet<String>,
    pub(super) is_go: bool,
    /// Which of the wanted texts occur in it.
    pub(super) texts: Vec<&'static str>,
    run_path: Vec<PathBuf>,
}

impl Elf {
    /// Reads the file at `path` and looks for `texts` in it.
    pub(super) fn read(path: &Path, texts: &[&'static str]) -> anyhow::Result<Self> {
        let bytes = input_file::regular(path, PROGRAM_BYTES_MAX)?;
        let file = ElfFile64::<Endianness>::parse(&*bytes).context("this is no 64-bit ELF file")?;
        let names = |undefined: bool| {
            let symbols = file.dynamic_symbols().filter(|symbol| symbol.is_undefined() == undefined);
            symbols.filter_map(|symbol| symbol.name().ok().map(str::to_owned)).collect()
        };
        let (needed, run_path) = dynamic(&file, path);
        Ok(Self {
            path: path.to_owned(),
            needed,
            imports: names(true),
            exports: names(false),
            is_go: file.sections().any(|section| section.name() == Ok(".go.buildinfo")),
            texts: texts.iter().copied().filter(|text| contains(&bytes, text.as_bytes())).collect(),
            run_path,
        })
    }

    /// The files behind `needed` and behind theirs, as far as they are found where loaders look.
    pub(super) fn libraries(&self, texts: &[&'static str]) -> Vec<Self> {
        let mut waiting: VecDeque<(String, Vec<PathBuf>)> = self.wanted().collect();
        let (mut visited, mut found) = (BTreeSet::new(), Vec::new());
        while let Some((name, run_path)) = waiting.pop_front() {
            if !visited.insert(name.clone()) {
                continue;
            }
            let places = run_path.into_iter().chain(search_path());
            let Some(file) = places.map(|place| place.join(&name)).find(|file| file.is_file()) else {
                continue;
            };
            if let Ok(library) = Self::read(&file, texts) {
                waiting.extend(library.wanted());
                found.push(library);
            }
        }
        found
    }

    /// Whether it needs a library that loads providers: then what its texts say matters nothing.
    pub(super) fn is_linked_to_openssl(&self) -> bool {
        self.needed.iter().any(|name| ["libcrypto.so.3", "libssl.so.3"].contains(&&**name))
    }

    fn wanted(&self) -> impl Iterator<Item = (String, Vec<PathBuf>)> {
        self.needed.iter().map(|name| (name.clone(), self.run_path.clone()))
    }
}

/// Names of needed libraries, and where the file wants them to be looked for.
fn dynamic(file: &ElfFile64<'_, Endianness>, path: &Path) -> (Vec<String>, Vec<PathBuf>) {
    let (endian, data, sections) = (file.endian(), file.data(), file.elf_section_table());
    let (mut needed, mut run_path) = (Vec::new(), Vec::new());
    let Ok(Some((entries, strings))) = sections.dynamic(endian, data) else { return (needed, run_path) };
    let Ok(strings) = sections.strings(endian, data, strings) else { return (needed, run_path) };
    let origin = path.parent().unwrap_or_else(|| Path::new("/")).display().to_string();
    for entry in entries.iter().filter(|entry| entry.is_string(endian)) {
        let Ok(text) = entry.string(endian, strings) else { continue };
        let text = String::from_utf8_lossy(text).into_owned();
        match entry.tag32(endian) {
            Some(DT_NEEDED) => needed.push(text),
            Some(DT_RPATH | DT_RUNPATH) => {
                let text = text.replace("$ORIGIN", &origin).replace("${ORIGIN}", &origin);
                run_path.extend(text.split(':').map(PathBuf::from));
            }
            _ => {}
        }
    }
    (needed, run_path)
}

/// Where loaders look besides: what the environment names, the directories of ld.so.conf, the usual ones.
pub(super) fn search_path() -> impl Iterator<Item = PathBuf> {
    let set = env::var_os("LD_LIBRARY_PATH").map(|paths| env::split_paths(&paths).collect::<Vec<_>>());
    let mut configured: Vec<PathBuf> = Vec::new();
    let mut files = vec![PathBuf::from("/etc/ld.so.conf")];
    let more = fs::read_dir("/etc/ld.so.conf.d").into_iter().flatten().filter_map(Result::ok);
    files.extend(more.map(|entry| entry.path()));
    for text in files.into_iter().filter_map(|file| fs::read_to_string(file).ok()) {
        configured
            .extend(text.lines().map(str::trim).filter(|line| line.starts_with('/')).map(PathBuf::from));
    }
    let usual = ["/lib64", "/usr/lib64", "/lib", "/usr/lib"].map(PathBuf::from);
    set.unwrap_or_default().into_iter().chain(configured).chain(usual)
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    memchr::memmem::find(bytes, text).is_some()
}
