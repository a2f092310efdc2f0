//! Published vectors, each in a burst of its own kind.

use crate::support::{JobSpec, driver, run};
use evener_core::{Algorithm, Direction, InlineDriver as _, JobError, Outcome, Padding, Session};
use evener_driver_multibuffer::Multibuffer;
use evener_vectors::Case;

/// The session of a case in one direction, where the driver has it.
fn session_of(case: &Case, direction: Direction) -> Option<Session> {
    let algorithm: Algorithm = case.algorithm.parse().ok()?;
    let padding = if case.padded { Padding::Pkcs7 } else { Padding::None };
    Session::new(algorithm, direction, padding, &case.key).ok()
}

fn spec<'s>(session: &'s Session, case: &Case, place: usize) -> JobSpec<'s> {
    let (input, tag) = match session.direction() {
        Direction::Encrypt => (&case.plaintext, Vec::new()),
        Direction::Decrypt => (&case.ciphertext, case.tag.clone()),
    };
    let (iv, aad, input) = (case.iv.clone(), case.aad.clone(), input.clone());
    JobSpec { session, iv, aad, input, tag, shift: place % 64, in_place: place % 2 == 0 }
}

/// Whether the data was found wrong, and not merely left alone.
fn is_refusal(outcome: Outcome) -> bool {
    let found = [JobError::BadLength, JobError::BadPadding, JobError::NotAuthentic];
    found.iter().any(|&error| outcome == Outcome::Failed(error))
}

/// Runs all cases of an algorithm that have a meaning in this direction; returns how many there are.
fn check(driver: &mut Multibuffer, algorithm: Algorithm, direction: Direction) -> usize {
    let bytes_max = driver.job_bytes_max(algorithm, direction);
    let cases: Vec<Case> = evener_vectors::by_algorithm(algorithm.name())
        .filter(|case| case.valid || direction == Direction::Decrypt)
        .filter(|case| case.plaintext.len().max(case.ciphertext.len()) <= bytes_max)
        .collect();
    let sessions: Vec<Session> = cases.iter().map(|case| session_of(case, direction).unwrap()).collect();
    let both = sessions.iter().zip(&cases).enumerate();
    let specs: Vec<JobSpec<'_>> = both.map(|(place, (session, case))| spec(session, case, place)).collect();
    for (case, answer) in cases.iter().zip(run(driver, &specs)) {
        let what = format!("{} {} {algorithm} {direction}", case.source, case.id);
        match (case.valid, direction) {
            (true, Direction::Encrypt) => {
                assert_eq!((&answer.output, &answer.tag), (&case.ciphertext, &case.tag), "{what}");
            }
            (true, Direction::Decrypt) => assert_eq!(answer.output, case.plaintext, "{what}"),
            (false, _) => assert!(is_refusal(answer.outcome), "{what}: {:?}", answer.outcome),
        }
    }
    cases.len()
}

#[test]
fn published_vectors_come_out_as_published() {
    let Some(mut driver) = driver() else { return };
    let mut checked = 0;
    for &algorithm in Algorithm::ALL {
        for direction in [Direction::Encrypt, Direction::Decrypt] {
            if driver.supports(algorithm, direction) {
                checked += check(&mut driver, algorithm, direction);
            }
        }
    }
    assert!(checked > 7_000, "{checked} vectors");
}
