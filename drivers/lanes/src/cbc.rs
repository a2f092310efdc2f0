//! AES-CBC encryption: serial inside a message, so messages go side by side, one in each lane.
//!
//! Path of a group of jobs under keys of one size: their keys are found, or made, and held -> each job becomes a message (`message`), with its
//! padding on the way -> the lanes.

use std::sync::Arc;
use std::{mem, ptr};

use evener_core::job::{Memory, Parts, SharedSpan};
use evener_core::padding::pad;
use evener_core::{BLOCK_BYTES, HasEnded, Job, JobError, Padding, Session, SessionCache};
use evener_kernels::Level;
use evener_kernels::lanes::{Cbc as Kernel, Key, Message};

/// Sessions whose keys are kept: those of 64 threads that combine, twice. Assumed, not measured: 128, as of libipsec-mb's keys.
const SESSIONS_MAX: usize = 128;

/// Longest text in bytes to which padding is added where it lies, or is copied, before it is encrypted. Behind a longer one the last block comes
/// from elsewhere, for a line of memory would be fetched long before the rest. Measured for libipsec-mb (`padding_in_place.rs` there): 512.
const SHORT_BYTES_MAX: usize = 512;

/// Lanes, and prepared keys.
pub(crate) struct Cbc {
    level: Level,
    lanes: Kernel,
    keys: SessionCache<Arc<Key>, SESSIONS_MAX>,
    /// What the group at hand uses, which may have more sessions than are kept.
    held: Vec<Arc<Key>>,
    /// Empty: kept for its memory.
    messages: Vec<Message<'static>>,
}

/// What follows from a session.
#[derive(Clone, Copy)]
struct Rule {
    key: usize,
    pads: bool,
}

impl Cbc {
    pub(crate) fn new(level: Level) -> Self {
        let lanes = Kernel::new(level);
        Self { level, lanes, keys: SessionCache::default(), held: Vec::new(), messages: Vec::new() }
    }

    /// Runs jobs whose keys have one size.
    pub(crate) fn run(&mut self, jobs: &mut [Box<Job<'_>>]) {
        let mut messages: Vec<Message<'_>> = mem::take(&mut self.messages);
        // Vectors that grow leave copies behind, and a message may have a block of text.
        messages.reserve(jobs.len());
        let mut last: *const Session = ptr::null();
        let mut rule = Err(JobError::Unsupported);
        for job in jobs {
            let session = job.session();
            // A session cannot move while jobs refer to it.
            if !ptr::eq(last, session) {
                last = session;
                rule = self.rule(session);
            }
            match rule.and_then(|rule| Ok((rule, rule.bytes(job)?))) {
                Ok((rule, bytes)) => {
                    job.done(bytes);
                    if bytes > 0 {
                        messages.push(rule.message(job, bytes));
                    }
                }
                Err(error) => job.fail(error),
            }
        }
        self.lanes.encrypt(&self.held, &mut messages);
        self.held.clear();
        messages.clear();
        self.messages = messages.into_iter().map(|_| unreachable!("it is empty")).collect();
    }

    /// Holds the key of a session.
    fn rule(&mut self, session: &Session) -> Result<Rule, JobError> {
        let level = self.level;
        let key = self
            .keys
            .prepared(session, |session| Key::new(level, session.key()).ok_or(JobError::Unsupported))?;
        self.held.push(Arc::clone(key));
        Ok(Rule { key: self.held.len() - 1, pads: session.padding() == Padding::Pkcs7 })
    }

    pub(crate) fn evict(&mut self, has_ended: HasEnded<'_>) {
        self.keys.evict(has_ended);
        self.lanes.forget();
    }
}

impl Rule {
    /// Bytes that a job writes.
    #[inline]
    fn bytes(self, job: &Job<'_>) -> Result<usize, JobError> {
        let bytes = self.output_bytes(job.input_bytes()).filter(|bytes| *bytes <= job.output_space());
        let is_taken = job.lengths_fit() && job.input_bytes() <= bytes_max();
        debug_assert_eq!(bytes.is_some(), is_taken, "the same as everywhere");
        match bytes {
            Some(_) if self.pads && job.shared_span().is_some() => Err(JobError::Unsupported),
            Some(bytes) => Ok(bytes),
            None => Err(JobError::BadLength),
        }
    }

    /// Bytes that are made of so many; none where lanes do not take as many.
    #[inline]
    fn output_bytes(self, text: usize) -> Option<usize> {
        let whole = text / BLOCK_BYTES * BLOCK_BYTES;
        let is_taken = (self.pads || whole == text) && text <= bytes_max();
        is_taken.then_some(if self.pads { whole + BLOCK_BYTES } else { text })
    }

    /// What lanes are to do of a job that writes so many bytes.
    #[inline]
    fn message<'j>(self, job: &'j mut Job<'_>, bytes: usize) -> Message<'j> {
        if let Some(SharedSpan { src, dst }) = job.shared_span() {
            return Message::shared(self.key, job.iv(), src, dst);
        }
        let Parts { iv, memory, .. } = job.parts();
        match memory {
            Memory::InPlace { space, .. } if !self.pads => Message::in_place(self.key, iv, space, bytes),
            Memory::InPlace { space, input_bytes } if input_bytes <= SHORT_BYTES_MAX => {
                pad(&mut space[..bytes], input_bytes);
                Message::in_place(self.key, iv, space, bytes)
            }
            Memory::InPlace { space, input_bytes } => {
                let front = bytes - BLOCK_BYTES;
                let last = last_block(&space[front..input_bytes]);
                Message::in_place(self.key, iv, space, front).ending_with(last)
            }
            Memory::Apart { src, dst } if !self.pads => Message::apart(self.key, iv, src, dst),
            Memory::Apart { src, dst } if src.len() <= SHORT_BYTES_MAX => {
                dst[..src.len()].copy_from_slice(src);
                pad(&mut dst[..bytes], src.len());
                Message::in_place(self.key, iv, dst, bytes)
            }
            Memory::Apart { src, dst } => {
                let (front, rest) = src.split_at(bytes - BLOCK_BYTES);
                Message::apart(self.key, iv, front, dst).ending_with(last_block(rest))
            }
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
    #[allow(clippy::print_stdout, reason = "says what was left out")]
    fn the_longest_text_is_taken_with_padding_and_without() {
        if !Level::ARE_BUILT {
            return println!("skipped: there are no kernels");
        }
        let [plain, padded] = [false, true].map(|pads| Rule { key: 0, pads });
        let most = bytes_max();
        assert_eq!(plain.output_bytes(most), Some(most));
        assert_eq!(plain.output_bytes(most + BLOCK_BYTES), None);
        assert_eq!(padded.output_bytes(most), Some(most + BLOCK_BYTES));
        assert_eq!(padded.output_bytes(most - 1), Some(most));
        assert_eq!(padded.output_bytes(most + 1), None);
        assert_eq!((plain.output_bytes(17), padded.output_bytes(17)), (None, Some(32)));
    }
}
