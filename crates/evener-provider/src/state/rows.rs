//! What the entry points know of each inner algorithm: functions, and for ciphers from which length on another way is open.

use std::ffi::c_void;

use evener_core::counts::Kind;
use evener_core::{Algorithm, Family};
use evener_kernels::Level;
use evener_ossl_sys::{
    CipherFinal, CipherInit, CipherSkeyInit, CipherUpdate, CtxParamsList, DigestDigest, DupCtx, FreeCtx,
    GetParams, GettableParams, NewCtx, RandNewCtx, SetCtxParams, SkeymgmtGenerate, SkeymgmtImport,
};

use super::ProvCtx;

/// One inner cipher.
pub(crate) struct CipherRow {
    /// The provider that this row belongs to and goes with.
    pub(crate) prov: *const ProvCtx,
    /// What the inner functions below that take no context are called with.
    pub(crate) provider: *mut c_void,
    /// What block work on it is; `None`: passed through for ever.
    pub(crate) algorithm: Option<Algorithm>,
    /// What it is counted as.
    pub(crate) kind: Kind,
    pub(crate) thresholds: Thresholds,
    /// Where messages can be done by a kernel of ours.
    pub(crate) native: Option<Native>,
    pub(crate) newctx: NewCtx,
    pub(crate) freectx: FreeCtx,
    pub(crate) encrypt_init: CipherInit,
    pub(crate) decrypt_init: CipherInit,
    pub(crate) update: CipherUpdate,
    pub(crate) last: CipherFinal,
    pub(crate) cipher: Option<CipherUpdate>,
    pub(crate) dupctx: Option<DupCtx>,
    pub(crate) get_ctx_params: Option<GetParams>,
    pub(crate) set_ctx_params: Option<SetCtxParams>,
    pub(crate) gettable: Option<GettableParams>,
    pub(crate) gettable_ctx: Option<CtxParamsList>,
    pub(crate) settable_ctx: Option<CtxParamsList>,
    pub(crate) encrypt_skey_init: Option<CipherSkeyInit>,
    pub(crate) decrypt_skey_init: Option<CipherSkeyInit>,
}

/// From which lengths in bytes on the updates of a cipher may take other ways than the inner one; `usize::MAX`: never.
pub(crate) struct Thresholds {
    /// Done together with other threads'.
    pub(crate) combined_from: usize,
    /// Block work.
    pub(crate) block_from: usize,
    /// Split between threads, where the direction allows it.
    pub(crate) split_from: usize,
    /// The same of GCM, whose messages are no block work.
    pub(crate) gcm_from: usize,
}

impl Thresholds {
    /// Shortest block work that engines are asked about.
    fn asked_from(&self) -> usize {
        self.block_from.min(self.combined_from)
    }
}

impl CipherRow {
    /// Whether anything has to be known about messages.
    pub(crate) fn is_tracked(&self) -> bool {
        let Thresholds { split_from, gcm_from, .. } = self.thresholds;
        self.thresholds.asked_from().min(split_from).min(gcm_from) != usize::MAX
    }

    /// Whether this is GCM, and its updates may be split.
    pub(crate) fn splits_gcm(&self) -> bool {
        self.thresholds.gcm_from != usize::MAX
    }

    /// Shortest update that may be split.
    pub(crate) fn split_from(&self, encrypts: bool) -> usize {
        // Each block of CBC encryption waits for the one before.
        let chained = encrypts && self.algorithm.map(Algorithm::family) == Some(Family::Cbc);
        if chained { usize::MAX } else { self.thresholds.split_from }
    }

    /// `thresh` of a context whose message may take another way than the inner one.
    pub(crate) fn context_thresh(&self, encrypts: bool) -> usize {
        self.thresholds.asked_from().min(self.split_from(encrypts))
    }

    /// Whether an update of `len` bytes is block work that a module alone may take over.
    pub(crate) fn is_for_modules_alone(&self, encrypts: bool, len: usize) -> bool {
        let Thresholds { combined_from, block_from, gcm_from, .. } = self.thresholds;
        let others_from = combined_from.min(gcm_from).min(self.split_from(encrypts));
        block_from <= len && len < others_from
    }

    /// Whether messages start from an IV.
    pub(crate) fn has_iv(&self) -> bool {
        self.algorithm.is_some_and(|algorithm| algorithm.iv_bytes() > 0)
    }

    /// Whether OpenSSL pads the last block unless told not to.
    pub(crate) fn is_padded(&self) -> bool {
        self.algorithm.is_some_and(|algorithm| matches!(algorithm.family(), Family::Ecb | Family::Cbc))
    }
}

/// A kernel that may do the messages of a cipher in the inner one's place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Native {
    /// By which instructions, and the bytes of the key.
    pub(crate) kernel: (Level, usize),
    /// Whether it is used wherever it can be, and not only where it was measured to be quicker.
    pub(crate) is_told: bool,
}

/// One inner digest: the functions that are called with a provider's context, which has to be the inner one's.
pub(crate) struct DigestRow {
    pub(crate) provider: *mut c_void,
    pub(crate) newctx: NewCtx,
    pub(crate) digest: Option<DigestDigest>,
    pub(crate) gettable: Option<GettableParams>,
    pub(crate) settable_ctx: Option<CtxParamsList>,
    pub(crate) gettable_ctx: Option<CtxParamsList>,
}

/// One inner random generator: the functions that are called with a provider's context, which has to be the inner one's.
pub(crate) struct RandRow {
    pub(crate) provider: *mut c_void,
    pub(crate) newctx: RandNewCtx,
    pub(crate) gettable: Option<GettableParams>,
    pub(crate) settable_ctx: Option<CtxParamsList>,
    pub(crate) gettable_ctx: Option<CtxParamsList>,
}

/// One inner kind of key object: the functions that are called with a provider's context, which has to be the inner one's.
pub(crate) struct SkeyRow {
    pub(crate) provider: *mut c_void,
    pub(crate) import: Option<SkeymgmtImport>,
    pub(crate) generate: Option<SkeymgmtGenerate>,
    pub(crate) imp_settable: Option<GettableParams>,
    pub(crate) gen_settable: Option<GettableParams>,
}
