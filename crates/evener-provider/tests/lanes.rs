//! Lanes that compute wrongly are found out by the inner cipher, and used no more in this process.
//!
//! The provider is linked into this program, so that lanes of the test's can be handed in.

#![allow(unsafe_code, reason = "room: its support calls libcrypto")]
#![allow(clippy::unwrap_used, reason = "a test")]

use std::process::id;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use evener::counts_file::{Directories, of_process};
use evener::lanes;
use evener_core::counts::{Count, Kind, Row};
use evener_core::{Direction, InlineDriver, Job};
use evener_driver_lanes::Lanes;
use evener_provider::{OSSL_provider_init, offer_pipelines_anyway};

mod support;

use evener_testing::drivers::Around;
use support::ffi::job::{Fibre, Step};
use support::ffi::pipe::{Library, PipelineContext};
use support::ffi::{CipherCtx, DEFAULT};
use support::lanes::{ours_and_judge, with_lanes_of};
use support::{both_providers, bytes};

const LEN: usize = 16_384;

/// Bursts of the lying lanes.
static BURSTS: AtomicU32 = AtomicU32::new(0);

/// Lanes that get one bit of each result wrong.
fn lying_lanes() -> Option<Box<dyn InlineDriver>> {
    let run = |lanes: &mut Lanes, burst: &mut [Box<Job<'_>>]| {
        BURSTS.fetch_add(1, Relaxed);
        lanes.run(burst);
        for job in burst {
            let mut wrong = job.output().to_vec();
            wrong[LEN / 2] ^= 1;
            job.publish(&wrong, &[]);
        }
    };
    Some(Box::new(Around::new(Lanes::new()?, run)))
}

/// Runs `body` where lanes can be had, with the lying ones in their place.
fn with_lying_lanes(name: &str, body: impl FnOnce()) {
    with_lanes_of(lying_lanes, name, &[("EVENER_GUARD", "off")], body);
}

/// What this process shows: wrong results, and messages that were done again.
fn shown() -> (u32, u64) {
    let directory = std::env::var("EVENER_STATISTICS_DIR").unwrap();
    let record = of_process(&Directories::only(directory.into()), u32::MAX, id()).unwrap().unwrap();
    let redone =
        |len| record.row(Row::of(Kind::named("AES-128-CBC"), Direction::Encrypt, len)).of(Count::Redone);
    (record.wrong_lanes(), redone(LEN))
}

/// A job that encrypts a message, and compares it with what comes out by default.
fn job(seed: u64) -> Fibre<'static> {
    let ([context, judge], text) = (ours_and_judge(seed), bytes(seed, LEN));
    let expected = judge.update(&text).unwrap();
    // In place, where the input is overwritten before it is known to be wrong, or apart.
    Fibre::new(move || {
        if seed % 2 == 0 {
            return assert!(context.update(&text).unwrap() == expected);
        }
        let mut space = [&text[..], &[0; 16]].concat();
        assert_eq!(context.update_within(&mut space, 0, 0, LEN), (true, LEN));
        assert!(space[..LEN] == expected);
    })
}

/// Runs a pair of jobs until both are done.
fn run(pair: u64) {
    let mut jobs: Vec<_> = [2 * pair, 2 * pair + 1].map(job).into();
    while !jobs.is_empty() {
        jobs.retain_mut(|job| job.step() == Step::Paused);
    }
}

#[test]
fn what_lying_lanes_did_for_jobs_is_done_again_and_they_are_used_no_more() {
    let name = "what_lying_lanes_did_for_jobs_is_done_again_and_they_are_used_no_more";
    with_lying_lanes(name, || {
        let _both = both_providers(OSSL_provider_init);
        // Two at a time: both are among those that are always looked at.
        (0..20).for_each(run);
        assert_eq!((BURSTS.load(Relaxed), lanes::are_in_service()), (1, false));
        assert_eq!(shown(), (2, 2));
    });
}

#[test]
fn lanes_that_answer_wrongly_get_no_request_and_are_shown() {
    let name = "lanes_that_answer_wrongly_get_no_request_and_are_shown";
    with_lanes_of(
        || None,
        name,
        &[("EVENER_GUARD", "off")],
        || {
            let (_default, evener) = both_providers(OSSL_provider_init);
            (0..3).for_each(run);
            assert_eq!((lanes::are_in_service(), evener.count(c"evener-combined")), (false, Some(0)));
            assert_eq!(shown(), (1, 0));
        },
    );
}

#[test]
fn a_pipeline_that_lying_lanes_did_fails_and_the_next_is_done_without_them() {
    let name = "a_pipeline_that_lying_lanes_did_fails_and_the_next_is_done_without_them";
    with_lying_lanes(name, || {
        offer_pipelines_anyway();
        let (library, _judge) = Library::system(OSSL_provider_init);
        let kind = library.kind("AES-128-CBC").unwrap();
        let judge = CipherCtx::new();
        let by_default = DEFAULT.cipher("AES-128-CBC", "provider=default").unwrap();
        assert!(judge.init(Some(&by_default), Some(&[5; 16]), Some(&[6; 16]), Some(true)));
        // All that came out is what OpenSSL makes of it; nothing where the call failed.
        let call = |seed: u64| {
            let texts: [Vec<u8>; 3] = [0, 1, 2].map(|pipe| bytes(seed * 3 + pipe, LEN));
            let mut pipes = PipelineContext::new(&kind);
            assert!(pipes.init(true, true, Some(&[5; 16]), &[Some(&[6; 16][..]); 3]));
            let mut spaces = texts.to_vec();
            pipes.update(&mut spaces, None, &[LEN; 3])?;
            let is_right = |(text, space): (&Vec<u8>, &Vec<u8>)| {
                assert!(judge.init(None, None, Some(&[6; 16]), None));
                judge.update(text).unwrap() == *space
            };
            Some(texts.iter().zip(&spaces).all(is_right))
        };
        assert_eq!(call(1), None, "what lanes did is wrong, and nobody is told otherwise");
        assert!((2..20).all(|seed| call(seed) == Some(true)));
        assert_eq!((BURSTS.load(Relaxed), lanes::are_in_service()), (1, false));
        assert_eq!(shown().0, 1);
    });
}
