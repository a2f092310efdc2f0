//! `cargo xtask figures`: measures again what README and documents say about speed.
//!
//! Steps of one figure: a row of [`FIGURES`] -> `evener bench …` or `evener sim live …` -> `docs/results/NAME.md` with command, date,
//! machine and versions, `NAME.json.gz`, and for sizes `NAME.svg`. The guest's experiments have names too, and one page for all of them
//! (`papers.rs`); `guest-papers` draws that page again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use super::circumstances::{circumstances, load};
use super::packed::{self, ENDING};
use super::papers;
use crate::programs::{answer, built_evener};
use crate::tree::root;

/// A measurement whose result is kept.
struct Figure {
    name: &'static str,
    title: &'static str,
    /// What `evener` gets.
    words: &'static str,
    /// Whether there is a line over sizes to draw.
    has_picture: bool,
}

const fn drawn(name: &'static str, title: &'static str, words: &'static str) -> Figure {
    Figure { name, title, words, has_picture: true }
}

const fn text_only(name: &'static str, title: &'static str, words: &'static str) -> Figure {
    Figure { name, title, words, has_picture: false }
}

/// Twelve and more runs: the bounds of a median are then no longer its extremes. Decryption is close to its rival, at the
/// bound of the memory that neighbours use too: a visit of one round would leave it to chance, so its visits have ten.
const FIGURES: [Figure; 29] = [
    drawn(
        "aes-128-cbc-encrypt",
        "AES-128-CBC encryption, out of place",
        "bench crypt --algorithm AES-128-CBC --layout out-of-place --runs 15",
    ),
    drawn(
        "aes-128-cbc-encrypt-in-place",
        "AES-128-CBC encryption, in place",
        "bench crypt --algorithm AES-128-CBC --layout in-place --runs 15",
    ),
    drawn(
        "aes-128-cbc-encrypt-cache",
        "AES-128-CBC encryption, in place in the caches",
        "bench crypt --algorithm AES-128-CBC --layout cache --runs 15",
    ),
    drawn(
        "aes-256-cbc-encrypt",
        "AES-256-CBC encryption, out of place",
        "bench crypt --algorithm AES-256-CBC --layout out-of-place --runs 15",
    ),
    drawn(
        "aes-256-cbc-encrypt-in-place",
        "AES-256-CBC encryption, in place",
        "bench crypt --algorithm AES-256-CBC --layout in-place --runs 15",
    ),
    drawn(
        "aes-256-cbc-encrypt-cache",
        "AES-256-CBC encryption, in place in the caches",
        "bench crypt --algorithm AES-256-CBC --layout cache --runs 15",
    ),
    drawn(
        "aes-128-cbc-decrypt",
        "AES-128-CBC decryption, out of place",
        "bench crypt --algorithm AES-128-CBC --direction decrypt \
         --layout out-of-place --runs 15 --cell-time 900",
    ),
    text_only(
        "log-normal-encrypt",
        "AES-128-CBC encryption of log-normal sizes, 64 B to 1 MiB",
        "bench crypt --algorithm AES-128-CBC --mix lognormal --runs 15",
    ),
    text_only(
        "log-normal-encrypt-in-place",
        "AES-128-CBC encryption of log-normal sizes, 64 B to 1 MiB, in place",
        "bench crypt --algorithm AES-128-CBC --mix lognormal --layout in-place --runs 15",
    ),
    text_only(
        "log-normal-decrypt",
        "AES-128-CBC decryption of log-normal sizes, 64 B to 1 MiB",
        "bench crypt --algorithm AES-128-CBC --direction decrypt --mix lognormal --runs 15 --cell-time 900",
    ),
    text_only(
        "aes-256-gcm-encrypt-segments",
        "AES-256-GCM encryption of 1 MiB segments, in place",
        "bench crypt --algorithm AES-256-GCM --sizes 1M --count 200 --layout in-place --runs 15",
    ),
    text_only(
        "aes-256-gcm-decrypt-segments",
        "AES-256-GCM decryption of 1 MiB segments, in place",
        "bench crypt --algorithm AES-256-GCM --direction decrypt --sizes 1M --count 200 \
         --layout in-place --runs 15",
    ),
    drawn("sha-256", "SHA-256", "bench crypt --algorithm SHA-256 --sizes 64,256,1024,4096,16384 --runs 15"),
    text_only(
        "sha-256-one-core",
        "SHA-256 of 4 KiB messages, one core",
        "bench crypt --algorithm SHA-256 --sizes 4096 --workers 1 --runs 15",
    ),
    text_only(
        "large-file-memory",
        "One file of 1 GiB in memory",
        "bench files --dir /dev/shm --size 1G --files 0 --runs 12",
    ),
    text_only(
        "tree-memory",
        "4000 files of 16 KiB in memory",
        "bench files --dir /dev/shm --size 0 --files 4000 --file-size 16K --runs 12",
    ),
    text_only(
        "large-file-disk",
        "One file of 1 GiB on disk",
        "bench files --dir target --size 1G --files 0 --runs 12",
    ),
    text_only(
        "tree-disk",
        "4000 files of 16 KiB on disk",
        "bench files --dir target --size 0 --files 4000 --file-size 16K --runs 12",
    ),
    text_only(
        "adaptive-alone-aes-128-cbc",
        "The adaptive policy and others without a module, AES-128-CBC",
        "bench crypt --algorithm AES-128-CBC --layout in-place \
         --policies cpu_only,shared_queue,adaptive --runs 31 --cell-time 600",
    ),
    text_only(
        "adaptive-alone-aes-256-gcm",
        "The adaptive policy and others without a module, AES-256-GCM",
        "bench crypt --algorithm AES-256-GCM --layout in-place \
         --policies cpu_only,shared_queue,adaptive --runs 31 --cell-time 600",
    ),
    text_only(
        "adaptive-alone-sha-256",
        "The adaptive policy and others without a module, SHA-256",
        "bench crypt --algorithm SHA-256 --policies cpu_only,shared_queue,adaptive --runs 31 --cell-time 600",
    ),
    text_only(
        "adaptive-slow-module-aes-128-cbc",
        "The adaptive policy beside a module that is too slow, EMULATED, AES-128-CBC",
        "bench crypt --algorithm AES-128-CBC --layout in-place \
         --policies cpu_only,shared_queue,adaptive --runs 31 --cell-time 600 --module emulated:am3358",
    ),
    text_only(
        "adaptive-slow-module-aes-256-gcm",
        "The adaptive policy beside a module that is too slow, EMULATED, AES-256-GCM",
        "bench crypt --algorithm AES-256-GCM --layout in-place \
         --policies cpu_only,shared_queue,adaptive --runs 31 --cell-time 600 --module emulated:am3358",
    ),
    text_only(
        "adaptive-slow-module-sha-256",
        "The adaptive policy beside a module that is too slow, EMULATED, SHA-256",
        "bench crypt --algorithm SHA-256 \
         --policies cpu_only,shared_queue,adaptive --runs 31 --cell-time 600 --module emulated:am3358",
    ),
    text_only(
        "adaptive-one-by-one",
        "The adaptive policy and single requests beside a module that is too slow, EMULATED",
        "bench crypt --layout in-place \
         --policies cpu_only,adaptive --one-by-one --runs 31 --cell-time 600 --module emulated:am3358",
    ),
    text_only(
        "adaptive-helping-module",
        "The adaptive policy beside a module that helps, EMULATED: module and processor of the AM3358",
        "bench crypt --algorithm AES-128-CBC --module emulated:am3358 --cpu-cost emulated:am3358 --workers 1 \
         --policies round_robin,shared_queue,adaptive --runs 11",
    ),
    drawn(
        "emulated-am3358",
        "Paper 002's experiment, EMULATED: module and processor of the AM3358",
        "bench crypt --algorithm AES-128-CBC --module emulated:am3358 --cpu-cost emulated:am3358 --workers 1 \
         --policies cpu_only,module_only,round_robin,polling,shared_queue,adaptive --runs 11",
    ),
    text_only(
        "live-am3358",
        "The simulator beside paper 002's experiment, EMULATED: module and processor of the AM3358",
        "sim live --algorithm AES-128-CBC --module emulated:am3358 --cpu-cost emulated:am3358 --workers 1 \
         --count 1200 --runs 3",
    ),
    drawn(
        "emulated-cell",
        "Paper 004's module, EMULATED: six units of the Cell/B.E.",
        "bench crypt --algorithm AES-128-CBC --module emulated:cell --cpu-cost emulated:cell --workers 1 \
         --policies cpu_only,module_only,round_robin,polling,shared_queue,adaptive --runs 3",
    ),
];

