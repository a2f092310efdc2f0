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

use crate::config::{Complaint, Settings};
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
    /// The process's; none where they are not wanted.
    pub(crate) statistics: Option<&'static Statistics>,
    pub(crate) binding: Binding,
    /// What is wrong with the configuration, as far as reading it tells.
    pub(crate) complaints: Vec<Complaint>,
    /// Set once, before there is a row of a cipher.
    pub(crate) ways: OnceLock<Ways>,
    pub(crate) counts: Counts,
    /// Whether GCM's contexts tell the tag of what they decrypted.
    pub(crate) gcm_tells_tags: Tried,
}

/// On whose functions this provider builds, and how it comes to know.
#[derive(Default)]
pub(crate) struct Binding {
    pub(crate) siblings: Siblings,
    /// Whether the core tells us of our siblings.
    pub(crate) registered: AtomicBool,
    pub(crate) bound: OnceLock<Bound>,
    /// Held while a default provider is looked for; a second thread then finds it bound.
    pub(crate) search: Mutex<()>,
}

/// Which ways other than the inner cipher's are open.
pub(crate) struct Ways {
    /// From how many bytes on engines are asked; `usize::MAX`: never.
    pub(crate) raw_from: usize,
    /// Modules of the configuration that are open.
    pub(crate) modules: usize,
    /// Whether the core can call pipelines.
    pub(crate) pipelines: bool,
    /// What threads combine by, where they are to and can.
    pub(crate) combiner: Option<Combiner>,
    /// What one thread's requests fill lanes by, where the library is there and wanted.
    pub(crate) in_flight: Option<InFlight>,
    /// OpenSSL's asynchronous jobs, where requests may be put aside.
    pub(crate) jobs: Option<Jobs>,
    /// What `openssl list -providers -verbose` shows: the complaints about the configuration and what could not be had, if any.
    pub(crate) build_info: Option<CString>,
}

/// Before they are open.
static NO_WAYS: Ways = Ways {
    raw_from: usize::MAX,
    modules: 0,
    pipelines: false,
    combiner: None,
    in_flight: None,
    jobs: None,
    build_info: None,
};

/// What is counted, and by which key the core asks for it.
macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident = $key:literal,)*) => {
        /// What happened in this library context. 32 bits each, as 32-bit systems have no larger ones; they wrap.
        #[derive(Default)]
        pub(crate) struct Counts {
            $($(#[$doc])* pub(crate) $name: AtomicU32,)*
        }

        impl Counts {
            /// `None` where `key` is none of a count.
            fn of(&self, key: &[u8]) -> Option<u32> {
                match key {
                    $($key => Some(self.$name.load(Relaxed)),)*
                    _ => None,
                }
            }
        }
    };
}

counts! {
    /// Block work of at least the threshold.
    routed = b"evener-routed",
    /// Of that: left undone by an engine and done again the plain way.
    redone = b"evener-redone",
    /// Updates that were encrypted together with other threads'.
    combined = b"evener-combined",
    /// Pieces that were shared with helpers, were there any in time or not.
    split = b"evener-split",
    /// Pauses of a job in which such an update waited for others, or one for a module.
    paused = b"evener-paused",
    /// Messages that a kernel of ours did.
    native = b"evener-native",
    /// Kernels of ours that computed something else than the inner cipher.
    wrong_kernels = b"evener-wrong-kernels",
    /// Pieces of pipelines that went side by side.
    pipelined = b"evener-pipelined",
}

/// What a libcrypto was found to do: not tried yet, or the answer.
#[derive(Default)]
pub(crate) struct Tried(AtomicU32);

/// What is offered, and on whose functions.
pub(crate) struct Bound {
    /// Set with the first look for a cipher: a program that only hashes has no use for their tables.
    pub(crate) ciphers: OnceLock<Offer<CipherRow>>,
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
        self.binding.bound.get()
    }

    /// The ways that are open; none before a cipher was looked for.
    #[inline]
    pub(crate) fn ways(&self) -> &Ways {
        self.ways.get().unwrap_or(&NO_WAYS)
    }

    /// The offered cipher of that slot.
    #[inline]
    pub(crate) fn cipher_row(&self, slot: usize) -> Option<&CipherRow> {
        self.bound()?.ciphers.get()?.rows.get(slot)
    }

    /// Whether tables of CBC have pipelines: where one thread's messages fill lanes or are in flight at a module, for elsewhere
    /// they gain nothing.
    pub(crate) fn offers_pipelines(&self) -> bool {
        let ways = self.ways();
        ways.pipelines && (ways.in_flight.is_some() || ways.modules > 0)
    }

    /// Answers one of the core's questions about this provider.
    pub(crate) fn describe(&self, param: &mut Param) {
        match params::key(param).to_bytes() {
            b"name" => params::answer_text(param, c"Evener"),
            b"version" => params::answer_text(param, VERSION),
            b"buildinfo" => params::answer_text(param, self.ways().build_info.as_deref().unwrap_or(VERSION)),
            b"evener-binding" => params::answer_text(
                param,
                self.binding.bound.get().map_or(c"none yet", |bound| bound.inner.whose()),
            ),
            b"evener-modules" => {
                params::answer_number(param, u32::try_from(self.ways().modules).unwrap_or(u32::MAX))
            }
            b"status" => params::answer_int(param, 1),
            key => self.counts.of(key).is_some_and(|count| params::answer_number(param, count)),
        };
    }
}

const VERSION: &std::ffi::CStr =
    match std::ffi::CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => c"",
    };
