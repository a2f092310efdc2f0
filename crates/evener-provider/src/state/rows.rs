//! What the entry points know of each inner algorithm: functions, and for ciphers from which length on another way is open.

use std::ffi::c_void;

use evener_core::counts::{Count, Kind};
use evener_core::{Algorithm, Family};
use evener_kernels::Level;
use evener_ossl_sys::{
    CipherFinal, CipherInit, CipherSkeyInit, CipherUpdate, CtxParamsList, DigestDigest, DupCtx, FreeCtx,
    GetParams, GettableParams, NewCtx, RandNewCtx, SetCtxParams, SkeymgmtGenerate, SkeymgmtImport, number,
};

use super::ProvCtx;
use crate::core::functions;

/// Bytes of a message's first update from which a kernel that does one direction only gets it: it is given the key for that. Measured, a context
/// for each message, AES-128, ns of OpenSSL and more with the kernel: of 4 KiB 626, -29, and in full caches 669, +57; of 16 KiB 1706, -573, and
/// 1763, -512 (examples/overhead, `Decryption` and `DecryptionCold`).
pub(crate) const DECRYPTED_BYTES_MIN: usize = 8_192;

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
    pub(crate) inner: CipherFunctions,
    /// Where other ways stand before a kernel's entry points, which are the inner functions here.
    pub(crate) beneath: Option<Beneath>,
    /// Where the kernel beneath does one direction only: the row of a context until it has a long message of that.
    pub(crate) before_decryption: Option<Box<Self>>,
    /// Of such a row: the slot of the one with the kernel.
    pub(crate) kernels_slot: Option<usize>,
    /// Whether this is the row of such a kernel: what it does is counted by the ways before it.
    pub(crate) is_beneath: bool,
}

/// What a kernel's entry points know of the inner cipher itself.
pub(crate) struct Beneath {
    pub(crate) row: Box<CipherRow>,
    /// Whether the messages of a context of theirs are the kernel's now.
    pub(crate) is_by_kernel: fn(*mut c_void) -> bool,
}

functions! {
    /// What an inner cipher does.
    pub(crate) struct CipherFunctions {
        CIPHER_NEWCTX newctx: NewCtx,
        CIPHER_FREECTX freectx: FreeCtx,
        CIPHER_ENCRYPT_INIT encrypt_init: CipherInit,
        CIPHER_DECRYPT_INIT decrypt_init: CipherInit,
        CIPHER_UPDATE update: CipherUpdate,
        CIPHER_FINAL last: CipherFinal,
    }
    optional {
        CIPHER_CIPHER cipher: CipherUpdate,
        CIPHER_DUPCTX dupctx: DupCtx,
        CIPHER_GET_CTX_PARAMS get_ctx_params: GetParams,
        CIPHER_SET_CTX_PARAMS set_ctx_params: SetCtxParams,
        CIPHER_GETTABLE_PARAMS gettable_params: GettableParams,
        CIPHER_GETTABLE_CTX_PARAMS gettable_ctx_params: CtxParamsList,
        CIPHER_SETTABLE_CTX_PARAMS settable_ctx_params: CtxParamsList,
        CIPHER_ENCRYPT_SKEY_INIT encrypt_skey_init: CipherSkeyInit,
        CIPHER_DECRYPT_SKEY_INIT decrypt_skey_init: CipherSkeyInit,
    }
}

