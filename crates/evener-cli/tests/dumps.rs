//! What a core dump of the command has of its keys: nothing.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, which says what it skips")]

mod common;

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::{EVENER, Place};

/// Times that a text stands in a dump.
fn copies(dump: &[u8], text: &[u8]) -> usize {
    dump.windows(text.len()).filter(|window| *window == text).count()
}

/// Bytes that stand nowhere but in the memory of a run that has read them.
const PASSPHRASE: &str = "tortoise-galleon-7f31-unlikely-otherwise";

#[test]
fn a_core_dump_of_the_command_has_no_copy_of_a_passphrase() {
    let Some(place) = Place::with_programs(&["gcore"]) else { return };
    fs::write(place.path().join("passphrase"), PASSPHRASE).unwrap();
    let mut command = Command::new(EVENER);
    command.current_dir(place.path()).args(["encrypt", "--passphrase-file", "passphrase", "-"]);
    // It waits for input that does not come.
    let command = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut process = command.spawn().unwrap();
    let (pid, deadline) = (process.id().to_string(), Instant::now() + Duration::from_secs(60));
    let is_asleep = |at: String| at.contains("pipe") || at.contains("futex");
    let is_waiting = || fs::read_to_string(format!("/proc/{pid}/wchan")).is_ok_and(is_asleep);
    while !is_waiting() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(20));
    }
    let dumped = |filter: &str| {
        let dump = place.path().join(format!("core-{filter}"));
        let status = Command::new("gcore").arg("-o").arg(&dump).arg(&pid).output().unwrap();
        let path = format!("{}.{pid}", dump.display());
        fs::read(path).map(|dump| copies(&dump, PASSPHRASE.as_bytes())).map_err(|error| (error, status))
    };
    let hidden = dumped("0");
    // Else the search finds nothing, wherever it looks.
    fs::write(format!("/proc/{pid}/coredump_filter"), "0x33").unwrap();
    let shown = dumped("33");
    process.kill().unwrap();
    process.wait().unwrap();
    match (hidden, shown) {
        (Ok(hidden), Ok(shown)) => assert!(hidden == 0 && shown > 0, "{hidden} and {shown} copies"),
        refused => println!("skipped: gcore may not look at a process here: {refused:?}"),
    }
}
