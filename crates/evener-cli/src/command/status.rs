//! `evener status`: what the provider counts in this user's programs, while they run.
//!
//! Steps: statistics files of this user, or of one process -> [`Process`], as it stands in the JSON -> [`text`].

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::bail;
use evener::core::statistics::{Count, Row};
use evener::statistics::{
    DIRECTORY_VARIABLE, Directories, Record, RecordError, Totals, of_process, of_user, remove_ended,
};
use serde::Serialize;

use crate::terminal::{
    Exit, output,
    units::{self, counted, percent},
};

/// Shows what Evener's OpenSSL provider did in programs of this user that run, or of one process.
///
/// One line for each algorithm and direction: requests, bytes, and which way they went: direct (OpenSSL's own code where it
/// stood), combined (side by side with those of other threads), split (over several cores), routed (to a module). A program
/// that has ended is shown once more, and its file is removed then.
#[derive(clap::Args)]
#[command(after_help = "\
The counts lie in $XDG_RUNTIME_DIR/evener, /run/user/UID/evener or /tmp/evener-UID, one file for each process
(docs/statistics.md). A program in which the provider has done nothing yet has none.")]
pub(crate) struct Status {
    /// This process only, of whichever user its files may be read.
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,

    /// A line for each size class too.
    #[arg(long)]
    sizes: bool,

    /// Prints JSON (docs/status.schema.json), all size classes apart.
    #[arg(long)]
    json: bool,
}

/// What one process counted.
#[derive(Serialize)]
struct Process {
    pid: u32,
    name: String,
    ended: bool,
    classes: Vec<Class>,
    #[serde(skip)]
    rows: Vec<(Row, Totals)>,
}

#[derive(Serialize)]
struct Class {
    algorithm: &'static str,
    direction: String,
    /// Greatest size that belongs to it; null in the last class.
    bytes_max: Option<usize>,
    requests: u64,
    bytes: u64,
    direct: u64,
    combined: u64,
    split: u64,
    routed: u64,
    taken_back: u64,
    failed_and_redone: u64,
    locked_by_the_guard: u64,
}

/// A file that cannot be told.
#[derive(Serialize)]
struct Unreadable {
    pid: u32,
    reason: String,
}

#[derive(Serialize)]
struct StatusView {
    version: &'static str,
    processes: Vec<Process>,
    unreadable: Vec<Unreadable>,
}

pub(crate) fn run(arguments: &Status) -> anyhow::Result<Exit> {
    let places = Directories::from_environment(DIRECTORY_VARIABLE);
    let uid = rustix::process::geteuid().as_raw();
    let found = match arguments.pid {
        None => of_user(&places, uid),
        Some(pid) => match of_process(&places, uid, pid) {
            Some(found) => vec![(pid, found)],
            None => {
                bail!("process {pid} has no statistics: the provider is not in it, or has done nothing yet")
            }
        },
    };
    let seen = StatusView::new(found);
    let exit = if seen.unreadable.is_empty() { Exit::Done } else { Exit::SomeFailed };
    let text = match arguments.json {
        true => serde_json::to_string_pretty(&seen)? + "\n",
        false => text(&seen, arguments.sizes),
    };
    output::answer(text.as_bytes())?;
    if !arguments.json {
        seen.unreadable
            .iter()
            .for_each(|one| output::line(format_args!("process {}: {}", one.pid, one.reason)));
    }
    if arguments.pid.is_none() {
        remove_ended(&places, uid);
    }
    Ok(exit)
}

impl StatusView {
    fn new(found: Vec<(u32, Result<Record, RecordError>)>) -> Self {
        let mut seen = Self { version: env!("CARGO_PKG_VERSION"), processes: vec![], unreadable: vec![] };
        for (pid, record) in found {
            match record {
                Ok(record) => seen.processes.push(Process::new(&record)),
                Err(error) => seen.unreadable.push(Unreadable { pid, reason: error.to_string() }),
            }
        }
        seen
    }
}

