//! Published cases as questions, and the publisher's answers as judge.

use std::sync::Arc;

use evener_core::{Algorithm, Direction, JobError, Outcome, Padding, Session};
use evener_vectors::Case;

use super::{Answer, JobSpec, Layout, Route, answers};

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

fn spec_of(case: &Case, session: &Arc<Session>, layout: Layout) -> JobSpec {
    let (input, tag) = match session.direction() {
        Direction::Encrypt => (case.plaintext.clone(), Vec::new()),
        Direction::Decrypt => (case.ciphertext.clone(), case.tag.clone()),
    };
    JobSpec { session: Arc::clone(session), iv: case.iv.clone(), aad: case.aad.clone(), input, tag, layout }
}

/// Every case with its questions, each in place and apart; a shift of 1 to 15 bytes that changes from case to case.
fn questions() -> Vec<(Case, JobSpec)> {
    let mut questions_of = Vec::new();
    for (place, case) in evener_vectors::all().enumerate() {
        for direction in [Direction::Encrypt, Direction::Decrypt] {
            if !speaks_of(&case, direction) {
                continue;
            }
            let session = session(&case, direction);
            for in_place in [false, true] {
                let layout = Layout { shift: 1 + place % 15, in_place };
                questions_of.push((case.clone(), spec_of(&case, &session, layout)));
            }
        }
    }
    questions_of
}

/// Fails unless the answer is what was published.
fn check(case: &Case, spec: &JobSpec, answer: &Answer) {
    let case_name = format!("{} {}: {}: {:?}", case.source, case.id, spec.what(), answer.outcome);
    let done = matches!(answer.outcome, Outcome::Done { .. });
    match (case.valid, spec.session.direction()) {
        (true, Direction::Encrypt) => {
            assert!(done && answer.output == case.ciphertext && answer.tag == case.tag, "{case_name}");
        }
        (true, Direction::Decrypt) => assert!(done && answer.output == case.plaintext, "{case_name}"),
        (false, Direction::Encrypt) => assert!(done && answer.tag != case.tag, "{case_name}"),
        (false, Direction::Decrypt) => assert!(is_refusal(spec, answer.outcome), "{case_name}"),
    }
}

/// Whether the data was found wrong, and not merely left alone.
fn is_refusal(spec: &JobSpec, outcome: Outcome) -> bool {
    let found: &[JobError] = match spec.session.algorithm().is_aead() {
        true => &[JobError::NotAuthentic],
        false => &[JobError::BadPadding, JobError::BadLength],
    };
    found.iter().any(|&error| outcome == Outcome::Failed(error))
}

/// Asks all published cases that `takes` takes at once; returns how many questions that were.
///
/// # Panics
///
/// Where an answer is not the published one.
pub fn ask_all(route: &mut impl Route, takes: impl Fn(&JobSpec) -> bool) -> usize {
    let mut questions_of = questions();
    questions_of.retain(|(_, spec)| takes(spec));
    let (cases, specs): (Vec<Case>, Vec<JobSpec>) = questions_of.into_iter().unzip();
    let came = answers(route, &specs);
    cases.iter().zip(&specs).zip(&came).for_each(|((case, spec), answer)| check(case, spec, answer));
    specs.len()
}
