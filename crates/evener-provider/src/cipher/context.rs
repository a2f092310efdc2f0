//! What C holds for a cipher in use: the inner context, and what is known about the message in it. Data and what it needs to stay true;
//! what is decided by it stands in `route.rs`, `calls.rs` and the files of the ways.

use std::cell::Cell;
use std::ffi::{c_int, c_void};

use evener::combine::Combiner;
use evener::regret::{Turn, Way, regret};
use evener::split::Helpers;
use evener::statistics::{LocalCounter, Statistics};
use evener_core::statistics::Count;
use evener_core::{Algorithm, Family};
use evener_ossl_sys::{CipherFinal, CipherInit, CipherUpdate};

use super::engine::choice::ModuleChoice;
use super::gcm::state::Gcm;
use super::message::{Message, State};
use super::pipelines::state::PipelineState;
use crate::config::Guard;
use crate::core::errors::Reason;
use crate::inner_cipher::call::{Init, Update};
use crate::inner_cipher::context::InnerContext;
use crate::state::rows::CipherRow;
use crate::state::{Counts, ProvCtx};
use crate::statistics;

/// What C holds for a cipher in use. The fields that a small update touches come first, in one cache line.
#[repr(C)]
pub(crate) struct CipherCtx {
    /// The inner update.
    pub(crate) update: CipherUpdate,
    /// The inner context.
    pub(crate) inner: *mut c_void,
    /// A shorter update is the inner function's and nobody else's: `usize::MAX` where all are, 0 where none is.
    pub(crate) thresh: usize,
    /// Bytes of this message so far. Not told apart from bytes that the inner function refused: it refuses an update
    /// only where the room is too small, and EVP always gives enough.
    pub(crate) taken: usize,
    /// The inner init and final.
    pub(crate) encrypt_init: CipherInit,
    pub(crate) last: CipherFinal,
    /// `thresh` of a message that may take another way, decrypting and encrypting.
    first_thresh: [usize; 2],
    /// Messages that are at their end and not in the process's statistics yet.
    pub(super) direct: LocalCounter,
    /// Which inits are short.
    pub(super) iv_only: IvOnly,
    pub(crate) decrypt_init: CipherInit,
    /// Length of the IV where that is known here, 0 where not.
    pub(crate) iv_bytes: usize,
    /// The inner one-shot function; the inner update where there is none, and the core then calls neither.
    pub(crate) cipher: CipherUpdate,
    /// The algorithm's other inner functions. Its provider outlives the context.
    row: *const CipherRow,
    /// Bytes of this message that went another way than the inner one.
    pub(crate) elsewhere: Cell<usize>,
    /// Whether anything has to be known about messages.
    pub(crate) is_tracked: bool,
    pub(crate) message: Message,
    /// How the update under way is split, while there is one.
    pub(crate) split: Option<evener::split::Call>,
    /// What the policy says about the update under way, where a module wants it.
    pub(crate) module: Option<ModuleChoice>,
    /// What the guard says about it, where its job could be put aside.
    pub(crate) job_turn: Option<Turn>,
    /// GCM with splitting configured: what is known about the message.
    pub(crate) gcm: Option<Box<Gcm>>,
    /// The messages of a pipeline.
    pub(crate) pipes: Option<Box<PipelineState>>,
}

/// Inits with nothing but an IV, in the direction of the message before, of which there are many: all that such an init has to
/// do here is to count that message and to keep the IV. [`CipherCtx::init`] says so, and every call that is not the hot one takes it
/// back, so that one byte is all that has to be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IvOnly {
    Decrypting,
    Encrypting,
    None,
}

impl IvOnly {
    pub(super) const fn of(encrypts: bool) -> Self {
        if encrypts { Self::Encrypting } else { Self::Decrypting }
    }
}

impl CipherCtx {
    /// One around `inner`, which it owns from here on.
    pub(crate) fn new(row: &CipherRow, inner: *mut c_void, message: Message) -> Self {
        let cipher = row.cipher.unwrap_or(row.update);
        Self {
            update: row.update,
            inner,
            thresh: usize::MAX,
            taken: 0,
            encrypt_init: row.encrypt_init,
            last: row.last,
            first_thresh: [row.context_thresh(false), row.context_thresh(true)],
            direct: LocalCounter::default(),
            iv_only: IvOnly::None,
            decrypt_init: row.decrypt_init,
            iv_bytes: row.algorithm.map_or(0, Algorithm::iv_bytes),
            cipher,
            row,
            elsewhere: Cell::new(0),
            is_tracked: row.is_tracked(),
            message,
            split: None,
            module: None,
            job_turn: None,
            gcm: None,
            pipes: None,
        }
    }

