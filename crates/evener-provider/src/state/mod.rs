//! One provider in one library context: everything that is not the whole process's.
//!
//! Its life: the core initialises it -> it registers for its siblings -> it binds to a default provider, now or at
//! the first question -> it answers the core's questions -> it is torn down after all that was made with it.

pub(crate) mod rows;

use std::ffi::CString;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};

use evener::combine::Combiner;
use evener::counts_file::Statistics;
use evener::in_flight::InFlight;
use evener_ossl_sys::Param;

use crate::config::Settings;
use crate::core::Core;
use crate::ffi::async_job::Jobs;
use crate::ffi::params;
use crate::inner_provider::dispatch_table::Offer;
use crate::inner_provider::{InnerProvider, Siblings};
use rows::{CipherRow, DigestFunctions, PassedRow, RandFunctions, SkeyFunctions};

/// What the core's context pointer points to.
pub(crate) struct ProvCtx {
    pub(crate) core: Core,
    pub(crate) settings: Settings,
    pub(crate) siblings: Siblings,
    pub(crate) counts: Counts,
    /// Whether GCM's contexts tell the tag of what they decrypted.
    pub(crate) gcm_tells_tags: Tried,
    /// From how many bytes on engines are asked; `usize::MAX`: never.
    pub(crate) raw_from: usize,
    /// Modules of the configuration that are open.
    pub(crate) modules: usize,
    /// What threads combine by, where they are to and can.
    pub(crate) combiner: Option<Combiner>,
    /// The process's; none where they are not wanted.
    pub(crate) statistics: Option<&'static Statistics>,
    /// What one thread's requests fill lanes by, where the library is there and wanted.
    pub(crate) in_flight: Option<InFlight>,
    /// Whether the core can call pipelines.
    pub(crate) pipelines: bool,
    /// OpenSSL's asynchronous jobs, where requests may be put aside.
    pub(crate) jobs: Option<Jobs>,
    /// Whether the core tells us of our siblings.
    pub(crate) registered: AtomicBool,
    pub(crate) bound: OnceLock<Bound>,
    /// Held while a default provider is looked for; a second thread then finds it bound.
    pub(crate) binding: Mutex<()>,
    /// What `openssl list -providers -verbose` shows: the complaints about the configuration, if any.
    pub(crate) build_info: CString,
}

/// What happened in this library context. 32 bits each, as 32-bit systems have no larger ones; they wrap.
#[derive(Default)]
pub(crate) struct Counts {
    /// Block work of at least the threshold.
    pub(crate) routed: AtomicU32,
    /// Of that: left undone by an engine and done again the plain way.
    pub(crate) redone: AtomicU32,
    /// Updates that were encrypted together with other threads'.
    pub(crate) combined: AtomicU32,
    /// Pieces that were shared with helpers, were there any in time or not.
    pub(crate) split: AtomicU32,
    /// Pauses of a job in which such an update waited for others, or one for a module.
    pub(crate) paused: AtomicU32,
    /// Messages that a kernel of ours did.
    pub(crate) native: AtomicU32,
    /// Kernels of ours that computed something else than the inner cipher.
    pub(crate) wrong_kernels: AtomicU32,
    /// Pieces of pipelines that went side by side.
    pub(crate) pipelined: AtomicU32,
}

/// What a libcrypto was found to do: not tried yet, or the answer.
#[derive(Default)]
pub(crate) struct Tried(AtomicU32);

/// What is offered, and on whose functions.
pub(crate) struct Bound {
    pub(crate) ciphers: Offer<CipherRow>,
    pub(crate) digests: Offer<PassedRow<DigestFunctions>>,
    pub(crate) rands: Offer<PassedRow<RandFunctions>>,
    pub(crate) skeys: Offer<PassedRow<SkeyFunctions>>,
    /// Holds the functions that the rows point to.
    pub(crate) inner: InnerProvider,
}

impl ProvCtx {
    /// Whether `tells` says so; asked once, or by several threads that come at the same moment.
    pub(crate) fn gcm_tells_tags(&self, tells: impl FnOnce() -> bool) -> bool {
        const NOT_TRIED: u32 = 0;
        const YES: u32 = 1;
        const NO: u32 = 2;
        let answer = &self.gcm_tells_tags.0;
        if answer.load(Relaxed) == NOT_TRIED {
            answer.store(if tells() { YES } else { NO }, Relaxed);
        }
        answer.load(Relaxed) == YES
    }

    /// What we are bound to, once that was found. Before, nothing is offered, so that no function of a table is called.
    pub(crate) fn bound(&self) -> Option<&Bound> {
        self.bound.get()
    }

    /// Whether tables of CBC have pipelines: where one thread's messages fill lanes or are in flight at a module, for elsewhere
    /// they gain nothing.
    pub(crate) fn offers_pipelines(&self) -> bool {
        self.pipelines && (self.in_flight.is_some() || self.modules > 0)
    }

    /// Answers one of the core's questions about this provider.
    pub(crate) fn describe(&self, param: &mut Param) {
        match params::key(param).to_bytes() {
            b"name" => params::answer_text(param, c"Evener"),
            b"version" => params::answer_text(param, VERSION),
            b"buildinfo" => params::answer_text(param, &self.build_info),
            b"evener-binding" => {
                params::answer_text(param, self.bound.get().map_or(c"none yet", |bound| bound.inner.whose()))
            }
            b"evener-routed" => params::answer_number(param, self.counts.routed.load(Relaxed)),
            b"evener-modules" => {
                params::answer_number(param, u32::try_from(self.modules).unwrap_or(u32::MAX))
            }
            b"evener-split" => params::answer_number(param, self.counts.split.load(Relaxed)),
            b"evener-redone" => params::answer_number(param, self.counts.redone.load(Relaxed)),
            b"evener-combined" => params::answer_number(param, self.counts.combined.load(Relaxed)),
            b"evener-paused" => params::answer_number(param, self.counts.paused.load(Relaxed)),
            b"evener-native" => params::answer_number(param, self.counts.native.load(Relaxed)),
            b"evener-wrong-kernels" => params::answer_number(param, self.counts.wrong_kernels.load(Relaxed)),
            b"evener-pipelined" => params::answer_number(param, self.counts.pipelined.load(Relaxed)),
            b"status" => params::answer_int(param, 1),
            _ => false,
        };
    }
}

const VERSION: &std::ffi::CStr =
    match std::ffi::CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => c"",
    };
