//! Requests of asynchronous jobs get what the default provider gives, are put aside and encrypted together, and none is
//! forgotten, however the program waits.

#![allow(unsafe_code, reason = "room: its support calls libcrypto")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test that says what it skips")]

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;

use evener_provider::OSSL_provider_init;

mod support;

use support::ffi::job::{Fibre, Step, are_ready, clean_up, may_be_cancelled, set_cancellable};
use support::ffi::{Cipher, CipherCtx, DEFAULT, Provider};
use support::{Random, both_providers, bytes, in_program};

/// Without the guard, which keeps the first requests of each size where they are: `guard.rs`.
const AUTO: &[(&str, &str)] = &[("EVENER_COMBINE", "auto"), ("EVENER_GUARD", "off")];

/// Messages of one job.
const MESSAGES: u64 = 5;

/// The providers; `None` with a line where lanes cannot be had here.
fn providers() -> Option<(Provider, Provider)> {
    let both = both_providers(OSSL_provider_init);
    let says = both.1.says(c"buildinfo").unwrap();
    if says.contains("combine = auto:") {
        println!("skipped: {says}");
        return None;
    }
    Some(both)
}

fn counts(evener: &Provider) -> [u32; 2] {
    [c"evener-paused", c"evener-combined"].map(|key| evener.count(key).unwrap())
}

/// How a job's messages come.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Whole,
    /// So many bytes of a block first.
    Begun(usize),
    /// Of TLS 1.2 under Encrypt-then-MAC.
    Records,
}

impl Form {
    /// Whether it is accepted.
    fn begin(self, context: &CipherCtx, cipher: &Cipher, key: &[u8]) -> bool {
        let ready = context.init(Some(cipher), Some(key), Some(&[7; 16]), Some(true));
        let records = [(c"tls-version", 0x0303), (c"tls-mac-size", 0)];
        ready && (self != Self::Records || context.set_numbers(records))
    }

    /// Encrypts a message in place; how much came out, and what after it.
    fn encrypt(self, context: &CipherCtx, space: &mut [u8], len: usize) -> Option<(usize, Vec<u8>)> {
        let first = if let Self::Begun(bytes) = self { bytes } else { 0 };
        if first > 0 && !context.update(&space[..first])?.is_empty() {
            return None;
        }
        let (done, written) = context.update_within(space, first, 0, len - first);
        let last = if self == Self::Records { Some(Vec::new()) } else { context.last() };
        done.then_some(written).zip(last)
    }
}

/// What a job encrypts, and what comes out by default.
struct Work {
    form: Form,
    cipher: Cipher,
    context: CipherCtx,
    key: Vec<u8>,
    spaces: Vec<(Vec<u8>, usize, Vec<u8>)>,
}

impl Work {
    fn new(seed: u64) -> Self {
        let length = |random: &mut Random| {
            [16_384, 4_112, 32_768, 4_112 + 16 * random.below(999), 999][random.below(5)]
        };
        Self::of(seed, length)
    }

    /// Messages of that length.
    fn of(seed: u64, length: impl Fn(&mut Random) -> usize) -> Self {
        let name = ["AES-128-CBC", "AES-192-CBC", "AES-256-CBC"][usize::try_from(seed % 3).unwrap()];
        let [cipher, judge] = ["evener", "default"]
            .map(|provider| DEFAULT.cipher(name, &format!("provider={provider}")).unwrap());
        let key = bytes(seed, cipher.key_bytes());
        let form = [Form::Whole, Form::Begun(4), Form::Records, Form::Begun(13)]
            [usize::try_from(seed / 3 % 4).unwrap()];
        let mut random = Random::new(seed);
        let spaces = (0..MESSAGES).map(|number| {
            let len = length(&mut random);
            let space = bytes(seed + number, len + 16);
            let context = CipherCtx::new();
            assert!(form.begin(&context, &judge, &key));
            let mut expected = space.clone();
            let (written, last) = form.encrypt(&context, &mut expected, len).unwrap();
            expected.truncate(written);
            expected.extend(last);
            (space, len, expected)
        });
        let spaces = spaces.collect();
        Self { form, cipher, context: CipherCtx::new(), key, spaces }
    }