    pub(crate) fn statistics(&self) -> Option<&'static Statistics> {
        self.prov().statistics
    }

    /// Bytes of this message went the way `way`.
    pub(crate) fn count_request(&self, way: Count, bytes: usize) {
        self.elsewhere.set(self.elsewhere.get().saturating_add(bytes));
        statistics::count_request(self.statistics(), self.row().kind, self.message.direction(), bytes, way);
    }

    /// Something happened to a request of `bytes`, so many times.
    pub(crate) fn count_event(&self, event: Count, number: u32, bytes: usize) {
        statistics::count_event(
            self.statistics(),
            self.row().kind,
            self.message.direction(),
            bytes,
            (event, number),
        );
    }

    /// Begins a request of `bytes` that may go this way, for the guard; `None` where there is none.
    pub(crate) fn guard_turn(&self, way: Way, bytes: usize) -> Option<Turn> {
        match self.prov().settings.guard {
            Guard::On => Some(regret()?.begin(way, self.row().kind, bytes)),
            Guard::Off => None,
        }
    }

    /// An update of `bytes` for which splitting was asked is done.
    pub(crate) fn finish_split(&self, call: evener::split::Call, bytes: usize) {
        let taken_back = call.helpers().map_or(0, Helpers::taken_back);
        self.count_event(Count::TakenBack, taken_back, bytes);
        self.count_event(Count::Locked, call.end().into(), bytes);
    }

    /// From which length on the update under way is block work that a module may do.
    pub(crate) fn block_thresh(&self) -> usize {
        if self.module.as_ref().is_some_and(ModuleChoice::stays) {
            usize::MAX
        } else {
            self.row().block_thresh
        }
    }

    /// Another message follows: of this one is counted what went the inner way.
    pub(super) fn end_message(&mut self) {
        let bytes = self.taken.saturating_sub(self.elsewhere.take());
        self.taken = 0;
        if bytes > 0 {
            // Where it is time to flush, the next init does.
            _ = self.direct.record(bytes);
        }
    }

    /// Ends the message and shows what was counted; before another key or direction, and at the end.
    pub(crate) fn end_and_flush(&mut self) {
        if self.is_tracked {
            self.end_message();
            self.flush();
        }
    }

    fn flush(&mut self) {
        let (kind, direction) = (self.row().kind, self.message.direction());
        if let Some(statistics) = self.statistics().filter(|_| !self.direct.is_empty()) {
            statistics.flush(kind, direction, &mut self.direct);
        }
    }

    pub(crate) fn row<'p>(&self) -> &'p CipherRow {
        // SAFETY: rows go with their provider, which the core keeps while a context of it lives.
        unsafe { &*self.row }
    }

    pub(crate) fn prov<'p>(&self) -> &'p ProvCtx {
        // SAFETY: a row belongs to its provider.
        unsafe { &*self.row().prov }
    }

    pub(crate) fn counts<'p>(&self) -> &'p Counts {
        &self.prov().counts
    }

    pub(crate) fn combiner<'p>(&self) -> Option<&'p Combiner> {
        self.prov().combiner.as_ref()
    }

    pub(crate) fn inner(&self) -> InnerContext<'static> {
        // SAFETY: ours, and one call at a time works on a context.
        unsafe { InnerContext::of(self.row(), self.inner) }
    }

    pub(crate) fn family(&self) -> Option<Family> {
        self.row().algorithm.map(Algorithm::family)
    }

    /// Gives the message up: nothing more comes out of it until the next init.
    pub(crate) fn fail(&mut self) -> Reason {
        self.message.state = State::Failed;
        self.thresh = 0;
        Reason::Lost
    }

    /// The program's call, to the inner function.
    pub(crate) fn inner_update(&self, call: &Update) -> c_int {
        call.inner(self.update, self.inner)
    }

    /// An update by the inner function.
    pub(crate) fn forward(&mut self, call: &Update) -> c_int {
        self.taken = self.taken.wrapping_add(call.len());
        self.inner_update(call)
    }

    /// Whether an init in this direction with nothing but an IV is a short one.
    #[inline]
    pub(crate) fn is_iv_only(&self, encrypts: bool) -> bool {
        self.iv_only == IvOnly::of(encrypts)
    }

    /// What a short init does. The inner function, whose turn is next, refuses none of a key that it has taken; were it to, an
    /// update would still start where the inner context says.
    #[inline]
    pub(crate) fn next_message(&mut self, encrypts: bool, iv: &[u8; 16]) {
        debug_assert!(
            self.message.is_as_begun() && self.elsewhere.get() == 0,
            "a call did not say that it came"
        );
        if self.taken > 0 && self.direct.record(self.taken) {
            // The next one shows it.
            self.iv_only = IvOnly::None;
        }
        self.taken = 0;
        self.message.iv = *iv;
        self.thresh = self.first_thresh[usize::from(encrypts)];
    }

    /// A call came that is not the hot one.
    pub(crate) fn end_iv_only(&mut self) {
        self.iv_only = IvOnly::None;
    }

    /// The program's IV, where an init without one would make OpenSSL take the moved one for it.
    pub(crate) fn iv_again(&self, is_given: bool) -> Option<[u8; 16]> {
        (!is_given && self.message.iv_moved && self.family() == Some(Family::Cbc)).then_some(self.message.iv)
    }

    /// Lets updates in where the message may take another way.
    pub(crate) fn settle(&mut self) {
        let routable = self.row().algorithm.is_some_and(|algorithm| self.message.is_routable(algorithm));
        if self.message.state == State::Direct && routable {
            self.thresh = self.row().context_thresh(self.message.encrypts);
        } else {
            self.message.state = State::InnerOnly;
            self.thresh = usize::MAX;
        }
    }

    /// Parameters were set, or refused after some of them were.
    pub(crate) fn set(&mut self, all: bool, call: &Init<'_>) {
        self.end_iv_only();
        call.each_param(|key, number| self.message.parameter(key, number));
        // In mid-message a change of padding also changes what is held back inside.
        if !all || self.taken > 0 {
            self.message.state = State::InnerOnly;
        }
        // After final nothing is let in until the next init.
        if self.thresh != usize::MAX {
            self.settle();
        }
    }

    /// An update was refused. What the inner function refuses is handed back before; in a message that is still ours
    /// something broke, and nothing more may come out of it.
    pub(crate) fn refused(&mut self) {
        if self.message.state == State::Owned {
            self.message.state = State::Failed;
        }
    }

    /// A key came that was not seen: everything is the inner context's.
    pub(crate) fn lose_sight(&mut self) {
        self.end_iv_only();
        self.message.forget_key();
        self.message.state = State::InnerOnly;
        self.thresh = usize::MAX;
    }
}
