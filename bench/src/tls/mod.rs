//! Paper 003's experiment: uploads and downloads over TLS, measured by the client itself, with Evener's provider at either end and
//! without.
//!
//! Steps of one figure: servers with the provider and without ([`servers`]) -> rounds, in which clients with the provider and without take turns
//! ([`clients`]) -> within a client's visit, both servers take turns, size by size (`bench/web/measure.js`) -> pages ([`page`]) -> a
//! report with ratios of neighbours ([`report`]).

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use evener::Cancel;
use serde::{Deserialize, Serialize};

mod clients;
mod identity;
mod last_words;
mod nginx;
mod page;
mod paper;
mod report;
mod server;
mod servers;
mod site;
mod suite;

pub use clients::{Client, Facts};
pub use identity::Identity;
pub use page::{Agreed, Asked, Measurement, Page, PageClient, Phases, Seen, Transfer};
pub use paper::{Claim, PaperUpload, sizes as paper_sizes};
pub use report::{Cell, ClaimsOf, Report, Row, Series, Way};
pub use server::{Plant, serve as serve_end};
pub use suite::Suite;

use crate::error::BenchError;
use crate::programs::openssl_conf::Providers;
use clients::Visit;
use server::Said;
use servers::{Event, Servers};

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// This command, which is started as a page server, too.
    pub program: PathBuf,
    /// The provider that takes part.
    pub provider: ProviderFile,
    /// How servers are started.
    pub servers: ServerPlan,
    /// What is sent and fetched.
    pub transfers: Transfers,
    /// Whom to have measure.
    pub clients: Vec<Client>,
    /// For how long a client's visit may go on.
    pub timeout: Duration,
    /// What the report calls this machine.
    pub machine: String,
}

/// Evener's provider, and how it is configured.
#[derive(Clone, Debug)]
pub struct ProviderFile {
    /// Its path; without it nothing is compared.
    pub module: Option<PathBuf>,
    /// Lines for its section of `openssl.cnf`.
    pub settings: Vec<String>,
}

/// How servers are started.
#[derive(Clone, Debug)]
pub struct ServerPlan {
    /// Where they listen.
    pub listen: IpAddr,
    /// nginx, where it is to serve instead of this command; it takes ports that are free.
    pub nginx: Option<PathBuf>,
    /// The first of their ports; 0 takes any that are free.
    pub first_port: u16,
    /// What they show; `None` makes a certificate.
    pub identity: Option<Identity>,
    /// Where uploads lie; a folder is made in it and removed at the end.
    pub folder: Option<PathBuf>,
    /// A delay on purpose.
    pub plant: Option<Plant>,
}

/// Transfers of a run: each suite, size and direction, once a round.
#[derive(Clone, Debug)]
pub struct Transfers {
    /// With which suites.
    pub suites: Vec<Suite>,
    /// Bytes.
    pub sizes: Vec<u64>,
    /// Which ways.
    pub directions: Vec<Direction>,
    /// Turns of each.
    pub rounds: usize,
}

impl Plan {
    /// Which servers there are, and which ways a client has.
    fn providers(&self) -> Vec<Providers> {
        match self.provider.module {
            Some(_) => Providers::BOTH.to_vec(),
            None => vec![Providers::Default],
        }
    }
}

/// What moves where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// An upload by a script of the page.
    Up,
    /// An upload by a form, as in the paper.
    Form,
    /// A download.
    Down,
}

impl Direction {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Up, Self::Form, Self::Down];

    /// What options and reports call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Form => "form",
            Self::Down => "down",
        }
    }

    const fn in_words(self) -> &'static str {
        match self {
            Self::Up => "uploads",
            Self::Form => "uploads by a form",
            Self::Down => "downloads",
        }
    }
}

/// nginx, where it is installed.
#[must_use]
pub fn installed_nginx() -> Option<PathBuf> {
    nginx::program()
}

/// Measures `plan`; `tell` hears what is being done.
///
/// # Errors
///
/// One sentence: [`BenchError::Command`] where a server or client fails, [`BenchError::Cell`] where there is nothing to measure or a
/// certificate does not fit, [`BenchError::Stopped`] where `cancel` asks to stop. Nothing is left behind.
pub fn measure(
    plan: &Plan,
    cancel: &Cancel,
    mut tell: impl FnMut(&str),
) -> Result<(Report, Vec<Page>), BenchError> {
    let clients: Vec<Facts> = plan.clients.iter().map(|client| client.facts()).collect();
    let present: Vec<&Facts> = clients.iter().filter(|facts| facts.missing.is_none()).collect();
    if present.is_empty() {
        let missing: Vec<String> = clients.iter().filter_map(|facts| facts.missing.clone()).collect();
        return Err(BenchError::Cell(format!("there is no client to measure with: {}", missing.join(", "))));
    }
    let mut servers = Servers::start(plan)?;
    let mut pages = Vec::new();
    for round in 0..plan.transfers.rounds {
        for &suite in &plan.transfers.suites {
            for facts in &present {
                let ways = plan.providers();
                let ways = if facts.can_offload { &ways[..] } else { &ways[..1] };
                for turn in 0..ways.len() {
                    let providers = ways[(round + turn) % ways.len()];
                    let session = format!("visit{}", pages.len());
                    tell(&format!(
                        "round {} of {}: {}, {}, {}",
                        round + 1,
                        plan.transfers.rounds,
                        facts.client.name(),
                        suite.in_words(),
                        providers.in_words()
                    ));
                    let visit =
                        Visit { plan, suite, providers, rounds: 1, rounds_before: round, session, cancel };
                    pages.push(facts.client.visit(&visit, &mut servers)?);
                }
            }
        }
    }
    Ok((Report::new(plan, &servers.server(), clients, &pages), pages))
}

/// Serves the page until `cancel` asks to stop; `listens` hears its address, `tell` of faults, `keep` what pages post.
///
/// # Errors
///
/// As of [`measure`].
pub fn serve(
    plan: &Plan,
    cancel: &Cancel,
    listens: impl FnOnce(&str),
    mut tell: impl FnMut(&str),
    mut keep: impl FnMut(Page) -> Result<(), BenchError>,
) -> Result<(), BenchError> {
    let mut servers = Servers::start(plan)?;
    let suite = plan.transfers.suites[0];
    listens(&servers.url(suite, Providers::Default));
    while !cancel.is_cancelled() {
        match servers.next(Duration::from_millis(100)) {
            Some((_, Event::Said(Said::Result(page)))) => match Page::read(page) {
                Ok(page) => keep(page)?,
                Err(sentence) => tell(&sentence),
            },
            Some((_, Event::Said(Said::Fault(sentence)))) => tell(&sentence),
            Some((providers, Event::Gone)) => {
                let reason = format!("it ended ({})", servers.end_of(providers));
                let command = format!("the page server {}", providers.in_words());
                return Err(BenchError::Command { command, reason });
            }
            _ => {}
        }
    }
    Ok(())
}
