//! What a program could gain: its own requests, as its counts say, or usual ones where it has none, each measured here and now by OpenSSL's code and by
//! Evener's, in turns, on this core, by a fresh process that has the program's libcrypto and no configuration: in one that has Evener's provider both would be
//! Evener's.

use std::path::Path;

use evener::core::counts::{Count, Row};
use evener::core::{Algorithm, Direction, Family, InlineDriver};
use evener_driver_lanes::Lanes;
use evener_driver_libcrypto::Libcrypto;
use evener_machine::microbench::{JobKind, least_cost};
use serde::{Deserialize, Serialize};

use super::probe::{answer_of, fresh_process};
use crate::activity::Sources;
use crate::terminal::{Exit, output, units};

/// Rows at most: those with the most bytes.
const ROWS_MAX: usize = 6;

/// Most of a request that is measured: beyond it, time goes by length.
const MEASURED_BYTES_MAX: usize = 1 << 20;

/// Messages that lanes encrypt side by side in the forecast: as many as by AES-NI, the fewest that they have.
const TOGETHER: usize = 8;

/// Where a program has no counts: what TLS, files and pages of databases come to.
const USUAL: [(Algorithm, Direction, usize); 6] = [
    (Algorithm::Aes256Gcm, Direction::Encrypt, 1_024),
    (Algorithm::Aes256Gcm, Direction::Encrypt, 16_384),
    (Algorithm::Aes256Gcm, Direction::Decrypt, 16_384),
    (Algorithm::Aes128Ctr, Direction::Encrypt, 16_384),
    (Algorithm::Aes256Cbc, Direction::Decrypt, 4_096),
    (Algorithm::Aes256Cbc, Direction::Encrypt, 16_384),
];

/// What requests take here.
#[derive(Serialize, Deserialize)]
pub(super) struct Forecast {
    /// Processes of this name whose counts were read; where there are none the requests are usual ones.
    processes: usize,
    requests: Vec<Request>,
}

/// Requests of one kind, direction and size.
#[derive(Serialize, Deserialize)]
struct Request {
    algorithm: String,
    direction: String,
    /// Of each, on average; of longer ones as much as is measured.
    bytes: usize,
    /// How many were counted.
    count: u64,
    openssl_ns: u64,
    /// What is left of that by a kernel of Evener's; null where it has none.
    by_kernel: Option<f64>,
    /// The same where eight messages are encrypted together (`combine = auto`, where there are as many at once).
    together: Option<f64>,
}

/// Measures in this process and prints what came of it.
pub(super) fn answer(path: &Path) -> anyhow::Result<Exit> {
    output::answer(serde_json::to_string(&Forecast::measured(path)?)?.as_bytes())
}

/// For the program at `path`, with a libcrypto in `directory` before all others; none where no libcrypto can be used so.
pub(super) fn query(path: &Path, directory: Option<&Path>) -> Option<Forecast> {
    let mut process = fresh_process(&["--forecast".as_ref(), path.as_os_str()], directory).ok()?;
    process.env("OPENSSL_CONF", "/dev/null");
    answer_of(process).ok()
}

impl Forecast {
    fn measured(path: &Path) -> anyhow::Result<Self> {
        let mut openssl = Libcrypto::new()?;
        let mut lanes = Lanes::new();
        let (processes, mut wanted) = counted(path);
        if wanted.is_empty() {
            wanted = USUAL.map(|(algorithm, direction, bytes)| (algorithm, direction, bytes, 0)).into();
        }
        let requests = wanted
            .into_iter()
            .filter_map(|wanted| {
                Request::measured(wanted, &mut openssl, lanes.as_mut().map(|lanes| lanes as _))
            })
            .collect();
        Ok(Self { processes, requests })
    }

    pub(super) fn text(&self) -> String {
        let whose = match self.processes {
            0 => "no process of this program has counts: usual requests".to_owned(),
            count => format!("its requests, by the counts of {}", units::counted(count as u64, "process")),
        };
        let heading = format!("{whose}; measured now, and 0.5 means half of OpenSSL's core time:\n");
        let rows = self.requests.iter().map(Request::line);
        let set = "  by kernels: the default. together: `combine = auto`, where as many threads or jobs encrypt at once.\n";
        [heading].into_iter().chain(rows).chain([set.to_owned()]).collect()
    }
}

