//! The entry points of ECB, CBC, CTR and XTS where a kernel of ours computes them (`native/blocks/`), or may (`native/kernel_choice.rs`).
//!
//! ```text
//!            a key of a class that the kernel does                  a key of another, or a call that is rare
//!  new ------------------------------------------> the kernel's ----------------------------------------> the inner cipher's
//!                                                       ^                                                         |
//!                                                       +------ a key of a class that the kernel does ------------+
//! ```
//!
//! No inner context is made before it is needed. What the inner cipher does are jumps into it, but where a key comes. A context stays its once a
//! parameter came that is not known here, or a key object of the inner provider ([`skey_init`]).

use std::ffi::{c_int, c_uchar, c_void};
use std::ptr;

use evener_kernels::{clear_registers, with_registers_cleared, with_stack_wiped};
use evener_ossl_sys::{CipherSkeyInit, CtxParamsList, GettableParams, NewCtx, Param};

use super::super::cipher::{core_of, gettable_params};
use super::super::parameter_lists::{KeyObjectInit, cipher_functions, context_lists, key_object_inits};
use super::{choice, has_memory, on_message, place_functions, row_of};
use crate::core::errors::Reason;
use crate::ffi::{dispatch, key_memory, params};
use crate::inner_cipher::call::{Init, Update};
use crate::inner_cipher::context::{InnerContext, OwnContext};
use crate::native::blocks::{BLOCK, BlockContext};
use crate::native::front::Front;
use crate::native::kernel_choice::{self, Choice, Class, Work};
use crate::native::{Refused, refuses};
use crate::state::rows::{CipherRow, Native};

cipher_functions!();
place_functions!();

/// What C holds: a context of ours, and the inner one once that was needed.
pub(super) struct Place {
    pub(super) native: BlockContext,
    inner: *mut c_void,
    /// Whether the inner cipher works.
    is_inner: bool,
    /// Whether it is open who does it, and what the inner cipher does meanwhile is added up.
    is_open: bool,
    encrypts: bool,
    /// Whether all that the inner context was told is known here.
    is_usual: bool,
    /// Whether the inner context has an IV.
    has_inner_iv: bool,
    /// Whether what that has for the first IV is a counter that the message came to here.
    has_moved_iv: bool,
    work: Work,
    /// The ways that may come before the kernel.
    pub(super) front: Front,
}

impl Place {
    /// A context of `row` without a key. Inlined, so that it is made where it stays: moved, it would be a kilobyte to copy, twice.
    #[inline(always)]
    fn new(row: &CipherRow, native: Native) -> Self {
        Self {
            native: BlockContext::new(row, native),
            inner: ptr::null_mut(),
            is_inner: false,
            is_open: false,
            encrypts: true,
            is_usual: true,
            has_inner_iv: false,
            has_moved_iv: false,
            work: Work::default(),
            front: Front::NONE,
        }
    }

    /// Whether the inner cipher works.
    pub(super) fn is_inner(&self) -> bool {
        self.is_inner
    }

    /// The key of the message under way; `None` where that is not known.
    pub(super) fn known_key(&self) -> Option<&[u8]> {
        if self.is_inner { self.native.kept_key_bytes() } else { self.native.known_key() }
    }

    /// Its IV, zeros where the cipher has none; `None` where that is not known.
    pub(super) fn known_iv(&self) -> Option<[u8; BLOCK]> {
        if !self.is_inner {
            return self.native.known_iv();
        }
        if self.has_moved_iv {
            return Some(*self.native.first_iv());
        }
        // SAFETY: ours, and a context of this row.
        let inner = unsafe { InnerContext::of(self.native.row(), self.inner) };
        if self.native.iv_bytes() == 0 { Some([0; BLOCK]) } else { inner.original_iv() }
    }

    /// The inner context gets an IV, or null. One of a wrong length it refuses.
    fn takes_inner_iv(&mut self, iv: *const c_uchar, iv_len: usize) {
        if !iv.is_null() {
            self.has_inner_iv = true;
            self.has_moved_iv &= iv_len != BLOCK;
        }
    }

