//! ECB, CBC decryption, CTR and XTS: one message after the other, for the blocks of one alone fill the units of a core.

use evener_core::job::{Memory, SharedSpan};
use evener_core::padding::{pad, padded_bytes, text_bytes};
use evener_core::{BLOCK_BYTES, Direction, Family, HasEnded, Job, JobError, Padding, Session, SessionCache};
use evener_kernels::Level;
use evener_kernels::modes::{Key, Mode, Text};

/// Sessions whose keys are kept. Assumed, not measured: 32, as of libcrypto's contexts.
const SESSIONS_MAX: usize = 32;

/// The longest data unit of XTS in bytes, 2^20 blocks (IEEE 1619-2018, 5.1).
pub(crate) const UNIT_BYTES_MAX: usize = BLOCK_BYTES << 20;

/// What a kernel does for jobs of a family; none for others.
pub(crate) const fn mode_of(family: Family, direction: Direction) -> Option<Mode> {
    match (family, direction) {
        (Family::Ecb, Direction::Encrypt) => Some(Mode::EcbEncryption),
        (Family::Ecb, Direction::Decrypt) => Some(Mode::EcbDecryption),
        (Family::Cbc, Direction::Decrypt) => Some(Mode::CbcDecryption),
        (Family::Ctr, _) => Some(Mode::Ctr),
        (Family::Xts, Direction::Encrypt) => Some(Mode::XtsEncryption),
        (Family::Xts, Direction::Decrypt) => Some(Mode::XtsDecryption),
        _ => None,
    }
}

/// Prepared keys, and the instructions that they are used by.
pub(crate) struct Modes {
    level: Level,
    keys: SessionCache<Box<Key>, SESSIONS_MAX>,
}

impl Modes {
    pub(crate) fn new(level: Level) -> Self {
        Self { level, keys: SessionCache::default() }
    }

    /// Runs one job, padding on the way.
    pub(crate) fn run(&mut self, job: &mut Job<'_>) {
        let session = job.session();
        let (pads, encrypts) =
            (session.padding() == Padding::Pkcs7, session.direction() == Direction::Encrypt);
        let is_unit = session.algorithm().family() == Family::Xts;
        if pads && job.shared_span().is_some() {
            // It is looked at after it was decrypted.
            return job.fail(JobError::Unsupported);
        }
        if !job.lengths_fit() || is_unit && job.input_bytes() > UNIT_BYTES_MAX {
            return job.fail(JobError::BadLength);
        }
        let level = self.level;
        match self.keys.prepared(session, |session| prepared(level, session)) {
            Ok(key) if pads && encrypts => padded(job, key),
            Ok(key) => whole(job, key, pads),
            Err(error) => job.fail(error),
        }
    }

    pub(crate) fn evict(&mut self, has_ended: HasEnded<'_>) {
        self.keys.evict(has_ended);
    }
}

/// Made where it stays: moved from the stack, its round keys would stay there, too.
fn prepared(level: Level, session: &Session) -> Result<Box<Key>, JobError> {
    let mode = mode_of(session.algorithm().family(), session.direction()).ok_or(JobError::Unsupported)?;
    let mut key = Box::new(Key::new(level));
    key.set(mode, session.key()).then_some(key).ok_or(JobError::Unsupported)
}

/// All of the input, of whose end padding is taken away where it has some.
fn whole(job: &mut Job<'_>, key: &Key, is_padded: bool) {
    let bytes = job.input_bytes();
    if let Some(SharedSpan { src, dst }) = job.shared_span() {
        key.message(job.iv(), &Text::shared(src, dst));
        return job.done(bytes);
    }
    let parts = job.parts();
    match parts.memory {
        Memory::InPlace { space, .. } => key.message(parts.iv, &Text::in_place(&mut space[..bytes])),
        Memory::Apart { src, dst } => key.message(parts.iv, &Text::apart(src, dst)),
    }
    if !is_padded {
        return job.done(bytes);
    }
    let text = match job.output_span()[..bytes].split_last_chunk() {
        Some((front, last)) => text_bytes(last).map(|text| front.len() + text),
        None => None,
    };
    match text {
        Some(text) => job.done(text),
        None => job.fail(JobError::BadPadding),
    }
}

/// All of the input and padding behind it, by ECB, whose blocks go by themselves.
fn padded(job: &mut Job<'_>, key: &Key) {
    let bytes = padded_bytes(job.input_bytes());
    let parts = job.parts();
    match parts.memory {
        Memory::InPlace { space, input_bytes } => {
            let space = &mut space[..bytes];
            pad(space, input_bytes);
            key.message(parts.iv, &Text::in_place(space));
        }
        Memory::Apart { src, dst } => {
            let (front, last) = dst[..bytes].split_at_mut(bytes - BLOCK_BYTES);
            let (text, end) = src.split_at(front.len());
            key.message(parts.iv, &Text::apart(text, front));
            last[..end.len()].copy_from_slice(end);
            pad(last, end.len());
            key.message(parts.iv, &Text::in_place(last));
        }
    }
    job.done(bytes);
}
