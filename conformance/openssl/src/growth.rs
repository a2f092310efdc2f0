//! What a server's worker holds more after many requests than after fewer, with Evener and with OpenSSL alone.

use std::time::Duration;
use std::{fs, thread};

use crate::{Setup, print_line};

/// Looks at a process's descriptors, for the end of a connection whose client has gone may still be under way: what is lost stays.
const LOOKS: u32 = 20;

/// What a process holds: descriptors, and KiB of memory of its own.
fn holdings(pid: u32) -> [i64; 2] {
    let fds = (0..LOOKS).map(|_| {
        thread::sleep(Duration::from_millis(10));
        fs::read_dir(format!("/proc/{pid}/fd")).expect("it runs").count()
    });
    let fds = fds.min().unwrap_or_default();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kib =
        line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok()).expect("a process has memory");
    [i64::try_from(fds).expect("a few"), kib]
}

/// What a server's worker holds more after the second half of so many requests than after the first, which `ask` makes.
///
/// # Panics
///
/// Where it has ended.
#[must_use]
pub fn growth(worker: u32, requests: u32, mut ask: impl FnMut(u32)) -> [i64; 2] {
    let [before, after] = [(); 2].map(|()| {
        ask(requests / 2);
        holdings(worker)
    });
    std::array::from_fn(|index| after[index] - before[index])
}

/// Compares what `growth` says of servers with these setups, of which the first is OpenSSL alone: no descriptor, and so many KiB at most more than there.
///
/// # Panics
///
/// Where one grows more than that.
pub fn assert_no_growth(setups: &[Setup], kib_max: i64, growth: impl Fn(&Setup) -> [i64; 2]) {
    let [plain_fds, plain_kib] = growth(&setups[0]);
    for setup in &setups[1..] {
        let [fds, kib] = growth(setup);
        let said = format!("{fds} descriptors and {kib} KiB, plain {plain_fds} and {plain_kib}");
        assert!(fds <= plain_fds.max(0) && kib <= plain_kib.max(0) + kib_max, "{said}");
        print_line(&said);
    }
}
