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
pub(crate) struct JobSpec<'s> {
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
pub(crate) fn spec(session: &Session, bytes: usize, seed: usize, in_place: bool) -> JobSpec<'_> {
    let algorithm = session.algorithm();
    let aad = if algorithm.is_aead() { noise(seed + 7, seed % 40) } else { Vec::new() };
    let (iv, text) = (noise(seed + 3, algorithm.iv_bytes()), noise(seed, bytes));
    let plain = JobSpec { session, iv, aad, input: text, tag: Vec::new(), shift: seed * 5 % 64, in_place };
    if session.direction() == Direction::Encrypt {
        return plain;
    }
    let encrypting =
        Session::new(algorithm, Direction::Encrypt, session.padding(), session.key()).expect("the same key");
    let sealed = judge(&JobSpec { session: &encrypting, in_place: false, ..plain.clone() });
    assert!(matches!(sealed.outcome, Outcome::Done { .. }), "{sealed:?}");
    JobSpec { input: sealed.output, tag: sealed.tag, ..plain }
}

/// What libcrypto says.
pub(crate) fn judge(spec: &JobSpec<'_>) -> Answer {
    let mut libcrypto = Libcrypto::new().expect("libcrypto is there");
    run(&mut libcrypto, std::slice::from_ref(spec)).remove(0)
}

/// Runs all of them in one burst.
pub(crate) fn run(driver: &mut dyn InlineDriver, specs: &[JobSpec<'_>]) -> Vec<Answer> {
    let mut sources: Vec<Vec<u8>> = specs.iter().map(|spec| shifted(spec, &spec.input)).collect();
    let mut rooms: Vec<Vec<u8>> =
        specs.iter().map(|spec| shifted(spec, &vec![UNTOUCHED; room_bytes(spec)])).collect();
    for ((spec, source), room) in
        specs.iter().zip(&sources).zip(&mut rooms).filter(|((spec, _), _)| spec.in_place)
    {
        room[spec.shift..][..spec.input.len()].copy_from_slice(&source[spec.shift..]);
    }
    let memory = specs.iter().zip(sources.iter_mut()).zip(rooms.iter_mut());
    let mut burst: Vec<Box<Job<'_>>> =
        memory.map(|((spec, source), room)| armed(spec, source, room)).collect();
    driver.run(&mut burst);
    specs.iter().zip(&burst).map(|(spec, job)| answer(spec, job)).collect()
}

/// Room of the session's length and 48 bytes more.
fn room_bytes(spec: &JobSpec<'_>) -> usize {
    spec.session.output_bytes_max(spec.input.len()).max(spec.input.len()) + 48
}

fn shifted(spec: &JobSpec<'_>, bytes: &[u8]) -> Vec<u8> {
    let mut memory = vec![UNTOUCHED; spec.shift];
    memory.extend_from_slice(bytes);
    memory
}

fn armed<'m>(spec: &'m JobSpec<'_>, source: &'m [u8], room: &'m mut [u8]) -> Box<Job<'m>> {
    let room = &mut room[spec.shift..];
    let mut job = if spec.in_place { Job::in_place(room) } else { Job::apart(&source[spec.shift..], room) };
    job.set_aad(&spec.aad);
    job.set_tag(&spec.tag);
    job.arm(spec.session, &spec.iv, spec.input.len());
    job
}

fn answer(spec: &JobSpec<'_>, job: &Job<'_>) -> Answer {
    let used = match job.outcome() {
        Outcome::Failed(JobError::BadLength | JobError::Unsupported) => 0,
        _ => spec.session.output_bytes_max(spec.input.len()),
    };
    let beyond = if spec.in_place { used.max(spec.input.len()) } else { used };
    Answer {
        outcome: job.outcome(),
        output: job.output().to_vec(),
        tag: job.tag().to_vec(),
        beyond: job.output_span()[beyond..].to_vec(),
    }
}

/// Runs a burst and lets libcrypto judge every answer.
pub(crate) fn compare(driver: &mut dyn InlineDriver, specs: &[JobSpec<'_>]) {
    for (place, (spec, answer)) in specs.iter().zip(run(driver, specs)).enumerate() {
        let what = format!("job {place} of {}: {:?}, {} bytes", specs.len(), spec.session, spec.input.len());
        let judged = judge(spec);
        assert_eq!(answer.outcome, judged.outcome, "{what}");
        assert!(answer.output == judged.output, "{what}: output differs");
        assert_eq!(answer.tag, judged.tag, "{what}");
        assert!(answer.beyond.iter().all(|&byte| byte == UNTOUCHED), "{what}: wrote past its room");
    }
}
