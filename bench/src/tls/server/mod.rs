//! The page server: one process with one configuration of OpenSSL, which serves the page, takes uploads and gives downloads.
//!
//! Steps: a [`Setup`] on standard input -> a port for each suite, told on standard output ([`Said::Ready`]) -> what the page
//! is to know, the second line of input -> connections, each with one request (`connection.rs`) -> what a page posts and what goes wrong,
//! told as it happens -> the end of input, which ends the process.

mod connection;
mod hello;
mod http;
mod request_times;

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, Write as _};
use std::net::{IpAddr, TcpListener};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use openssl::error::ErrorStack;
use openssl::ssl::{SslContext, SslFiletype, SslMethod, SslOptions, SslSessionCacheMode};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::identity::{Identity, file, library};
use super::suite::Suite;
use crate::error::BenchError;
pub(super) use connection::RESULT;
use request_times::Ledger;

/// What a server is told first.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Setup {
    /// Where it listens.
    pub listen: IpAddr,
    /// At which ports; 0 takes any that is free.
    pub first_port: u16,
    /// Which suites it has.
    pub suites: Vec<Suite>,
    /// What it shows.
    pub identity: Identity,
    /// Where uploads lie until they are whole.
    pub folder: PathBuf,
    /// A delay on purpose.
    pub plant: Option<Plant>,
}

/// A delay on purpose, by which the phases are proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plant {
    /// Where.
    pub phase: Phase,
    /// How long.
    pub ms: u32,
}

/// What a server can delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// The handshake.
    Tls,
    /// From the head of a measured request to the first byte of its answer.
    Request,
    /// From there to the last.
    Response,
}

impl Plant {
    /// Reads `request=500`: half a second.
    ///
    /// # Errors
    ///
    /// A sentence where it is something else.
    pub fn parse(word: &str) -> Result<Self, String> {
        let phases = [("tls", Phase::Tls), ("request", Phase::Request), ("response", Phase::Response)];
        let (name, ms) = word.split_once('=').unwrap_or((word, ""));
        let phase = phases.into_iter().find(|row| row.0 == name);
        match (phase, ms.parse()) {
            (Some((_, phase)), Ok(ms)) => Ok(Self { phase, ms }),
            _ => Err(format!("{word} is no PHASE=MILLISECONDS; phases are tls, request and response")),
        }
    }
}

/// What a server tells, one line each.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Said {
    /// It listens.
    Ready {
        /// Where, by the names of suites.
        ports: BTreeMap<String, u16>,
        /// Of the library inside.
        openssl: String,
        /// Whether Evener's provider is in the process.
        has_provider: bool,
    },
    /// A page posted its measurements.
    Result(Value),
    /// Something went wrong, in one sentence; the server goes on.
    Fault(String),
}

/// What all connections share.
struct Shared {
    setup: Setup,
    /// For the page, as JSON; there as soon as all servers are.
    page: OnceLock<String>,
    ledger: Mutex<Ledger>,
}

/// Serves until standard input ends.
///
/// # Errors
///
/// One sentence where the setup, a port or the certificate is not usable.
pub fn serve() -> Result<(), BenchError> {
    let mut lines = io::stdin().lock().lines();
    let mut line = || lines.next().and_then(Result::ok);
    let setup = line().and_then(|line| serde_json::from_str::<Setup>(&line).ok());
    let setup = setup.ok_or_else(|| BenchError::Cell("a page server needs its setup".to_owned()))?;
    let mut ports = BTreeMap::new();
    let mut doors = Vec::new();
    for (place, &suite) in setup.suites.iter().enumerate() {
        let (listener, port) = listen(&setup, place)?;
        ports.insert(suite.name().to_owned(), port);
        doors.push((suite, listener, context(suite, &setup.identity).map_err(library)?));
    }
    let shared = Arc::new(Shared { setup, page: OnceLock::new(), ledger: Mutex::default() });
    for (suite, listener, context) in doors {
        let shared = Arc::clone(&shared);
        std::thread::spawn(move || accept(suite, &listener, &context, &shared));
    }
    let openssl = openssl::version::version().to_owned();
    tell(&Said::Ready { ports, openssl, has_provider: has_provider() });
    while let Some(page) = line() {
        shared.page.set(page).ok();
    }
    Ok(())
}

fn listen(setup: &Setup, place: usize) -> Result<(TcpListener, u16), BenchError> {
    let port = match setup.first_port {
        0 => 0,
        first => first.saturating_add(u16::try_from(place).unwrap_or(u16::MAX)),
    };
    let listener = TcpListener::bind((setup.listen, port)).map_err(|error| {
        BenchError::Cell(format!(
            "cannot listen at port {port} of {}: {error}; name others by --listen and --port",
            setup.listen
        ))
    })?;
    let address = listener.local_addr().map_err(|error| BenchError::Cell(error.to_string()))?;
    Ok((listener, address.port()))
}

/// Full handshakes only, so that each measured request has one.
fn context(suite: Suite, identity: &Identity) -> Result<SslContext, ErrorStack> {
    let mut builder = SslContext::builder(SslMethod::tls_server())?;
    builder.set_certificate_chain_file(&identity.certificate)?;
    builder.set_private_key_file(&identity.key, SslFiletype::PEM)?;
    builder.check_private_key()?;
    if let Some((certificate, key)) = &identity.rsa {
        builder.set_certificate_chain_file(certificate)?;
        builder.set_private_key_file(key, SslFiletype::PEM)?;
    }
    builder.set_options(SslOptions::NO_TICKET | SslOptions::CIPHER_SERVER_PREFERENCE);
    builder.set_session_cache_mode(SslSessionCacheMode::OFF);
    builder.set_num_tickets(0)?;
    suite.restrict(&mut builder)?;
    Ok(builder.build())
}

fn accept(suite: Suite, listener: &TcpListener, context: &SslContext, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            // No descriptor left, most of all: another connection has to end first.
            std::thread::sleep(Duration::from_millis(20));
            continue;
        };
        let (context, shared) = (context.clone(), Arc::clone(shared));
        std::thread::spawn(move || {
            let peer = stream.peer_addr().map_or_else(|_| "a client".to_owned(), |peer| peer.to_string());
            if let Err(reason) = connection::serve(stream, suite, &context, &shared) {
                tell(&Said::Fault(format!("the connection from {peer} came to nothing: {reason}")));
            }
        });
    }
}

/// Whether Evener's provider was loaded by the configuration.
fn has_provider() -> bool {
    std::fs::read_to_string("/proc/self/maps").is_ok_and(|maps| maps.contains("/evener.so"))
}

fn tell(said: &Said) {
    let line = serde_json::to_string(said).expect("numbers, names and what was JSON") + "\n";
    // One write a line; the process that started this may be gone, and then input ends as well.
    io::stdout().lock().write_all(line.as_bytes()).ok();
}

impl Shared {
    fn with_ledger<T>(&self, what: impl FnOnce(&mut Ledger) -> T) -> T {
        what(&mut self.ledger.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A file without a name for what comes in.
    fn draft(&self) -> Result<std::fs::File, BenchError> {
        let folder = &self.setup.folder;
        tempfile::tempfile_in(folder).map_err(|error| file(folder, &error))
    }
}
