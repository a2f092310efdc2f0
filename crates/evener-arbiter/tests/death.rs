//! Processes that die, stop and fork.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may panic; what is skipped is said")]

mod support;

use std::fs::File;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::Duration;

use evener_arbiter::{Arbiter, Module, ModuleCount, Refused};
use evener_core::Nanos;
use evener_ring::{Mapping, Words as _};

use support::ffi::{self, Child, child};
use support::{AGES, FOREVER, Ground, LONG, until};

/// Words that the processes of a test share beside the arbiter.
fn board(ground: &Ground, words: usize) -> Mapping {
    let file =
        File::options().read(true).write(true).create(true).truncate(true).open(ground.path().join("board"));
    let file = file.unwrap();
    file.set_len(words as u64 * 4).unwrap();
    Mapping::shared(&file, words).unwrap()
}

/// A directory of its own with an attachment and a board.
fn with_board(words: usize) -> (Ground, Arbiter, Mapping) {
    let ground = Ground::new();
    let (arbiter, board) = (ground.attach(), board(&ground, words));
    (ground, arbiter, board)
}

fn word(board: &Mapping, at: usize) -> u32 {
    board.words()[at].load(SeqCst)
}

fn set(board: &Mapping, at: usize, value: u32) {
    board.words()[at].store(value, SeqCst);
}

/// An attachment, a module of so many permits, and a child that holds one of these until it is killed.
fn held_by_another(ground: &Ground, capacity: u32) -> (Arbiter, Module, Child) {
    let (arbiter, board) = (ground.attach(), board(ground, 1));
    let holder = child(|| {
        let _held = arbiter.module("m", capacity).try_acquire(AGES).unwrap();
        set(&board, 0, 1);
        thread::sleep(Duration::from_secs(600));
        false
    });
    until("it holds", || word(&board, 0) == 1);
    let module = arbiter.module("m", capacity);
    (arbiter, module, holder)
}

/// Fails unless `what` was counted so often of the module.
fn assert_counted(arbiter: &Arbiter, what: ModuleCount, times: u64) {
    let counts = arbiter.snapshot().modules[0].counts.clone();
    assert!(counts.contains(&(what, times)), "{counts:?}");
}

#[test]
fn a_permit_of_a_process_that_was_killed_is_free_at_the_next_attempt() {
    let ground = Ground::new();
    let (arbiter, module, holder) = held_by_another(&ground, 1);
    assert_eq!(module.try_acquire(LONG).unwrap_err(), Refused::Busy);
    holder.kill();
    // A thread that waits is the watcher; the process of the permit is dead when `kill` returns.
    drop(module.acquire(LONG, FOREVER).unwrap());
    assert_counted(&arbiter, ModuleCount::Repaired, 1);
}

#[test]
fn a_waiter_that_was_killed_keeps_nobody_behind_it() {
    let ground = Ground::new();
    let (arbiter, _module, held) = ground.with_held(1);
    let waiting = |count: usize| arbiter.snapshot().modules[0].waiting.len() == count;
    let wait = || child(|| arbiter.module("m", 1).acquire(LONG, FOREVER).is_ok());
    let first = wait();
    until("the first waits", || waiting(1));
    let second = wait();
    until("the second waits", || waiting(2));
    first.kill();
    drop(held);
    assert!(second.ends_well());
}

#[test]
fn a_suspended_owner_keeps_its_permit_and_others_go_on_with_what_is_left() {
    let ground = Ground::new();
    let (arbiter, module, holder) = held_by_another(&ground, 2);
    holder.signal(libc::SIGSTOP);
    for _ in 0..100 {
        drop(module.acquire(LONG, FOREVER).unwrap());
    }
    let other = module.try_acquire(Nanos::ZERO).unwrap();
    assert_eq!(module.acquire(LONG, Nanos::from_millis(2_500)).unwrap_err(), Refused::TimedOut);
    drop(other);
    assert_eq!(arbiter.snapshot().modules[0].holders.len(), 1);
    holder.kill();
}

#[test]
fn a_suspended_waiter_is_passed_over_and_joins_again_when_it_goes_on() {
    let ground = Ground::new();
    let (arbiter, module, held) = ground.with_held(1);
    let waiter = child(|| arbiter.module("m", 1).acquire(LONG, FOREVER).is_ok());
    until("it waits", || arbiter.snapshot().modules[0].waiting.len() == 1);
    waiter.signal(libc::SIGSTOP);
    drop(held);
    // Behind one that stands still.
    drop(module.acquire(LONG, FOREVER).unwrap());
    waiter.signal(libc::SIGCONT);
    assert!(waiter.ends_well());
    assert_counted(&arbiter, ModuleCount::PassedOver, 1);
}

#[test]
fn a_forked_child_has_places_of_its_own_and_gives_no_permit_of_its_parent_back() {
    let ground = Ground::new();
    let (arbiter, module, held) = ground.with_held(2);
    let forked = child(move || {
        drop(held);
        let mine = module.try_acquire(AGES).unwrap();
        let is_third_refused = module.try_acquire(LONG).unwrap_err() == Refused::Busy;
        drop(mine);
        is_third_refused
    });
    assert!(forked.ends_well());
    assert_eq!(arbiter.snapshot().modules[0].holders.len(), 1);
}

