//! The answer in the text format of Prometheus, version 0.0.4: `# HELP` and `# TYPE` of each metric, then its samples.
//!
//! Counters end in `_total`, units are seconds and bytes, and label values are escaped.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use evener::core::counts::{Count, Row};
use evener::counts_file::Totals;
use evener_arbiter::{ModuleCount, ModuleView};

use crate::activity::{Host, HostReport, Process, Reading};

pub(super) fn text(reading: &Reading) -> String {
    let mut page = Page::default();
    processes(&mut page, &once_each(&reading.processes));
    let unreadable = "Statistics files that cannot be read.";
    page.metric(
        "evener_statistics_unreadable",
        "gauge",
        unreadable,
        [(labels(&[]), reading.unreadable.len())],
    );
    hosts(&mut page, &reading.hosts);
    shared_modules(&mut page, reading.shared_modules());
    page.0
}

/// Each number once, as it runs where one of them does: two directories may hold files of the same number, and no series may stand
/// there twice.
fn once_each(processes: &[Process]) -> Vec<&Process> {
    let mut found: BTreeMap<u32, &Process> = BTreeMap::new();
    for process in processes {
        let known = found.entry(process.pid).or_insert(process);
        if known.has_ended() {
            *known = process;
        }
    }
    found.into_values().collect()
}

fn processes(page: &mut Page, processes: &[&Process]) {
    let by_way = processes
        .iter()
        .copied()
        .flat_map(by_kind)
        .flat_map(|(of, totals)| Count::WAYS.map(|way| (of.with("way", way.name()), totals.of(way))));
    page.metric("evener_requests_total", "counter", "Requests, by the way that they went.", by_way);
    let counts = [
        (Count::Bytes, "evener_bytes_total", "Bytes of all requests."),
        (
            Count::TakenBack,
            "evener_taken_back_total",
            "Parts that their caller took back before anybody had begun.",
        ),
        (
            Count::Redone,
            "evener_redone_total",
            "Requests that a module failed and that were done again on the CPU.",
        ),
        (Count::Locked, "evener_guard_locks_total", "Times that the guard kept a class on the direct path."),
    ];
    for (count, name, help) in counts {
        let samples = processes.iter().copied().flat_map(by_kind).map(|(of, totals)| (of, totals.of(count)));
        page.metric(name, "counter", help, samples);
    }
    let cpu =
        processes.iter().filter_map(|process| Some((of_process(process), process.cpu_time()?.as_secs_f64())));
    let help = "CPU time of the whole process, for whatever it did.";
    page.metric("evener_process_cpu_seconds_total", "counter", help, cpu);
    let ended = processes.iter().map(|process| (of_process(process), u8::from(process.has_ended())));
    let wrong = processes.iter().map(|process| (of_process(process), process.wrong_lanes));
    let help = "Results of lanes that were wrong; lanes are out of service where there are any.";
    page.metric("evener_wrong_lane_results_total", "counter", help, wrong);
    let wrong = processes.iter().map(|process| (of_process(process), process.wrong_kernels));
    let help =
        "Results of kernels that were wrong; those of their classes are out of service where there are any.";
    page.metric("evener_wrong_kernel_results_total", "counter", help, wrong);
    let wrong = processes.iter().map(|process| (of_process(process), process.wrong_modules));
    let help = "Results of modules that were wrong; those modules are out of service where there are any.";
    page.metric("evener_wrong_module_results_total", "counter", help, wrong);
    page.metric("evener_process_ended", "gauge", "Whether the process has ended.", ended);
}

