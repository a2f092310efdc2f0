//! Requests over noise, the same for the same seed.

use std::sync::Arc;

use evener_core::{Algorithm, Direction, Outcome, Padding, Session};

use crate::noise::noise;
use crate::request::{JobSpec, Layout};
use crate::route::judged;

/// A session whose key follows from `seed`.
///
/// # Panics
///
/// Where the algorithm has no such direction or padding.
#[must_use]
pub fn session(algorithm: Algorithm, direction: Direction, padding: Padding, seed: usize) -> Arc<Session> {
    let key = noise(seed ^ 0x5EED, algorithm.key_bytes().unwrap_or(20 + seed % 100));
    Arc::new(Session::new(algorithm, direction, padding, &key).expect("the algorithm has it"))
}

/// Every algorithm with every direction and padding that it has, keys by `seed`.
pub fn kinds(seed: usize) -> impl Iterator<Item = Arc<Session>> {
    let directions = |&algorithm: &Algorithm| {
        let both = [Direction::Encrypt, Direction::Decrypt].into_iter();
        let there = both.filter(move |&route| algorithm.is_cipher() || route == Direction::Encrypt);
        there.map(move |direction| (algorithm, direction))
    };
    let paddings = |(algorithm, direction): (Algorithm, Direction)| {
        let both = [Padding::None, Padding::Pkcs7].into_iter();
        let there = both.filter(move |&padding| padding == Padding::None || algorithm.needs_whole_blocks());
        there.map(move |padding| (algorithm, direction, padding))
    };
    let all = Algorithm::ALL.iter().flat_map(directions).flat_map(paddings);
    all.map(move |(algorithm, direction, padding)| session(algorithm, direction, padding, seed))
}

impl JobSpec {
    /// A job over about `bytes` of noise in the direction of `session`: as many whole blocks where it takes nothing
    /// else, one block at least for XTS. Decryption gets what libcrypto has encrypted.
    ///
    /// # Panics
    ///
    /// Where libcrypto does not encrypt.
    #[must_use]
    pub fn noisy(session: &Arc<Session>, bytes: usize, seed: usize) -> Self {
        let algorithm = session.algorithm();
        let whole = algorithm.needs_whole_blocks() && session.padding() == Padding::None;
        let bytes = if whole { bytes / 16 * 16 } else { bytes };
        let bytes = if algorithm.name().ends_with("XTS") { bytes.max(16) } else { bytes };
        let aad_bytes = if algorithm.is_aead() { seed % 40 } else { 0 };
        let plain = Self {
            session: Arc::clone(session),
            iv: noise(seed + 3, algorithm.iv_bytes()),
            aad: noise(seed + 7, aad_bytes),
            input: noise(seed, bytes),
            tag: Vec::new(),
            layout: Layout::nth(seed),
        };
        if session.direction() == Direction::Encrypt { plain } else { plain.turned() }
    }

    /// The decryption of what this makes when it is encrypted.
    fn turned(self) -> Self {
        let (of, encrypts) = (&self.session, Direction::Encrypt);
        let session =
            Session::new(of.algorithm(), encrypts, of.padding(), of.key()).expect("as of the other");
        let sealed = judged(&Self { session: Arc::new(session), ..self.clone() });
        assert!(matches!(sealed.outcome, Outcome::Done { .. }), "{:?}: {:?}", self.session, sealed.outcome);
        Self { input: sealed.output, tag: sealed.tag, ..self }
    }
}
