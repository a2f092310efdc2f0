//! Known answers, which are checked before a driver's library or module is used.

mod table;

use std::fmt::{self, Write as _};

use crate::driver::QueuedDriver;
use crate::job::algorithm::{Algorithm, Direction, Family, Hash};
use crate::job::session::{Padding, Session};
use crate::job::{Job, Outcome};
use crate::units::Nanos;

pub use self::table::KNOWN;

/// A known answer, in hexadecimal digits.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Whose answer.
    pub algorithm: Algorithm,
    /// Key; empty for hashes.
    pub key: &'static str,
    /// IV, nonce, counter or tweak.
    pub iv: &'static str,
    /// Associated data.
    pub aad: &'static str,
    /// The text in clear, or the message.
    pub text: &'static str,
    /// The text encrypted, without the tag.
    pub sealed: &'static str,
    /// Tag or digest.
    pub tag: &'static str,
}

/// A known answer that did not come: which, and the first bytes of what did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The example's algorithm.
    pub algorithm: Algorithm,
    /// Encryption or decryption.
    pub direction: Direction,
    /// Where the example was published.
    pub source: &'static str,
    /// Length of its key.
    pub key_bytes: usize,
    /// Bytes before the first wrong one, of the text, or of tag or digest where the text is right.
    pub right_bytes: usize,
    /// Bytes from there on as published, in hexadecimal digits.
    pub expected: String,
    /// As they came; or why none did.
    pub got: String,
}

/// Bytes of a wrong answer that are shown.
const SHOWN_BYTES: usize = 8;

impl Wrong {
    fn at(
        known: &Known,
        direction: Direction,
        expected: &[u8],
        got: Result<&[u8], &dyn fmt::Display>,
    ) -> Self {
        let bytes = got.unwrap_or_default();
        let right_bytes = expected.iter().zip(bytes).take_while(|(one, other)| one == other).count();
        let digits = |bytes: &[u8]| {
            let shown = bytes[right_bytes..].iter().take(SHOWN_BYTES);
            shown.fold(String::new(), |mut digits, byte| {
                write!(digits, "{byte:02x}").expect("a String takes everything");
                digits
            })
        };
        let got = got.map_or_else(
            |reason| format!("nothing ({reason})"),
            |got| if got.len() > right_bytes { digits(got) } else { "nothing".to_owned() },
        );
        Self {
            algorithm: known.algorithm,
            direction,
            source: known.source(),
            key_bytes: known.key.len() / 2,
            right_bytes,
            expected: digits(expected),
            got,
        }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { algorithm, direction, source, key_bytes, right_bytes, expected, got } = self;
        write!(f, "{algorithm} {direction} of the example in {source}")?;
        if *key_bytes > 0 {
            write!(f, " with a key of {key_bytes} bytes")?;
        }
        write!(f, " came out wrong: expected {expected} at byte {right_bytes}, got {got}")
    }
}

impl Known {
    /// Whether `run`, which may bring them back in any order, gives the answer to all of `count` jobs that ask alike.
    pub fn is_right(
        &self,
        direction: Direction,
        count: usize,
        run: impl for<'m> FnOnce(&mut Vec<Box<Job<'m>>>),
    ) -> bool {
        self.check(direction, count, run).is_ok()
    }

    /// As [`Known::is_right`], and says what came instead.
    ///
    /// # Errors
    ///
    /// The first wrong answer.
    pub fn check(
        &self,
        direction: Direction,
        count: usize,
        run: impl for<'m> FnOnce(&mut Vec<Box<Job<'m>>>),
    ) -> Result<(), Wrong> {
        let Ok(session) = Session::new(self.algorithm, direction, Padding::None, &bytes(self.key)) else {
            return Err(Wrong::at(self, direction, &[], Err(&"no such session")));
        };
        let (iv, aad, tag) = (bytes(self.iv), bytes(self.aad), bytes(self.tag));
        let (input, output) = match direction {
            Direction::Encrypt => (bytes(self.text), bytes(self.sealed)),
            Direction::Decrypt => (bytes(self.sealed), bytes(self.text)),
        };
        let mut spaces = vec![input.clone(); count];
        let mut burst: Vec<Box<Job<'_>>> = spaces.iter_mut().map(|space| Job::in_place(space)).collect();
        for job in &mut burst {
            job.arm(&session, &iv, input.len());
            job.set_aad(&aad);
            if direction == Direction::Decrypt {
                job.set_tag(&tag);
            }
        }
        run(&mut burst);
        if burst.len() != count {
            return Err(Wrong::at(self, direction, &output, Err(&"jobs are missing")));
        }
        burst.iter().try_for_each(|job| {
            let wrong = |expected, got| Err(Wrong::at(self, direction, expected, got));
            match job.outcome() {
                Outcome::Failed(error) => wrong(&output, Err(&error)),
                Outcome::Pending => wrong(&output, Err(&"not worked on")),
                Outcome::Done { .. } if job.output() != output => wrong(&output, Ok(job.output())),
                Outcome::Done { .. } if job.tag() != tag => wrong(&tag, Ok(job.tag())),
                Outcome::Done { .. } => Ok(()),
            }
        })
    }

    /// Where it was published.
    #[must_use]
    pub const fn source(&self) -> &'static str {
        match self.algorithm.family() {
            Family::Ecb | Family::Cbc | Family::Ctr => "SP 800-38A, appendix F",
            Family::Gcm => "the GCM specification of McGrew and Viega",
            Family::Xts => "NIST CAVP, XTSGenAES",
            Family::ChaCha20Poly1305 => "RFC 8439, 2.8.2",
            Family::Digest(Hash::Md5) => "RFC 1321",
            Family::Digest(_) => "FIPS 180-4",
            Family::Hmac(Hash::Sha256) => "RFC 4231, case 2",
            Family::Hmac(_) => "RFC 2202, case 2",
        }
    }

    /// The directions that the algorithm has.
    pub fn directions(&self) -> impl Iterator<Item = Direction> + use<> {
        let is_cipher = self.algorithm.is_cipher();
        let both = [Direction::Encrypt, Direction::Decrypt].into_iter();
        both.filter(move |&direction| is_cipher || direction == Direction::Encrypt)
    }
}

