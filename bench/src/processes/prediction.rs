//! What the simulator says of a round, from the module's costs alone: nothing of a live round is in it but the processes' ids.

use evener_core::Nanos;
use evener_sim::crowd::{Crowd, Order, Outcome};

use super::{Experiment, Mode, Place};

/// What the simulator says of so many processes on so many cores, each with so many requests; none where nothing is known of the module. `core` is what a request
/// takes on a core without the module.
#[must_use]
pub fn predict(
    experiment: &Experiment,
    mode: Mode,
    ids: &[u32],
    requests: usize,
    cores: usize,
    core: Nanos,
) -> Option<Outcome> {
    if experiment.place != Place::Emulated && experiment.units == 0 && mode != Mode::Cores {
        return None;
    }
    let order = match mode {
        // Looks at units that are busy cost a core's time and no unit's, as long as a process looks whenever one is free.
        Mode::Plain | Mode::Queue => Order::Module,
        Mode::Lists64 => Order::Lists,
        Mode::Fifo => Order::Fifo(experiment.permits),
        Mode::Flags => Order::Flags(experiment.permits),
        Mode::Cores => Order::Cores,
    };
    let crowd = Crowd {
        cores: if experiment.bound_to.is_some() { 1 } else { cores },
        units: u32::try_from(experiment.units).unwrap_or(u32::MAX).max(1),
        order,
        ids: ids.to_vec(),
        requests: u32::try_from(requests).unwrap_or(u32::MAX),
        d: if mode == Mode::Cores { core } else { experiment.core },
        h: experiment.service,
    };
    crowd.run().ok()
}
