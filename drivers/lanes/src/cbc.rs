//! AES-CBC encryption: serial inside a message, so messages go side by side, one in each lane.
//!
//! Path of a group of jobs under keys of one size: their keys are found, or made, and held -> each job becomes a message (`message`), with its
//! padding on the way -> the lanes.

use std::sync::Arc;
use std::{mem, ptr};

use evener_core::job::{Memory, Parts, SharedSpan};
use evener_core::padding::pad;
use evener_core::{BLOCK_BYTES, HasEnded, Job, JobError, Padding, Session, SessionCache};
use evener_kernels::lanes::Message;
use evener_kernels::{Level, bitsliced, lanes};

/// Sessions whose keys are kept: those of 64 threads that combine, twice. Assumed, not measured: 128, as of libipsec-mb's keys.
const SESSIONS_MAX: usize = 128;

/// Longest text in bytes to which padding is added where it lies, or is copied, before it is encrypted. Behind a longer one the last block comes
/// from elsewhere, for a line of memory would be fetched long before the rest. Measured for libipsec-mb (`padding_in_place.rs` there): 512.
const SHORT_BYTES_MAX: usize = 512;

/// What encrypts messages side by side.
pub(crate) trait Kernel {
    type Key;

    /// A key of 16, 24 or 32 bytes; none of any other length.
    fn key(&self, key: &[u8]) -> Option<Arc<Self::Key>>;
    /// Encrypts messages under keys of one size.
    fn encrypt(&mut self, keys: &[Arc<Self::Key>], messages: &mut [Message<'_>]);
    /// Wipes the round keys that it still has.
    fn forget(&mut self);
}

/// By the processor's instructions for AES.
pub(crate) struct ByInstructions {
    level: Level,
    lanes: lanes::Cbc,
}

impl Kernel for ByInstructions {
    type Key = lanes::Key;

    fn key(&self, key: &[u8]) -> Option<Arc<Self::Key>> {
        lanes::Key::new(self.level, key)
    }

    fn encrypt(&mut self, keys: &[Arc<Self::Key>], messages: &mut [Message<'_>]) {
        self.lanes.encrypt(keys, messages);
    }

    fn forget(&mut self) {
        self.lanes.forget();
    }
}

/// By planes, where those instructions are not.
impl Kernel for bitsliced::Cbc {
    type Key = bitsliced::Key;

    fn key(&self, key: &[u8]) -> Option<Arc<Self::Key>> {
        bitsliced::Key::new(key)
    }

    fn encrypt(&mut self, keys: &[Arc<Self::Key>], messages: &mut [Message<'_>]) {
        self.encrypt(keys, messages);
    }

    fn forget(&mut self) {
        self.forget();
    }
}

/// Lanes, and prepared keys.
pub(crate) struct Cbc<K: Kernel> {
    lanes: K,
    keys: SessionCache<Arc<K::Key>, SESSIONS_MAX>,
    /// What the group at hand uses, which may have more sessions than are kept.
    held: Vec<Arc<K::Key>>,
    /// Empty: kept for its memory.
    messages: Vec<Message<'static>>,
}

impl Cbc<ByInstructions> {
    pub(crate) fn by_instructions(level: Level) -> Self {
        Self::new(ByInstructions { level, lanes: lanes::Cbc::new(level) })
    }
}

impl<K: Kernel> Cbc<K> {
    pub(crate) fn new(lanes: K) -> Self {
        Self { lanes, keys: SessionCache::default(), held: Vec::new(), messages: Vec::new() }
    }

    /// Runs jobs whose keys have one size, of which so many at the front are known to have one session.
    pub(crate) fn run(&mut self, mut jobs: &mut [Box<Job<'_>>], mut of_first: usize) {
        let mut messages: Vec<Message<'_>> = mem::take(&mut self.messages);
        // Vectors that grow leave copies behind, and a message may have a block of text.
        messages.reserve(jobs.len());
        while let Some(first) = jobs.first() {
            let session = first.session();
            let (padding, key) = (session.padding(), self.hold(session));
            let count = if of_first > 0 { of_first } else { of_one_session(jobs) };
            let (run, rest) = jobs.split_at_mut(count);
            match (key, padding) {
                (Ok(key), Padding::None) => {
                    messages.extend(run.iter_mut().map(|job| take::<false>(key, job)));
                }
                (Ok(key), Padding::Pkcs7) => {
                    messages.extend(run.iter_mut().map(|job| take::<true>(key, job)));
                }
                (Err(error), _) => run.iter_mut().for_each(|job| job.fail(error)),
            }
            (jobs, of_first) = (rest, 0);
        }
        self.lanes.encrypt(&self.held, &mut messages);
        self.held.clear();
        messages.clear();
        self.messages = messages.into_iter().map(|_| unreachable!("it is empty")).collect();
    }

    /// Holds the key of a session; its number among those.
    fn hold(&mut self, session: &Session) -> Result<usize, JobError> {
        let lanes = &self.lanes;
        let key =
            self.keys.prepared(session, |session| lanes.key(session.key()).ok_or(JobError::Unsupported))?;
        self.held.push(Arc::clone(key));
        Ok(self.held.len() - 1)
    }

    pub(crate) fn evict(&mut self, has_ended: HasEnded<'_>) {
        self.keys.evict(has_ended);
        self.lanes.forget();
    }
}

/// How many jobs at the front have the first one's session. It cannot move while jobs refer to it, so it is told by its address.
pub(crate) fn of_one_session(jobs: &[Box<Job<'_>>]) -> usize {
    let Some(session) = jobs.first().map(|job| job.session()) else { return 0 };
    jobs.iter().take_while(|job| ptr::eq(job.session(), session)).count()
}

/// What lanes are to do of a job, which is said to be done; or nothing, and it failed.
#[inline(always)]
fn take<'j, const PADS: bool>(key: usize, job: &'j mut Job<'_>) -> Message<'j> {
    let bytes = output_bytes::<PADS>(job.input_bytes()).filter(|bytes| *bytes <= job.output_space());
    debug_assert_eq!(
        bytes.is_some(),
        job.lengths_fit() && job.input_bytes() <= bytes_max(),
        "the same as everywhere"
    );
    let error = match bytes {
        Some(_) if PADS && job.shared_span().is_some() => JobError::Unsupported,
        Some(bytes) => {
            job.done(bytes);
            return message::<PADS>(key, job, bytes);
        }
        None => JobError::BadLength,
    };
    job.fail(error);
    Message::in_place(key, &[0; BLOCK_BYTES], &mut [], 0)
}

/// Bytes that are made of so many; none where lanes do not take as many.
#[inline]
fn output_bytes<const PADS: bool>(text: usize) -> Option<usize> {
    let whole = text / BLOCK_BYTES * BLOCK_BYTES;
    let is_taken = (PADS || whole == text) && text <= bytes_max();
    is_taken.then_some(if PADS { whole + BLOCK_BYTES } else { text })
}

/// What lanes are to do of a job that writes so many bytes.
#[inline(always)]
fn message<'j, const PADS: bool>(key: usize, job: &'j mut Job<'_>, bytes: usize) -> Message<'j> {
    if !PADS {
        if let Some(SharedSpan { src, dst }) = job.shared_span() {
            return Message::shared(key, job.iv(), src, dst);
        }
    }
    let Parts { iv, memory, .. } = job.parts();
    match memory {
        Memory::InPlace { space, .. } if !PADS => Message::in_place(key, iv, space, bytes),
        Memory::InPlace { space, input_bytes } if input_bytes <= SHORT_BYTES_MAX => {
            pad(&mut space[..bytes], input_bytes);
            Message::in_place(key, iv, space, bytes)
        }
        Memory::InPlace { space, input_bytes } => {
            let front = bytes - BLOCK_BYTES;
            let last = last_block(&space[front..input_bytes]);
            Message::in_place(key, iv, space, front).ending_with(last)
        }
        Memory::Apart { src, dst } if !PADS => Message::apart(key, iv, src, dst),
        Memory::Apart { src, dst } if src.len() <= SHORT_BYTES_MAX => {
            dst[..src.len()].copy_from_slice(src);
            pad(&mut dst[..bytes], src.len());
            Message::in_place(key, iv, dst, bytes)
        }
        Memory::Apart { src, dst } => {
            let (front, rest) = src.split_at(bytes - BLOCK_BYTES);
            Message::apart(key, iv, front, dst).ending_with(last_block(rest))
        }
    }
}

/// Longest text in bytes: lanes take a block of padding besides.
pub(crate) fn bytes_max() -> usize {
    Message::BYTES_MAX
}

/// A last block, padded.
fn last_block(text: &[u8]) -> [u8; BLOCK_BYTES] {
    let mut block = [0; BLOCK_BYTES];
    block[..text.len()].copy_from_slice(text);
    pad(&mut block, text.len());
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_text_is_taken_with_padding_and_without() {
        let (plain, padded) = (output_bytes::<false>, output_bytes::<true>);
        let most = bytes_max();
        assert_eq!(plain(most), Some(most));
        assert_eq!(plain(most + BLOCK_BYTES), None);
        assert_eq!(padded(most), Some(most + BLOCK_BYTES));
        assert_eq!(padded(most - 1), Some(most));
        assert_eq!(padded(most + 1), None);
        assert_eq!((plain(17), padded(17)), (None, Some(32)));
    }
}
