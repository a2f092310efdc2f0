//! Which segment the processes of a user share, in whichever directories they look, and what becomes of segments that no process needs.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use evener_arbiter::{Arbiter, Options, Refused, Shape};
use evener_fd::Directories;
use evener_ring::{Segment, Words as _};

use support::ffi::{child, uid};
use support::{AGES, Ground, LONG};

/// How a process attaches that knows these directories.
fn knowing(grounds: &[&Ground]) -> Options {
    let paths = grounds.iter().map(|ground| ground.path().to_owned()).collect();
    Options { directories: Directories::these(paths), ..Options::default() }
}

/// A process attaches and ends.
fn attach_once(ground: &Ground) {
    assert!(child(|| ground.try_attach().is_ok()).ends_well());
}

fn has_anchor(ground: &Ground) -> bool {
    fs::read_dir(ground.path()).unwrap().count() > 0
}

/// Whether a process that knows both, the one of the session first, meets the one that knows the other alone.
fn meet(session: &Ground, service: &Ground) -> bool {
    let arbiter = service.attach();
    let _held = arbiter.module("m", 1).try_acquire(AGES).unwrap();
    let both = knowing(&[session, service]);
    let users = Arbiter::attach(&both).unwrap();
    let shown = Arbiter::look(&both).unwrap().unwrap();
    let is_shown = shown.modules.iter().any(|module| module.holders.len() == 1);
    is_shown && users.module("m", 1).try_acquire(LONG).is_err_and(|why| why == Refused::Busy)
}

#[test]
fn a_service_and_the_programs_of_a_session_that_began_later_share_one_segment() {
    let (session, service) = (Ground::new(), Ground::new());
    assert!(meet(&session, &service));
    assert!(!has_anchor(&session));
}

#[test]
fn of_two_anchors_the_one_in_use_is_meant() {
    let (session, service) = (Ground::new(), Ground::new());
    attach_once(&session);
    assert!(meet(&session, &service));
}

#[test]
fn what_is_no_anchor_in_one_directory_keeps_nobody_from_another() {
    let (session, service) = (Ground::new(), Ground::new());
    attach_once(&service);
    let anchor = service.anchor();
    service.segment().unwrap().remove();
    fs::remove_file(&anchor).unwrap();
    symlink("/dev/null", &anchor).unwrap();
    let both = knowing(&[&session, &service]);
    assert!(Arbiter::look(&both).is_err());
    let arbiter = Arbiter::attach(&both).unwrap();
    assert!(has_anchor(&session) && Arbiter::look(&both).unwrap().is_some());
    drop(arbiter);
    assert!(Arbiter::remove(&both).is_err(), "the link is no anchor");
    assert!(!has_anchor(&session));
}

#[test]
fn the_segments_of_all_directories_are_removed() {
    let (session, service) = (Ground::new(), Ground::new());
    [&session, &service].into_iter().for_each(attach_once);
    let numbers = [&session, &service].map(|ground| ground.segment().unwrap().number());
    let both = knowing(&[&session, &service]);
    assert!(Arbiter::remove(&both).unwrap());
    assert_eq!([&session, &service].map(has_anchor), [false; 2]);
    assert_eq!(numbers.map(is_there), [false; 2]);
    assert!(!Arbiter::remove(&both).unwrap());
}

fn is_there(number: i32) -> bool {
    Segment::attach(number, Shape::USUAL.word_count(), uid()).is_ok()
}

/// Removes the directory, as a logout does, and returns the segment's number.
fn lost(ground: &Ground) -> i32 {
    let number = ground.segment().unwrap().number();
    fs::remove_dir_all(ground.path()).unwrap();
    number
}

#[test]
fn a_segment_whose_anchor_is_gone_goes_when_the_next_one_is_made() {
    let (gone, kept, used, next) = (Ground::new(), Ground::new(), Ground::new(), Ground::new());
    [&gone, &kept].into_iter().for_each(attach_once);
    let _attached = used.attach();
    let (gone, kept, used) = (lost(&gone), kept.segment().unwrap().number(), lost(&used));
    attach_once(&next);
    assert_eq!([gone, kept, used].map(is_there), [false, true, true]);
    Segment::attach(used, Shape::USUAL.word_count(), uid()).unwrap().remove();
}

#[test]
fn a_segment_whose_anchor_was_overwritten_goes_when_its_next_one_is_made() {
    let ground = Ground::new();
    attach_once(&ground);
    let number = ground.segment().unwrap().number();
    fs::write(ground.anchor(), "noise".repeat(100)).unwrap();
    attach_once(&ground);
    assert!(!is_there(number));
}

/// FNV-1a, as it ends an anchor.
fn sum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811C_9DC5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// Writes the anchor as one of layout 7.
fn make_foreign(anchor: &Path) {
    let mut bytes = fs::read(anchor).unwrap();
    bytes[4..8].copy_from_slice(&7_u32.to_ne_bytes());
    let check = sum(&bytes[..40]);
    bytes[40..44].copy_from_slice(&check.to_ne_bytes());
    fs::write(anchor, bytes).unwrap();
}

#[test]
fn a_segment_of_another_layout_goes_when_it_is_replaced() {
    let ground = Ground::new();
    attach_once(&ground);
    let segment = ground.segment().unwrap();
    let number = segment.number();
    // Another release may write another version there, and no path.
    segment.words()[1].store(7, std::sync::atomic::Ordering::Relaxed);
    segment.words()[11..32].iter().for_each(|word| word.store(0, std::sync::atomic::Ordering::Relaxed));
    drop(segment);
    make_foreign(&ground.anchor());
    attach_once(&ground);
    assert!(!is_there(number));
}