impl Process {
    fn new(record: &Record) -> Self {
        let rows = Row::all().map(|row| (row, record.row(row))).filter(|(_, totals)| !totals.is_empty());
        let rows: Vec<_> = rows.collect();
        let classes = rows.iter().map(|(row, totals)| Class::new(*row, totals)).collect();
        Self { pid: record.pid(), name: record.name(), ended: record.has_ended(), classes, rows }
    }
}

impl Class {
    fn new(row: Row, totals: &Totals) -> Self {
        Self {
            algorithm: row.kind().name(),
            direction: row.direction().to_string(),
            bytes_max: row.bytes_max(),
            requests: totals.requests(),
            bytes: totals.of(Count::Bytes),
            direct: totals.of(Count::Direct),
            combined: totals.of(Count::Combined),
            split: totals.of(Count::Split),
            routed: totals.of(Count::Routed),
            taken_back: totals.of(Count::TakenBack),
            failed_and_redone: totals.of(Count::Redone),
            locked_by_the_guard: totals.of(Count::Locked),
        }
    }
}

fn text(seen: &StatusView, sizes: bool) -> String {
    if seen.processes.is_empty() && seen.unreadable.is_empty() {
        return "no program of this user counts: the provider is in none, or has done nothing yet\n"
            .to_owned();
    }
    let mut text = String::new();
    for process in &seen.processes {
        let ended = if process.ended { ", ended" } else { "" };
        writeln!(text, "{} {}{ended}", process.pid, process.name).expect("a String takes everything");
        table(&mut text, process, sizes);
        faults(&mut text, process);
    }
    text
}

fn table(text: &mut String, process: &Process, sizes: bool) {
    if process.rows.is_empty() {
        writeln!(text, "  nothing yet").expect("a String takes everything");
        return;
    }
    let titles = ["requests", "bytes", "direct", "combined", "split", "routed"].map(str::to_owned);
    write_row(text, "", titles);
    let mut by_kind: BTreeMap<(Row, String), Totals> = BTreeMap::new();
    for (row, totals) in &process.rows {
        // The row of the smallest size stands for all sizes.
        let first = Row::of(row.kind(), row.direction(), 0);
        let (row, name) = if sizes { (*row, size_name(*row)) } else { (first, String::new()) };
        *by_kind.entry((row, name)).or_default() += *totals;
    }
    for ((row, size), totals) in by_kind {
        let name = format!("{} {}{size}", row.kind().name(), row.direction());
        let way = |count: Count| match totals.of(count) {
            0 => "-".to_owned(),
            part => format!("{:.1} %", percent(part, totals.requests())),
        };
        let [direct, combined, split, routed] = Count::WAYS.map(way);
        let (requests, bytes) = (totals.requests().to_string(), units::bytes(totals.of(Count::Bytes)));
        write_row(text, &name, [requests, bytes, direct, combined, split, routed]);
    }
}

fn size_name(row: Row) -> String {
    row.bytes_max().map_or_else(|| ", above".to_owned(), |max| format!(", to {}", units::bytes(max as u64)))
}

/// What did not go as it was meant to, in the words of a run's summary.
fn faults(text: &mut String, process: &Process) {
    let sum = |count: Count| process.rows.iter().fold(0_u64, |sum, row| sum.saturating_add(row.1.of(count)));
    let mut write = |count: Count, noun: &str, what: &str| {
        if let number @ 1.. = sum(count) {
            writeln!(text, "  {} {what}", counted(number, noun)).expect("a String takes everything");
        }
    };
    write(Count::TakenBack, "part", "taken back by the caller before anybody had begun");
    write(Count::Redone, "request", "that a module failed were done again on the CPU");
    let locked = "a class was locked by the guard, because other ways had cost more than they saved";
    write(Count::Locked, "time", locked);
}

fn write_row(text: &mut String, name: &str, cells: [String; 6]) {
    let [requests, bytes, direct, combined, split, routed] = cells;
    writeln!(text, "  {name:<34}{requests:>10}{bytes:>11}{direct:>9}{combined:>10}{split:>9}{routed:>9}")
        .expect("a String takes everything");
}
