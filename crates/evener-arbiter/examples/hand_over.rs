//! What the arbiter costs: a permit no process wants, and one that another process waits for, beside a bare futex ping-pong of the same two processes.
//!
//! `cargo run --release -p evener-arbiter --example hand_over`. Rounds of all kinds take turns, so that what else the machine does falls on each alike; medians, and the middle half of the rounds.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "an example that measures")]

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::{Duration, Instant};
use std::{env, thread};

use evener_arbiter::{Arbiter, Module, Options, Permit};
use evener_core::Nanos;
use evener_fd::Directories;
use evener_ring::{Mapping, Word, Words as _, sleep_shared, wake_shared};

const ROUNDS: usize = 41;
const REQUESTS: u32 = 20_000;
const HAND_OVERS: u32 = 400;
const LONG: Nanos = Nanos::from_millis(1);
const SHORT: Nanos = Nanos(20_000);
const FOREVER: Nanos = Nanos::from_millis(60_000);

/// Words of the board: whose turn it is in the ping-pong; which kind of round is on; rounds that the partner has finished.
const TURN: usize = 0;
const KIND: usize = 1;
const DONE: usize = 2;

fn main() {
    let mut arguments = env::args_os().skip(1);
    if let Some(ground) = arguments.next() {
        return partner(Path::new(&ground));
    }
    let ground = tempfile::tempdir().unwrap();
    fs::set_permissions(ground.path(), fs::Permissions::from_mode(0o700)).unwrap();
    File::create(ground.path().join("board")).unwrap().set_len(64).unwrap();
    let (module, board) = parts(ground.path());
    let mut partner = Command::new(env::current_exe().unwrap()).arg(ground.path()).spawn().unwrap();
    measure(&module, &board, &mut partner);
    partner.wait().unwrap();
}

fn parts(ground: &Path) -> (Module, Mapping) {
    let board = File::options().read(true).write(true).open(ground.join("board")).unwrap();
    let options = Options { directories: Directories::only(ground.to_owned()), ..Options::default() };
    (Arbiter::attach(&options).unwrap().module("one", 1), Mapping::shared(&board, 16).unwrap())
}

fn measure(module: &Module, board: &Mapping, partner: &mut Child) {
    let kinds = [
        ("acquire and release, nobody else", 0, REQUESTS),
        ("a futex ping-pong, each way, less 20 us of work", 1, 2 * HAND_OVERS),
        ("hand-over to a process that waits, exact order, less the same", 2, 2 * HAND_OVERS),
        ("hand-over in batches, less the same", 3, 2 * HAND_OVERS),
    ];
    let mut seen: Vec<Vec<f64>> = vec![Vec::new(); kinds.len()];
    for _ in 0..ROUNDS {
        for (times, (_, kind, count)) in seen.iter_mut().zip(kinds) {
            let begun = Instant::now();
            if kind == 0 {
                (0..REQUESTS).for_each(|_| drop(module.acquire(LONG, FOREVER).unwrap()));
            } else {
                together(module, board, kind, partner);
            }
            let work = if kind == 0 { 0.0 } else { 20_000.0 };
            times.push(begun.elapsed().as_secs_f64() * 1e9 / f64::from(count) - work);
        }
    }
    board.words()[KIND].store(u32::MAX, Release);
    for (times, (name, ..)) in seen.iter_mut().zip(kinds) {
        times.sort_by(f64::total_cmp);
        let at = |part: usize| times[times.len() * part / 4];
        println!("{name}: {:.0} ns ({:.0} to {:.0})", at(2), at(1), at(3));
    }
    println!("hand-over to ping-pong: {:.2}", seen[2][ROUNDS / 2] / seen[1][ROUNDS / 2]);
}

/// A round with the partner.
fn together(module: &Module, board: &Mapping, kind: u32, partner: &mut Child) {
    let words = board.words();
    let done = words[DONE].load(Acquire);
    words[TURN].store(0, Release);
    words[KIND].store(kind, Release);
    play(module, words, kind, 0);
    while words[DONE].load(Acquire) == done {
        assert!(partner.try_wait().unwrap().is_none(), "the partner has died");
        thread::yield_now();
    }
    words[KIND].store(0, Release);
}

fn partner(ground: &Path) {
    let (module, board) = parts(ground);
    let words = board.words();
    loop {
        match words[KIND].load(Acquire) {
            0 => thread::sleep(Duration::from_micros(20)),
            u32::MAX => return,
            kind => {
                play(&module, words, kind, 1);
                words[DONE].fetch_add(1, Release);
                while words[KIND].load(Acquire) == kind {
                    thread::yield_now();
                }
            }
        }
    }
}

fn play(module: &Module, words: &[Word], kind: u32, side: u32) {
    for _ in 0..HAND_OVERS {
        match kind {
            1 => ping_pong(&words[TURN], side),
            2 => work_with(&module.acquire(LONG, FOREVER).unwrap()),
            _ => work_with(&module.acquire(SHORT, FOREVER).unwrap()),
        }
    }
}

/// The time of a request, in which the other side comes to wait.
fn work_with(_: &Permit) {
    work();
}

fn work() {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_nanos(SHORT.0) {}
}

/// Waits for this side's turn, and gives it to the other.
fn ping_pong(turn: &Word, side: u32) {
    loop {
        let now = turn.load(Acquire);
        if now == side {
            break;
        }
        sleep_shared(turn, now, Duration::from_secs(1));
    }
    work();
    turn.store(1 - side, Release);
    wake_shared(turn);
}
