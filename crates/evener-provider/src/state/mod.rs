//! One provider in one library context: everything that is not the whole process's.
//!
//! Its life: the core initialises it -> it registers for its neighbours -> it binds to a default provider, now or at
//! the first question -> it answers the core's questions -> it is torn down after all that was made with it.

use std::ffi::{CString, c_int};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};

use evener::combine::Combiner;
use evener::in_flight::InFlight;
use evener_ossl_sys::{Algorithm, Param, number};

use crate::cipher::{self, combining, in_flight};
use crate::config::{self, Combine, Complaint, Settings, Threshold};
use crate::core::Core;
use crate::core::errors::Reason;
use crate::entry::provider::{NEIGHBOUR_CAME, NEIGHBOUR_GOES, PROPERTIES_CHANGED};
use crate::entry::{digest, rand, skey};
use crate::ffi::async_job::Jobs;
use crate::ffi::params;
use crate::fork;
use crate::inner_provider::dispatch_table::Offer;
use crate::inner_provider::{Inner, Neighbours};
use crate::modules;
use crate::statistics;
use crate::statistics::thread_digests;
use evener::statistics::Statistics;

/// What the core's context pointer points to.
pub(crate) struct ProvCtx {
    pub(crate) core: Core,
    pub(crate) settings: Settings,
    pub(crate) neighbours: Neighbours,
    pub(crate) counts: Counts,
    /// Whether GCM's contexts tell the tag of what they decrypted.
    gcm_tells_tags: Tried,
    /// From how many bytes on engines are asked; `usize::MAX`: never.
    pub(crate) raw_from: usize,
    /// Modules of the configuration that are open.
    modules: usize,
    /// What threads combine by, where they are to and can.
    pub(crate) combiner: Option<Combiner>,
    /// The process's; none where they are not wanted.
    pub(crate) statistics: Option<&'static Statistics>,
    /// What one thread's requests fill lanes by, where the library is there and wanted.
    pub(crate) in_flight: Option<InFlight>,
    /// Whether the core can call pipelines.
    pipelines: bool,
    /// OpenSSL's asynchronous jobs, where requests may be put aside.
    pub(crate) jobs: Option<Jobs>,
    /// Whether the core tells us of our neighbours.
    registered: AtomicBool,
    bound: OnceLock<Bound>,
    /// Held while a default provider is looked for; a second thread then finds it bound.
    binding: Mutex<()>,
    /// What `openssl list -providers -verbose` shows: the complaints about the configuration, if any.
    build_info: CString,
}

/// What happened in this library context. 32 bits each, as 32-bit systems have no larger ones; they wrap.
#[derive(Default)]
pub(crate) struct Counts {
    /// Raw work of at least the threshold.
    pub(crate) routed: AtomicU32,
    /// Of that: left undone by an engine and done again the plain way.
    pub(crate) redone: AtomicU32,
    /// Updates that were encrypted together with other threads'.
    pub(crate) combined: AtomicU32,
    /// Pieces that were shared with helpers, were there any in time or not.
    pub(crate) split: AtomicU32,
    /// Pauses of a job in which such an update waited for others, or one for a module.
    pub(crate) paused: AtomicU32,
    /// Pieces of pipelines that went side by side.
    pub(crate) pipelined: AtomicU32,
}

/// What a libcrypto was found to do: not tried yet, or the answer.
#[derive(Default)]
pub(crate) struct Tried(AtomicU32);

/// What is offered, and on whose functions.
pub(crate) struct Bound {
    pub(crate) ciphers: Offer<cipher::Row>,
    pub(crate) digests: Offer<digest::Row>,
    pub(crate) rands: Offer<rand::Row>,
    pub(crate) skeys: Offer<skey::Row>,
    /// Holds the functions that the rows point to.
    inner: Inner,
}

impl ProvCtx {
    /// Makes one for `core`. It is freed by [`ProvCtx::end`].
    pub(crate) fn start(core: Core) -> *const Self {
        let (settings, mut complaints) = config::read(&core);
        let combiner = combiner(&settings, fork::watch(), &mut complaints);
        let modules = modules::open(&settings.modules, settings.wait, fork::watch(), &mut complaints);
        // A threshold by itself is for tests that add an engine.
        let raw_from = match settings.threshold {
            Threshold::Auto if modules == 0 => usize::MAX,
            _ => settings.raw_from(),
        };
        if settings.split_from() != usize::MAX {
            // Makes the crew's place, before threads fork; no thread is started.
            _ = evener::split::crew();
        }
        let statistics = statistics::statistics(&settings);
        let pipelines = in_flight::has_pipelines(&core);
        if pipelines || settings.has_ways() {
            evener::regret::prepare();
            evener::offload::policy::prepare();
        }
        let in_flight = if combiner.is_some() || pipelines { in_flight::drivers() } else { None };
        let landmark = core.landmark.filter(|_| combiner.is_some() && in_flight.is_some() || modules > 0);
        let jobs = landmark.and_then(Jobs::of);
        let build_info = build_info(&complaints);
        let prov = Box::leak(Box::new(Self {
            core,
            settings,
            neighbours: Neighbours::default(),
            counts: Counts::default(),
            gcm_tells_tags: Tried::default(),
            raw_from,
            modules,
            combiner,
            statistics,
            in_flight,
            pipelines,
            jobs,
            registered: AtomicBool::new(false),
            bound: OnceLock::new(),
            binding: Mutex::new(()),
            build_info,
        }));
        for complaint in &complaints {
            prov.core.raise(complaint.reason, Some(&complaint.text));
        }
        prov.register();
        // Now, where it can be, so that later calls find it done; a private one only when the core asks.
        if prov.neighbours.active_default(&prov.core).is_some() {
            prov.bound();
        }
        prov
    }

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

