//! Ciphers that this provider computes itself, by kernels for this processor (`evener-kernels`): `native/gcm/` and `native/blocks/` do what OpenSSL's own ciphers
//! do, with no inner context beside them, and share large pieces between threads (`native/split.rs`); `kernel_choice.rs` says whether they do, by what `kernel_timing.rs` measured once and `choice_file.rs` keeps; `kernel_check.rs` has a sample of
//! it computed again.

pub(crate) mod blocks;
mod choice_file;
mod class;
pub(crate) mod front;
pub(crate) mod gcm;
pub(crate) mod kernel_check;
pub(crate) mod kernel_choice;
mod kernel_timing;
mod split;
mod tally;

use evener_ossl_sys::Param;

use crate::ffi::params;
use crate::inner_cipher::context::refuses_repeats;
use crate::state::ProvCtx;
use crate::state::rows::CipherRow;

/// A call is refused, as OpenSSL's cipher refuses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused;

pub(super) fn prov<'p>(row: &CipherRow) -> &'p ProvCtx {
    // SAFETY: a row belongs to its provider.
    unsafe { &*row.prov }
}

/// Whether this OpenSSL takes no such list of parameters, for a name comes twice in it: so from 4.0 on.
pub(crate) fn refuses(row: &CipherRow, list: &[Param]) -> bool {
    params::repeated(list).next().is_some() && prov(row).core.quietly(|| refuses_repeats(row, list))
}
