//! What is said on a terminal while something takes long, at 80 and at 40 columns: no command is silent, and nothing untrue is said.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs::File;
use std::io::Read as _;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use crate::common::{EVENER, Place, noise, skipped, there_is};
use evener_testing::programs::new_terminal;
use rustix::termios::{Winsize, tcsetwinsize};

/// What stood on the line of a terminal one time after the other, until `is_enough` or the end of the command, which is ended then.
fn lines_seen(place: &Place, columns: u16, words: &[&str], is_enough: impl Fn(&str) -> bool) -> Vec<String> {
    let (mut terminal, programs_end) = new_terminal();
    tcsetwinsize(&terminal, Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let mut run = place.program(words[0]).args(&words[1..]).env("TERM", "xterm").env("EVENER_ARBITER", "off");
    run.command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(programs_end);
    let mut child = run.command.spawn().unwrap();
    run.command.stderr(Stdio::null());
    let mut screen = vt100::Parser::new(24, columns, 0);
    let mut seen: Vec<String> = Vec::new();
    loop {
        let has_ended = child.try_wait().unwrap().is_some();
        read(&mut terminal, &mut screen);
        for row in screen.screen().rows(0, columns).filter(|row| !row.trim().is_empty()) {
            if !seen.contains(&row) {
                seen.push(row);
            }
        }
        if has_ended || seen.iter().any(|line| is_enough(line)) {
            child.kill().ok();
            child.wait().unwrap();
            return seen;
        }
        sleep(Duration::from_millis(20));
    }
}

fn read(terminal: &mut File, screen: &mut vt100::Parser) {
    let mut bytes = [0; 4_096];
    while let Ok(count @ 1..) = terminal.read(&mut bytes) {
        screen.process(&bytes[..count]);
    }
}

#[test]
fn what_measures_or_simulates_for_long_says_so() {
    let place = Place::new();
    for columns in [80, 40] {
        for (words, said) in [
            (&["sim", "scale", "--cores", "256"][..], "simulating "),
            (&["sim", "papers"], "simulating the papers"),
            (&["devices", "--measure"], "measuring what jobs cost"),
        ] {
            let words = [&[EVENER], words].concat();
            let start = std::time::Instant::now();
            let seen = lines_seen(&place, columns, &words, |line| line.contains(said));
            let is_said = seen.iter().any(|line| line.contains(said));
            // What is over within a second says nothing.
            assert!(is_said || start.elapsed() < Duration::from_secs(2), "{words:?} at {columns}: {seen:?}");
        }
    }
}

#[test]
fn the_key_of_a_passphrase_is_named_while_it_is_derived() {
    let place = Place::new();
    place.write_secret("pass", "word\n");
    place.write("f", "text");
    place.write("tree/f", "text");
    for (columns, output, input) in
        [(80, "one", "f"), (40, "two", "f"), (80, "three", "tree"), (40, "four", "tree")]
    {
        let words =
            [EVENER, "encrypt", "--passphrase-file", "pass", "--work-factor", "20", "-o", output, input];
        let seen = lines_seen(&place, columns, &words, |line| line.contains("deriving the passphrase's key"));
        assert!(seen.iter().any(|line| line.contains("deriving the passphrase's key")), "{seen:?}");
    }
}

/// The system is made to take its time for each sync.
#[test]
fn syncing_is_named_and_no_line_says_that_no_time_is_left() {
    if !there_is("strace") {
        return skipped("strace is not installed");
    }
    let place = Place::with_key();
    place.write("f", noise(5, 40_000_000));
    for columns in [80, 40] {
        let strace =
            ["strace", "-f", "-o", "/dev/null", "-e", "trace=fsync,fdatasync,syncfs,sync_file_range"];
        let delay = ["-e", "inject=fsync,fdatasync,syncfs:delay_enter=1500000"];
        let words = [EVENER, "encrypt", "--key", "k.json", "--force", "-o", "sealed", "f"];
        let words = [&strace[..], &delay, &words].concat();
        let seen = lines_seen(&place, columns, &words, |_| false);
        assert!(seen.iter().any(|line| line.contains("syncing")), "{seen:?}");
        assert!(seen.iter().any(|line| line.contains("encrypted 1 file")), "{seen:?}");
        for line in seen {
            assert!(!line.contains("0s left") && !line.contains(" 0 s left"), "{line:?}");
            assert!(!line.contains("syncing") || !line.contains("left"), "{line:?}");
        }
    }
}
