//! Long requests: short ones go first, and of a long one a piece at a time, so that who comes meanwhile waits for a piece.
//!
//! `take (intake.rs) -> set aside -> the next piece, of several requests as far as lanes take them side by side -> the module -> done, or behind the others again`. A cipher
//! in the client's memory whose pieces follow from each other (CBC, CTR, ECB) is cut. Any other request is one piece, for a tag, a digest or a tweak is of the whole.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use evener_core::job::SharedSpan;
use evener_core::{BLOCK_BYTES, Direction, Family, Job, Outcome};

use crate::module::PIECE_BYTES;

/// Requests that are worked on piece by piece, in the order of their next pieces.
#[derive(Default)]
pub(crate) struct LongRequests {
    waiting: VecDeque<LongRequest>,
    /// Those of which the module has a piece; its mark is the place here.
    cut: Vec<LongRequest>,
    /// The user whose request the module has whole.
    whole: Option<u32>,
    /// What comes back.
    pub(super) pieces: Vec<Box<Job<'static>>>,
    /// Jobs without memory, for the next pieces.
    bare: Vec<Box<Job<'static>>>,
}

struct LongRequest {
    job: Box<Job<'static>>,
    user: u32,
    /// Bytes that are done, or with the module.
    at: usize,
    /// Of the next piece.
    iv: [u8; BLOCK_BYTES],
}

impl LongRequests {
    /// Lets it wait for its first piece.
    pub(super) fn add(&mut self, job: Box<Job<'static>>, user: u32) {
        let iv = *job.iv();
        self.waiting.push_back(LongRequest { job, user, at: 0, iv });
    }

    /// Whether none is left.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Makes jobs of the next pieces, of `most` requests; one that is not cut goes alone.
    pub(super) fn begin(&mut self, most: usize, jobs: &mut Vec<Box<Job<'static>>>) {
        while self.cut.len() < most {
            let Some(request) = self.waiting.front_mut() else { return };
            let Some(span) = request.next_span() else {
                if self.cut.is_empty() {
                    let whole = self.waiting.pop_front().expect("it is the first");
                    self.whole = Some(whole.user);
                    jobs.push(whole.job);
                }
                return;
            };
            let mut piece = self.bare.pop().unwrap_or_else(|| Job::shared(SharedSpan::EMPTY));
            piece.share(span);
            piece.arm(request.job.session_ref(), &request.iv, span.src.len());
            piece.mark = self.cut.len() as u64;
            jobs.push(piece);
            request.note_source(span);
            self.cut.extend(self.waiting.pop_front());
        }
    }

    /// Puts those that are over to `done`, and the others behind all that wait; returns the users of the former.
    pub(super) fn end(&mut self, done: &mut Vec<Box<Job<'static>>>) -> Vec<u32> {
        if let Some(user) = self.whole.take() {
            done.append(&mut self.pieces);
            return vec![user];
        }
        self.pieces.sort_by_key(|piece| piece.mark);
        let mut over = Vec::new();
        for (mut request, mut piece) in self.cut.drain(..).zip(self.pieces.drain(..)) {
            request.note_result(&piece);
            // First the span, for with the request goes what it lies in.
            piece.share(SharedSpan::EMPTY);
            piece.disarm();
            self.bare.push(piece);
            if request.job.outcome() == Outcome::Pending {
                self.waiting.push_back(request);
            } else {
                over.push(request.user);
                done.push(request.job);
            }
        }
        over
    }
}

impl LongRequest {
    /// Where the next piece is; none of a request that is not cut.
    fn next_span(&self) -> Option<SharedSpan<'static>> {
        let SharedSpan { src, dst } = self.job.shared_span().filter(|_| is_cut(&self.job))?;
        let end = src.len().min(self.at + PIECE_BYTES);
        Some(SharedSpan { src: &src[self.at..end], dst: &dst[self.at..end] })
    }

    /// Notes what the next piece needs of this one's source, which its result may take the place of.
    fn note_source(&mut self, SharedSpan { src, .. }: SharedSpan<'static>) {
        self.at += src.len();
        let session = self.job.session();
        match (session.algorithm().family(), session.direction()) {
            (Family::Cbc, Direction::Decrypt) => self.iv = last_block(src),
            (Family::Ctr, _) => {
                let blocks = (src.len() / BLOCK_BYTES) as u128;
                self.iv = u128::from_be_bytes(self.iv).wrapping_add(blocks).to_be_bytes();
            }
            _ => {}
        }
    }

    /// Notes what became of a piece: the request is over with its last one, or with one that failed.
    fn note_result(&mut self, piece: &Job<'static>) {
        let session = self.job.session();
        let is_chained =
            session.algorithm().family() == Family::Cbc && session.direction() == Direction::Encrypt;
        match (piece.outcome(), piece.shared_span()) {
            (Outcome::Done { .. }, Some(span)) if self.at < self.job.input_bytes() => {
                if is_chained {
                    self.iv = last_block(&span.dst[..span.src.len()]);
                }
            }
            (Outcome::Done { .. }, _) => self.job.done(self.at),
            (Outcome::Failed(error), _) => self.job.fail(error),
            (Outcome::Pending, _) => unreachable!("the module has finished it"),
        }
    }
}

/// Whether its pieces follow from each other, and from their own input and output.
pub(super) fn is_cut(job: &Job<'_>) -> bool {
    let family = job.session().algorithm().family();
    matches!(family, Family::Cbc | Family::Ctr | Family::Ecb)
        && job.shared_span().is_some()
        && job.lengths_fit()
}

/// The last block as it is now. Its client may have changed it, and spoils its own result.
fn last_block(bytes: &[AtomicU8]) -> [u8; BLOCK_BYTES] {
    let mut block = [0; BLOCK_BYTES];
    let from = bytes.iter().rev().take(BLOCK_BYTES);
    block.iter_mut().rev().zip(from).for_each(|(byte, from)| *byte = from.load(Relaxed));
    block
}
