//! The answer as JSON; `docs/reference/schemas/status.schema.json` describes it.

use evener::core::counts::{Count, Row};
use evener::counts_file::Totals;
use evener_host::{LimitsReport, UserReport};
use serde::Serialize;

use super::modules::SharedModuleView;
use crate::activity::{ConnectionCounts, Host, HostReport, Process, Reading};

#[derive(Serialize)]
struct StatusView<'r> {
    version: &'static str,
    processes: Vec<ProcessView<'r>>,
    unreadable: Vec<UnreadableView<'r>>,
    hosts: Vec<HostView<'r>>,
    shared_modules: Vec<SharedModuleView<'r>>,
}

/// What one process counted.
#[derive(Serialize)]
struct ProcessView<'r> {
    pid: u32,
    name: &'r str,
    ended: bool,
    /// Results of lanes that were not the inner cipher's; where there are any, lanes are out of service.
    wrong_lane_results: u32,
    /// Results of kernels that were not the inner cipher's; where there are any, those of their classes are out of service.
    wrong_kernel_results: u32,
    /// Results of modules that were wrong.
    wrong_module_results: u32,
    /// Of the whole process; null where it has ended.
    process_cpu_seconds: Option<f64>,
    classes: Vec<Class>,
}

#[derive(Serialize)]
struct Class {
    algorithm: &'static str,
    direction: String,
    /// Greatest size that belongs to it; null in the last class.
    bytes_max: Option<usize>,
    requests: u64,
    bytes: u64,
    direct: u64,
    kernel: u64,
    combined: u64,
    split: u64,
    routed: u64,
    taken_back: u64,
    failed_and_redone: u64,
    locked_by_the_guard: u64,
}

/// A file that cannot be told.
#[derive(Serialize)]
struct UnreadableView<'r> {
    pid: u32,
    reason: &'r str,
}

#[derive(Serialize)]
struct HostView<'r> {
    socket: String,
    /// Why it told nothing; then `report` is null.
    error: Option<String>,
    report: Option<ReportView<'r>>,
}

#[derive(Serialize)]
struct ReportView<'r> {
    module: &'r str,
    gone: bool,
    clients: usize,
    in_flight: u64,
    requests: u64,
    bytes: u64,
    refused: u64,
    failed: u64,
    #[serde(flatten)]
    connections: ConnectionCounts,
    users: &'r [UserReport],
    limits: Option<LimitsReport>,
}

pub(super) fn text(reading: &Reading) -> serde_json::Result<String> {
    let unreadable = reading.unreadable.iter();
    let view = StatusView {
        version: env!("CARGO_PKG_VERSION"),
        processes: reading.processes.iter().map(ProcessView::new).collect(),
        unreadable: unreadable.map(|one| UnreadableView { pid: one.pid, reason: &one.reason }).collect(),
        hosts: reading.hosts.iter().map(HostView::new).collect(),
        shared_modules: reading.shared_modules().iter().map(SharedModuleView::new).collect(),
    };
    Ok(serde_json::to_string_pretty(&view)? + "\n")
}

impl<'r> ProcessView<'r> {
    fn new(process: &'r Process) -> Self {
        Self {
            pid: process.pid,
            name: &process.name,
            ended: process.has_ended(),
            wrong_lane_results: process.wrong_lanes,
            wrong_kernel_results: process.wrong_kernels,
            wrong_module_results: process.wrong_modules,
            process_cpu_seconds: process.cpu_time().map(|time| time.as_secs_f64()),
            classes: process.rows.iter().map(|(row, totals)| Class::new(*row, totals)).collect(),
        }
    }
}

impl Class {
    fn new(row: Row, totals: &Totals) -> Self {
        Self {
            algorithm: row.kind().name(),
            direction: row.direction().to_string(),
            bytes_max: row.bytes_max(),
            requests: totals.requests(),
            bytes: totals.of(Count::Bytes),
            direct: totals.of(Count::Direct),
            kernel: totals.of(Count::Kernel),
            combined: totals.of(Count::Combined),
            split: totals.of(Count::Split),
            routed: totals.of(Count::Routed),
            taken_back: totals.of(Count::TakenBack),
            failed_and_redone: totals.of(Count::Redone),
            locked_by_the_guard: totals.of(Count::Locked),
        }
    }
}

impl<'r> HostView<'r> {
    fn new(host: &'r Host) -> Self {
        Self {
            socket: host.socket.to_string_lossy().into_owned(),
            error: host.answer.as_ref().err().map(ToString::to_string),
            report: host.answer.as_ref().ok().map(ReportView::new),
        }
    }
}

impl<'r> ReportView<'r> {
    fn new(report: &'r HostReport) -> Self {
        Self {
            module: &report.module.name,
            gone: report.module.gone,
            clients: report.clients.len(),
            in_flight: report.in_flight(),
            requests: report.totals.requests,
            bytes: report.totals.bytes,
            refused: report.totals.refused,
            failed: report.totals.failed,
            connections: report.connections,
            users: &report.users,
            limits: report.limits,
        }
    }
}