    /// Encrypts all, in place.
    fn encrypt(&mut self) -> bool {
        let Self { form, cipher, context, key, spaces } = self;
        spaces.iter_mut().all(|(space, len, expected)| {
            let ready = form.begin(context, cipher, key);
            let done = form.encrypt(context, space, *len);
            done.is_some_and(|(written, last)| {
                ready && space[..written] == expected[..written] && last == expected[written..]
            })
        })
    }
}

/// So many jobs that each encrypt messages, and count themselves as right in the end.
fn fibres(seed: u64, count: u64, right: &AtomicU32) -> Vec<Fibre<'_>> {
    let seeds = seed * 1_000..seed * 1_000 + count;
    let fibre = |seed| {
        let mut work = Work::new(seed);
        Fibre::new(move || {
            right.fetch_add(u32::from(work.encrypt()), Relaxed);
        })
    };
    seeds.map(fibre).collect()
}

/// Starts jobs again and again until all are finished; `waits` sees each that is paused.
fn run(mut fibres: Vec<Fibre<'_>>, mut waits: impl FnMut(&Fibre<'_>)) {
    while !fibres.is_empty() {
        fibres.retain_mut(|fibre| {
            let step = fibre.step();
            if step == Step::Paused {
                waits(fibre);
            }
            step == Step::Paused
        });
    }
}

/// Runs `body` in a program whose provider encrypts jobs together, with a count of the messages that came out right.
fn with_jobs(name: &str, body: impl FnOnce(&Provider, &AtomicU32)) {
    in_program(name, "", AUTO, || {
        let Some((_default, evener)) = providers() else { return };
        body(&evener, &AtomicU32::new(0));
    });
}

#[test]
fn whatever_jobs_do_together_comes_out_as_by_default() {
    in_program("whatever_jobs_do_together_comes_out_as_by_default", "", AUTO, || {
        let Some((_default, evener)) = providers() else { return };
        for (threads, jobs) in [(1, 1), (1, 2), (1, 16), (4, 1), (4, 2), (4, 16), (2, 40)] {
            let right = AtomicU32::new(0);
            let before = counts(&evener);
            thread::scope(|scope| {
                for number in 0..threads {
                    let right = &right;
                    scope.spawn(move || {
                        run(fibres(number, jobs, right), |_| ());
                        clean_up();
                    });
                }
            });
            assert_eq!(u64::from(right.load(Relaxed)), threads * jobs, "{threads} threads, {jobs} jobs each");
            let [paused, combined] = [0, 1].map(|at| counts(&evener)[at] - before[at]);
            assert!(jobs == 1 || paused > 0, "{paused} {combined} {jobs}");
            // Two that wait for each other go alone where the machine lets one of them wait for long.
            assert!(jobs <= 2 || combined > 0, "{paused} {combined} {jobs}");
        }
    });
}

#[test]
fn a_job_is_put_aside_from_four_kilobytes_on() {
    with_jobs("a_job_is_put_aside_from_four_kilobytes_on", |evener, right| {
        for (len, paused) in [(4_096, 2), (4_080, 0)] {
            let works = [0, 12].map(|seed| Work::of(seed, |_| len));
            let before = counts(evener)[0];
            let mut all: Vec<Fibre<'_>> = works
                .map(|mut work| Fibre::new(move || _ = right.fetch_add(u32::from(work.encrypt()), Relaxed)))
                .into();
            all.retain_mut(|fibre| fibre.step() == Step::Paused);
            assert_eq!((all.len(), counts(evener)[0] - before), (paused as usize, paused), "{len}");
            run(all, |_| ());
        }
        assert_eq!(right.load(Relaxed), 4);
    });
}

