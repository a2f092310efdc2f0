//! `evener top` on a terminal: what a user sees there, rebuilt by a terminal emulator of other hands, is what stands in statistics files;
//! and the terminal is given back on every way out.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test; what is skipped is said")]

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Stdio, id};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::activity::write_statistics;
use crate::common::{self, EVENER, Place};
use evener::core::Direction::Encrypt;
use evener::core::Nanos;
use evener::core::counts::{Count, Kind, Row};
use evener_arbiter::Work;
use evener_testing::arbiters::ArbiterFolder;
use evener_testing::programs::new_terminal;
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

/// `evener top` at a terminal of its own.
struct Live {
    terminal: File,
    child: Child,
    seen: vt100::Parser,
}

impl Live {
    fn start(place: &Place, options: &[&str]) -> Self {
        Self::start_with(place, options, &[])
    }

    fn start_with(place: &Place, options: &[&str], variables: &[(&str, &OsStr)]) -> Self {
        let (terminal, programs_end) = new_terminal();
        // setsid becomes the command: what begins no session yet needs no process of its own for that.
        let mut run = place.program("setsid").env("TERM", "xterm");
        run.command.env("EVENER_STATISTICS_DIR", place.join("stats")).envs(variables.iter().copied());
        run.command.args(["-c", EVENER, "top"]).args(options);
        run.command.stdin(programs_end.try_clone().unwrap()).stdout(programs_end).stderr(Stdio::piped());
        let mut live =
            Self { terminal, child: run.command.spawn().unwrap(), seen: vt100::Parser::new(24, 80, 0) };
        drop(run);
        live.resize(24, 80);
        live
    }

    fn resize(&mut self, rows: u16, columns: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.terminal, size).unwrap();
        self.seen.screen_mut().set_size(rows, columns);
    }

    fn press(&mut self, keys: &str) {
        self.terminal.write_all(keys.as_bytes()).unwrap();
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    fn read(&mut self) {
        let mut bytes = [0; 4_096];
        while let Ok(count @ 1..) = self.terminal.read(&mut bytes) {
            self.seen.process(&bytes[..count]);
        }
    }

    /// Rows of the screen without spaces at their ends.
    fn rows(&self) -> Vec<String> {
        let (_, columns) = self.seen.screen().size();
        self.seen.screen().rows(0, columns).map(|row| row.trim_end().to_owned()).collect()
    }

    /// Waits until what stands on the screen is as it should be.
    #[track_caller]
    fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            self.read();
            if is_so(self) {
                return;
            }
            assert!(Instant::now() < deadline, "never: {what}\n{}", self.rows().join("\n"));
            sleep(Duration::from_millis(10));
        }
    }

    #[track_caller]
    fn until_it_shows(&mut self, words: &str) {
        self.until(words, |live| live.rows().iter().any(|row| row.contains(words)));
    }

    /// Whether the terminal is as a shell has it: its own screen, a cursor, echo.
    fn is_given_back(&self) -> bool {
        let screen = self.seen.screen();
        let has_echo = tcgetattr(&self.terminal).unwrap().local_modes.contains(LocalModes::ECHO);
        !screen.alternate_screen() && !screen.hide_cursor() && has_echo
    }

    /// Waits for its end, and returns its exit status, or 128 and the signal that ended it, as a shell does.
    #[track_caller]
    fn ended(&mut self) -> i32 {
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "it does not end");
            self.read();
            sleep(Duration::from_millis(10));
        }
        self.read();
        let status = self.child.wait().unwrap();
        status.code().or_else(|| Some(128 + status.signal()?)).unwrap()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn row(kind: &str, bytes: usize) -> Row {
    Row::of(Kind::named(kind), Encrypt, bytes)
}

/// So many requests of 16 KiB, two direct and one by a kernel for each one that is routed.
fn counts(fours: u32) -> Vec<(Row, Count, u32)> {
    let cbc = row("AES-128-CBC", 16_384);
    vec![
        (cbc, Count::Direct, 2 * fours),
        (cbc, Count::Kernel, fours),
        (cbc, Count::Routed, fours),
        (cbc, Count::Bytes, fours << 16),
    ]
}

