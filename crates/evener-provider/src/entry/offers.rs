//! What is offered for each operation, on the functions of the default provider that is found with the first question.

use std::ffi::c_int;
use std::sync::{OnceLock, PoisonError};

use evener_ossl_sys::{Algorithm, number};

use super::{cipher_rows, digest, rand, siblings, skey};
use crate::core::errors::Reason;
use crate::fork::ForkLock;
use crate::inner_provider::InnerProvider;
use crate::inner_provider::dispatch_table::Offer;
use crate::setup;
use crate::state::rows::CipherRow;
use crate::state::{Bound, ProvCtx};

/// Our algorithms for `operation`; `None` where the answer may be another one later.
pub(super) fn offer(prov: &ProvCtx, operation: c_int) -> Option<Option<*const Algorithm>> {
    if !matches!(operation, number::OP_CIPHER | number::OP_DIGEST | number::OP_RAND | number::OP_SKEYMGMT) {
        return Some(None);
    }
    if prov.binding.siblings.stand_aside() {
        return None;
    }
    let Some(bound) = bound(prov) else {
        prov.core.raise(Reason::NoDefault, None);
        return None;
    };
    Some(match operation {
        number::OP_CIPHER => ciphers(bound, prov)?.list(),
        number::OP_DIGEST => bound.digests.list(),
        number::OP_RAND => bound.rands.list(),
        _ => bound.skeys.list(),
    })
}

/// What `prov` is bound to; looks for it where it was not there yet.
pub(super) fn bound(prov: &ProvCtx) -> Option<&Bound> {
    match prov.bound() {
        Some(bound) => Some(bound),
        None => bind(prov),
    }
}

#[cold]
fn bind(prov: &ProvCtx) -> Option<&Bound> {
    let _alone = prov.binding.search.lock().unwrap_or_else(PoisonError::into_inner);
    if prov.bound().is_none() {
        let inner = prov
            .binding
            .siblings
            .active_default(&prov.core)
            .or_else(|| InnerProvider::private(&prov.core))?;
        // The lock is ours, so that no other thread can have set it.
        prov.binding.bound.set(wrapped(inner, prov)).ok()?;
        siblings::deregister(prov);
    }
    prov.bound()
}

/// The ciphers, and before them the ways that they may go: with the first look for one.
fn ciphers<'p>(bound: &'p Bound, prov: &'p ProvCtx) -> Option<&'p Offer<CipherRow>> {
    if let Some(offered) = bound.ciphers.get() {
        return Some(offered);
    }
    setup::open_ways(prov);
    let _alone = TABLES.lock();
    // Set, not made inside: of a forked child another thread may have been about it.
    if bound.ciphers.get().is_none() {
        bound.ciphers.set(cipher_rows::offer(&bound.inner, prov)).ok()?;
    }
    bound.ciphers.get()
}

/// Held while tables are made.
static TABLES: ForkLock = ForkLock::new();

fn wrapped(inner: InnerProvider, prov: &ProvCtx) -> Bound {
    Bound {
        ciphers: OnceLock::new(),
        digests: digest::offer(&inner, prov),
        rands: rand::offer(&inner),
        skeys: skey::offer(&inner),
        inner,
    }
}
