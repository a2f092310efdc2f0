//! Splitting of one call between threads, judged by AES from another hand: counter mode, so that each part is its own.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use aes::cipher::generic_array::GenericArray;
use aes::cipher::{BlockEncrypt as _, KeyInit as _};
use evener::core::splits::RequestSize;
use evener::split::{self, HelperPool, Helpers, PartWorker, Threshold};
use evener_ring::Parts;
use proptest::prelude::*;

/// The helper pool is the process's: tests that want it free take turns.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

const FROM_ANY: Threshold = Threshold::From(0);

fn helper_pool() -> &'static HelperPool {
    loop {
        if let Some(helper_pool) = split::helper_pool() {
            return helper_pool;
        }
    }
}

fn load(bytes: usize) -> RequestSize {
    RequestSize { kind: 0, bytes }
}

/// Adds the key stream from `block` on, as `data` in place.
fn counter_mode(data: &mut [u8], block: usize) {
    let cipher = aes::Aes128::new(&[7; 16].into());
    for (count, chunk) in (block as u128..).zip(data.chunks_mut(16)) {
        let mut stream = GenericArray::from(count.to_be_bytes());
        cipher.encrypt_block(&mut stream);
        chunk.iter_mut().zip(stream).for_each(|(byte, key)| *byte ^= key);
    }
}

/// Counter mode by parts; in a helper it may fail or panic.
struct Counter<'t> {
    part_bytes: usize,
    fault: Option<&'t InjectedFault>,
    /// Not the caller's own.
    is_helper: bool,
    /// Blocks before the part.
    at: usize,
}

/// What goes wrong in helpers.
struct InjectedFault {
    panics: bool,
    /// With the part half written, and not before it is touched.
    in_the_middle: bool,
    failures: AtomicU32,
}

impl InjectedFault {
    fn new(panics: bool, in_the_middle: bool) -> Self {
        Self { panics, in_the_middle, failures: AtomicU32::new(0) }
    }

    fn happens(&self) -> bool {
        self.failures.fetch_add(1, Relaxed);
        if self.panics {
            std::panic::resume_unwind(Box::new("a helper fails"));
        }
        false
    }
}

impl Counter<'_> {
    /// What goes wrong here, and how far into the part.
    fn fault(&self, in_the_middle: bool) -> Option<&InjectedFault> {
        self.fault.filter(|fault| self.is_helper && fault.in_the_middle == in_the_middle)
    }
}

impl PartWorker for Counter<'_> {
    fn begin(&mut self, index: usize) -> bool {
        if self.fault.is_some() && !self.is_helper {
            // So that helpers get their turn.
            thread::sleep(Duration::from_micros(300));
        }
        let is_ready = self.fault(false).is_none_or(InjectedFault::happens);
        // Where it is not ready, it stands in the wrong place.
        self.at = if is_ready { index * self.part_bytes / 16 } else { 7_777 };
        is_ready
    }

    fn out_of_place(&mut self, index: usize, input: &[u8], output: &mut [u8]) -> bool {
        output.copy_from_slice(input);
        self.in_place(index, output)
    }

    fn in_place(&mut self, _: usize, data: &mut [u8]) -> bool {
        if let Some(fault) = self.fault(true) {
            let half = data.len() / 2;
            data[..half].fill(0xEE);
            return fault.happens();
        }
        counter_mode(data, self.at);
        true
    }
}

fn share(helpers: &Helpers, parts: &mut Parts<'_>, fault: Option<&InjectedFault>) -> bool {
    let part_bytes = parts.part_bytes();
    let worker = |is_helper| Counter { part_bytes, fault, is_helper, at: 0 };
    let others: Vec<_> = (0..helpers.count()).map(|_| Mutex::new(worker(true))).collect();
    helpers.share(parts, worker(false), &others)
}

/// `data` in counter mode, in place and apart, by split calls.
fn split_both(
    data: &[u8],
    part_blocks: usize,
    threads: usize,
    fault: Option<&InjectedFault>,
) -> [Vec<u8>; 2] {
    let (mut in_place, mut output) = (data.to_vec(), vec![0; data.len()]);
    let part_bytes = part_blocks * 16;
    let work = |parts: &mut Parts<'_>| {
        let call = helper_pool().begin(load(data.len()), threads, FROM_ANY);
        assert!(share(call.helpers().expect("a number is obeyed while a slot is free"), parts, fault));
        call.end();
    };
    work(&mut Parts::in_place(&mut in_place, part_bytes));
    work(&mut Parts::apart(data, &mut output, part_bytes));
    [in_place, output]
}

