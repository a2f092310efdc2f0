//! The entry points of pipelines, which stand in the tables of CBC where lanes are to be had (OpenSSL 3.5; its
//! include/openssl/core_dispatch.h and crypto/evp/evp_enc.c).

use std::ffi::{c_int, c_uchar, c_void};
use std::ptr;
use std::slice;

use evener_ossl_sys::{
    CipherPipelineFinal, CipherPipelineInit, CipherPipelineUpdate, Function, Param, number,
};

use super::cipher::{context_of, core_of};
use super::refusal::for_c;
use crate::cipher::pipelines;
use crate::core::errors::Reason;
use crate::ffi::dispatch;
use crate::inner_cipher::call::{Init, Update};
use crate::inner_provider::dispatch_table::erased;

/// What is added to a table.
pub(crate) fn added() -> Vec<(c_int, Function)> {
    vec![
        (number::CIPHER_PIPELINE_ENCRYPT_INIT, erased!(pipeline_init::<1>, CipherPipelineInit)),
        (number::CIPHER_PIPELINE_DECRYPT_INIT, erased!(pipeline_init::<0>, CipherPipelineInit)),
        (number::CIPHER_PIPELINE_UPDATE, erased!(pipeline_update, CipherPipelineUpdate)),
        (number::CIPHER_PIPELINE_FINAL, erased!(pipeline_final, CipherPipelineFinal)),
    ]
}

/// The caller's array of `count` things; `None` for null.
fn array<'c, T>(first: *const T, count: usize) -> Option<&'c [T]> {
    // SAFETY: C passed null or the address of so many things, which it lends for the call.
    (!first.is_null()).then(|| unsafe { slice::from_raw_parts(first, count) })
}

/// The parts of an update or, without input, of a final; `None` where an array is missing.
fn calls(
    out: Option<&[*mut c_uchar]>,
    written: *mut usize,
    space: Option<&[usize]>,
    input: Option<(&[*const c_uchar], &[usize])>,
) -> Option<Vec<Update>> {
    let (out, space) = (out?, space?);
    if written.is_null() {
        return None;
    }
    let parts = out.iter().zip(space).enumerate().map(|(at, (&out, &space))| {
        let (input, len) = input.map_or((ptr::null(), 0), |(all, lens)| (all[at], lens[at]));
        // SAFETY: `written` has as many places as the other arrays.
        Update::of(out, unsafe { written.add(at) }, space, input, len)
    });
    Some(parts.collect())
}

dispatch! {
    fn pipeline_init[ENCRYPTS](
        ctx: *mut c_void, key: *const c_uchar, key_len: usize, count: usize, ivs: *const *const c_uchar,
        iv_len: usize, params: *const Param,
    ) -> c_int {
        let Some(ctx) = context_of(ctx) else { return 0 };
        for_c(core_of(ctx.row()), || {
            let iv = |at: usize| array(ivs, count).and_then(|ivs| array(ivs[at], iv_len));
            let ivs: Vec<Option<&[u8]>> = (0..count).map(iv).collect();
            let first = ivs.iter().flatten().next().map_or(ptr::null(), |iv| iv.as_ptr());
            let call = Init::of(ENCRYPTS == 1, (key, key_len), (first, iv_len), params);
            pipelines::init(ctx, &call, &ivs).map(c_int::from)
        })
    }

    fn pipeline_update(
        ctx: *mut c_void, count: usize, out: *const *mut c_uchar, written: *mut usize, space: *const usize,
        input: *const *const c_uchar, len: *const usize,
    ) -> c_int {
        let Some(ctx) = context_of(ctx) else { return 0 };
        for_c(core_of(ctx.row()), || {
            let input = array(input, count).zip(array(len, count)).ok_or(Reason::Pipes)?;
            let calls = calls(array(out, count), written, array(space, count), Some(input));
            pipelines::update(ctx, &calls.ok_or(Reason::Pipes)?).map(c_int::from)
        })
    }

    fn pipeline_final(
        ctx: *mut c_void, count: usize, out: *const *mut c_uchar, written: *mut usize, space: *const usize,
    ) -> c_int {
        let Some(ctx) = context_of(ctx) else { return 0 };
        for_c(core_of(ctx.row()), || {
            let calls = calls(array(out, count), written, array(space, count), None);
            pipelines::last(ctx, &calls.ok_or(Reason::Pipes)?).map(c_int::from)
        })
    }
}
