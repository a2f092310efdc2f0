//! The answer as tables: one for each process, and one line for each host.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use evener::core::counts::{Count, Row};
use evener::counts_file::Totals;

use crate::activity::{Host, Process, Reading};
use crate::terminal::{
    PathDisplay, columns,
    units::{self, counted, percent},
};

pub(super) fn text(reading: &Reading, sizes: bool) -> String {
    let mut text = String::new();
    let is_read = reading.refused_directory.is_none();
    if is_read && reading.processes.is_empty() && reading.unreadable.is_empty() {
        text += "no program of this user counts: the provider is in none, or has done nothing yet\n";
    }
    for process in &reading.processes {
        let ended = if process.has_ended() { ", ended" } else { "" };
        writeln!(text, "{} {}{ended}", process.pid, columns::plain(&process.name)).expect(TAKES);
        table(&mut text, process, sizes);
        faults(&mut text, process);
        wrong_results(&mut text, "lanes", process.wrong_lanes);
        wrong_results(&mut text, "some kernels", process.wrong_kernels);
        wrong_results(&mut text, "some modules", process.wrong_modules);
        if process.wrong_modules > 0 {
            text += "  of what these modules did before only a sample was compared: it may be wrong, too\n";
        }
    }
    reading.hosts.iter().for_each(|host| write_host(&mut text, host));
    reading.shared_modules().iter().for_each(|module| super::modules::write(&mut text, module));
    text
}

/// Nothing where none was wrong.
fn wrong_results(text: &mut String, whose: &str, results: u32) {
    if results > 0 {
        let results = counted(u64::from(results), "result");
        let what = "not what OpenSSL's own code makes of the same";
        writeln!(text, "  {whose} are out of service: {results} were {what}").expect(TAKES);
    }
}

fn table(text: &mut String, process: &Process, sizes: bool) {
    if process.rows.is_empty() {
        writeln!(text, "  nothing yet").expect(TAKES);
        return;
    }
    let titles = ["requests", "bytes", "direct", "kernel", "combined", "split", "routed"].map(str::to_owned);
    write_row(text, "", titles);
    let mut by_kind: BTreeMap<(Row, String), Totals> = BTreeMap::new();
    for (row, totals) in &process.rows {
        // The row of the smallest size stands for all sizes.
        let first = Row::of(row.kind(), row.direction(), 0);
        let (row, name) = if sizes { (*row, size_name(*row)) } else { (first, String::new()) };
        *by_kind.entry((row, name)).or_default() += *totals;
    }
    for ((row, size), totals) in by_kind {
        let name = format!("{} {}{size}", row.kind().name(), row.direction());
        let way = |count: Count| match totals.of(count) {
            0 => "-".to_owned(),
            part => format!("{:.1} %", percent(part, totals.requests())),
        };
        let [direct, kernel, combined, split, routed] = Count::WAYS.map(way);
        let (requests, bytes) = (totals.requests().to_string(), units::bytes(totals.of(Count::Bytes)));
        write_row(text, &name, [requests, bytes, direct, kernel, combined, split, routed]);
    }
}

fn size_name(row: Row) -> String {
    row.bytes_max().map_or_else(|| ", above".to_owned(), |max| format!(", to {}", units::bytes(max as u64)))
}

/// What did not go as it was meant to, in the words of a run's summary.
fn faults(text: &mut String, process: &Process) {
    let mut write = |count: Count, noun: &str, what: &str| {
        if let number @ 1.. = process.count(count) {
            writeln!(text, "  {} {what}", counted(number, noun)).expect(TAKES);
        }
    };
    write(Count::TakenBack, "part", "taken back by the caller before anybody had begun");
    write(Count::Redone, "request", "that a module failed were done again on the CPU");
    let locked = "a class was locked by the guard, because other ways had cost more than they saved";
    write(Count::Locked, "time", locked);
}

/// Nothing of a host that told nothing: it is named among the faults.
fn write_host(text: &mut String, host: &Host) {
    let Ok(report) = &host.answer else { return };
    let gone = if report.module.gone { ", gone" } else { "" };
    let (socket, module) = (PathDisplay(&host.socket), columns::plain(&report.module.name));
    writeln!(text, "host {socket}: {module}{gone}").expect(TAKES);
    let clients = counted(report.clients.len() as u64, "client");
    let (requests, bytes) = (counted(report.totals.requests, "request"), units::bytes(report.totals.bytes));
    let (refused, failed) = (report.totals.refused, report.totals.failed);
    let in_flight = report.in_flight();
    writeln!(
        text,
        "  {clients}, {requests}, {bytes}, {in_flight} in flight, {refused} refused, {failed} failed"
    )
    .expect(TAKES);
    let Some(limits) = &report.limits else { return };
    for user in &report.users {
        writeln!(
            text,
            "  user {}: {} of {} clients, {} of {} sessions, {} of {} in flight, {} of {} mapped, {} of {} made by the host, {} refused",
            user.uid,
            user.clients,
            limits.user_clients,
            user.sessions,
            limits.user_sessions,
            user.in_flight,
            limits.user_in_flight,
            units::bytes(user.memory_bytes),
            units::bytes(limits.user_memory_bytes),
            units::bytes(user.faulted_bytes),
            units::bytes(limits.user_faulted_bytes),
            user.refused,
        )
        .expect(TAKES);
    }
}

fn write_row(text: &mut String, name: &str, cells: [String; 7]) {
    let [requests, bytes, direct, kernel, combined, split, routed] = cells;
    let ways = format!("{direct:>9}{kernel:>9}{combined:>10}{split:>9}{routed:>9}");
    writeln!(text, "  {name:<34}{requests:>10}{bytes:>11}{ways}").expect(TAKES);
}

const TAKES: &str = "a String takes everything";
