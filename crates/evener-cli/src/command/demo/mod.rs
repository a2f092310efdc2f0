//! `evener demo`: Evener at work on this machine, beside other programs, and a page with all of it.
//!
//! Steps, each a file that gives a section of the page: `session.rs` (a tree there and back, then in turns with others) -> `program.rs`
//! (OpenSSL's command with the provider) -> `pictures.rs` (this processor; one emulated module) -> `page.rs` (index.html) -> one sentence.
//! Everything is a command that a user could type; `stage.rs` runs it, shows that time passes, and stops it.

mod page;
mod pictures;
mod program;
mod sample;
mod session;
mod stage;

use std::path::PathBuf;

use anyhow::Context as _;
use evener::Cancel;
use evener_fd::atomic_file;
use evener_machine::cpu_load::CpuLoad;
use evener_machine::processor::this_processor;

use self::page::{Part, Section};
use self::stage::{Stage, Step};
use crate::terminal::units::parse_bytes;
use crate::terminal::{Exit, PathDisplay, output, signals};

/// Shows what Evener does on this machine, beside cp, openssl and age.
///
/// Files beside those programs, an OpenSSL program with the provider and without, one emulated module.
/// Says first what it will do, and how long that takes. All of it happens in a new folder inside DIR and in /dev/shm, and is removed; what stays is a page,
/// index.html, with its pictures and the figures as JSON.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  evener demo
  evener demo --size 8M --runs 1 look")]
pub(crate) struct Demo {
    /// Where the page will be.
    #[arg(value_name = "DIR", default_value = "demo")]
    folder: PathBuf,

    /// Bytes of the sample tree.
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = parse_bytes)]
    size: u64,

    /// Turns of each program.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,

    /// `--cell-time` of the `evener bench crypt` that measures for the pictures.
    #[arg(hide_short_help = true, long, value_name = "MS", value_parser = clap::value_parser!(u32).range(1..=600_000))]
    cell_time: Option<u32>,

    /// The provider's file; unless given, evener.so beside this command or in the system's OpenSSL.
    #[arg(long, value_name = "FILE")]
    module: Option<PathBuf>,
}

/// What a step shows.
#[derive(Default)]
struct Shown {
    section: Section,
    /// Its part of the last sentence.
    result: Option<String>,
    /// What could not be shown, and what helps: a sentence each.
    missing: Vec<String>,
}

pub(crate) fn run(arguments: &Demo) -> anyhow::Result<Exit> {
    let cancel = signals::cancel_on_signals()?;
    match show(arguments, &cancel) {
        Err(_) if cancel.is_cancelled() => {
            output::line("stopped; a page is there only from an earlier demo");
            Ok(Exit::Stopped)
        }
        outcome => outcome,
    }
}

fn show(arguments: &Demo, cancel: &Cancel) -> anyhow::Result<Exit> {
    let steps = steps(arguments);
    tell_plan(arguments, &steps)?;
    let stage = Stage::new(&arguments.folder, cancel)?;
    let mut loads = vec![CpuLoad::now()];
    let mut all = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        stage.begin(step, number + 1, steps.len())?;
        all.push((step.does)(&stage, arguments)?);
        loads.push(CpuLoad::now());
    }
    let busy = busy(&loads);
    stage.check()?;
    let page = arguments.folder.join("index.html");
    let text = page::html(&head(arguments, busy.as_deref(), &all), all.iter().map(|shown| &shown.section));
    atomic_file::write(&page, &text, 0o644)
        .with_context(|| format!("cannot write {}", PathDisplay(&page)))?;
    drop(stage);
    let mut last = String::from("\n");
    for line in all.iter().flat_map(|shown| &shown.missing).chain(&busy) {
        last.push_str(&format!("{line}\n"));
    }
    last.push_str(&format!(
        "{}.\nNext: open {}, then type `evener keygen --age me.txt` and `{NEXT}`\n",
        result(&all),
        PathDisplay(&page)
    ));
    output::answer(last.as_bytes())
}

/// What a user types first, for files of their own.
const NEXT: &str = "evener encrypt -i me.txt -o safe FOLDER";

fn steps(arguments: &Demo) -> [Step; 5] {
    let runs = u64::from(arguments.runs);
    [
        Step {
            name: "a tree of files, encrypted, decrypted and compared",
            seconds: 3,
            does: session::there_and_back,
        },
        Step {
            name: "the same tree in turns with cp, openssl and age",
            seconds: 3 + 4 * runs,
            does: session::beside_others,
        },
        Step {
            name: "the command openssl, with the provider evener.so and without",
            seconds: 1 + 4 * runs,
            does: program::with_provider,
        },
        Step {
            name: "AES-128-CBC on this processor, a picture",
            seconds: 3 + runs,
            does: pictures::this_processor,
        },
        Step {
            name: "one crypto module, EMULATED: where jobs go, and a picture",
            seconds: 4 + 2 * runs,
            does: pictures::emulated_module,
        },
    ]
}

fn tell_plan(arguments: &Demo, steps: &[Step]) -> anyhow::Result<()> {
    let seconds: u64 = steps.iter().map(|step| step.seconds).sum();
    let folder = PathDisplay(&arguments.folder);
    // On a disk every output stays to the end of its step.
    let kept = if session::memory_for(arguments).is_some() { 0 } else { 2 * 5 * u64::from(arguments.runs) };
    let megabytes = arguments.size.div_ceil(1_000_000);
    let mut text = format!(
        "Evener on this machine, in about {seconds} s. Nothing is downloaded; {} MB at most are needed meanwhile, and less than 1 MB is kept, in {folder}.\n",
        megabytes.saturating_mul(sample::COPIES_MAX + kept)
    );
    for (number, step) in steps.iter().enumerate() {
        text.push_str(&format!("  {}. {} (about {} s)\n", number + 1, step.name, step.seconds));
    }
    output::answer(text.as_bytes()).map(drop)
}

/// What is said beside the figures where others wanted the cores.
fn busy(loads: &[CpuLoad]) -> Option<String> {
    let most = loads.iter().map(|load| load.others).fold(0.0, f64::max);
    let cores = loads.first()?.cores;
    let is_busy = loads.iter().any(CpuLoad::is_busy);
    is_busy.then(|| {
        format!(
            "This machine was busy: up to {most:.1} threads of others ran beside this on {cores} cores. Figures are lower than on a quiet one, and scatter."
        )
    })
}

fn result(all: &[Shown]) -> String {
    let results: Vec<&str> = all.iter().filter_map(|shown| shown.result.as_deref()).collect();
    format!(
        "Result: {}",
        if results.is_empty() { "every byte came back".to_owned() } else { results.join("; ") }
    )
}

/// The page's first section.
fn head(arguments: &Demo, busy: Option<&str>, all: &[Shown]) -> Section {
    let mut parts = vec![Part::Sentence(format!("{}.", result(all)))];
    parts.push(Part::Sentence(format!(
        "Measured on {}, every program {} times in turns; figures are medians.",
        this_processor().model,
        arguments.runs
    )));
    parts.extend(busy.map(|line| Part::Sentence(line.to_owned())));
    parts.extend(all.iter().flat_map(|shown| &shown.missing).map(|line| Part::Sentence(line.clone())));
    Section { title: "Evener on this machine".to_owned(), parts }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_is_said_and_a_quiet_one_is_not() {
        let load = |others| CpuLoad { cores: 2, others };
        assert_eq!(busy(&[load(0.0), load(0.3)]), None);
        let said = busy(&[load(0.0), load(9.0)]).unwrap_or_default();
        assert!(said.contains("9.0 threads") && said.contains("2 cores"), "{said}");
    }
}