/// Name, type, help, and where it stands in a report.
type HostMetric = (&'static str, &'static str, &'static str, fn(&HostReport) -> u64);

fn hosts(page: &mut Page, hosts: &[Host]) {
    let up = hosts.iter().map(|host| {
        let socket = host.socket.to_string_lossy();
        (labels(&[("host", &socket)]), u8::from(host.answer.is_ok()))
    });
    page.metric("evener_host_up", "gauge", "Whether the host answered.", up);
    let metrics: [HostMetric; 10] = [
        ("evener_host_requests_total", "counter", "Requests that the module did.", |told| {
            told.totals.requests
        }),
        ("evener_host_bytes_total", "counter", "Bytes of their input.", |told| told.totals.bytes),
        (
            "evener_host_refused_total",
            "counter",
            "Requests and sessions refused before the module saw them.",
            |told| told.totals.refused,
        ),
        ("evener_host_failed_total", "counter", "Requests that the module failed.", |told| {
            told.totals.failed
        }),
        ("evener_host_connections_total", "counter", "Connections since the host began.", |told| {
            told.connections.all
        }),
        ("evener_host_turned_away_total", "counter", "Connections that were turned away.", |told| {
            told.connections.turned_away
        }),
        ("evener_host_broken_off_total", "counter", "Connections that broke the protocol.", |told| {
            told.connections.broken_off
        }),
        ("evener_host_clients", "gauge", "Clients that are connected.", |told| told.clients.len() as u64),
        ("evener_host_in_flight", "gauge", "Requests that the module holds.", HostReport::in_flight),
        ("evener_host_module_gone", "gauge", "Whether the module was removed or given up.", |told| {
            told.module.gone.into()
        }),
    ];
    for (name, kind, help, value) in metrics {
        let samples = hosts.iter().filter_map(|host| {
            let told = host.answer.as_ref().ok()?;
            Some((
                labels(&[("host", &host.socket.to_string_lossy()), ("module", &told.module.name)]),
                value(told),
            ))
        });
        page.metric(name, kind, help, samples);
    }
}

/// Name, help, and where it stands in what is known of a module.
type ModuleGauge = (&'static str, &'static str, fn(&ModuleView) -> u64);

fn shared_modules(page: &mut Page, modules: &[ModuleView]) {
    let of = |module: &ModuleView| labels(&[("module", &module.name)]);
    let gauges: [ModuleGauge; 3] = [
        ("evener_module_permits", "Requests that the module has at a time.", |module| module.capacity as u64),
        ("evener_module_permits_held", "Permits that processes have.", |module| module.holders.len() as u64),
        ("evener_module_waiting", "Requests that wait for a permit.", |module| module.waiting.len() as u64),
    ];
    for (name, help, value) in gauges {
        page.metric(name, "gauge", help, modules.iter().map(|module| (of(module), value(module))));
    }
    let wait = modules.iter().filter_map(|module| {
        let ns = module.expected_wait_ns?;
        Some((of(module), Duration::from_nanos(ns).as_secs_f64()))
    });
    page.metric("evener_module_expected_wait_seconds", "gauge", "Wait of a request that comes now.", wait);
    let counters: [ModuleGauge; 2] = [
        ("evener_module_requests_total", "Requests that processes had done there.", |module| {
            module.work.requests
        }),
        ("evener_module_bytes_total", "Their bytes.", |module| module.work.bytes),
    ];
    for (name, help, value) in counters {
        page.metric(name, "counter", help, modules.iter().map(|module| (of(module), value(module))));
    }
    let events = modules.iter().flat_map(|module| {
        let label = move |count: ModuleCount| of(module).with("event", count.name());
        module.counts.iter().map(move |(count, number)| (label(*count), *number))
    });
    let help = "Requests that waited, or gave up, and places of the dead that were repaired.";
    page.metric("evener_module_events_total", "counter", help, events);
}

/// All sizes of a kind and direction together.
fn by_kind(process: &Process) -> Vec<(Labels, Totals)> {
    let of = |row: Row| {
        let process = of_process(process).with("algorithm", row.kind().name());
        process.with("direction", &row.direction().to_string())
    };
    process.by_kind().into_iter().map(|(row, totals)| (of(row), totals)).collect()
}

fn of_process(process: &Process) -> Labels {
    labels(&[("pid", &process.pid.to_string()), ("process", &process.name)])
}

/// Metrics, one after the other.
#[derive(Default)]
struct Page(String);

impl Page {
    /// Nothing where there is no sample.
    fn metric<N: std::fmt::Display>(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels, N)>,
    ) {
        let mut samples = samples.into_iter().peekable();
        if samples.peek().is_none() {
            return;
        }
        writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}").expect(TAKES);
        for (labels, value) in samples {
            writeln!(self.0, "{name}{} {value}", labels.text()).expect(TAKES);
        }
    }
}

/// Names and values in braces.
#[derive(Clone)]
struct Labels(String);

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().fold(Labels(String::new()), |labels, (name, value)| labels.with(name, value))
}

impl Labels {
    fn with(&self, name: &str, value: &str) -> Self {
        let comma = if self.0.is_empty() { "" } else { "," };
        Self(format!("{}{comma}{name}=\"{}\"", self.0, escaped(value)))
    }

    fn text(&self) -> String {
        if self.0.is_empty() { String::new() } else { format!("{{{}}}", self.0) }
    }
}

/// A label's value: backslash, quotation mark and line feed are written with a backslash.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

const TAKES: &str = "a String takes everything";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_files_of_one_number_the_one_that_runs_is_told() {
        let all = [
            Process::idle(7, "ended", true),
            Process::idle(8, "b", true),
            Process::idle(7, "runs", false),
            Process::idle(7, "late", true),
        ];
        let told: Vec<&str> = once_each(&all).iter().map(|process| process.name.as_str()).collect();
        assert_eq!(told, ["runs", "b"]);
    }
}
