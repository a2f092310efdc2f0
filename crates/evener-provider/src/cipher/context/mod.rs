//! What C holds for a cipher in use: the inner context, and what is known about the message in it. Data and what it needs to stay true;
//! what calls do to it stands in `transitions.rs`, what is decided by it in `route.rs`, `calls.rs` and the files of the ways.
//!
//! | group | what it has | who uses it |
//! |---|---|---|
//! | [`Hot`] | the inner context with its hot functions, the threshold below which an update is the inner function's, counts | each call |
//! | [`Inner`] | the inner cipher's other functions | what is not hot |
//! | [`Message`] | key, IV, state of the message (`message/`) | inits, and updates above the threshold |
//! | [`Pending`] | who helps with the update under way | updates above the threshold, for as long as they last |

mod policy_skips;
mod transitions;

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::mem::offset_of;

use evener::combine::{Combiner, TimedCall};
use evener::counts_file::{LocalCounter, Statistics};
use evener::regret::Measurement;
use evener_core::{Algorithm, Family};
use evener_ossl_sys::{CipherFinal, CipherInit, CipherUpdate, FreeCtx};

use self::policy_skips::PolicySkips;
use crate::cipher::engine::choice::ModuleChoice;
use crate::cipher::gcm::state::Gcm;
use crate::cipher::message::{Message, State};
use crate::cipher::pipelines::state::PipelineState;
use crate::core::errors::Reason;
use crate::inner_cipher::call::Update;
use crate::inner_cipher::context::InnerContext;
use crate::state::rows::{CipherRow, DECRYPTED_BYTES_MIN};
use crate::state::{Counts, ProvCtx};

/// What C holds for a cipher in use.
#[repr(C)]
pub(crate) struct CipherCtx {
    pub(crate) hot: Hot,
    pub(crate) inner: Inner,
    pub(crate) message: Message,
    pub(crate) pending: Pending,
    /// GCM with splitting configured: what is known about the message.
    pub(crate) gcm: Option<Box<Gcm>>,
    /// The messages of a pipeline.
    pub(crate) pipes: Option<Box<PipelineState>>,
}

/// What small calls touch: an update the first fields, in one cache line, and the init, final and length of the IV the others, in the
/// next two.
#[repr(C)]
pub(crate) struct Hot {
    /// The inner update.
    pub(crate) update: CipherUpdate,
    /// The inner context.
    pub(crate) inner: *mut c_void,
    /// A shorter update is the inner function's alone: `usize::MAX` where all are, 0 where none is.
    pub(crate) thresh: usize,
    /// Bytes of this message so far. Not told apart from bytes that the inner function refused: it refuses an update
    /// only where the space is too small, and EVP always gives enough.
    pub(crate) taken: usize,
    /// The inner init and final.
    pub(crate) encrypt_init: CipherInit,
    pub(crate) last: CipherFinal,
    /// `thresh` of a message that may take another way, decrypting and encrypting.
    first_thresh: [usize; 2],
    /// Messages that are at their end and not in the process's statistics yet.
    pub(in crate::cipher) direct: LocalCounter,
    /// Which inits are short.
    pub(in crate::cipher) iv_only: IvOnly,
    pub(crate) decrypt_init: CipherInit,
    /// Length of the IV where that is known here, 0 where not. Of GCM it is known after an init with a nonce of the usual length.
    pub(crate) iv_bytes: usize,
    /// Bytes of this message that went another way than the inner one.
    pub(crate) elsewhere: Cell<usize>,
    /// Whether anything has to be known about messages.
    pub(crate) is_tracked: bool,
    /// Updates that no module is asked about.
    pub(in crate::cipher) unseen: PolicySkips,
}

const CACHE_LINE: usize = 64;
const _: () =
    assert!(offset_of!(CipherCtx, hot) == 0, "C's pointer is that of the fields that small calls touch");
const _: () =
    assert!(offset_of!(Hot, first_thresh) <= CACHE_LINE, "an update, an init and a final read one line");
const _: () = assert!(size_of::<Hot>() <= 3 * CACHE_LINE, "all that small calls touch lies in three");

/// The inner cipher's functions that are seldom called.
pub(crate) struct Inner {
    /// The one-shot function; the inner update where there is none, and the core then calls neither.
    pub(crate) cipher: CipherUpdate,
    /// The algorithm's other functions. Its provider outlives the context.
    row: *const CipherRow,
    /// Whether no parameter and no key object was given to the inner context, but whether it pads.
    pub(crate) is_usual: bool,
    /// The inner context that a kernel's has taken the place of.
    left: Option<Left>,
}

/// An inner context that is asked nothing more. It lives as long as ours: a program may hold the address of its IV (`EVP_CIPHER_CTX_iv`).
struct Left {
    ctx: *mut c_void,
    free: FreeCtx,
}

impl Drop for Left {
    fn drop(&mut self) {
        // SAFETY: ours alone, and this is the last call with it.
        unsafe { (self.free)(self.ctx) }
    }
}

/// The update under way, while there is one.
#[derive(Default)]
pub(crate) struct Pending {
    /// How it is split.
    pub(crate) split: Option<evener::split::Call>,
    /// What the policy says about it, where a module wants it.
    pub(crate) module: Option<ModuleChoice>,
    /// What the guard says about it, where its job could be put aside.
    pub(crate) job_turn: Option<Measurement>,
    /// Where threads that might combine are to know when it was done.
    pub(crate) timed: Option<TimedCall>,
}

/// Inits with nothing but an IV, in the direction of the message before, of which there are many: all that such an init has to
/// do here is to count that message and to keep the IV. [`CipherCtx::init`] says so, and every call that is not the hot one takes it
/// back, so that one byte is all that has to be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cipher) enum IvOnly {
    Decrypting,
    Encrypting,
    None,
}