    /// Adds up what the inner cipher did while it was open who does it.
    fn add_up(&mut self) {
        let work = std::mem::take(&mut self.work);
        if self.is_open {
            kernel_choice::worked(Class::of(self.native.native(), self.encrypts), work);
        }
    }

    /// Whether a kernel does the messages of a key that comes now.
    fn is_for_kernel(&mut self, encrypts: bool) -> bool {
        self.add_up();
        (self.encrypts, self.is_open) = (encrypts, false);
        let (row, native) = (self.native.row(), *self.native.native());
        if !self.native.has_kernel(encrypts) {
            return false;
        }
        let choice = choice(row, &native, encrypts);
        self.is_open = choice == Choice::Open;
        choice == Choice::Kernel
    }

    /// Whether an init goes to the kernel: its key decides, and without one who works already, but where it is open who does: there by now it may be settled.
    fn takes(&mut self, call: &Init<'_>) -> bool {
        if call.key.is_none() {
            return if self.is_inner { self.is_resumed(call) } else { !self.native.is_out_of_service() };
        }
        // An IV that the inner context has is not known here.
        let is_known = !self.is_inner || self.is_usual && (call.iv.is_some() || !self.has_inner_iv);
        self.is_for_kernel(call.encrypts) && is_known
    }

    /// Whether an init without a key goes to the kernel with the one that the inner context has had for long. With an IV nothing is left of what that knows.
    fn is_resumed(&mut self, call: &Init<'_>) -> bool {
        let is_told_all = self.is_usual && call.encrypts == self.encrypts && !call.has_params();
        let is_anew = call.iv.is_some() || self.native.iv_bytes() == 0;
        let has_key = self.native.keeps_key();
        self.is_much() && is_told_all && is_anew && has_key && self.is_for_kernel(call.encrypts)
    }

    /// The kernel begins with the key that came, or that was kept; whether it takes the call.
    fn begins(&mut self, call: &Init<'_>) -> bool {
        let kept = if self.is_inner { self.native.kept_key() } else { None };
        let key = kept.as_ref().and_then(|key| key.get(..self.native.native().key_bytes));
        self.native.init(&call.or_key(key)).is_some()
    }

    /// Whether it is time to look again who does it.
    fn is_much(&self) -> bool {
        self.is_open && self.work.is_much()
    }

    /// A piece of text that is computed again; `None` where nothing was done. Where the kernel was wrong, the inner cipher goes on.
    #[cold]
    fn update_beside(
        &mut self,
        call: &Update,
        update: fn(&mut BlockContext, &Update) -> Option<usize>,
    ) -> Option<c_int> {
        let done = self.native.update_beside(call, |native| update(native, call))?;
        if !matches!(done, Ok((_, true))) {
            _ = self.inner();
        }
        Some(match done {
            Ok((bytes, _)) => call.done(bytes),
            Err(Refused) => {
                core_of(self.native.row()).raise(Reason::Refused, None);
                0
            }
        })
    }

    /// The inner context, which goes on with what is begun here; `None` where there is no memory.
    fn inner(&mut self) -> Option<InnerContext<'static>> {
        self.inner_for(false)
    }

    /// The same, for a call `where_all_comes_anew`, or for any other.
    fn inner_for(&mut self, where_all_comes_anew: bool) -> Option<InnerContext<'static>> {
        if self.native.is_lost() && !where_all_comes_anew {
            return None;
        }
        let row = self.native.row();
        if self.inner.is_null() {
            // SAFETY: the inner function with the inner provider's context.
            self.inner = unsafe { (row.inner.newctx)(row.provider) };
        }
        if self.inner.is_null() {
            return None;
        }
        // SAFETY: ours, and a context of this row.
        let inner = unsafe { InnerContext::of(row, self.inner) };
        if !self.is_inner {
            self.has_inner_iv = self.native.has_iv();
            self.has_moved_iv = !where_all_comes_anew && self.native.moves_iv();
            // What it refuses here, it refuses of the call that is behind it.
            _ = self.native.bring(inner, where_all_comes_anew);
            self.is_inner = true;
            if self.front.is_there() {
                self.native.leave_kernel();
            }
        }
        Some(inner)
    }
}

