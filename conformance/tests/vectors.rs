//! Every published case through every driver and method, in both directions, in bursts of all widths up to 33, in
//! place and apart, at addresses off every border.

use std::sync::Arc;

use evener_conformance::{
    Answer, Ask, ByRuntime, Direct, Door, Layout, Way, answers, libcrypto, multibuffer,
};
use evener_core::plan::Policy;
use evener_core::{Algorithm, Direction, InlineDriver, JobError, Outcome, Padding, Session};
use evener_driver_emulated::{Fault, When};
use evener_vectors::Case;

/// Jobs by which all cases are asked, each in place and apart: none is left out.
const ASKED: usize = 15_702;
/// Of these, what the multi-buffer library does: all but XTS and MD5.
const ASKED_OF_LANES: usize = 14_880;
/// Of these, what a core refuses before a module sees it: no text at all where padding must be, by key size.
const REFUSED_BEFORE: usize = 6;

fn session(case: &Case, direction: Direction) -> Arc<Session> {
    let padding = if case.padded { Padding::Pkcs7 } else { Padding::None };
    let session = Session::new(algorithm(case), direction, padding, &case.key);
    Arc::new(session.expect("every published key is one for a session"))
}

fn algorithm(case: &Case) -> Algorithm {
    case.algorithm.parse().expect("a name of the table")
}

/// Whether the case says anything in this direction: what is not valid has no encryption, a hash no decryption.
fn speaks_of(case: &Case, direction: Direction) -> bool {
    let is_cipher = algorithm(case).is_cipher();
    match direction {
        Direction::Encrypt => case.valid || !is_cipher,
        Direction::Decrypt => is_cipher,
    }
}

fn ask(case: &Case, session: &Arc<Session>, layout: Layout) -> Ask {
    let (input, tag) = match session.direction() {
        Direction::Encrypt => (case.plaintext.clone(), Vec::new()),
        Direction::Decrypt => (case.ciphertext.clone(), case.tag.clone()),
    };
    Ask { session: Arc::clone(session), iv: case.iv.clone(), aad: case.aad.clone(), input, tag, layout }
}

/// Every case with its questions, each in place and apart; a shift of 1 to 15 bytes that changes from case to case.
fn questions() -> Vec<(Case, Ask)> {
    let mut asked = Vec::new();
    for (place, case) in evener_vectors::all().enumerate() {
        for direction in [Direction::Encrypt, Direction::Decrypt] {
            if !speaks_of(&case, direction) {
                continue;
            }
            let session = session(&case, direction);
            for in_place in [false, true] {
                let layout = Layout { shift: 1 + place % 15, in_place };
                asked.push((case.clone(), ask(&case, &session, layout)));
            }
        }
    }
    asked
}

/// Fails unless the answer is what was published.
fn check(case: &Case, ask: &Ask, answer: &Answer) {
    let what = format!("{} {}: {}: {:?}", case.source, case.id, ask.what(), answer.outcome);
    let done = matches!(answer.outcome, Outcome::Done { .. });
    match (case.valid, ask.session.direction()) {
        (true, Direction::Encrypt) => {
            assert!(done && answer.output == case.ciphertext && answer.tag == case.tag, "{what}");
        }
        (true, Direction::Decrypt) => assert!(done && answer.output == case.plaintext, "{what}"),
        (false, Direction::Encrypt) => assert!(done && answer.tag != case.tag, "{what}"),
        (false, Direction::Decrypt) => assert!(is_refusal(ask, answer.outcome), "{what}"),
    }
}

/// Whether the data was found wrong, and not merely left alone.
fn is_refusal(ask: &Ask, outcome: Outcome) -> bool {
    let found: &[JobError] = match ask.session.algorithm().is_aead() {
        true => &[JobError::NotAuthentic],
        false => &[JobError::BadPadding, JobError::BadLength],
    };
    found.iter().any(|&error| outcome == Outcome::Failed(error))
}

/// Asks all of it at once; returns how much that was.
fn ask_all(way: &mut impl Way, takes: impl Fn(&Ask) -> bool) -> usize {
    let mut asked = questions();
    asked.retain(|(_, ask)| takes(ask));
    let (cases, asks): (Vec<Case>, Vec<Ask>) = asked.into_iter().unzip();
    let came = answers(way, &asks);
    cases.iter().zip(&asks).zip(&came).for_each(|((case, ask), answer)| check(case, ask, answer));
    asks.len()
}

#[test]
fn plain_gives_what_was_published() {
    assert_eq!(ask_all(&mut Direct(libcrypto()), |_| true), ASKED);
}

#[test]
fn multi_buffer_gives_what_was_published() {
    let Some(driver) = multibuffer() else { return };
    let wrong = driver.wrong_answers().to_vec();
    let takes = |driver: &dyn InlineDriver, ask: &Ask| {
        let (algorithm, direction) = (ask.session.algorithm(), ask.session.direction());
        driver.supports(algorithm, direction) && ask.input.len() <= driver.job_bytes_max(algorithm, direction)
    };
    let judge = multibuffer().expect("it was there a moment ago");
    let asked = ask_all(&mut Direct(driver), |ask| takes(&judge, ask));
    if wrong.is_empty() {
        assert_eq!(asked, ASKED_OF_LANES);
    } else {
        println!("skipped: {wrong:?}, which the library answers wrongly on this machine");
    }
}

#[test]
fn an_emulated_module_gives_what_was_published_and_does_all_that_is_offered() {
    let way = ByRuntime::new(Policy::ModuleOnly, Door::Caller, 0);
    let mut way = way.with_module(Fault::None, When::ALWAYS);
    assert_eq!(ask_all(&mut way, |_| true), ASKED);
    let offloaded = way.report.modules();
    assert_eq!(offloaded.jobs + offloaded.failed, (ASKED - REFUSED_BEFORE) as u64);
}
