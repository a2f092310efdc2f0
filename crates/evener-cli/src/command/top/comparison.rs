//! A reading beside the one before: each process and host with what changed.

use std::collections::HashMap;
use std::time::Duration;

use evener::core::counts::Count;
use evener::counts_file::Totals;
use evener_arbiter::ModuleView;

use crate::activity::{Change, Host, Process, Reading};

/// What is shown at one moment.
pub(super) struct Comparison<'r> {
    pub(super) reading: &'r Reading,
    /// Between the two readings; none before the second one.
    pub(super) time: Option<Duration>,
    /// In the order of the reading.
    pub(super) processes: Vec<Entry<'r>>,
    pub(super) hosts: Vec<HostEntry<'r>>,
    pub(super) modules: Vec<ModuleEntry<'r>>,
}

/// A process.
#[derive(Clone, Copy)]
pub(super) struct Entry<'r> {
    pub(super) process: &'r Process,
    /// All that it counted.
    pub(super) totals: Totals,
    /// None where it was not there before, or is another one.
    pub(super) change: Option<Change>,
}

/// A host.
#[derive(Clone, Copy)]
pub(super) struct HostEntry<'r> {
    pub(super) host: &'r Host,
    /// Requests and bytes in a second.
    pub(super) rates: Option<(f64, f64)>,
}

/// A module that processes share.
#[derive(Clone, Copy)]
pub(super) struct ModuleEntry<'r> {
    pub(super) module: &'r ModuleView,
    /// Requests and bytes in a second, of all processes together.
    pub(super) rates: Option<(f64, f64)>,
}

impl<'r> Comparison<'r> {
    pub(super) fn new(before: Option<&'r Reading>, reading: &'r Reading) -> Self {
        let time = before.map(|before| reading.at.saturating_duration_since(before.at));
        let earlier = before.map_or(&[][..], |before| &before.processes);
        // Two directories may have files of one number.
        let own = |process: &Process| (process.pid, process.start_ticks);
        let earlier: HashMap<_, &Process> = earlier.iter().map(|process| (own(process), process)).collect();
        let processes = reading.processes.iter().map(|process| Entry {
            process,
            totals: process.totals(),
            change: earlier
                .get(&own(process))
                .zip(time)
                .and_then(|(before, time)| Change::of_process(before, process, time)),
        });
        let hosts = reading.hosts.iter().map(|host| HostEntry {
            host,
            rates: before.zip(time).and_then(|(before, time)| host_rates(before, host, time)),
        });
        let modules = reading.shared_modules().iter().map(|module| ModuleEntry {
            module,
            rates: before.zip(time).and_then(|(before, time)| module_rates(before, module, time)),
        });
        Self {
            reading,
            time,
            processes: processes.collect(),
            hosts: hosts.collect(),
            modules: modules.collect(),
        }
    }

    /// What all processes added; none before the second reading.
    pub(super) fn change(&self) -> Option<Change> {
        self.processes.iter().filter_map(|entry| entry.change).reduce(Change::and)
    }

    /// What all processes counted.
    pub(super) fn totals(&self) -> Totals {
        let mut sum = Totals::default();
        self.processes.iter().for_each(|entry| sum += entry.totals);
        sum
    }

    /// Processes that have ended.
    pub(super) fn ended(&self) -> usize {
        self.processes.iter().filter(|entry| entry.process.has_ended()).count()
    }
}

fn host_rates(before: &Reading, host: &Host, time: Duration) -> Option<(f64, f64)> {
    let before = before.hosts.iter().find(|other| other.socket == host.socket)?;
    let (requests, bytes) = Change::of_host(before, host)?;
    Some((per_second(requests, time), per_second(bytes, time)))
}

fn module_rates(before: &Reading, module: &ModuleView, time: Duration) -> Option<(f64, f64)> {
    let before = before.shared_modules().iter().find(|other| other.name == module.name)?;
    let (requests, bytes) = Change::of_module(before, module)?;
    Some((per_second(requests, time), per_second(bytes, time)))
}

#[expect(clippy::cast_precision_loss, reason = "for the eye: 53 bits are plenty")]
fn per_second(number: u64, time: Duration) -> f64 {
    number as f64 / time.as_secs_f64().max(1e-9)
}

/// What did not go as it was meant to, and why, in words; empty where nothing is to be said.
pub(super) fn events(totals: &Totals) -> String {
    let names = [Count::TakenBack, Count::Redone, Count::Locked];
    let told = names.map(|count| (totals.of(count), count.name()));
    let told: Vec<String> =
        told.iter().filter(|(number, _)| *number > 0).map(|(n, what)| format!("{n} {what}")).collect();
    told.join(", ")
}