#[test]
fn the_screen_shows_what_a_file_holds_and_the_shares_of_what_was_added() {
    let place = Place::new();
    let gcm = row("AES-256-GCM", 1 << 20);
    let more = [
        (gcm, Count::Split, 12),
        (gcm, Count::Bytes, 4 << 20),
        (gcm, Count::TakenBack, 5),
        (gcm, Count::Locked, 6),
    ];
    let write = |fours| write_statistics(&place, id(), b"counts-away", &[&counts(fours)[..], &more].concat());
    write(1);
    let mut live = Live::start(&place, &["--interval", "0.5"]);
    live.until_it_shows("so far  16 req  4.06 MiB  direct 12 % kernel 6 % split 75 % routed 6 %");
    // The last line, so that all above it is drawn.
    live.until_it_shows("q quit  h help");
    let rows = live.rows();
    assert!(rows[0].starts_with("evener top  1 process  by bytes/s  every 0.5 s"), "{rows:?}");
    assert_eq!(rows[3], "events  5 taken back, 6 locked by the guard");
    assert!(rows[4].starts_with("    PID PROCESS") && rows[4].ends_with("NS/B"));
    assert!(rows[5].starts_with(&format!("{:>7} counts-away ", id())), "{rows:?}");
    assert_eq!(rows[23], "q quit  h help  up/down or k/j choose  s sort  p pause");
    let details: Vec<Vec<&str>> = rows[6..23].iter().map(|row| row.split_whitespace().collect()).collect();
    let cbc = ["AES-128-CBC", "encrypt", "4", "64.0", "KiB", "50", "%", "25", "%", "-", "-", "25", "%"];
    assert!(details.contains(&cbc.to_vec()), "{rows:?}");
    let gcm = ["AES-256-GCM", "encrypt", "12", "4.00", "MiB", "-", "-", "-", "100", "%", "-"];
    assert!(details.contains(&gcm.to_vec()), "{rows:?}");
    // Whenever the two readings lie, what is added between them has these shares, and not those of all so far.
    for fours in 2..600 {
        write(fours);
        sleep(Duration::from_millis(100));
        live.read();
        let rows = live.rows();
        let cells: Vec<&str> = rows[5].split_whitespace().collect();
        let is_theirs = cells.get(5..13) == Some(&["50", "%", "25", "%", "-", "-", "25", "%"]);
        if is_theirs && rows[1].ends_with("  direct 50 % kernel 25 % routed 25 %") {
            return;
        }
    }
    unreachable!("never shown as what was added:\n{}", live.rows().join("\n"));
}

/// A number as the screen has it, `12.3k` or `0`.
fn number(text: &str) -> Option<f64> {
    let (digits, times) = match text.strip_suffix('k') {
        Some(digits) => (digits, 1e3),
        None => (text, 1.0),
    };
    Some(digits.parse::<f64>().ok()? * times)
}

#[test]
fn a_shared_module_has_what_all_processes_had_done_there_in_a_second_on_a_screen_of_eighty_by_twenty_four() {
    let (place, shared) = (Place::new(), ArbiterFolder::new());
    write_statistics(&place, id(), b"one", &counts(1));
    let arbiter = shared.attach();
    let module = arbiter.module("hosted:/run/user/1000/evener-host.sock", 64);
    let permit = module.try_acquire(Nanos::from_millis(1)).unwrap();
    // Before top begins: what was done so far is no rate.
    permit.count(Work { requests: 1 << 40, bytes: 7 });
    let mut live = Live::start_with(
        &place,
        &["--interval", "0.5"],
        &[("EVENER_ARBITER_DIR", shared.path().as_os_str())],
    );
    live.until_it_shows("evener-host.sock  - req/s  -  1/64 held  0 waiting");
    let rates = |live: &Live| {
        let rows = live.rows();
        let row = rows.iter().find(|row| row.starts_with("module "))?;
        let cells: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(cells[1], "hosted:\u{2026}/evener-host.sock", "{row}");
        let rest: Vec<&str> = cells.iter().skip(2).copied().collect();
        match rest[..] {
            [requests, "req/s", size, "KiB/s", "1/64", "held", "0", "waiting", ..] => {
                Some((number(requests)?, number(size)?))
            }
            _ => None,
        }
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        permit.count(Work { requests: 1, bytes: 2_048 });
        sleep(Duration::from_millis(10));
        live.read();
        // Whenever the two readings lie, each request has two KiB.
        if let Some((requests, kib)) = rates(&live).filter(|(requests, _)| *requests > 0.0) {
            assert!((kib / requests - 2.0).abs() < 0.1 && requests < 101.0, "{requests} {kib}");
            break;
        }
        assert!(Instant::now() < deadline, "never: a rate\n{}", live.rows().join("\n"));
    }
    let rows = live.rows();
    assert!(rows.iter().all(|row| row.chars().count() <= 80) && rows[23].starts_with("q quit"), "{rows:?}");
    drop(permit);
    live.until_it_shows("0/64 held");
}