    /// Gives back what is held, in the order that the core expects.
    pub(crate) fn end(self: Box<Self>) {
        self.deregister();
        thread_digests::with_mine(statistics::flush_hashes);
        let Self { bound, neighbours, core, .. } = *self;
        drop(bound);
        neighbours.release(&core);
    }

    fn register(&self) {
        let Some(children) = self.core.children else { return };
        let this = std::ptr::from_ref(self).cast_mut().cast();
        // SAFETY: the functions take this provider's address, which stays until `deregister` takes them back.
        let registered = unsafe {
            (children.register)(self.core.handle, NEIGHBOUR_CAME, NEIGHBOUR_GOES, PROPERTIES_CHANGED, this)
        };
        self.registered.store(registered == 1, Relaxed);
    }

    /// Ends what `register` began. Not only at the end: a program may free its library context before the last cipher
    /// context in it, and the end comes with the latter, when the core has no list of neighbours any more.
    fn deregister(&self) {
        let Some(children) = self.core.children else { return };
        if self.registered.swap(false, Relaxed) {
            // SAFETY: takes back what `register` gave; from here on the core calls none of those functions.
            unsafe { (children.deregister)(self.core.handle) };
        }
    }

    /// What we are bound to; looks for it where it was not there yet.
    pub(crate) fn bound(&self) -> Option<&Bound> {
        match self.bound.get() {
            Some(bound) => Some(bound),
            None => self.bind(),
        }
    }

    #[cold]
    fn bind(&self) -> Option<&Bound> {
        let _alone = self.binding.lock().unwrap_or_else(PoisonError::into_inner);
        if self.bound.get().is_none() {
            let inner = self.neighbours.active_default(&self.core).or_else(|| Inner::private(&self.core))?;
            // The lock is ours, so that nobody else can have set it.
            self.bound.set(Bound::on(inner, self)).ok()?;
            self.deregister();
        }
        self.bound.get()
    }

    /// Our algorithms for `operation`; `None` where the answer may be another one later.
    pub(crate) fn offer(&self, operation: c_int) -> Option<Option<*const Algorithm>> {
        if !matches!(operation, number::OP_CIPHER | number::OP_DIGEST | number::OP_RAND | number::OP_SKEYMGMT)
        {
            return Some(None);
        }
        if self.neighbours.stand_aside() {
            return None;
        }
        let Some(bound) = self.bound() else {
            self.core.raise(Reason::NoDefault, None);
            return None;
        };
        Some(match operation {
            number::OP_CIPHER => bound.ciphers.list(),
            number::OP_DIGEST => bound.digests.list(),
            number::OP_RAND => bound.rands.list(),
            _ => bound.skeys.list(),
        })
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
            b"evener-pipelined" => params::answer_number(param, self.counts.pipelined.load(Relaxed)),
            b"status" => params::answer_int(param, 1),
            _ => false,
        };
    }
}

/// The combiner, where one is asked for. Without a watch over forks nothing may be shared with a thread.
fn combiner(settings: &Settings, watched: bool, complaints: &mut Vec<Complaint>) -> Option<Combiner> {
    if settings.combine == Combine::Off {
        return None;
    }
    let made = match watched {
        true => combining::combiner(),
        false => Err("the system does not tell of forks".to_owned()),
    };
    let complain = |why| {
        complaints.push(Complaint { reason: Reason::Unavailable, text: format!("combine = auto: {why}") });
    };
    made.map_err(complain).ok()
}

const VERSION: &std::ffi::CStr =
    match std::ffi::CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => c"",
    };

fn build_info(complaints: &[Complaint]) -> CString {
    let texts: Vec<&str> = complaints.iter().map(|complaint| complaint.text.as_str()).collect();
    let text = if texts.is_empty() { env!("CARGO_PKG_VERSION").to_owned() } else { texts.join("; ") };
    CString::new(text).unwrap_or_default()
}

impl Bound {
    fn on(inner: Inner, prov: &ProvCtx) -> Self {
        Self {
            ciphers: cipher::offer(&inner, prov),
            digests: digest::offer(&inner, prov),
            rands: rand::offer(&inner),
            skeys: skey::offer(&inner),
            inner,
        }
    }
}
