//! Lending between real threads, with buffers instead of loom's cells.
#![cfg(not(loom))]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;

use evener_ring::{HelperSlot, Part, PartBytes, Parts, lend};
use proptest::prelude::*;

/// Runs `body` beside threads that serve at `slots`; what panics there is one call's end.
fn with_helpers<R>(slots: &[HelperSlot], body: impl FnOnce() -> R) -> R {
    thread::scope(|scope| {
        for slot in slots {
            scope.spawn(move || while catch_unwind(AssertUnwindSafe(|| slot.serve())).unwrap_or(true) {});
        }
        let result = catch_unwind(AssertUnwindSafe(body));
        slots.iter().for_each(HelperSlot::close);
        result.unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// Adds the number of its part to each byte.
fn mark(mut part: Part<'_>) {
    let number = number_of(part.index);
    match part.bytes() {
        PartBytes::InPlace(data) => data.iter_mut().for_each(|byte| *byte = byte.wrapping_add(number)),
        PartBytes::Apart(input, output) => {
            output.iter_mut().zip(input).for_each(|(out, byte)| *out = byte.wrapping_add(number));
        }
    }
    part.done();
}

fn number_of(index: usize) -> u8 {
    u8::try_from(index % 255).expect("below 255") + 1
}

/// What `data` is when each of its parts was marked once.
fn marked(data: &[u8], part_bytes: usize) -> Vec<u8> {
    data.iter().enumerate().map(|(at, byte)| byte.wrapping_add(number_of(at / part_bytes))).collect()
}

fn share(slots: &[HelperSlot], parts: &Parts<'_>) {
    let back = || std::iter::from_fn(|| parts.back()).for_each(mark);
    lend(slots, &back, || std::iter::from_fn(|| parts.front()).for_each(mark));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 64 }))]

    #[test]
    fn each_byte_is_worked_on_once_wherever_the_output_goes(
        data in prop::collection::vec(any::<u8>(), 0..400),
        part_bytes in 1usize..50,
        slot_count in 0usize..3,
        back_eighths in 0usize..=8,
    ) {
        let slots: Vec<HelperSlot> = (0..slot_count).map(|_| HelperSlot::new()).collect();
        let (mut in_place, mut output) = (data.clone(), vec![0; data.len()]);
        with_helpers(&slots, || {
            let mut parts = Parts::in_place(&mut in_place, part_bytes);
            parts.let_back_begin_at(parts.count() * back_eighths / 8);
            share(&slots, &parts);
            assert!(parts.is_done());
            let parts = Parts::apart(&data, &mut output, part_bytes);
            share(&slots, &parts);
        });
        let expected = marked(&data, part_bytes);
        prop_assert_eq!(&in_place, &expected);
        prop_assert_eq!(&output, &expected);
    }
}

/// The order in which parts are claimed, from both ends in turn as `fronts` says.
fn order(count: usize, back_first: usize, fronts: &[bool]) -> Vec<usize> {
    let mut data = vec![0; count];
    let mut parts = Parts::in_place(&mut data, 1);
    parts.let_back_begin_at(back_first);
    let claim = |front: &bool| if *front { parts.front() } else { parts.back() };
    fronts.iter().map_while(claim).map(|part| part.index).collect()
}

#[test]
fn both_ends_go_upwards_and_then_take_the_others_last_parts() {
    let (front, back) = (true, false);
    assert_eq!(order(6, 3, &[back, front, back, front, back, front]), [3, 0, 4, 1, 5, 2]);
    assert_eq!(order(6, 3, &[front; 6]), [0, 1, 2, 5, 4, 3]);
    assert_eq!(order(6, 3, &[back; 6]), [3, 4, 5, 2, 1, 0]);
    assert_eq!(order(6, 6, &[back; 6]), [5, 4, 3, 2, 1, 0]);
}