/// A request and how many there were.
type Wanted = (Algorithm, Direction, usize, u64);

/// What processes of this program asked for, the most bytes first, and how many processes that were.
fn counted(path: &Path) -> (usize, Vec<Wanted>) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // The kernel keeps fifteen bytes of a name.
    let is_it = |of: &str| !of.is_empty() && (of == name || of.len() == 15 && name.starts_with(of));
    let processes = Sources::of_this_user(&[]).read().processes;
    let of_it: Vec<_> =
        processes.iter().filter(|process| is_it(&process.name) && !process.rows.is_empty()).collect();
    let mut sums: Vec<(Row, u64, u64)> = Vec::new();
    for (row, totals) in of_it.iter().flat_map(|process| &process.rows) {
        let (bytes, requests) = (totals.of(Count::Bytes), totals.requests());
        match sums.iter_mut().find(|sum| sum.0 == *row) {
            Some(sum) => (sum.1, sum.2) = (sum.1 + bytes, sum.2 + requests),
            None => sums.push((*row, bytes, requests)),
        }
    }
    sums.sort_by_key(|sum| std::cmp::Reverse(sum.1));
    let wanted = sums.into_iter().filter_map(|(row, bytes, requests)| {
        let algorithm: Algorithm = row.kind().name().parse().ok()?;
        let average = usize::try_from(bytes.checked_div(requests)?).ok()?;
        (average > 0).then_some((algorithm, row.direction(), average, requests))
    });
    (of_it.len(), wanted.take(ROWS_MAX).collect())
}

impl Request {
    fn measured(
        (algorithm, direction, bytes, count): Wanted,
        openssl: &mut dyn InlineDriver,
        mut lanes: Option<&mut dyn InlineDriver>,
    ) -> Option<Self> {
        let bytes = bytes.min(MEASURED_BYTES_MAX);
        let kind = JobKind { operation: (algorithm, direction), bytes, burst: 1, is_apart: false }.fitted();
        // One message by itself is the kernel's in all modes but this, which only lanes gain in.
        let is_serial = algorithm.family() == Family::Cbc && direction == Direction::Encrypt;
        let own = JobKind { burst: if is_serial { TOGETHER } else { 1 }, ..kind };
        let (mut theirs, mut ours) = (least_cost(openssl, &kind)?, None);
        // In turns, the least of each.
        for _ in 0..2 {
            theirs = theirs.min(least_cost(openssl, &kind)?);
            let now = lanes.as_deref_mut().filter(|lanes| lanes.supports(algorithm, direction));
            let now = now.and_then(|lanes| least_cost(lanes, &own));
            ours = [ours, now].into_iter().flatten().min();
        }
        let left = ours.map(|ours| ours.0 as f64 / theirs.0.max(1) as f64);
        Some(Self {
            algorithm: algorithm.name().to_owned(),
            direction: if direction == Direction::Encrypt { "encrypt" } else { "decrypt" }.to_owned(),
            bytes: kind.bytes,
            count,
            openssl_ns: theirs.0,
            by_kernel: left.filter(|_| !is_serial),
            together: left.filter(|_| is_serial),
        })
    }

    fn line(&self) -> String {
        let Self { algorithm, direction, bytes, count, .. } = self;
        let count = if *count == 0 { String::new() } else { format!(", {count} of them") };
        let gain = match (self.by_kernel, self.together) {
            (Some(left), _) => format!("by kernels {left:.2}"),
            (None, Some(left)) => format!("together {left:.2}"),
            (None, None) => "nothing of Evener's own".to_owned(),
        };
        let time = units::time(self.openssl_ns);
        format!("  {algorithm:<12} {direction} {bytes:>8} B: OpenSSL {time}, {gain}{count}\n")
    }
}