#[test]
fn a_child_that_outlives_its_parent_keeps_none_of_its_locks() {
    let (_ground, arbiter, board) = with_board(2);
    let parent = child(|| {
        let _held = arbiter.module("m", 1).try_acquire(AGES).unwrap();
        // This one never asks the arbiter, and lives until it is told.
        let orphan = child(|| {
            set(&board, 0, 1);
            until("told to end", || word(&board, 1) == 1);
            true
        });
        until("it lives", || word(&board, 0) == 1);
        std::mem::forget(orphan);
        ffi::die()
    });
    assert!(!parent.ends_well());
    assert!(arbiter.module("m", 1).acquire(LONG, FOREVER).is_ok());
    set(&board, 1, 1);
}

#[test]
fn processes_that_fork_all_the_time_each_have_what_is_theirs() {
    let ground = Ground::new();
    let arbiter = ground.attach();
    let branch = |depth: u32| grow(&arbiter, depth);
    assert!(branch(4));
    drop(arbiter.module("m", 2).acquire(LONG, FOREVER).unwrap());
    assert!(arbiter.snapshot().modules[0].holders.is_empty());
}

/// A tree of processes in which each has permits before, between and after its forks: 3^depth leaves.
fn grow(arbiter: &Arbiter, depth: u32) -> bool {
    let module = arbiter.module("m", 2);
    let take = || module.acquire(LONG, FOREVER).is_ok();
    if depth == 0 {
        return take();
    }
    let children: Vec<Child> = (0..3).map(|_| child(|| grow(arbiter, depth - 1))).collect();
    let taken = take();
    children.into_iter().all(Child::ends_well) && taken
}

#[test]
fn a_program_that_closes_all_descriptors_goes_on_alone() {
    let ground = Ground::new();
    let arbiter = ground.attach();
    let closer = child(|| {
        let module = arbiter.module("m", 1);
        drop(module.acquire(LONG, FOREVER).unwrap());
        ffi::close_all_descriptors();
        // Its lock is gone: a thread that takes its place makes it notice.
        true
    });
    assert!(closer.ends_well());
    assert!(arbiter.module("m", 1).try_acquire(LONG).is_ok());
}

#[test]
fn two_namespaces_of_process_numbers_share_and_a_death_in_one_is_seen_in_the_other() {
    let (_ground, arbiter, board) = with_board(1);
    let elsewhere = child(|| {
        if !ffi::number_children_anew() {
            set(&board, 0, 2);
            return true;
        }
        let inner = child(|| {
            let _held = arbiter.module("m", 1).try_acquire(AGES).unwrap();
            set(&board, 0, 1);
            ffi::die()
        });
        !inner.ends_well()
    });
    assert!(elsewhere.ends_well());
    if word(&board, 0) == 2 {
        return println!("skipped: this user may make no namespaces");
    }
    assert!(arbiter.module("m", 1).acquire(LONG, FOREVER).is_ok());
}

#[test]
fn three_hundred_kills_among_64_processes_lose_no_permit_and_leave_nobody_waiting() {
    storm(300);
}

#[test]
#[ignore = "long: part of test-full"]
fn ten_thousand_kills_among_64_processes_lose_no_permit_and_leave_nobody_waiting() {
    storm(10_000);
}

/// So long that no holder is taken for one that stands still, and short enough that the wait behind all others is none to refuse.
const SLOW: Nanos = Nanos::from_millis(300);

const PROCESSES: usize = 64;
const PERMITS: usize = 4;

/// First of the words of the storm's board: who is inside with each permit, then violations, rounds, and whether to end.
const VIOLATIONS: usize = PERMITS;
const ROUNDS: usize = PERMITS + 1;
const END: usize = PERMITS + 2;

/// Kills processes at random moments while all of them want permits. Each that leaves with a permit must find itself the last who came in with it.
fn storm(kills: u32) {
    let ground = Ground::new();
    let arbiter = ground.attach();
    let board = board(&ground, END + 1);
    let start = || child(|| take_turns(&arbiter, &board));
    let mut processes: Vec<Child> = (0..PROCESSES).map(|_| start()).collect();
    let mut random = 0x2545_F491_4F6C_DD1D_u64;
    for _ in 0..kills {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        thread::sleep(Duration::from_micros(random >> 54));
        let victim = usize::try_from(random >> 8).unwrap() % PROCESSES;
        std::mem::replace(&mut processes[victim], start()).kill();
    }
    // All who are left get something done, and end.
    let rounds = word(&board, ROUNDS);
    until("they go on", || word(&board, ROUNDS).wrapping_sub(rounds) > 1_000);
    set(&board, END, 1);
    assert!(processes.into_iter().all(Child::ends_well));
    assert_eq!(word(&board, VIOLATIONS), 0);
    let module = arbiter.module("m", u32::try_from(PERMITS).unwrap());
    let all: Vec<_> = (0..PERMITS).map(|_| module.acquire(AGES, FOREVER).unwrap()).collect();
    assert_eq!(all.len(), PERMITS);
    assert!(word(&board, ROUNDS) > 1_000);
}

fn take_turns(arbiter: &Arbiter, board: &Mapping) -> bool {
    let module = arbiter.module("m", u32::try_from(PERMITS).unwrap());
    let me = std::process::id();
    while word(board, END) == 0 {
        let Ok(permit) = module.acquire(SLOW, FOREVER) else { return false };
        let inside = &board.words()[permit.grant().permit];
        inside.store(me, SeqCst);
        for _ in 0..50 {
            thread::yield_now();
        }
        if inside.load(SeqCst) != me {
            board.words()[VIOLATIONS].fetch_add(1, SeqCst);
        }
        board.words()[ROUNDS].fetch_add(1, SeqCst);
        drop(permit);
    }
    true
}