/// Whether the inner cipher takes parameters with a place within a block (`num`): OpenSSL from 3.0.20 on takes none of a counter's. Asked of a context that is
/// made for it, for what is refused leaves the message as it was.
#[cold]
fn takes_num(place: &Place, list: *const Param) -> bool {
    let row = place.native.row();
    let Some(set) = row.inner.set_ctx_params else { return false };
    // SAFETY: the inner function with the inner provider's context.
    let probe = unsafe { (row.inner.newctx)(row.provider) };
    if probe.is_null() {
        return false;
    }
    // SAFETY: the inner function with a context that it made; the list is the caller's.
    let answer = unsafe { set(probe, list) };
    // SAFETY: as above; it is used no more.
    unsafe { (row.inner.freectx)(probe) };
    answer == 1
}

/// 0, with what OpenSSL's own cipher says of such a list on its queue.
#[cold]
fn refused(row: &CipherRow, call: impl FnOnce(InnerContext<'_>) -> bool) -> c_int {
    OwnContext::new(row).map_or(0, |own| c_int::from(call(own.inner())))
}

/// Starts a message with a key object, by the inner function that `of` names, whose context this is from then on.
///
/// # Safety
///
/// The arguments are those of OpenSSL's core, and the key object is the inner provider's.
pub(super) unsafe fn skey_init(
    ctx: *mut c_void,
    of: fn(&CipherRow) -> Option<CipherSkeyInit>,
    call: KeyObjectInit,
) -> c_int {
    let Some(place) = place_of(ctx) else { return 0 };
    let Some(init) = of(place.native.row()) else { return 0 };
    if place.inner().is_none() {
        return 0;
    }
    place.is_usual = false;
    place.native.keep_key(None);
    // SAFETY: the inner function with its own context; the rest is the caller's.
    unsafe { init(place.inner, call.key, call.iv, call.iv_len, call.params) }
}

key_object_inits!(encrypt_skey_init, decrypt_skey_init);

context_lists! { settable_ctx_params, gettable_ctx_params }

// Kept out of the entry points: one whose own code needs no stack jumps into the inner function.
dispatch! {
    #[inline(never)]
    fn any_init[ENCRYPTS](
        place: &mut Place, key: *const c_uchar, key_len: usize, iv: *const c_uchar, iv_len: usize, params: *const Param,
    ) -> c_int {
        let call = Init::of(ENCRYPTS == 1, (key, key_len), (iv, iv_len), params);
        if place.takes(&call) && with_registers_cleared(|| place.begins(&call)) {
            if place.is_inner && place.front.is_there() {
                place.native.enter_kernel();
            }
            place.is_inner = false;
            if call.params().is_empty() || place.native.set(call.params()).is_some() {
                return 1;
            }
            // SAFETY: what is left are the parameters, to a message that has begun.
            return unsafe { set_ctx_params((&raw mut *place).cast(), params) };
        }
        // What the inner cipher does leaves nothing there; what it is given comes by `copy_key`.
        let takes = |key| !place.native.may_refuse(key);
        let is_new = call.key.is_some_and(takes) && (call.iv.is_some() || !place.native.has_iv());
        if place.inner_for(is_new).is_none() {
            return 0;
        }
        place.is_usual &= !call.has_params();
        place.takes_inner_iv(iv, iv_len);
        place.work.begin();
        let answer = call.inner(place.native.row(), place.inner);
        if call.key.is_some() {
            let is_kept = place.is_open || place.front.is_there();
            place.native.keep_key(call.key.filter(|_| is_kept && answer == 1));
        }
        answer
    }

    /// Short of `any_update`, which needs more of the stack.
    #[inline(never)]
    fn native_update(
        place: &mut Place, out: *mut c_uchar, written: *mut usize, room: usize, input: *const c_uchar, len: usize,
    ) -> c_int {
        let call = Update::of(out, written, room, input, len);
        if place.native.went_straight(&call) {
            clear_registers();
            return call.done(len);
        }
        // SAFETY: the caller's arguments, as they came.
        unsafe { any_update(place, out, written, room, input, len) }
    }

    #[inline(never)]
    fn any_update(
        place: &mut Place, out: *mut c_uchar, written: *mut usize, room: usize, input: *const c_uchar, len: usize,
    ) -> c_int {
        let call = Update::of(out, written, room, input, len);
        let (row, is_beside) = (place.native.row(), place.native.turn_comes() && has_memory());
        on_message(row, is_beside || len >= place.native.split_from(), || {
            let answer = if is_beside { place.update_beside(&call, BlockContext::update) } else { None };
            answer.unwrap_or_else(|| match place.native.update(&call) {
                Some(bytes) => call.done(bytes),
                None => place.inner().map_or(0, |inner| c_int::from(inner.update(&call))),
            })
        })
    }

    #[inline(never)]
    fn native_cipher(
        place: &mut Place, out: *mut c_uchar, written: *mut usize, room: usize, input: *const c_uchar, len: usize,
    ) -> c_int {
        let call = Update::of(out, written, room, input, len);
        let (row, is_beside) = (place.native.row(), place.native.turn_comes() && !place.native.holds_back() && has_memory());
        on_message(row, is_beside || len >= place.native.split_from(), || {
            let answer = if is_beside { place.update_beside(&call, BlockContext::one_shot) } else { None };
            if let Some(answer) = answer {
                return answer;
            }
            if let Some(bytes) = place.native.one_shot(&call) {
                return call.done(bytes);
            }
            let Some(inner) = place.inner() else { return 0 };
            let Some(cipher) = row.inner.cipher else { return c_int::from(inner.update(&call)) };
            call.inner(cipher, place.inner)
        })
    }

    #[inline(never)]
    fn native_last(place: &mut Place, out: *mut c_uchar, written: *mut usize, room: usize) -> c_int {
        let call = Update::of(out, written, room, ptr::null(), 0);
        with_registers_cleared(|| match place.native.last(&call) {
            Some(bytes) => call.done(bytes),
            None => place.inner().map_or(0, |inner| c_int::from(inner.last(&call))),
        })
    }
}

dispatch! {
    pub(super) fn newctx[SLOT](provctx: *mut c_void) -> *mut c_void {
        let Some(row) = row_of(provctx, SLOT) else { return ptr::null_mut() };
        let Some(native) = row.native else { return ptr::null_mut() };
        let place = key_memory::allocated::<Place>();
        if !place.is_null() {
            // SAFETY: just allocated with this layout.
            unsafe { place.write(Place::new(row, native)) };
        }
        place.cast()
    }

    pub(super) fn dupctx(ctx: *mut c_void) -> *mut c_void {
        let Some(place) = place_of(ctx) else { return ptr::null_mut() };
        let copy = key_memory::allocated::<Place>();
        if copy.is_null() {
            return ptr::null_mut();
        }
        let inner = match place.native.row().inner.dupctx.filter(|_| place.is_inner) {
            // SAFETY: the inner function with its own context.
            Some(dup) => unsafe { dup(place.inner) },
            None => ptr::null_mut(),
        };
        // SAFETY: plain bytes, into memory that was just allocated for as many.
        with_stack_wiped(|| unsafe { ptr::copy_nonoverlapping(&raw const *place, copy, 1) });
        // SAFETY: a context since the line before.
        let made = unsafe { &mut *copy };
        made.inner = inner;
        made.front.become_copy();
        made.native.become_copy();
        made.work = Work::default();
        if place.is_inner && inner.is_null() {
            // SAFETY: made here, and C never saw it.
            unsafe { key_memory::drop_context(copy) };
            return ptr::null_mut();
        }
        copy.cast()
    }

    pub(super) fn init[ENCRYPTS](
        ctx: *mut c_void, key: *const c_uchar, key_len: usize, iv: *const c_uchar, iv_len: usize, params: *const Param,
    ) -> c_int {
        let Some(place) = place_of(ctx) else { return 0 };
        if !place.is_inner || !key.is_null() || !params.is_null() || place.is_much() {
            // SAFETY: the caller's arguments, as they came.
            return unsafe { any_init::<ENCRYPTS>(place, key, key_len, iv, iv_len, params) };
        }
        place.work.begin();
        place.takes_inner_iv(iv, iv_len);
        let row = place.native.row();
        let init = if ENCRYPTS == 1 { row.inner.encrypt_init } else { row.inner.decrypt_init };
        // SAFETY: the inner function with its own context; the rest is the caller's.
        unsafe { init(place.inner, key, key_len, iv, iv_len, params) }
    }

    pub(super) fn last(ctx: *mut c_void, out: *mut c_uchar, written: *mut usize, room: usize) -> c_int {
        let Some(place) = place_of(ctx) else { return 0 };
        if !place.is_inner {
            // SAFETY: the caller's arguments, as they came.
            return unsafe { native_last(place, out, written, room) };
        }
        // SAFETY: the inner function with its own context; the rest is the caller's.
        unsafe { (place.native.row().inner.last)(place.inner, out, written, room) }
    }

    pub(super) fn get_ctx_params(ctx: *mut c_void, list: *mut Param) -> c_int {
        let Some(place) = place_of(ctx) else { return 0 };
        // Each init through EVP of OpenSSL 3.0 queries this first, by a search through all parameters, and it never changes.
        // SAFETY: the core's list, lent for the call.
        if unsafe { params::answered_length(list, c"ivlen", place.native.iv_bytes()) } {
            return 1;
        }
        // Each init with a key queries this next, and it is the cipher's.
        // SAFETY: as above.
        if unsafe { params::answered_length(list, c"keylen", place.native.native().key_bytes) } {
            return 1;
        }
        // SAFETY: as above.
        let queried = unsafe { params::list_mut(list) };
        if !place.is_inner && refuses(place.native.row(), queried) {
            // SAFETY: as above.
            return refused(place.native.row(), |own| unsafe { own.answer_list(list) });
        }
        if !place.is_inner && place.native.get(queried).is_some() {
            return 1;
        }
        if place.inner().is_none() {
            return 0;
        }
        let Some(get) = place.native.row().inner.get_ctx_params else { return 0 };
        // SAFETY: the inner function with its own context; the rest is the caller's.
        let answer = unsafe { get(place.inner, list) };
        if answer == 1 && place.has_moved_iv {
            // SAFETY: the core's list, lent for the call.
            let original = params::find_mut(unsafe { params::list_mut(list) }, c"iv");
            return original.map_or(1, |param| c_int::from(params::answer_octets(param, place.native.first_iv())));
        }
        answer
    }

    pub(super) fn set_ctx_params(ctx: *mut c_void, list: *const Param) -> c_int {
        let Some(place) = place_of(ctx) else { return 0 };
        // SAFETY: the core's list, lent for the call.
        let asked = unsafe { params::list(list) };
        if !place.is_inner && asked.iter().any(|param| params::key(param) == c"num") && !takes_num(place, list) {
            return 0;
        }
        if !place.is_inner && refuses(place.native.row(), asked) {
            // SAFETY: as above.
            return refused(place.native.row(), |own| unsafe { own.set_list(list) });
        }
        if !place.is_inner && place.native.set(asked).is_some() {
            return 1;
        }
        if place.inner().is_none() {
            return 0;
        }
        // SAFETY: as above.
        match unsafe { params::number_alone(list, c"padding") } {
            Some(padding) => place.native.note_padding(padding != 0),
            None => place.is_usual &= asked.is_empty(),
        }
        let Some(set) = place.native.row().inner.set_ctx_params else { return 0 };
        // SAFETY: the inner function with its own context; the rest is the caller's.
        unsafe { set(place.inner, list) }
    }
}