/// Runs `jobs` on a module until all are back or it `is_late`; whether all came. Those that did not come back as lost, or as
/// they were where the module takes none.
pub fn ask<'m>(
    driver: &mut (impl QueuedDriver<'m> + ?Sized),
    jobs: &mut Vec<Box<Job<'m>>>,
    is_late: impl Fn() -> bool,
) -> bool {
    let mut waiting = std::mem::take(jobs);
    let count = waiting.len();
    while jobs.len() < count && !is_late() {
        while let Some(job) = waiting.pop() {
            if let Err((job, _)) = driver.submit(job) {
                waiting.push(job);
                break;
            }
        }
        if driver.in_flight() == 0 {
            break;
        }
        driver.poll(jobs, Nanos::from_millis(10));
    }
    let all_came = jobs.len() == count;
    if driver.in_flight() > 0 {
        driver.abandon(jobs);
    }
    jobs.append(&mut waiting);
    all_came
}

/// The bytes that the digits stand for.
fn bytes(digits: &str) -> Vec<u8> {
    let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let pair = |pair: &[u8]| Some(digit(pair[0])? << 4 | digit(pair[1])?);
    digits
        .as_bytes()
        .chunks_exact(2)
        .map(|two| pair(two).expect("the table has hexadecimal digits"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors' crate has the same examples from the published files.
    #[test]
    fn every_algorithm_has_one_example_and_it_is_a_published_one_where_those_are_kept() {
        for &algorithm in Algorithm::ALL {
            let mut known = KNOWN.iter().filter(|known| known.algorithm == algorithm);
            let one = known.next().unwrap_or_else(|| panic!("{algorithm}"));
            assert!(known.next().is_none(), "{algorithm}");
            let same =
                |case: &evener_vectors::Case| case.key == bytes(one.key) && case.plaintext == bytes(one.text);
            if let Some(case) = evener_vectors::by_algorithm(algorithm.name()).find(same) {
                let ours = (bytes(one.iv), bytes(one.aad), bytes(one.sealed), bytes(one.tag));
                assert_eq!(ours, (case.iv, case.aad, case.ciphertext, case.tag), "{algorithm}");
            }
        }
    }

    #[test]
    fn an_answer_that_is_missing_or_wrong_is_noticed() {
        let known = &KNOWN[0];
        assert!(!known.is_right(Direction::Encrypt, 2, |jobs| jobs.clear()));
        assert!(!known.is_right(Direction::Encrypt, 2, |jobs| jobs.iter_mut().for_each(|job| {
            let written = job.input_bytes();
            job.done(written);
        })));
    }

    /// Does what `wrong` makes of the right answers.
    fn message(known: &Known, direction: Direction, wrong: fn(&mut Job<'_>)) -> String {
        let answer = known.check(direction, 2, |jobs| {
            for job in jobs {
                let done = bytes(if direction == Direction::Encrypt { known.sealed } else { known.text });
                job.publish(&done, &bytes(known.tag));
                wrong(job);
            }
        });
        answer.map_or_else(|wrong| wrong.to_string(), |()| "right".to_owned())
    }

    #[test]
    fn a_wrong_answer_is_told_with_its_example_and_the_first_bytes() {
        let of = |algorithm| KNOWN.iter().find(|known| known.algorithm == algorithm).unwrap();
        let (cbc, md5) = (of(Algorithm::Aes128Cbc), of(Algorithm::Md5));
        assert_eq!(message(cbc, Direction::Decrypt, |_| ()), "right");
        let flipped: fn(&mut Job<'_>) = |job| {
            job.space_mut()[17] ^= 1;
            job.done(64);
        };
        assert_eq!(
            message(cbc, Direction::Encrypt, flipped),
            "AES-128-CBC encrypt of the example in SP 800-38A, appendix F with a key of 16 bytes came out wrong: \
             expected 86cb9b507219ee95 at byte 17, got 87cb9b507219ee95"
        );
        assert_eq!(
            message(md5, Direction::Encrypt, |job| job.publish(&[], &[0; 16])),
            "MD5 encrypt of the example in RFC 1321 came out wrong: expected 900150983cd24fb0 at byte 0, got \
             0000000000000000"
        );
        let failed = message(cbc, Direction::Encrypt, |job| job.fail(crate::JobError::ModuleFull));
        assert!(failed.ends_with(&format!("got nothing ({})", crate::JobError::ModuleFull)), "{failed}");
    }
}
