//! Lines of text: what stands in the table of processes and around it, on the screen or without one.

use evener::core::counts::{Count, Row};
use evener::counts_file::Totals;
use evener_arbiter::ModuleView;

use super::comparison::{Comparison, Entry, HostEntry, ModuleEntry, events};
use crate::activity::{Change, Process};
use crate::terminal::units::{bytes, counted, percent, time};
use crate::terminal::{PathDisplay, columns};

/// All of it, for a place without a screen.
pub(super) fn text(shown: &Comparison<'_>) -> String {
    let mut lines = summary(shown);
    lines.push(TITLES.to_owned());
    lines.extend(shown.processes.iter().map(process));
    if shown.processes.is_empty() {
        lines.push(nobody(shown));
    }
    lines.extend(shown.hosts.iter().map(host));
    lines.extend(shown.modules.iter().map(module));
    for entry in shown.processes.iter().filter(|entry| !entry.process.rows.is_empty()) {
        lines.push(detail_title(entry));
        lines.extend(details(entry.process));
    }
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// What stands where processes would.
pub(super) fn nobody(shown: &Comparison<'_>) -> String {
    let usual =
        || "no program of this user counts: the provider is in none, or has done nothing yet".to_owned();
    shown.reading.refused_directory.clone().unwrap_or_else(usual)
}

/// Over the columns that [`process`] fills, 80 in all.
pub(super) const TITLES: &str =
    "    PID PROCESS     REQ/S    BYTES/S DIRECT KERN. COMB. SPLIT ROUTED  CPU%  NS/B";

/// What all processes do now, did so far, and what did not go as it was meant to; the first two in 80 columns unless requests went
/// all five ways.
pub(super) fn summary(shown: &Comparison<'_>) -> Vec<String> {
    let totals = shown.totals();
    let now = match (shown.time, shown.change()) {
        (None, _) => "now     not known before the second reading".to_owned(),
        (Some(_), None) => "now     nothing".to_owned(),
        (Some(_), Some(change)) => {
            let rate = |number| change.per_second(number);
            let (requests, of_bytes) =
                (number(rate(change.requests())), byte_rate(rate(change.of(Count::Bytes))));
            format!("now     {requests} req/s  {of_bytes}  {}", ways(|way| change.share(way)))
        }
    };
    let share = |way| (totals.requests() > 0).then(|| percent(totals.of(way), totals.requests()));
    let (requests, size) = (short(totals.requests()), bytes(totals.of(Count::Bytes)));
    let so_far = format!("so far  {requests} req  {size}  {}", ways(share));
    let events = events(&totals);
    let events = if events.is_empty() { "none" } else { &events };
    vec![now, so_far, format!("events  {events}")]
}

/// The ways that requests went.
fn ways(share: impl Fn(Count) -> Option<f64>) -> String {
    let gone =
        Count::WAYS.into_iter().filter_map(|way| Some((way, share(way).filter(|share| *share > 0.0)?)));
    let told: Vec<_> =
        gone.map(|(way, share)| format!("{} {}", way.name(), share_text(Some(share)))).collect();
    told.join(" ")
}

fn share_text(share: Option<f64>) -> String {
    share.filter(|share| *share > 0.0).map_or_else(|| "-".to_owned(), |share| format!("{share:.0} %"))
}

/// One process, as [`TITLES`] has it.
pub(super) fn process(entry: &Entry<'_>) -> String {
    let (pid, name) = (entry.process.pid, columns::fit(&entry.process.name, 11));
    let cells = match &entry.change {
        _ if entry.process.has_ended() => " ended".to_owned(),
        None => "     -".to_owned(),
        Some(change) => rates(change),
    };
    format!("{pid:>7} {name}{cells}")
}

fn rates(change: &Change) -> String {
    let requests = number(change.per_second(change.requests()));
    let size = byte_rate(change.per_second(change.of(Count::Bytes)));
    let ways = way_cells(|way| change.share(way));
    let optional = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
    let (cpu, price) = (optional(change.cpu_percent()), optional(change.cpu_ns_per_byte()));
    format!("{requests:>6}{size:>11}{ways}{cpu:>6}{price:>6}")
}

/// The columns of ways.
fn way_cells(share: impl Fn(Count) -> Option<f64>) -> String {
    let [direct, kernel, combined, split, routed] = Count::WAYS.map(|way| share_text(share(way)));
    format!("{direct:>7}{kernel:>6}{combined:>6}{split:>6}{routed:>7}")
}

/// One host.
pub(super) fn host(entry: &HostEntry<'_>) -> String {
    let socket = PathDisplay(&entry.host.socket).to_string();
    let name = columns::plain(socket.rsplit('/').next().unwrap_or_default());
    let report = match &entry.host.answer {
        Ok(report) => report,
        Err(reason) => return format!("host {name}: {reason}"),
    };
    let gone = if report.module.gone { " (gone)" } else { "" };
    let [requests, size] = rate_texts(entry.rates);
    let (clients, in_flight) = (counted(report.clients.len() as u64, "client"), report.in_flight());
    let (module, refused, failed) =
        (columns::plain(&report.module.name), report.totals.refused, report.totals.failed);
    format!(
        "host {name}: {module}{gone}  {clients}  {in_flight} in flight  {requests} requests/s  {size}  {refused} refused  {failed} failed"
    )
}

fn rate_texts(rates: Option<(f64, f64)>) -> [String; 2] {
    rates.map_or_else(
        || ["-".to_owned(), "-".to_owned()],
        |(requests, size)| [number(requests), byte_rate(size)],
    )
}

/// One module that processes share: what it did for all of them, permits, who waits; in 80 columns where counts have two places.
pub(super) fn module(entry: &ModuleEntry<'_>) -> String {
    let ModuleView { name, capacity, holders, waiting, expected_wait_ns, .. } = entry.module;
    let (name, [requests, size]) = (short_name(name), rate_texts(entry.rates));
    let (held, waiting) = (holders.len(), waiting.len());
    let wait = expected_wait_ns.map_or_else(|| "?".to_owned(), time);
    format!(
        "module {name}  {requests} req/s  {size}  {held}/{capacity} held  {waiting} waiting  {wait} to wait"
    )
}

/// A module's name in 25 columns at most: of a path its last part.
fn short_name(name: &str) -> String {
    let name = columns::plain(name);
    let name = match (name.find('/'), name.rfind('/')) {
        (Some(first), Some(last)) if first < last => format!("{}\u{2026}{}", &name[..first], &name[last..]),
        _ => name,
    };
    columns::fit(&name, 25).trim_end().to_owned()
}

pub(super) fn detail_title(entry: &Entry<'_>) -> String {
    let events = events(&entry.totals);
    let comma = if events.is_empty() { "" } else { ": " };
    format!("{} {} so far{comma}{events}", entry.process.pid, columns::plain(&entry.process.name))
}

/// What a process did so far: a line for each kind of work and direction, the one with most bytes first.
pub(super) fn details(process: &Process) -> Vec<String> {
    let mut kinds = process.by_kind();
    kinds.sort_by_key(|(row, totals)| (std::cmp::Reverse(totals.of(Count::Bytes)), *row));
    let line = |(row, totals): &(Row, Totals)| {
        let ways = way_cells(|way| Some(percent(totals.of(way), totals.requests())));
        let (name, size) =
            (format!("{} {}", row.kind().name(), row.direction()), bytes(totals.of(Count::Bytes)));
        let requests = short(totals.requests());
        format!("  {name:<20}{requests:>9}{size:>11}{ways}")
    };
    kinds.iter().map(line).collect()
}

/// A rate of bytes.
fn byte_rate(per_second: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative; `as` saturates"
    )]
    let whole = per_second as u64;
    format!("{}/s", bytes(whole))
}

