//! A burst described by data, run by any driver, and by libcrypto one job at a time as the judge.

use evener_core::{Algorithm, Direction, InlineDriver, Job, JobError, Outcome, Padding, Session};
use evener_driver_libcrypto::Libcrypto;
use evener_driver_multibuffer::Multibuffer;

/// What memory holds that no driver should have touched.
pub(crate) const UNTOUCHED: u8 = 0xEE;

/// The driver, or nothing, said aloud, where this machine has none.
pub(crate) fn driver() -> Option<Multibuffer> {
    match Multibuffer::load() {
        Ok(driver) => Some(driver),
        Err(unavailable) => {
            println!("skipped: {unavailable}");
            None
        }
    }
}

/// One job as data.
#[derive(Clone, Debug)]
pub(crate) struct Ask<'s> {
    pub(crate) session: &'s Session,
    pub(crate) iv: Vec<u8>,
    pub(crate) aad: Vec<u8>,
    pub(crate) input: Vec<u8>,
    pub(crate) tag: Vec<u8>,
    /// Where its memory starts: 0 to 63 bytes behind an aligned address.
    pub(crate) shift: usize,
    pub(crate) in_place: bool,
}

/// What came of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) outcome: Outcome,
    pub(crate) output: Vec<u8>,
    pub(crate) tag: Vec<u8>,
    /// The span behind the room that the job had, and all of it where the job did not fit.
    pub(crate) beyond: Vec<u8>,
}

/// Bytes that look random and are the same every time.
pub(crate) fn noise(seed: usize, bytes: usize) -> Vec<u8> {
    let mut state = (seed as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let step = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    std::iter::repeat_with(step).take(bytes).collect()
}

/// A session with a key made from `seed`.
pub(crate) fn session(algorithm: Algorithm, direction: Direction, padding: Padding, seed: usize) -> Session {
    let key = noise(seed, algorithm.key_bytes().unwrap_or(20 + seed % 100));
    Session::new(algorithm, direction, padding, &key).expect("a session that can be")
}

/// A job of `bytes` of plaintext in the session's direction: decryption gets what libcrypto encrypted.
pub(crate) fn ask(session: &Session, bytes: usize, seed: usize, in_place: bool) -> Ask<'_> {
    let algorithm = session.algorithm();
    let aad = if algorithm.is_aead() { noise(seed + 7, seed % 40) } else { Vec::new() };
    let (iv, text) = (noise(seed + 3, algorithm.iv_bytes()), noise(seed, bytes));
    let plain = Ask { session, iv, aad, input: text, tag: Vec::new(), shift: seed * 5 % 64, in_place };
    if session.direction() == Direction::Encrypt {
        return plain;
    }
    let encrypting =
        Session::new(algorithm, Direction::Encrypt, session.padding(), session.key()).expect("the same key");
    let sealed = judge(&Ask { session: &encrypting, in_place: false, ..plain.clone() });
    assert!(matches!(sealed.outcome, Outcome::Done { .. }), "{sealed:?}");
    Ask { input: sealed.output, tag: sealed.tag, ..plain }
}

/// What libcrypto says.
pub(crate) fn judge(ask: &Ask<'_>) -> Answer {
    let mut libcrypto = Libcrypto::new().expect("libcrypto is there");
    run(&mut libcrypto, std::slice::from_ref(ask)).remove(0)
}

/// Runs all of them in one burst.
pub(crate) fn run(driver: &mut dyn InlineDriver, asks: &[Ask<'_>]) -> Vec<Answer> {
    let mut sources: Vec<Vec<u8>> = asks.iter().map(|ask| shifted(ask, &ask.input)).collect();
    let mut rooms: Vec<Vec<u8>> =
        asks.iter().map(|ask| shifted(ask, &vec![UNTOUCHED; room_bytes(ask)])).collect();
    for ((ask, source), room) in
        asks.iter().zip(&sources).zip(&mut rooms).filter(|((ask, _), _)| ask.in_place)
    {
        room[ask.shift..][..ask.input.len()].copy_from_slice(&source[ask.shift..]);
    }
    let memory = asks.iter().zip(sources.iter_mut()).zip(rooms.iter_mut());
    let mut burst: Vec<Box<Job<'_>>> = memory.map(|((ask, source), room)| armed(ask, source, room)).collect();
    driver.run(&mut burst);
    asks.iter().zip(&burst).map(|(ask, job)| answer(ask, job)).collect()
}

/// Room of the session's length and 48 bytes more.
fn room_bytes(ask: &Ask<'_>) -> usize {
    ask.session.output_bytes_max(ask.input.len()).max(ask.input.len()) + 48
}

fn shifted(ask: &Ask<'_>, bytes: &[u8]) -> Vec<u8> {
    let mut memory = vec![UNTOUCHED; ask.shift];
    memory.extend_from_slice(bytes);
    memory
}

fn armed<'m>(ask: &'m Ask<'_>, source: &'m [u8], room: &'m mut [u8]) -> Box<Job<'m>> {
    let room = &mut room[ask.shift..];
    let mut job = if ask.in_place { Job::in_place(room) } else { Job::apart(&source[ask.shift..], room) };
    job.set_aad(&ask.aad);
    job.set_tag(&ask.tag);
    job.arm(ask.session, &ask.iv, ask.input.len());
    job
}

fn answer(ask: &Ask<'_>, job: &Job<'_>) -> Answer {
    let used = match job.outcome() {
        Outcome::Failed(JobError::BadLength | JobError::Unsupported) => 0,
        _ => ask.session.output_bytes_max(ask.input.len()),
    };
    let beyond = if ask.in_place { used.max(ask.input.len()) } else { used };
    Answer {
        outcome: job.outcome(),
        output: job.output().to_vec(),
        tag: job.tag().to_vec(),
        beyond: job.output_span()[beyond..].to_vec(),
    }
}

/// Runs a burst and lets libcrypto judge every answer.
pub(crate) fn compare(driver: &mut dyn InlineDriver, asks: &[Ask<'_>]) {
    for (place, (ask, answer)) in asks.iter().zip(run(driver, asks)).enumerate() {
        let what = format!("job {place} of {}: {:?}, {} bytes", asks.len(), ask.session, ask.input.len());
        let judged = judge(ask);
        assert_eq!(answer.outcome, judged.outcome, "{what}");
        assert!(answer.output == judged.output, "{what}: output differs");
        assert_eq!(answer.tag, judged.tag, "{what}");
        assert!(answer.beyond.iter().all(|&byte| byte == UNTOUCHED), "{what}: wrote past its room");
    }
}
