//! The entry points of AES-GCM where a kernel of ours computes it (`native/gcm/`), or may (`native/kernel_choice.rs`).
//!
//! None takes memory but `newctx`, `dupctx` and what is refused ([`refuse`]), and none a lock or the kernel's time but `newctx` where it settles who computes, so that no thread's
//! cancellation has to be held back in the others, but for a piece of text that is split, or a message that is computed again, whichever call that begins with ([`GcmContext::takes_time`]); the few
//! that ask an inner context are OpenSSL's own work. A context is the inner functions'
//! where the inner cipher computes, until a key comes behind which a kernel is quicker, and for good once a key object of the inner provider came ([`skey_init`]).

use std::ffi::{c_int, c_uchar, c_void};
use std::ptr;

use evener_kernels::{with_registers_cleared, with_stack_wiped};
use evener_ossl_sys::{CipherSkeyInit, CtxParamsList, GettableParams, NewCtx, Param};

use super::super::cipher::{core_of, gettable_params};
use super::super::parameter_lists::{KeyObjectInit, cipher_functions, context_lists, key_object_inits};
use super::super::refusal::for_c;
use super::{choice, on_message, on_settings, place_functions, row_of};
use crate::core::errors::Reason;
use crate::ffi::{dispatch, key_memory, params};
use crate::inner_cipher::call::{Init, Update};
use crate::inner_cipher::context::InnerContext;
use crate::native::gcm::GcmContext;
use crate::native::kernel_choice::{self, Choice, Class, Work};
use crate::native::{Refused, refuses};
use crate::state::rows::CipherRow;

cipher_functions!();
place_functions!();

/// What C holds: a context of ours, and the inner one where that has taken over.
pub(super) struct Place {
    native: GcmContext,
    inner: *mut c_void,
    /// What the inner cipher does.
    work: Work,
    /// Whether it was open who does it.
    is_open: bool,
    /// Whether all that sets a message apart is known here, the length of its nonce too: to a kernel of ours, and of an inner cipher that has no other parameters.
    is_usual: bool,
}

impl Place {
    /// Whether the inner cipher works.
    fn is_inner(&self) -> bool {
        !self.inner.is_null()
    }

    /// Adds up what the inner cipher did while it was open who does it.
    fn add_up(&mut self) {
        let work = std::mem::take(&mut self.work);
        if let Some(native) = self.native.row().native.as_ref().filter(|_| self.is_open) {
            kernel_choice::worked(Class::of(native, true), work);
        }
    }
}

