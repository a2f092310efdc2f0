//! All pages of a run as one report (`docs/reference/schemas/bench-tls.schema.json`): times by way, ratios of neighbours, the paper beside them.
//!
//! A *way* is where the provider was: nowhere (`without`), at the client, at the server, at both. The k-th measurement of a way is compared with
//! the k-th without, for both were made in the same round.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::clients::Facts;
use super::page::{Measurement, Page, Transfer};
use super::paper::{self, Claim, PaperUpload};
use super::suite::Suite;
use super::{Direction, Plan};
use crate::medians::Spread;

/// Everything that was measured.
#[derive(Debug, Serialize, Deserialize)]
pub struct Report {
    /// Name and version of this layout.
    pub schema: String,
    /// Where.
    pub machine: String,
    /// The pages' server.
    pub server: String,
    /// The provider's file, where one takes part.
    pub provider: Option<String>,
    /// Clients, those that are missing too.
    pub clients: Vec<Facts>,
    /// By client, suite, direction and size.
    pub rows: Vec<Row>,
    /// Paper 003's claims, for each client and suite with uploads of all its sizes.
    pub claims: Vec<ClaimsOf>,
}

/// Transfers that are told together, size by size.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Series {
    /// Who.
    pub client: String,
    /// With which suite.
    pub suite: Suite,
    /// Which way; an upload by a request of a script, or by a form.
    pub direction: Direction,
}

/// Those of one size.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cell {
    /// Of which series.
    #[serde(flatten)]
    pub series: Series,
    /// Of the file.
    pub bytes: u64,
}

/// One client at one size.
#[derive(Debug, Serialize, Deserialize)]
pub struct Row {
    /// Of which transfers.
    #[serde(flatten)]
    pub cell: Cell,
    /// What was agreed on.
    pub cipher: Option<String>,
    /// Whether the MAC is that of the ciphertext.
    pub encrypt_then_mac: Option<bool>,
    /// `without` first.
    pub ways: Vec<Way>,
    /// The paper's upload of this size.
    pub paper: Option<PaperUpload>,
}

/// One place of the provider.
#[derive(Debug, Serialize, Deserialize)]
pub struct Way {
    /// `without`, `client`, `server` or `both`.
    pub way: String,
    /// Each value, in the order of rounds.
    pub values_ms: Vec<f64>,
    /// Their spread.
    pub ms: Spread,
    /// Core time of client and server, as far as each is known.
    pub core_ms: Option<Spread>,
    /// Medians of the phases, by the client where it knows them, else by the server.
    pub phases: BTreeMap<String, f64>,
    /// Time over that without, of neighbours.
    pub ratio: Option<Spread>,
    /// Core time over that without.
    pub core_ratio: Option<Spread>,
}

/// Paper 003's claims for one client.
#[derive(Debug, Serialize, Deserialize)]
pub struct ClaimsOf {
    /// Of which uploads.
    #[serde(flatten)]
    pub series: Series,
    /// Where the provider was.
    pub way: String,
    /// Each with its verdict.
    pub claims: Vec<Claim>,
}

impl Report {
    /// Of all pages; a page without a label is a user's.
    #[must_use]
    pub fn new(plan: &Plan, server: &str, clients: Vec<Facts>, pages: &[Page]) -> Self {
        let mut cells: BTreeMap<Cell, BTreeMap<String, Vec<&Measurement>>> = BTreeMap::new();
        for page in pages {
            let label = page.client.label.as_deref().unwrap_or("page:default");
            let (client, providers) = label.split_once(':').unwrap_or((label, "default"));
            for one in &page.measurements {
                let Transfer { direction, bytes, end, .. } = &one.transfer;
                let (client, suite, direction) = (client.to_owned(), page.asked.suite, *direction);
                let series = Series { client, suite, direction };
                let ways = cells.entry(Cell { series, bytes: *bytes }).or_default();
                ways.entry(way(providers, end)).or_default().push(one);
            }
        }
        let rows: Vec<Row> = cells.into_iter().map(|(cell, ways)| Row::new(cell, &ways)).collect();
        let claims = claims(&rows);
        let provider = plan.provider.module.as_ref().map(|path| path.display().to_string());
        let (schema, server) = ("evener-bench-tls/1".to_owned(), server.to_owned());
        Self { schema, machine: plan.machine.clone(), server, provider, clients, rows, claims }
    }