#[test]
fn keys_explain_sort_choose_pause_and_end_and_the_terminal_is_as_it_was() {
    let place = Place::new();
    let other = common::activity::Guarded::sleeper();
    write_statistics(&place, id(), b"one", &counts(1));
    write_statistics(&place, other.id(), b"two", &counts(2));
    let mut live = Live::start(&place, &["--interval", "0.2"]);
    live.until_it_shows("2 processes");
    let chosen = |live: &Live| {
        let screen = live.seen.screen();
        let at = (5..23).find(|row| screen.cell(*row, 0).is_some_and(vt100::Cell::inverse));
        at.map(|row| live.rows()[usize::from(row)].split_whitespace().nth(1).unwrap().to_owned())
    };
    live.press("sss");
    live.until_it_shows("by pid");
    let order = |live: &Live| {
        let rows = live.rows();
        [5, 6].map(|row: usize| rows[row].split_whitespace().next().map(str::to_owned))
    };
    let mut pids = [id(), other.id()];
    pids.sort_unstable();
    live.until("both in order", |live| order(live) == pids.map(|pid| Some(pid.to_string())));
    let name = |pid: u32| if pid == id() { "one" } else { "two" };
    for (keys, pid) in
        [("j", pids[1]), ("j", pids[1]), ("\x1b[A", pids[0]), ("\x1bOB", pids[1]), ("k", pids[0])]
    {
        live.press(keys);
        live.until(keys, |live| chosen(live).as_deref() == Some(name(pid)));
        live.until_it_shows(&format!("{pid} {} so far", name(pid)));
    }
    live.press("p");
    live.until_it_shows("PAUSED");
    write_statistics(&place, id(), b"one", &counts(7));
    live.press("?");
    live.until_it_shows("done by OpenSSL's own code where it stood");
    live.press("h");
    live.until_it_shows("so far  12 req");
    live.press("p");
    live.until_it_shows("so far  36 req");
    assert!(!live.is_given_back(), "it was never taken");
    live.press("q");
    assert_eq!(live.ended(), 0);
    assert!(live.is_given_back());
}

#[test]
fn each_signal_that_ends_gives_the_terminal_back() {
    let place = Place::new();
    write_statistics(&place, id(), b"one", &counts(1));
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        let mut live = Live::start(&place, &[]);
        live.until_it_shows("so far  4 req");
        live.signal(signal);
        assert_eq!((live.ended(), live.is_given_back()), (128 + signal.as_raw(), true), "{signal:?}");
    }
    let mut live = Live::start(&place, &[]);
    live.until_it_shows("so far  4 req");
    live.press("\x03");
    assert_eq!((live.ended(), live.is_given_back()), (130, true), "Ctrl-C");
}

/// One that shows a process with four requests.
fn live_with_four_requests(options: &[&str]) -> (Place, Live) {
    let place = Place::new();
    write_statistics(&place, id(), b"one", &counts(1));
    let mut live = Live::start(&place, options);
    live.until_it_shows("so far  4 req");
    (place, live)
}

#[test]
fn a_terminal_that_goes_away_ends_it() {
    let (_place, mut live) = live_with_four_requests(&[]);
    live.terminal = File::open("/dev/null").unwrap();
    // By SIGHUP, or because nothing can be read any more.
    assert!(matches!(live.ended(), 129 | 130));
}