impl IvOnly {
    pub(in crate::cipher) const fn of(encrypts: bool) -> Self {
        if encrypts { Self::Encrypting } else { Self::Decrypting }
    }
}

impl CipherCtx {
    /// One around `inner`, which it owns from here on.
    #[inline]
    pub(crate) fn new(row: &CipherRow, inner: *mut c_void) -> Self {
        let hot = Hot {
            update: row.inner.update,
            inner,
            thresh: usize::MAX,
            taken: 0,
            encrypt_init: row.inner.encrypt_init,
            last: row.inner.last,
            first_thresh: [row.context_thresh(false), row.context_thresh(true)],
            direct: LocalCounter::default(),
            iv_only: IvOnly::None,
            decrypt_init: row.inner.decrypt_init,
            iv_bytes: row.algorithm.map_or(0, Algorithm::iv_bytes),
            elsewhere: Cell::new(0),
            is_tracked: row.is_tracked(),
            unseen: PolicySkips::default(),
        };
        let cipher = row.inner.cipher.unwrap_or(row.inner.update);
        let inner = Inner { cipher, row, is_usual: true, left: None };
        if hot.is_tracked {
            // Not with the first count, which many messages may precede.
            // SAFETY: as in `prov`.
            unsafe { &*row.prov }.statistics.into_iter().for_each(Statistics::prepare);
        }
        Self { hot, inner, message: Message::default(), pending: Pending::default(), gcm: None, pipes: None }
    }

    /// Whether an update of so many bytes takes the context to a kernel: a message for decryption that begins with a long one, where there is a kernel for that
    /// alone.
    pub(crate) fn is_for_kernel(&self, len: usize) -> bool {
        let is_whole_message = self.hot.taken == 0 && self.hot.elsewhere.get() == 0;
        let is_long = len >= DECRYPTED_BYTES_MIN && !self.message.encrypts && is_whole_message;
        let is_direct = self.message.state == State::Direct && self.message.record_mode.is_none();
        is_long && self.inner.is_usual && self.row().kernels_slot.is_some() && is_direct
    }

    /// The context is a kernel's from here on, for good; where there is no memory for it the inner cipher stays. Its requests were shown: they are the inner
    /// cipher's.
    pub(crate) fn go_to_kernel(&mut self) {
        let Some(slot) = self.row().kernels_slot else { return };
        // Of single calls there may have been some before.
        let chain = self.inner().updated_iv();
        let (Some(row), Some(chain)) = (self.prov().cipher_row(slot), chain) else { return };
        // SAFETY: the entry point that makes a context, with this provider.
        let inner = unsafe { (row.inner.newctx)(row.provider) };
        if inner.is_null() {
            return;
        }
        // SAFETY: just made, of this row.
        let made = unsafe { InnerContext::of(row, inner) };
        let is_told = made.set_padding(self.message.padding);
        debug_assert!(is_told, "every kernel's context takes whether it pads");
        if !made.init(false, Some(self.message.key()), Some(&chain)) {
            // SAFETY: just made, and this is the last call with it.
            return unsafe { (row.inner.freectx)(inner) };
        }
        self.inner.left = Some(Left { ctx: self.hot.inner, free: self.row().inner.freectx });
        if chain != self.message.iv {
            self.end_iv_only();
            self.message.iv_moved = true;
        }
        self.hot.first_thresh = [row.context_thresh(false), row.context_thresh(true)];
        self.hot.thresh = row.context_thresh(false);
        self.hot.inner = inner;
        self.hot.update = row.inner.update;
        self.hot.encrypt_init = row.inner.encrypt_init;
        self.hot.decrypt_init = row.inner.decrypt_init;
        self.hot.last = row.inner.last;
        self.inner.cipher = row.inner.cipher.unwrap_or(row.inner.update);
        self.inner.row = row;
    }

    /// From which length on the update under way is block work that a module may do: from none on where guard or policy keep it, or no engine
    /// takes it, for a context of ours costs as much as some KiB.
    pub(crate) fn block_thresh(&self) -> usize {
        if self.pending.module.as_ref().is_some_and(ModuleChoice::stays) {
            usize::MAX
        } else {
            self.row().thresholds.block_from
        }
    }

    pub(crate) fn row<'p>(&self) -> &'p CipherRow {
        // SAFETY: rows go with their provider, which the core keeps while a context of it lives.
        unsafe { &*self.inner.row }
    }

    pub(crate) fn prov<'p>(&self) -> &'p ProvCtx {
        // SAFETY: a row belongs to its provider.
        unsafe { &*self.row().prov }
    }

    pub(crate) fn counts<'p>(&self) -> &'p Counts {
        &self.prov().counts
    }

    pub(crate) fn combiner<'p>(&self) -> Option<&'p Combiner> {
        self.prov().ways().combiner.as_ref()
    }

    pub(crate) fn inner(&self) -> InnerContext<'static> {
        // SAFETY: ours, and one call at a time works on a context.
        unsafe { InnerContext::of(self.row(), self.hot.inner) }
    }

    pub(crate) fn family(&self) -> Option<Family> {
        self.row().algorithm.map(Algorithm::family)
    }

    /// Gives the message up: nothing more comes out of it until the next init.
    pub(crate) fn fail(&mut self) -> Reason {
        self.message.state = State::Failed;
        self.hot.thresh = 0;
        Reason::Lost
    }

    /// The program's call, to the inner function.
    pub(crate) fn inner_update(&self, call: &Update) -> c_int {
        call.inner(self.hot.update, self.hot.inner)
    }

    /// An update by the inner function.
    pub(crate) fn forward(&mut self, call: &Update) -> c_int {
        self.hot.taken = self.hot.taken.wrapping_add(call.len());
        self.inner_update(call)
    }
}