/// A count in at most eight places.
fn short(count: u64) -> String {
    if count < 100_000_000 {
        return count.to_string();
    }
    #[expect(clippy::cast_precision_loss, reason = "for the eye")]
    number(count as f64)
}

/// A number in at most five places: `0.25`, `12.5`, `999`, `12.3k`, `1.2M`.
fn number(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if value < 9.995 {
        return format!("{value:.2}");
    }
    let (mut value, mut unit) = (value, 0);
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1_000.0;
        unit += 1;
    }
    let decimals = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.decimals$}{}", UNITS[unit])
}

const UNITS: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];

#[cfg(test)]
mod tests {
    use evener_arbiter::Work;

    use super::*;

    #[test]
    fn a_number_of_any_greatness_keeps_to_its_column() {
        let told = [0.0, 0.001, 1.0, 9.996, 99.96, 999.4, 999.6, 12_345.0, 1.8e19].map(number);
        assert_eq!(told, ["0", "0.00", "1.00", "10.0", "100", "999", "1.00k", "12.3k", "18.0E"]);
        assert!(told.iter().all(|text| text.len() <= 5));
        assert_eq!([99_999_999, 100_000_000, u64::MAX].map(short), ["99999999", "100M", "18.4E"]);
    }

    #[test]
    fn a_module_has_its_rates_permits_and_queue_in_eighty_columns() {
        let name = "hosted:/run/user/1000/evener-host.sock".to_owned();
        let of = |requests, bytes| ModuleView {
            name: name.clone(),
            capacity: 64,
            holders: Vec::new(),
            waiting: Vec::new(),
            expected_wait_ns: Some(0),
            work: Work { requests, bytes },
            counts: Vec::new(),
            costs: Vec::new(),
        };
        let (before, now) = (of(1_000, 7), of(25_690, 110_100_487));
        let change = Change::of_module(&before, &now).unwrap();
        assert_eq!(change, (24_690, 110_100_480));
        let entry = ModuleEntry { module: &now, rates: Some((12_345.0, 55_050_240.0)) };
        let told = module(&entry);
        assert!(
            told.starts_with(
                "module hosted:\u{2026}/evener-host.sock  12.3k req/s  52.5 MiB/s  0/64 held  0 waiting"
            ),
            "{told}"
        );
        assert!(told.split("  ").take(5).collect::<Vec<_>>().join("  ").chars().count() <= 80, "{told}");
        assert!(module(&ModuleEntry { rates: None, ..entry }).contains("sock  - req/s  -  0/64"));
        let other = ModuleView { name: "devcrypto".to_owned(), ..of(30_000, 1 << 40) };
        assert_eq!([Change::of_module(&before, &other), Change::of_module(&now, &before)], [None, None]);
    }

    #[test]
    fn names_keep_what_tells_them_apart() {
        let told = ["hosted:/a", "hosted:/run/x/h.sock", "afalg:virtio_crypto_aes_cbc", "/"].map(short_name);
        assert_eq!(told, ["hosted:/a", "hosted:\u{2026}/h.sock", "afalg:virtio_crypto_aes_c", "/"]);
    }

    #[test]
    fn titles_stand_over_the_columns_of_a_line_of_eighty() {
        assert_eq!(TITLES.len(), 80);
    }
}
