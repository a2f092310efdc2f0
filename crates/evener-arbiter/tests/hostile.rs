//! Whatever lies in the place of anchor and segment, and whatever writes into them, a process is told in one line or goes on.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use evener_arbiter::NoArbiter;
use evener_core::Nanos;

use support::ffi::{become_user, child};
use support::{AGES, FOREVER, Ground, LONG, fill};

const NOBODY: u32 = 65_534;

/// Why this ground has no arbiter; its text is one line.
fn why_not(ground: &Ground) -> NoArbiter {
    let why = ground.try_attach().unwrap_err();
    assert!(!why.to_string().is_empty() && !why.to_string().contains('\n'), "{why}");
    why
}

/// Removes the anchor and puts something into its place.
fn instead(ground: &Ground, put: impl FnOnce(&std::path::Path)) {
    drop(ground.attach());
    let anchor = ground.anchor();
    ground.segment().unwrap().remove();
    fs::remove_file(&anchor).unwrap();
    put(&anchor);
}

#[test]
fn a_link_a_directory_a_pipe_and_a_file_that_others_may_read_are_refused() {
    let ground = Ground::new();
    instead(&ground, |anchor| symlink("/dev/null", anchor).unwrap());
    assert!(matches!(why_not(&ground), NoArbiter::NotOurs(_)));
    instead_of(&ground, |anchor| fs::create_dir(anchor).unwrap());
    assert!(matches!(why_not(&ground), NoArbiter::NotOurs(_)));
    fs::remove_dir(ground.anchor()).unwrap();
    instead(&ground, |anchor| {
        File::create(anchor).unwrap();
        fs::set_permissions(anchor, Permissions::from_mode(0o644)).unwrap();
    });
    assert!(matches!(why_not(&ground), NoArbiter::NotOurs(_)));
    instead_of(&ground, |anchor| {
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, anchor, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    });
    assert!(matches!(why_not(&ground), NoArbiter::NotOurs(_)));
    instead_of(&ground, |anchor| {
        File::create(anchor).unwrap();
        fs::set_permissions(anchor, Permissions::from_mode(0o600)).unwrap();
        fs::hard_link(anchor, anchor.with_extension("twin")).unwrap();
    });
    assert!(matches!(why_not(&ground), NoArbiter::NotOurs(_)));
}

/// As [`instead`], where no arbiter was attached.
fn instead_of(ground: &Ground, put: impl FnOnce(&std::path::Path)) {
    let anchor = ground.anchor();
    fs::remove_file(&anchor).unwrap();
    put(&anchor);
}

#[test]
fn a_directory_that_others_may_write_to_is_refused() {
    let ground = Ground::new();
    fs::set_permissions(ground.path(), Permissions::from_mode(0o777)).unwrap();
    assert!(matches!(why_not(&ground), NoArbiter::Directory(_)));
}

#[test]
fn what_belongs_to_another_user_is_refused() {
    let Some(ground) = Ground::for_root("give files away") else { return };
    instead(&ground, |anchor| {
        File::create(anchor).unwrap();
        fs::set_permissions(anchor, Permissions::from_mode(0o600)).unwrap();
        chown(anchor, Some(NOBODY), None).unwrap();
    });
    assert!(matches!(why_not(&ground), NoArbiter::NotOurs(_)));
    instead_of(&ground, |_| chown(ground.path(), Some(NOBODY), None).unwrap());
    assert!(matches!(why_not(&ground), NoArbiter::Directory(_)));
}

#[test]
fn another_user_gets_neither_directory_nor_segment() {
    let Some(ground) = Ground::for_root("become another user") else { return };
    let arbiter = ground.attach();
    let held = arbiter.module("m", 1).try_acquire(AGES).unwrap();
    let bytes = fs::read(ground.anchor()).unwrap();
    let number = i32::from_ne_bytes(bytes[36..40].try_into().unwrap());
    let other = child(|| {
        assert!(become_user(NOBODY));
        let words = evener_arbiter::Shape::USUAL.word_count();
        let attached = [NOBODY, 0].map(|uid| evener_ring::Segment::attach(number, words, uid).is_ok());
        attached == [false, false] && ground.try_attach().is_err()
    });
    assert!(other.ends_well());
    drop(held);
}

#[test]
fn another_layout_is_refused_while_it_is_in_use_and_replaced_afterwards() {
    let ground = Ground::new();
    let first = child(|| {
        let _held = ground.attach();
        let mut bytes = fs::read(ground.anchor()).unwrap();
        bytes[4..8].copy_from_slice(&7_u32.to_ne_bytes());
        fs::write(ground.anchor(), bytes).unwrap();
        let refused = child(|| matches!(ground.try_attach(), Err(NoArbiter::OtherLayout { version: 7 })));
        refused.ends_well()
    });
    assert!(first.ends_well());
    assert!(ground.try_attach().is_ok());
}

#[test]
fn who_cuts_removes_or_overwrites_harms_nobody_who_is_attached() {
    let ground = Ground::new();
    let (arbiter, other) = (ground.attach(), ground.attach());
    let (mine, others) = (arbiter.module("m", 1), other.module("m", 1));
    let held = others.try_acquire(AGES).unwrap();
    ground.segment().unwrap().remove();
    File::options().write(true).open(ground.anchor()).unwrap().set_len(0).unwrap();
    assert!(mine.try_acquire(LONG).is_err());
    drop(held);
    assert!(mine.acquire(LONG, FOREVER).is_ok());
    // A process that comes now makes a new one, and is alone there.
    let third = ground.attach();
    let _held = mine.try_acquire(AGES).unwrap();
    assert!(third.module("m", 1).try_acquire(LONG).is_ok());
    fs::write(ground.anchor(), "noise".repeat(100)).unwrap();
    ground.try_attach().unwrap();
    fs::remove_file(ground.anchor()).unwrap();
    ground.try_attach().unwrap();
    assert!(mine.expected_start().is_some());
}

#[test]
fn any_words_end_in_a_permit_or_a_refusal() {
    let ground = Ground::new();
    let arbiter = ground.attach();
    let module = arbiter.module("m", 3);
    drop(module.try_acquire(LONG));
    let segment = ground.segment().unwrap();
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        u32::try_from(random >> 32).unwrap()
    };
    for round in 0..40 {
        match round % 4 {
            0 => fill(&segment, |_| next()),
            1 => fill(&segment, |_| u32::MAX),
            // Small numbers look like places and positions.
            2 => fill(&segment, |_| next() % 5),
            _ => fill(&segment, |at| u32::try_from(at).unwrap()),
        }
        for wait in [Nanos::ZERO, Nanos::from_millis(5)] {
            drop(module.acquire(LONG, wait));
            drop(module.acquire(Nanos(10), wait));
            drop(module.acquire_flag(LONG, wait));
        }
        _ = module.expected_start();
        _ = arbiter.snapshot();
        drop(ground.try_attach().map(|other| other.module("other", 1).try_acquire(LONG)));
    }
    // The anchor names another one by now, and no process would know this one again.
    segment.remove();
}

#[test]
fn whoever_scribbles_all_the_time_keeps_nobody_beyond_its_time() {
    let ground = Ground::new();
    let module = ground.attach().module("m", 2);
    drop(module.try_acquire(LONG));
    let (segment, is_over) = (ground.segment().unwrap(), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = 1_u32;
            while !is_over.load(Relaxed) {
                fill(&segment, |_| {
                    random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    random >> (random & 31)
                });
            }
        });
        for _ in 0..30 {
            drop(module.acquire(LONG, Nanos::from_millis(3)));
        }
        is_over.store(true, Relaxed);
    });
}
