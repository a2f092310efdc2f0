//! Digests, passed through: a context is the inner provider's own, so that all but making one costs nothing. Only where
//! requests are counted, three entry points stand before it (`digest_stats.rs`).

use std::ffi::{c_int, c_uchar, c_void};
use std::ptr;

use evener_ossl_sys::{CtxParamsList, DigestDigest, GettableParams, NewCtx, number};

use evener_core::counts::Kind;

use super::digest_stats;
use super::parameter_lists::{context_lists, method_lists, passed_through};
use crate::ffi::dispatch;
use crate::inner_provider::InnerProvider;
use crate::inner_provider::dispatch_table::{Offer, Wrapped};
use crate::state::ProvCtx;
use crate::state::rows::{DigestFunctions, PassedRow};

/// The digests that we offer: to count them, where anything else is counted, for else no file is made; and where the program has no others.
pub(crate) fn offer(inner: &InnerProvider, prov: &ProvCtx) -> Offer<PassedRow<DigestFunctions>> {
    let counts = prov.statistics.is_some() && prov.settings.has_ways();
    Offer::new(inner, (number::OP_DIGEST, known), |name, functions, slot| {
        let is_wanted = counts || inner.is_private();
        let row = is_wanted.then(|| row(inner.provider_ctx, functions)).flatten()?;
        let mut replaced = replacements(slot);
        if counts {
            replaced.extend(digest_stats::replacements(functions, kind(name)));
        }
        // Contexts are the inner provider's, so that its functions for them fit as they are, those of OpenSSL 4.0 too (16, 17: serialize, deserialize).
        Some(Wrapped { row, known: |number| (1..=17).contains(&number), replaced, added: Vec::new() })
    })
}

/// SHA-1, the SHA-2 family and MD5, by OpenSSL's first names.
fn known(name: &[u8]) -> bool {
    matches!(name, b"SHA1" | b"MD5") || name.starts_with(b"SHA2-")
}

passed_through! {
    DigestFunctions in digests;
    DIGEST_NEWCTX newctx: NewCtx,
    DIGEST_DIGEST digest: DigestDigest,
    DIGEST_GETTABLE_PARAMS gettable_params: GettableParams,
    DIGEST_SETTABLE_CTX_PARAMS settable_ctx_params: CtxParamsList,
    DIGEST_GETTABLE_CTX_PARAMS gettable_ctx_params: CtxParamsList,
}

/// OpenSSL's first name, as it is counted: `SHA2-256` is `SHA-256`.
fn kind(name: &str) -> Kind {
    match name {
        "SHA1" => Kind::named("SHA-1"),
        name => Kind::named(&name.replace("SHA2-", "SHA-")),
    }
}

method_lists! { gettable_params }

context_lists! { settable_ctx_params, gettable_ctx_params }

dispatch! {
    fn newctx[SLOT](provctx: *mut c_void) -> *mut c_void {
        let Some(row) = row_of(provctx, SLOT) else { return ptr::null_mut() };
        // SAFETY: the inner function with the inner provider's context.
        unsafe { (row.inner.newctx)(row.provider) }
    }

    fn digest[SLOT](
        provctx: *mut c_void, input: *const c_uchar, len: usize, out: *mut c_uchar, written: *mut usize, space: usize,
    ) -> c_int {
        let Some(row) = row_of(provctx, SLOT) else { return 0 };
        let Some(digest) = row.inner.digest else { return 0 };
        // SAFETY: as above; the rest is the caller's.
        unsafe { digest(row.provider, input, len, out, written, space) }
    }
}