fn noise(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 131 / 8).to_le_bytes()[0]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_call_in_parts_gives_what_the_whole_gives(
        bytes in 0usize..200_000,
        part_blocks in 8usize..600,
        threads in 2usize..5,
    ) {
        let _turn = turn();
        let data = noise(bytes);
        let mut whole = data.clone();
        counter_mode(&mut whole, 0);
        for result in split_both(&data, part_blocks, threads, None) {
            prop_assert!(result == whole);
        }
    }
}

/// A text, and what the whole of it becomes.
fn text_and_result() -> (Vec<u8>, Vec<u8>) {
    let data = noise(100_000);
    let mut whole = data.clone();
    counter_mode(&mut whole, 0);
    (data, whole)
}

/// Does `body` with a text and its result until the fault happened so often, by an error and by a panic.
fn until_failed(often: u32, in_the_middle: bool, body: impl Fn(&InjectedFault, &[u8], &[u8])) {
    let _turn = turn();
    let (data, whole) = text_and_result();
    for panics in [false, true] {
        let fault = InjectedFault::new(panics, in_the_middle);
        while fault.failures.load(Relaxed) < often {
            body(&fault, &data, &whole);
        }
    }
}

#[test]
fn a_helper_that_fails_or_panics_before_a_part_costs_no_byte() {
    until_failed(4, false, |fault, data, whole| {
        for result in split_both(data, 64, 2, Some(fault)) {
            assert!(result == whole);
        }
    });
}

#[test]
fn a_helper_that_leaves_a_part_in_the_middle_fails_the_call_in_place_and_costs_no_byte_apart() {
    until_failed(2, true, |fault, data, whole| {
        let failures = || fault.failures.load(Relaxed);
        let (mut in_place, mut output, before) = (data.to_vec(), vec![0; data.len()], failures());
        let call = helper_pool().begin(load(data.len()), 2, FROM_ANY);
        let helpers = call.helpers().expect("a slot is free");
        let done = share(helpers, &mut Parts::in_place(&mut in_place, 4096), Some(fault));
        assert_eq!(done, failures() == before);
        assert_eq!(in_place == whole, done);
        assert!(share(helpers, &mut Parts::apart(data, &mut output, 4096), Some(fault)));
        assert!(output == whole);
    });
}

#[test]
fn threads_that_split_at_the_same_moment_keep_their_buffers_apart() {
    let _turn = turn();
    thread::scope(|scope| {
        for caller in 0..4_usize {
            scope.spawn(move || {
                let mut whole = noise(80_000 + caller);
                let data = whole.clone();
                counter_mode(&mut whole, 0);
                for _ in 0..30 {
                    let mut in_place = data.clone();
                    let call = helper_pool().begin(load(data.len()), 3, FROM_ANY);
                    match call.helpers() {
                        Some(helpers) => {
                            assert!(share(helpers, &mut Parts::in_place(&mut in_place, 4096), None));
                        }
                        // Others have the slots.
                        None => counter_mode(&mut in_place, 0),
                    }
                    call.end();
                    assert!(in_place == whole);
                }
            });
        }
    });
}

#[test]
fn nothing_is_split_without_threads_or_below_the_number() {
    let _turn = turn();
    let is_split =
        |threads, threshold| helper_pool().begin(load(100), threads, threshold).helpers().is_some();
    assert!(!is_split(0, FROM_ANY));
    assert!(!is_split(1, FROM_ANY));
    assert!(!is_split(2, Threshold::From(101)));
    assert!(is_split(2, Threshold::From(100)));
}

/// Fails whatever it is given.
struct Lame;

impl PartWorker for Lame {
    fn begin(&mut self, _: usize) -> bool {
        true
    }
    fn out_of_place(&mut self, _: usize, _: &[u8], _: &mut [u8]) -> bool {
        false
    }
    fn in_place(&mut self, _: usize, _: &mut [u8]) -> bool {
        false
    }
}

#[test]
fn a_part_worker_that_fails_its_caller_says_so() {
    let _turn = turn();
    let mut data = noise(50_000);
    let run = |parts: &mut Parts<'_>, others: &[Mutex<Lame>]| {
        let call = helper_pool().begin(load(50_000), 2, FROM_ANY);
        call.helpers().expect("a slot is free").share(parts, Lame, others)
    };
    assert!(!run(&mut Parts::in_place(&mut data, 4096), &[Mutex::new(Lame)]));
    assert!(!run(&mut Parts::in_place(&mut data, 4096), &[]));
}