    /// The report as a table for people.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let mut last = None;
        for row in &self.rows {
            if last != Some(&row.cell.series) {
                text.push_str(&row.heading());
                last = Some(&row.cell.series);
            }
            text.push_str(&row.line());
        }
        for of in &self.claims {
            text.push_str(&of.lines());
        }
        for facts in &self.clients {
            text.push_str(&line_of(facts));
        }
        if let Some(way) = self.rows.first().and_then(|row| row.ways.first()) {
            let level = way.ms.level * 100.0;
            writeln!(text, "{}; bounds in brackets hold with {level:.1} %", self.machine).ok();
        }
        text
    }
}

/// Where the provider was, by the client's providers and the server's.
fn way(client: &str, server: &str) -> String {
    // What stands behind a comma is the client's module.
    let (client, module) =
        client.split_once(',').map_or((client, None), |(name, module)| (name, Some(module)));
    let place = match (client == "default", server == "default") {
        (true, true) => "without",
        (false, true) => "client",
        (true, false) => "server",
        (false, false) => "both",
    };
    module.map_or_else(|| place.to_owned(), |module| format!("{place}, {module}"))
}

const WITHOUT: &str = "without";

impl Row {
    fn new(cell: Cell, ways: &BTreeMap<String, Vec<&Measurement>>) -> Self {
        let without = ways.get(WITHOUT).map(Vec::as_slice).unwrap_or_default();
        let mut all: Vec<Way> = ways.iter().filter_map(|(way, ones)| Way::new(way, ones, without)).collect();
        all.sort_by_key(|way| way.way != WITHOUT);
        let seen = ways.values().flatten().find_map(|one| one.server.as_ref());
        let paper = paper::uploads().into_iter().find(|row| row.bytes == cell.bytes);
        Self {
            cipher: seen.map(|seen| seen.agreed.cipher.clone()),
            encrypt_then_mac: seen.map(|seen| seen.agreed.encrypt_then_mac),
            ways: all,
            paper: paper.filter(|_| cell.series.direction != Direction::Down),
            cell,
        }
    }

    fn heading(&self) -> String {
        let Series { client, suite, direction } = &self.cell.series;
        let cipher = self.cipher.as_deref().map_or_else(String::new, |cipher| format!(" ({cipher})"));
        let etm = if self.encrypt_then_mac == Some(true) { ", Encrypt-then-MAC" } else { "" };
        format!("{client}, {}{cipher}{etm}, {}\n", suite.in_words(), direction.in_words())
    }

    fn line(&self) -> String {
        let mut text = format!("{:>12} B", self.cell.bytes);
        for way in &self.ways {
            let Way { way, ms, ratio, core_ratio, .. } = way;
            write!(text, "  {way} {:.2} ms", ms.median).ok();
            if let Some(Spread { median, low, high, .. }) = ratio {
                write!(text, " {median:.3} [{low:.3} {high:.3}]").ok();
            }
            if let Some(core) = core_ratio {
                write!(text, " core {:.3}", core.median).ok();
            }
        }
        if let Some(paper) = self.paper {
            write!(text, "  paper {:.2}", paper.with_ms / paper.without_ms).ok();
        }
        text + "\n"
    }
}