#[test]
fn what_failed_or_panicked_is_the_owners_again() {
    let slots = [HelperSlot::new()];
    let data: Vec<u8> = (0..250).collect();
    let mut in_place = data.clone();
    with_helpers(&slots, || {
        let mut parts = Parts::in_place(&mut in_place, 10);
        let back = || {
            let _two_that_are_not_done = (parts.back(), parts.back());
            resume_unwind(Box::new("the work fails"));
        };
        let ((), lent) = lend(&slots, &back, || {
            // Leaves two for the other, which must come.
            (0..23).filter_map(|_| parts.front()).for_each(mark);
            while parts.back().is_some() {}
        });
        assert_eq!(lent.served + lent.taken_back, 1);
        assert!(!parts.is_done());
        let mut undone = Vec::new();
        parts.undone(|part| {
            undone.push(part.index);
            mark(part);
        });
        assert_eq!(undone, [23, 24]);
        assert!(parts.is_done());
    });
    assert_eq!(in_place, marked(&data, 10));
}

#[test]
fn a_part_in_place_that_a_claimant_left_in_the_middle_is_given_to_nobody() {
    let (mut data, input) = ([0; 40], [0; 40]);
    let mut output = [0; 40];
    let left = |mut parts: Parts<'_>| {
        let leaves = catch_unwind(AssertUnwindSafe(|| {
            let mut part = parts.back().expect("nothing was claimed");
            let (PartBytes::InPlace(bytes) | PartBytes::Apart(_, bytes)) = part.bytes();
            bytes[0] = 1;
            resume_unwind(Box::new("in the middle"));
        }));
        assert!(leaves.is_err());
        let mut undone = Vec::new();
        parts.undone(|part| {
            undone.push(part.index);
            mark(part);
        });
        (undone, parts.is_done())
    };
    assert_eq!(left(Parts::in_place(&mut data, 10)), (vec![0, 1, 2], false));
    assert_eq!(left(Parts::apart(&input, &mut output, 10)), (vec![0, 1, 2, 3], true));
}

#[test]
fn one_that_looks_on_begins_without_having_slept() {
    let (slot, looks, begun) = (HelperSlot::new(), AtomicU32::new(0), AtomicU32::new(0));
    thread::scope(|scope| {
        let server = scope.spawn(|| {
            let looks_on = || {
                looks.fetch_add(1, Relaxed);
                thread::yield_now();
                true
            };
            slot.serve_awake(looks_on, || _ = begun.fetch_add(1, Relaxed))
        });
        while looks.load(Relaxed) < 3 {
            thread::yield_now();
        }
        let ran = AtomicU32::new(0);
        let work = || {
            assert_eq!(begun.load(Relaxed), 1, "the server is told first");
            ran.fetch_add(1, Relaxed);
        };
        let ((), lent) = lend(std::slice::from_ref(&slot), &work, || {
            while ran.load(Relaxed) == 0 {
                thread::yield_now();
            }
        });
        assert_eq!((lent.served, ran.load(Relaxed)), (1, 1));
        assert!(server.join().expect("the server ends"));
    });
}

#[test]
fn nothing_runs_when_the_call_has_returned() {
    let (slots, calls) = ([HelperSlot::new(), HelperSlot::new()], if cfg!(miri) { 20 } else { 20_000 });
    with_helpers(&slots, || {
        for call in 0..calls {
            // In this frame, as a caller's buffer may be: a late one would count in another call's.
            let (entered, left) = (AtomicU32::new(0), AtomicU32::new(0));
            let work = || {
                entered.fetch_add(1, Relaxed);
                (0..call % 64).for_each(|_| std::hint::spin_loop());
                left.fetch_add(1, Relaxed);
            };
            let ((), lent) = lend(&slots, &work, || {
                if call % 3 == 0 {
                    thread::yield_now();
                }
            });
            assert_eq!((entered.load(Relaxed), left.load(Relaxed)), (lent.served, lent.served));
            assert_eq!(lent.served + lent.taken_back, 2);
        }
    });
}