#[test]
fn a_suspension_gives_the_terminal_back_and_takes_it_again() {
    let (_place, mut live) = live_with_four_requests(&[]);
    let stat = format!("/proc/{}/stat", live.child.id());
    live.press("\x1a");
    live.until("stopped", |_| fs::read_to_string(&stat).unwrap().contains(") T "));
    live.until("given back", Live::is_given_back);
    live.signal(Signal::CONT);
    live.until("taken again", |live| {
        live.seen.screen().alternate_screen() && live.seen.screen().hide_cursor()
    });
    live.until_it_shows("so far  4 req");
    live.press("q");
    assert_eq!((live.ended(), live.is_given_back()), (0, true));
}

#[test]
fn a_screen_of_any_size_is_filled_and_no_more() {
    let (_place, mut live) = live_with_four_requests(&["--interval", "0.2"]);
    for (rows, columns) in [(1, 1), (2, 7), (5, 20), (200, 300), (24, 80), (6, 80)] {
        live.resize(rows, columns);
        let keys = "q quit  h help  up/down or k/j choose  s sort  p pause";
        let last = keys.chars().take(columns.into()).collect::<String>();
        live.until("the help line is the last", |live| {
            live.rows().last().is_some_and(|row| *row == last.trim_end())
        });
        if rows > 1 {
            let first = "evener top  1 process".chars().take(columns.into()).collect::<String>();
            live.until("the title is the first", |live| live.rows()[0].starts_with(first.trim_end()));
        }
    }
    live.press("q");
    assert_eq!(live.ended(), 0);
}

#[test]
fn a_hostile_name_moves_nothing_on_the_screen() {
    let place = Place::new();
    let other = common::activity::Guarded::sleeper();
    write_statistics(&place, id(), b"plain", &counts(1));
    for name in [
        &b"\x1b[2J\x1b[1;1HX\r\n\x07"[..],
        "\u{9b}2J\u{9d}0;x".as_bytes(),
        "日本語日本".as_bytes(),
        "a\u{202e}b\u{200b}c\u{301}".as_bytes(),
        b"\xff\xfe\x80\x9b2J",
    ] {
        write_statistics(&place, other.id(), name, &counts(2));
        let mut live = Live::start(&place, &["--interval", "0.2"]);
        live.until_it_shows("so far  12 req");
        live.until("a second reading", |live| !live.rows()[1].contains("not known"));
        live.press("\x1b[B");
        live.press("j");
        let pid = other.id().to_string();
        live.until("both stand there", |live| {
            let rows = live.rows();
            let is_of = |row: &String, pid: &str| row.split_whitespace().next() == Some(pid);
            let theirs = (5..7).find(|row| is_of(&rows[*row], &pid));
            theirs.is_some_and(|row| {
                // The columns behind the name stand where the titles are: those of an idle process end with a dash.
                let cell = |column| live.seen.screen().cell(u16::try_from(row).unwrap(), column).unwrap();
                cell(79).contents() == "-" && cell(24).contents() == "0" && cell(25).contents() == " "
            }) && rows[0].starts_with("evener top  2 processes")
                && rows[3] == "events  none"
                && rows[23].starts_with("q quit")
        });
        live.press("q");
        assert_eq!(live.ended(), 0);
    }
}

#[test]
fn without_a_terminal_it_prints_plain_lines_once() {
    let place = Place::new();
    write_statistics(&place, id(), b"one\x1b[2J", &counts(1));
    let top = || {
        place.evener().env("EVENER_STATISTICS_DIR", place.join("stats")).args(["top", "--interval", "0.1"])
    };
    for run in [top(), top().arg("--once")] {
        let ran = run.run().succeeded();
        let text = ran.stdout_text();
        assert!(
            text.lines().any(|line| line.starts_with("so far  4 req  64.0 KiB  direct 50 % kernel 25 %")),
            "{text}"
        );
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        assert_eq!(text.lines().filter(|line| line.starts_with(&format!("{:>7} one", id()))).count(), 1);
    }
    place.write("stats/1.stats", "hello");
    top().run().ended_with(1).saying("process 1: this is no statistics file");
    for wrong in ["0", "-1", "x", "inf", "NaN", "3601"] {
        place
            .evener()
            .arg("top")
            .arg(format!("--interval={wrong}"))
            .run()
            .ended_with(2)
            .saying("no time from 0.1");
    }
}