/// 0, with what OpenSSL's own cipher says of this call on its queue, where it says anything.
#[cold]
#[inline(never)]
fn refuse(native: &GcmContext, call: impl FnOnce(InnerContext<'_>) -> bool) -> c_int {
    for_c(
        core_of(native.row()),
        || {
            if native.is_refused_by_inner(call) { Ok(0) } else { Err(Reason::Refused) }
        },
    )
}

/// 0, of a message's end or of a call without text: OpenSSL's says nothing of a tag that is wrong, nor of a nonce that is used, and of a tag that is missing as its version
/// does.
#[cold]
#[inline(never)]
fn refuse_end(native: &GcmContext, call: &Update) -> c_int {
    if native.lacks_tag() && call.is_end() {
        for_c::<()>(core_of(native.row()), || {
            native.refuse_end_by_inner(call);
            Ok(())
        });
    }
    0
}

/// Starts a message with a key object, by the inner function that `of` names, whose context this is from then on.
///
/// # Safety
///
/// The arguments are those of OpenSSL's core, and the key object is the inner provider's.
unsafe fn skey_init(
    ctx: *mut c_void,
    of: fn(&CipherRow) -> Option<CipherSkeyInit>,
    call: KeyObjectInit,
) -> c_int {
    let Some(place) = place_of(ctx) else { return 0 };
    let row = place.native.row();
    let Some(init) = of(row) else { return 0 };
    let given = place.native.given_nonce().filter(|_| call.iv.is_null());
    let (iv, iv_len) = given.map_or((call.iv, call.iv_len), |nonce| (nonce.as_ptr(), nonce.len()));
    let inner = if place.inner.is_null() {
        // SAFETY: the inner function with the inner provider's context.
        unsafe { (row.inner.newctx)(row.provider) }
    } else {
        place.inner
    };
    if inner.is_null() {
        return 0;
    }
    // SAFETY: the inner function with its own context; the rest is the caller's.
    let answer = unsafe { init(inner, call.key, iv, iv_len, call.params) };
    (place.inner, place.is_usual) = (inner, false);
    answer
}

key_object_inits!(encrypt_skey_init, decrypt_skey_init);

context_lists! { settable_ctx_params, gettable_ctx_params }

// Kept out of the entry points: one whose own code needs no stack jumps into the inner function.
dispatch! {
    #[inline(never)]
    fn native_init[ENCRYPTS](
        place: &mut Place, key: *const c_uchar, key_len: usize, iv: *const c_uchar, iv_len: usize, params: *const Param,
    ) -> c_int {
        let call = Init::of(ENCRYPTS == 1, (key, key_len), (iv, iv_len), params);
        let takes_time = call.has_params() || place.native.takes_time(0);
        let row = place.native.row();
        let init = || {
            let done = place.native.init(&call);
            if done.is_ok() { 1 } else { refuse(&place.native, |inner| inner.begin(&call)) }
        };
        // A nonce is taken, and first used behind that.
        if call.key.is_some() { on_message(row, takes_time, init) } else { on_settings(row, takes_time, init) }
    }

    /// A key where it is open who works, or a nonce of a context that has had its key for long: by now it may be settled, and with a nonce nothing is left of
    /// what the inner context knows.
    #[inline(never)]
    fn open_init[ENCRYPTS](
        place: &mut Place, key: *const c_uchar, key_len: usize, iv: *const c_uchar, iv_len: usize, params: *const Param,
    ) -> c_int {
        place.add_up();
        let row = place.native.row();
        if let Some(native) = &row.native {
            let choice = choice(row, native, true);
            place.is_open = choice == Choice::Open;
            let is_told_all = place.is_usual && !iv.is_null() && params.is_null();
            let mut has_key = || !key.is_null() || with_registers_cleared(|| place.native.takes_kept_key());
            if choice == Choice::Kernel && is_told_all && has_key() {
                // SAFETY: ours alone, and this is the last call with it.
                unsafe { (row.inner.freectx)(place.inner) };
                place.inner = ptr::null_mut();
                // SAFETY: the caller's arguments, as they came.
                return unsafe { native_init::<ENCRYPTS>(place, key, key_len, iv, iv_len, params) };
            }
        }
        place.work.begin();
        place.is_usual &= params.is_null();
        let call = Init::of(ENCRYPTS == 1, (key, key_len), (iv, iv_len), params);
        let answer = call.inner(row, place.inner);
        if !key.is_null() {
            with_registers_cleared(|| place.native.keep_key(call.encrypts, call.key.filter(|_| answer == 1)));
        }
        answer
    }

    #[inline(never)]
    fn native_cipher(
        place: &mut Place, out: *mut c_uchar, written: *mut usize, room: usize, input: *const c_uchar, len: usize,
    ) -> c_int {
        let call = Update::of(out, written, room, input, len);
        let (row, is_guarded) = (place.native.row(), place.native.takes_time(len));
        on_message(row, is_guarded, || match place.native.one_shot(&call) {
            Ok(bytes) => call.done(bytes),
            Err(Refused) if call.has_space(call.len()) => refuse_end(&place.native, &call),
            Err(Refused) => refuse(&place.native, |inner| inner.single(&call)),
        })
    }

    #[inline(never)]
    fn native_update(
        place: &mut Place, out: *mut c_uchar, written: *mut usize, room: usize, input: *const c_uchar, len: usize,
    ) -> c_int {
        let call = Update::of(out, written, room, input, len);
        let (row, is_guarded) = (place.native.row(), place.native.takes_time(len));
        on_message(row, is_guarded, || match place.native.update(&call) {
            Ok(bytes) => call.done(bytes),
            Err(Refused) => refuse(&place.native, |inner| inner.update(&call)),
        })
    }

    /// Without a reason on the queue, as OpenSSL's: a tag that is not the message's is an answer.
    #[inline(never)]
    fn native_last(place: &mut Place, out: *mut c_uchar, written: *mut usize, room: usize) -> c_int {
        let (row, is_guarded) = (place.native.row(), place.native.takes_time(0));
        let call = Update::of(out, written, room, ptr::null(), 0);
        on_message(row, is_guarded, || match place.native.last() {
            Ok(()) => call.done(0),
            Err(Refused) => refuse_end(&place.native, &call),
        })
    }
}

dispatch! {
    fn newctx[SLOT](provctx: *mut c_void) -> *mut c_void {
        let Some(row) = row_of(provctx, SLOT) else { return ptr::null_mut() };
        let Some(native) = &row.native else { return ptr::null_mut() };
        let choice = choice(row, native, true);
        let inner = match choice {
            Choice::Kernel => ptr::null_mut(),
            // SAFETY: the inner function with the inner provider's context.
            Choice::Open | Choice::Inner => unsafe { (row.inner.newctx)(row.provider) },
        };
        if inner.is_null() && choice != Choice::Kernel {
            return inner;
        }
        let place = key_memory::allocated::<Place>();
        if !place.is_null() {
            let native = GcmContext::new(row, *native);
            let is_open = choice == Choice::Open;
            // SAFETY: just allocated with this layout.
            unsafe { place.write(Place { native, inner, work: Work::default(), is_open, is_usual: true }) };
        } else if !inner.is_null() {
            // SAFETY: just made, and ours alone.
            unsafe { (row.inner.freectx)(inner) };
        }
        place.cast()
    }

    fn dupctx(ctx: *mut c_void) -> *mut c_void {
        let Some(place) = place_of(ctx) else { return ptr::null_mut() };
        let inner = match (place.inner.is_null(), place.native.row().inner.dupctx) {
            (true, _) => ptr::null_mut(),
            // SAFETY: the inner function with its own context.
            (false, Some(dup)) => unsafe { dup(place.inner) },
            (false, None) => return ptr::null_mut(),
        };
        if inner.is_null() && !place.inner.is_null() {
            return ptr::null_mut();
        }
        let copy = key_memory::allocated::<Place>();
        if copy.is_null() {
            if !inner.is_null() {
                // SAFETY: just made, and ours alone.
                unsafe { (place.native.row().inner.freectx)(inner) };
            }
            return ptr::null_mut();
        }
        // SAFETY: plain bytes, into memory that was just allocated for as many.
        with_stack_wiped(|| unsafe { ptr::copy_nonoverlapping(&raw const *place, copy, 1) });
        // SAFETY: a context since the line before.
        let made = unsafe { &mut *copy };
        made.inner = inner;
        made.work = Work::default();
        if made.native.become_copy() {
            return copy.cast();
        }
        // SAFETY: made here, and C never saw it; there was no inner context to copy.
        unsafe { key_memory::drop_context(copy) };
        ptr::null_mut()
    }

    fn init[ENCRYPTS](
        ctx: *mut c_void, key: *const c_uchar, key_len: usize, iv: *const c_uchar, iv_len: usize, params: *const Param,
    ) -> c_int {
        let Some(place) = place_of(ctx) else { return 0 };
        if place.inner.is_null() {
            // SAFETY: the caller's arguments, as they came.
            return unsafe { native_init::<ENCRYPTS>(place, key, key_len, iv, iv_len, params) };
        }
        if place.is_open && (!key.is_null() || place.work.is_much()) {
            // SAFETY: as above.
            return unsafe { open_init::<ENCRYPTS>(place, key, key_len, iv, iv_len, params) };
        }
        place.work.begin();
        place.is_usual &= params.is_null();
        let row = place.native.row();
        let init = if ENCRYPTS == 1 { row.inner.encrypt_init } else { row.inner.decrypt_init };
        // SAFETY: the inner function with its own context; the rest is the caller's.
        unsafe { init(place.inner, key, key_len, iv, iv_len, params) }
    }

    fn last(ctx: *mut c_void, out: *mut c_uchar, written: *mut usize, room: usize) -> c_int {
        let Some(place) = place_of(ctx) else { return 0 };
        if place.inner.is_null() {
            // SAFETY: the caller's arguments, as they came.
            return unsafe { native_last(place, out, written, room) };
        }
        // SAFETY: the inner function with its own context; the rest is the caller's.
        unsafe { (place.native.row().inner.last)(place.inner, out, written, room) }
    }

    fn get_ctx_params(ctx: *mut c_void, list: *mut Param) -> c_int {
        let Some(place) = place_of(ctx) else { return 0 };
        // Each init through EVP of OpenSSL 3.0 queries this first, by a search through all parameters.
        // SAFETY: the core's list, lent for the call.
        if place.is_usual && unsafe { params::answered_length(list, c"ivlen", place.native.nonce_len()) } {
            return 1;
        }
        if place.inner.is_null() {
            return on_settings(place.native.row(), place.native.takes_time(0), || {
                // SAFETY: the core's list, lent for the call.
                let queried = unsafe { params::list_mut(list) };
                if !refuses(place.native.row(), queried) && place.native.get(queried).is_ok() {
                    return 1;
                }
                // SAFETY: as above.
                refuse(&place.native, |inner| unsafe { inner.answer_list(list) })
            });
        }
        let Some(get) = place.native.row().inner.get_ctx_params else { return 0 };
        // SAFETY: the inner function with its own context; the rest is the caller's.
        unsafe { get(place.inner, list) }
    }

    fn set_ctx_params(ctx: *mut c_void, list: *const Param) -> c_int {
        let Some(place) = place_of(ctx) else { return 0 };
        if place.inner.is_null() {
            return on_settings(place.native.row(), place.native.takes_time(0), || {
                // SAFETY: the core's list, lent for the call.
                let asked = unsafe { params::list(list) };
                if !refuses(place.native.row(), asked) && place.native.set(asked).is_ok() {
                    return 1;
                }
                // SAFETY: as above.
                refuse(&place.native, |inner| unsafe { inner.set_list(list) })
            });
        }
        let Some(set) = place.native.row().inner.set_ctx_params else { return 0 };
        // SAFETY: the inner function with its own context; the rest is the caller's.
        let answer = unsafe { set(place.inner, list) };
        // SAFETY: the core's list, lent for the call.
        place.is_usual = place.is_usual && answer == 1 && place.native.note(unsafe { params::list(list) });
        answer
    }
}