/// What says how quick kernels of our own are, all of it by one name.
const LANES: (&str, [&str; 5]) = (
    "lanes",
    [
        "aes-128-cbc-encrypt-in-place",
        "aes-256-cbc-encrypt-in-place",
        "aes-128-cbc-encrypt",
        "sha-256",
        "sha-256-one-core",
    ],
);

/// The page that is simulated: the same on every machine, so a test of the command compares it.
const PAPERS: &str = "papers";

/// Writes the papers' tables beside the simulator's, as text and pictures.
fn simulate() -> Result<(), String> {
    let folder = root().join("docs/results");
    let mut command = Command::new(built_evener()?);
    command.args(["sim", "papers", "--svg"]).arg(folder.join(PAPERS));
    let path = folder.join(PAPERS).with_extension("txt");
    fs::write(&path, answer(command)?).map_err(|error| format!("{}: {error}", path.display()))
}

/// The page of the guest's experiments.
const GUEST: &str = "guest-papers";

/// Measures the figures named, all where none is.
pub(crate) fn run(names: &[&str]) -> ExitCode {
    let (group, of_group) = LANES;
    let names: Vec<&str> =
        names.iter().flat_map(|name| if *name == group { of_group.to_vec() } else { vec![*name] }).collect();
    let names = &names[..];
    let own = || FIGURES.iter().map(|figure| figure.name).chain([PAPERS, GUEST, group]).map(str::to_owned);
    let known = || own().chain(papers::names());
    if let Some(unknown) = names.iter().find(|name| !known().any(|known| known == **name)) {
        eprintln!("figures: there is no {unknown:?}; there are {}", known().collect::<Vec<_>>().join(", "));
        return ExitCode::from(2);
    }
    let done = if names.is_empty() { make_all() } else { make(names) };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("figures: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn make_all() -> Result<(), String> {
    simulate()?;
    measure(FIGURES.iter())?;
    papers::make(&[])
}

fn make(names: &[&str]) -> Result<(), String> {
    if names.contains(&PAPERS) {
        simulate()?;
    }
    measure(FIGURES.iter().filter(|figure| names.contains(&figure.name)))?;
    let is_of_guest = |name: &&str| papers::names().any(|known| known == *name);
    let of_guest: Vec<&str> = names.iter().copied().filter(is_of_guest).collect();
    match (of_guest.is_empty(), names.contains(&GUEST)) {
        (false, _) => papers::make(&of_guest),
        (true, true) => papers::draw(),
        (true, false) => Ok(()),
    }
}

fn measure<'f>(figures: impl Iterator<Item = &'f Figure>) -> Result<(), String> {
    let mut figures = figures.peekable();
    if figures.peek().is_none() {
        return Ok(());
    }
    let evener = built_evener()?;
    let folder = root().join("docs/results");
    // `target` stands for "on disk" in the list above, wherever cargo builds.
    for needed in [&folder, &root().join("target")] {
        fs::create_dir_all(needed).map_err(|error| error.to_string())?;
    }
    for figure in figures {
        println!("== {}", figure.title);
        let load_before = load();
        let text = figure.measure(&evener, &folder)?;
        print!("{text}");
        packed::pack(&figure.file(&folder, "json"))?;
        let page = figure.page(&text, &circumstances(&evener, &load_before)?);
        let path = folder.join(figure.name).with_extension("md");
        fs::write(&path, page).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

impl Figure {
    fn measure(&self, evener: &Path, folder: &Path) -> Result<String, String> {
        let mut command = Command::new(evener);
        command.current_dir(root()).args(self.words.split_whitespace());
        command.arg("--json").arg(self.file(folder, "json"));
        if self.has_picture {
            command.arg("--svg").arg(self.file(folder, "svg"));
        }
        answer(command)
    }

    fn file(&self, folder: &Path, kind: &str) -> PathBuf {
        folder.join(self.name).with_extension(kind)
    }

    fn page(&self, text: &str, circumstances: &str) -> String {
        let Self { name, title, .. } = self;
        let words = self.words.split_whitespace().collect::<Vec<_>>().join(" ");
        let picture = if self.has_picture { format!("![{title}]({name}.svg)\n\n") } else { String::new() };
        format!(
            "# {title}\n\n{picture}```\n$ evener {words}\n{text}```\n\n{circumstances}\nNumbers: \
             [{name}.{ENDING}]({name}.{ENDING}). Again: `cargo xtask figures {name}`.\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_has_a_name_of_its_own_and_says_so_where_it_is_emulated() {
        let names: std::collections::BTreeSet<_> = FIGURES.iter().map(|figure| figure.name).collect();
        assert_eq!(names.len(), FIGURES.len());
        assert!(LANES.1.iter().all(|name| names.contains(name)));
        for figure in FIGURES {
            assert_eq!(
                figure.words.contains("emulated:"),
                figure.title.contains("EMULATED"),
                "{}",
                figure.name
            );
        }
    }

    #[test]
    fn a_page_shows_command_result_and_circumstances() {
        let page = drawn("a", "Title", "bench crypt  --runs 1").page("1 ms\n", "- date: today\n");
        for part in [
            "# Title",
            "![Title](a.svg)",
            "$ evener bench crypt --runs 1\n1 ms\n```",
            "- date",
            "(a.json.gz)",
        ] {
            assert!(page.contains(part), "{part:?} in\n{page}");
        }
        assert!(!text_only("a", "Title", "bench").page("", "").contains("svg"));
    }
}