/// From which lengths in bytes on the updates of a cipher may take other ways than the inner one; `usize::MAX`: never.
#[derive(Clone, Copy)]
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
    /// None of them.
    pub(crate) const NEVER: Self = Self {
        combined_from: usize::MAX,
        block_from: usize::MAX,
        split_from: usize::MAX,
        gcm_from: usize::MAX,
    };

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

    /// Shortest piece of text that kernels of ours may share between threads.
    pub(crate) fn native_split_from(&self) -> usize {
        self.thresholds.split_from.min(self.thresholds.gcm_from)
    }

    /// Whether messages are to be known for more than to be split.
    pub(crate) fn has_other_ways(&self) -> bool {
        self.thresholds.asked_from() != usize::MAX
    }

    /// Shortest update that may be split.
    pub(crate) fn split_from(&self, encrypts: bool) -> usize {
        // Each block of CBC encryption waits for the one before.
        let chained = encrypts && self.algorithm.map(Algorithm::family) == Some(Family::Cbc);
        if chained { usize::MAX } else { self.thresholds.split_from }
    }

    /// `thresh` of a context whose message may take another way than the inner one.
    pub(crate) fn context_thresh(&self, encrypts: bool) -> usize {
        // Only encryption is combined.
        let asked_from = if encrypts { self.thresholds.asked_from() } else { self.thresholds.block_from };
        let has_kernel = self.kernels_slot.is_some() && !encrypts;
        let kernel_from = if has_kernel { DECRYPTED_BYTES_MIN } else { usize::MAX };
        asked_from.min(self.split_from(encrypts)).min(kernel_from)
    }

    /// Whether an update of `len` bytes is block work that a module alone may take over.
    pub(crate) fn is_for_modules_alone(&self, encrypts: bool, len: usize) -> bool {
        let Thresholds { combined_from, block_from, gcm_from, .. } = self.thresholds;
        // Threads' decryption never goes together.
        let combined_from = if encrypts { combined_from } else { usize::MAX };
        let others_from = combined_from.min(gcm_from).min(self.split_from(encrypts));
        block_from <= len && len < others_from
    }

    /// The row of a context without a key.
    pub(crate) fn first(&self) -> &Self {
        self.before_decryption.as_deref().unwrap_or(self)
    }

    /// The row of the inner cipher itself.
    pub(crate) fn lowest(&self) -> &Self {
        self.beneath.as_ref().map_or(self, |beneath| &beneath.row)
    }

    /// How the messages of an inner context go that go no other way.
    pub(crate) fn inner_way(&self, inner: *mut c_void) -> Count {
        let is_by_kernel = self.beneath.as_ref().is_some_and(|beneath| (beneath.is_by_kernel)(inner));
        if is_by_kernel { Count::Kernel } else { Count::Direct }
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
    /// By which instructions.
    pub(crate) level: Level,
    pub(crate) family: Family,
    /// Of the key, which for XTS is two.
    pub(crate) key_bytes: usize,
    /// Whether it is used wherever it can be, and not only where it was measured to be quicker.
    pub(crate) is_told: bool,
}

/// One inner algorithm that is passed through: its functions that are called with a provider's context, which has to be the inner one's.
pub(crate) struct PassedRow<F> {
    pub(crate) provider: *mut c_void,
    pub(crate) inner: F,
}

functions! {
    /// Those of a digest.
    pub(crate) struct DigestFunctions {
        DIGEST_NEWCTX newctx: NewCtx,
    }
    optional {
        DIGEST_DIGEST digest: DigestDigest,
        DIGEST_GETTABLE_PARAMS gettable_params: GettableParams,
        DIGEST_SETTABLE_CTX_PARAMS settable_ctx_params: CtxParamsList,
        DIGEST_GETTABLE_CTX_PARAMS gettable_ctx_params: CtxParamsList,
    }
}

functions! {
    /// Those of a random generator.
    pub(crate) struct RandFunctions {
        RAND_NEWCTX newctx: RandNewCtx,
    }
    optional {
        RAND_GETTABLE_PARAMS gettable_params: GettableParams,
        RAND_SETTABLE_CTX_PARAMS settable_ctx_params: CtxParamsList,
        RAND_GETTABLE_CTX_PARAMS gettable_ctx_params: CtxParamsList,
    }
}

functions! {
    /// Those of a kind of key object.
    pub(crate) struct SkeyFunctions {}
    optional {
        SKEYMGMT_IMPORT import: SkeymgmtImport,
        SKEYMGMT_GENERATE generate: SkeymgmtGenerate,
        SKEYMGMT_IMP_SETTABLE_PARAMS imp_settable_params: GettableParams,
        SKEYMGMT_GEN_SETTABLE_PARAMS gen_settable_params: GettableParams,
    }
}