#[test]
fn full_lanes_are_run_without_waiting_for_more() {
    with_jobs("full_lanes_are_run_without_waiting_for_more", |evener, right| {
        let mut all = fibres(0, 16, right);
        // The last one, which finds 15 others, is not put aside for its first long message.
        let paused = |fibre: &mut Fibre<'_>| fibre.step() == Step::Paused;
        assert!(all[..15].iter_mut().all(paused));
        assert_eq!(counts(evener), [15, 0]);
        let is_left = paused(&mut all[15]);
        assert!(counts(evener)[1] > 0, "its message is done, and nobody was resumed");
        all.truncate(if is_left { 16 } else { 15 });
        run(all, |_| ());
        assert_eq!(right.load(Relaxed), 16);
    });
}

#[test]
fn a_program_that_polls_is_woken_for_every_job_that_is_paused() {
    with_jobs("a_program_that_polls_is_woken_for_every_job_that_is_paused", |evener, right| {
        run(fibres(1, 7, right), |fibre| {
            let descriptors = fibre.descriptors();
            assert_eq!(descriptors.len(), 1);
            assert!(are_ready(&descriptors));
        });
        assert_eq!(right.load(Relaxed), 7);
        assert!(counts(evener)[0] > 0);
    });
}

#[test]
fn a_program_that_gave_a_function_is_called_back_for_every_pause() {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    with_jobs("a_program_that_gave_a_function_is_called_back_for_every_pause", |evener, right| {
        let all = fibres(2, 5, right);
        all.iter().for_each(|fibre| fibre.call_back(&CALLS));
        run(all, |fibre| assert!(fibre.descriptors().is_empty()));
        assert_eq!(right.load(Relaxed), 5);
        assert!(CALLS.load(Relaxed) > 0);
        assert_eq!(CALLS.load(Relaxed), counts(evener)[0]);
    });
}

#[test]
fn a_request_that_waits_is_encrypted_by_another_threads_job() {
    with_jobs("a_request_that_waits_is_encrypted_by_another_threads_job", |evener, right| {
        let mut waiting = fibres(3, 3, right);
        assert!(waiting.iter_mut().all(|fibre| fibre.step() == Step::Paused));
        assert_eq!(counts(evener), [3, 0]);
        thread::scope(|scope| {
            scope.spawn(|| {
                run(fibres(4, 3, right), |_| ());
                clean_up();
            });
        });
        assert_eq!(right.load(Relaxed), 3);
        let by_the_other = counts(evener)[1];
        run(waiting, |_| ());
        assert_eq!(right.load(Relaxed), 6);
        // More than the other thread's own messages.
        assert!(by_the_other > 3, "{by_the_other}");
    });
}

#[test]
fn nobody_is_put_aside_who_did_not_ask_for_it() {
    in_program("nobody_is_put_aside_who_did_not_ask_for_it", "", &[], || {
        let Some((_default, evener)) = providers() else { return };
        let right = AtomicU32::new(0);
        run(fibres(4, 4, &right), |_| panic!("no job waits"));
        assert_eq!(right.load(Relaxed), 4);
        assert_eq!(counts(&evener), [0, 0]);
    });
}

#[test]
fn who_may_be_cancelled_may_be_while_jobs_are_put_aside_and_after_they_end_in_any_order() {
    let name = "who_may_be_cancelled_may_be_while_jobs_are_put_aside_and_after_they_end_in_any_order";
    with_jobs(name, |evener, right| {
        for (seed, holds) in [(0, false), (12, true)] {
            set_cancellable(!holds);
            let job = |number| {
                let mut work = Work::of(number, |_| 16_384);
                Fibre::new(move || _ = right.fetch_add(u32::from(work.encrypt()), Relaxed))
            };
            let mut jobs = [job(seed), job(seed + 1)];
            for fibre in &mut jobs {
                assert_eq!(fibre.step(), Step::Paused);
                assert_eq!(may_be_cancelled(), !holds, "while it is paused");
            }
            // The first ends before the next goes on.
            for mut fibre in jobs {
                while fibre.step() == Step::Paused {
                    assert_eq!(may_be_cancelled(), !holds, "while it is paused again");
                }
                assert_eq!(may_be_cancelled(), !holds, "after its end");
            }
        }
        assert_eq!(right.load(Relaxed), 4);
        assert!(counts(evener)[0] >= 4, "each was paused");
    });
}
