//! What a provider is made of when it is loaded: reads the configuration, opens the modules that it names, makes what threads share.

use std::ffi::CString;

use evener::SystemClock;
use evener::combine::Combiner;
use evener_core::driver::Clock as _;

use crate::cipher::{combining, in_flight};
use crate::config::{self, Combine, Complaint, Kernels, Settings, Threshold};
use crate::core::Core;
use crate::core::errors::Reason;
use crate::ffi::async_job::Jobs;
use crate::ffi::key_memory;
use crate::native::kernel_choice;
use crate::state::{Binding, Counts, ProvCtx, Tried, Ways};
use crate::{counters, fork, modules};

/// Makes a provider for `core`, bound to nothing yet.
pub(crate) fn provider(core: Core) -> ProvCtx {
    key_memory::hide();
    let (settings, mut complaints) = config::read(&core);
    if settings.has_ways() || settings.kernels != Kernels::Off {
        // What a service manager or container has put the program under is known to let it load all this.
        evener_fd::note_filters();
    }
    if settings.kernels == Kernels::Auto {
        kernel_choice::prepare();
    }
    let combiner = combiner(&settings, fork::watch(), &mut complaints);
    let modules = modules::open(&settings, fork::watch(), &mut complaints);
    // A threshold by itself is for tests that add an engine.
    let raw_from = match settings.threshold {
        Threshold::Auto if modules == 0 => usize::MAX,
        _ => settings.raw_from(),
    };
    if settings.split_from() != usize::MAX {
        // Makes the helper pool's place, before threads fork; no thread is started.
        _ = evener::split::helper_pool();
    }
    // The first look at the clock finds the system's own (vDSO) by name, which allocates, and saves registers onto the stack.
    _ = SystemClock.now();
    let statistics = counters::statistics(&settings);
    let pipelines = in_flight::has_pipelines(&core);
    if pipelines || settings.has_ways() {
        evener::regret::prepare();
        evener::offload::policy::prepare();
    }
    let in_flight = if combiner.is_some() || pipelines { in_flight::drivers() } else { None };
    let landmark = core.landmark.filter(|_| combiner.is_some() && in_flight.is_some() || modules > 0);
    let jobs = landmark.and_then(Jobs::of);
    let build_info = build_info(&complaints);
    let prov = ProvCtx {
        core,
        settings,
        statistics,
        binding: Binding::default(),
        ways: Ways { raw_from, modules, pipelines, combiner, in_flight, jobs },
        counts: Counts::default(),
        gcm_tells_tags: Tried::default(),
        build_info,
    };
    for complaint in &complaints {
        prov.core.raise(complaint.reason, Some(&complaint.text));
    }
    prov
}

/// The combiner, where one is configured. Without a watch over forks nothing may be shared with a thread.
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

fn build_info(complaints: &[Complaint]) -> CString {
    let texts: Vec<&str> = complaints.iter().map(|complaint| complaint.text.as_str()).collect();
    let text = if texts.is_empty() { env!("CARGO_PKG_VERSION").to_owned() } else { texts.join("; ") };
    CString::new(text).unwrap_or_default()
}
