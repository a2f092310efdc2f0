//! What a provider is made of: when it is loaded it reads the configuration and makes what threads share; with the first look for a cipher it
//! opens the modules and the library that the configuration names.
//!
//! A program that only hashes asks for no cipher, and then a host's connection and a library's relocations are not for it. The look comes before
//! the first message, and in a server where its TLS contexts are made: before it gives its rights away. Where something is opened for which rights may be
//! needed that are given away earlier, it is opened while loading ([`opens_at_once`]).

use std::ffi::CString;

use evener::SystemClock;
use evener::combine::Combiner;
use evener::split::HelperPool;
use evener_core::driver::Clock as _;

use crate::cipher::lane::source::LaneSource;
use crate::cipher::{combining, in_flight};
use crate::config::module_names::ModuleName;
use crate::config::{self, Combine, Complaint, Kernels, Settings, StatisticsFile, Threshold};
use crate::core::Core;
use crate::core::errors::Reason;
use crate::ffi::async_job::Jobs;
use crate::ffi::{key_memory, thread_end};
use crate::fork::ForkLock;
use crate::native::kernel_choice;
use crate::state::{Binding, Counts, ProvCtx, Tried, Ways};
use crate::{counters, fork, modules};

/// Makes a provider for `core`, bound to nothing yet.
pub(crate) fn provider(core: Core) -> ProvCtx {
    key_memory::hide();
    let (settings, complaints) = config::read(&core);
    if settings.has_ways() || settings.kernels != Kernels::Off {
        // What a service manager or container has put the program under is known to let it load all this.
        evener_fd::note_filters();
    }
    if settings.kernels == Kernels::Auto {
        kernel_choice::prepare();
    }
    // All of these before threads fork, and while the environment is not under change.
    fork::watch();
    modules::prepare(&settings);
    if settings.split_from() != usize::MAX {
        // Makes the helper pool's place; no thread is started.
        _ = evener::split::helper_pool();
    }
    if settings.has_ways() || in_flight::has_pipelines(&core) {
        evener::regret::prepare();
        evener::offload::policy::prepare();
    }
    // The first look at the clock finds the system's own (vDSO) by name, which allocates, and saves registers onto the stack.
    _ = SystemClock.now();
    let statistics = counters::statistics(&settings);
    if settings.split_from() != usize::MAX {
        // A program may end its first thread and have its process end with the last one.
        thread_end::prepare(|| ());
        thread_end::watch_first(|| evener::split::helper_pool().into_iter().for_each(HelperPool::retire));
    }
    let prov = ProvCtx {
        core,
        settings,
        statistics,
        binding: Binding::default(),
        complaints,
        ways: std::sync::OnceLock::new(),
        counts: Counts::default(),
        gcm_tells_tags: Tried::default(),
    };
    for complaint in &prov.complaints {
        prov.core.raise(complaint.reason, Some(&complaint.text));
    }
    if opens_at_once(&prov.settings) {
        open_ways(&prov);
    }
    prov
}

/// Whether the ways are opened while loading: for a program that is to do nothing later (`statistics = off`), and for devices, whose files ask for rights.
fn opens_at_once(settings: &Settings) -> bool {
    let is_host = |module: &ModuleName| matches!(module, ModuleName::Hosted(module) if module.is_host());
    settings.statistics == StatisticsFile::Off || !settings.modules.iter().all(is_host)
}

/// Held while modules and the library are opened, by one thread of the process.
static OPENING: ForkLock = ForkLock::new();

/// Opens the ways of `prov`, once.
pub(crate) fn open_ways(prov: &ProvCtx) {
    if prov.ways.get().is_none() {
        let _alone = OPENING.lock();
        if prov.ways.get().is_none() {
            // No other thread sets it.
            _ = prov.ways.set(ways(prov));
        }
    }
}

#[cold]
fn ways(prov: &ProvCtx) -> Ways {
    let (settings, mut complaints) = (&prov.settings, prov.complaints.clone());
    let pipelines = in_flight::has_pipelines(&prov.core);
    let combines = settings.combine != Combine::Off;
    let opens = combines || !settings.modules.is_empty() || pipelines;
    let may_open = !opens || evener_fd::may_begin();
    if !may_open {
        let text = "in a filter of system calls nothing is opened".to_owned();
        complaints.push(Complaint { reason: Reason::Unavailable, text });
    }
    let lanes = (may_open && (combines || pipelines)).then(|| LaneSource::find(prov.statistics));
    // Looked for once: it takes a dozen calls of the system.
    let cores = if lanes.is_some() { evener::core_budget().workers() } else { 1 };
    let combiner =
        lanes.clone().filter(|_| combines).and_then(|lanes| combiner(lanes, cores, &mut complaints));
    let modules = if may_open { modules::open(settings, fork::watch(), &mut complaints) } else { 0 };
    // A threshold by itself is for tests that add an engine.
    let raw_from = match settings.threshold {
        Threshold::Auto if modules == 0 => usize::MAX,
        _ => settings.raw_from(),
    };
    let uses_lanes = combiner.is_some() || pipelines;
    let in_flight =
        lanes.and_then(Result::ok).filter(|_| uses_lanes).map(|lanes| in_flight::drivers(lanes, cores));
    let landmark = prov.core.landmark.filter(|_| combiner.is_some() && in_flight.is_some() || modules > 0);
    let jobs = landmark.and_then(Jobs::of);
    let build_info = Some(build_info(&complaints));
    Ways { raw_from, modules, pipelines, combiner, in_flight, jobs, build_info }
}

/// The combiner. Without a watch over forks nothing may be shared with a thread.
fn combiner(
    lanes: Result<LaneSource, String>,
    cores: usize,
    complaints: &mut Vec<Complaint>,
) -> Option<Combiner> {
    let made = match fork::watch() {
        true => lanes.and_then(|lanes| combining::combiner(lanes, cores)),
        false => Err("the system does not tell of forks".to_owned()),
    };
    let complain = |why| {
        complaints.push(Complaint { reason: Reason::Unavailable, text: format!("combine = auto: {why}") });
    };
    made.map_err(complain).ok()
}

fn build_info(complaints: &[Complaint]) -> CString {
    let texts: Vec<&str> = complaints.iter().map(|complaint| complaint.text.as_str()).collect();
    let text = if texts.is_empty() { env!("CARGO_PKG_VERSION").to_owned() } else { texts.join("; ") };
    CString::new(text).unwrap_or_default()
}