impl Way {
    fn new(way: &str, ones: &[&Measurement], without: &[&Measurement]) -> Option<Self> {
        let times = |ones: &[&Measurement]| ones.iter().map(|one| one.ms).collect::<Vec<_>>();
        let values_ms = times(ones);
        let core = |ones: &[&Measurement]| ones.iter().map(|one| core_ms(one)).collect::<Option<Vec<_>>>();
        let is_other = way != WITHOUT;
        let ratio = |ours: &[f64], theirs: &[f64]| {
            let pairs: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
            Spread::of(&pairs)
        };
        let (ours, theirs) = (core(ones), core(without));
        Some(Self {
            way: way.to_owned(),
            ms: Spread::of(&values_ms)?,
            core_ms: ours.as_deref().and_then(Spread::of),
            phases: phases(ones),
            ratio: is_other.then(|| ratio(&values_ms, &times(without))).flatten(),
            core_ratio: ours
                .zip(theirs)
                .filter(|_| is_other)
                .and_then(|(ours, theirs)| ratio(&ours, &theirs)),
            values_ms,
        })
    }
}

/// Core time of both ends; of one, where the other is not known.
fn core_ms(one: &Measurement) -> Option<f64> {
    match (one.client_core_ms, one.server.as_ref().map(|seen| seen.core_ms)) {
        (None, None) => None,
        (client, server) => Some(client.unwrap_or(0.0) + server.unwrap_or(0.0)),
    }
}

fn phases(ones: &[&Measurement]) -> BTreeMap<String, f64> {
    let mut values: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for one in ones {
        if let Some(phases) = one.phases {
            values.entry("connect").or_default().push(phases.connect_ms);
            values.entry("request").or_default().push(phases.request_ms);
            values.entry("response").or_default().push(phases.response_ms);
            if let Some(ms) = phases.tls_ms {
                values.entry("tls").or_default().push(ms);
            }
        } else if let Some(seen) = &one.server {
            values.entry("tls").or_default().push(seen.tls_ms);
            values.entry("request").or_default().push(seen.request_ms);
            values.entry("response").or_default().push(seen.response_ms);
        }
    }
    let median = |(name, values): (&str, Vec<f64>)| Some((name.to_owned(), Spread::of(&values)?.median));
    values.into_iter().filter_map(median).collect()
}

/// Bytes of an upload, and the milliseconds that it took with the provider and without.
type MedianTimes = (u64, f64, f64);

/// The claims, wherever all sizes of the paper were uploaded with the provider and without.
fn claims(rows: &[Row]) -> Vec<ClaimsOf> {
    let mut uploads: BTreeMap<(Series, String), Vec<MedianTimes>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.cell.series.direction != Direction::Down) {
        let Some(without) = row.ways.iter().find(|way| way.way == WITHOUT) else { continue };
        for way in row.ways.iter().filter(|way| way.way != WITHOUT) {
            uploads.entry((row.cell.series.clone(), way.way.clone())).or_default().push((
                row.cell.bytes,
                way.ms.median,
                without.ms.median,
            ));
        }
    }
    let of = |((series, way), measured): ((Series, String), Vec<_>)| {
        let claims = paper::claims(&measured);
        (!claims.is_empty()).then_some(ClaimsOf { series, way, claims })
    };
    uploads.into_iter().filter_map(of).collect()
}

impl ClaimsOf {
    fn lines(&self) -> String {
        let Self { series: Series { client, suite, direction }, way, claims } = self;
        let mut text = format!(
            "paper 003's claims, {client}, {}, {}, provider at: {way}\n",
            suite.in_words(),
            direction.in_words()
        );
        for claim in claims {
            let holds = if claim.holds { "holds" } else { "does not hold" };
            writeln!(text, "  {} {}: {holds}; {}", claim.id, claim.claim, claim.because).ok();
        }
        text
    }
}

fn line_of(facts: &Facts) -> String {
    let name = facts.client.name();
    match (&facts.missing, &facts.version, &facts.tls_library) {
        (Some(missing), ..) => format!("skipped: {name}: {missing}\n"),
        (None, Some(version), Some(library)) => {
            let may = if facts.can_offload {
                "can be served by Evener's provider"
            } else {
                "never loads a provider"
            };
            format!("{name}: {version}, TLS by {library}: {may}\n")
        }
        _ => String::new(),
    }
}
