//! The servers of a run: one without Evener's provider and, where its module is named, one with it, each a process.
//!
//! Steps: a folder with certificate and configurations -> processes of this command (`server/mod.rs`) -> their ports -> what the page is to
//! know -> what they say, in the order in which it happens ([`Servers::next`]).

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use serde::Serialize;
use serde_json::json;
use tempfile::TempDir;

use super::identity::{Identity, file};
use super::last_words::last_words;
use super::nginx;
use super::paper;
use super::server::{RESULT, Said, Setup};
use super::suite::Suite;
use super::{Plan, ServerPlan};
use crate::error::BenchError;
use crate::programs::openssl_conf::Providers;

/// The page's plan by an address: what a browser is to open.
pub(super) struct Address<'a> {
    pub(super) suite: Suite,
    pub(super) session: &'a str,
    pub(super) label: &'a str,
    pub(super) rounds: usize,
    /// As [`Visit`](super::clients::Visit) has it.
    pub(super) rounds_before: usize,
}

/// Running servers, ended when dropped.
pub(super) struct Servers {
    ends: Vec<End>,
    said: Receiver<(Providers, Event)>,
    folder: TempDir,
    identity: Identity,
    /// As it stands in a URL.
    host: String,
}

/// One of them.
struct End {
    providers: Providers,
    child: Child,
    /// Its end ends the process.
    input: Option<ChildStdin>,
    ports: BTreeMap<String, u16>,
    openssl: String,
    /// Where this is nginx, its folder.
    nginx: Option<nginx::Folder>,
}

/// What a server does by itself.
pub(super) enum Event {
    Said(Said),
    /// Its output ended.
    Gone,
}

/// An end, as the page and reports know it.
#[derive(Serialize)]
struct EndOfPage<'a> {
    name: &'static str,
    ports: &'a BTreeMap<String, u16>,
}

impl Servers {
    /// Starts them and waits until both listen.
    pub(super) fn start(plan: &Plan) -> Result<Self, BenchError> {
        let root = plan.servers.folder.clone().unwrap_or_else(std::env::temp_dir);
        let folder = TempDir::with_prefix_in("evener-tls-", &root).map_err(|error| file(&root, &error))?;
        let identity = match &plan.servers.identity {
            Some(given) => given.clone(),
            None => Identity::make(folder.path(), &[plan.servers.listen])?,
        };
        identity.check()?;
        let (tell, said) = channel();
        let mut servers = Self { ends: Vec::new(), said, folder, identity, host: shown(plan.servers.listen) };
        for providers in plan.providers() {
            match &plan.servers.nginx {
                Some(program) => servers.start_nginx(plan, program, providers, tell.clone())?,
                None => servers.start_one(plan, providers, tell.clone())?,
            }
        }
        let page = servers.page(plan);
        for end in &mut servers.ends {
            if let Some(folder) = &end.nginx {
                folder.set_page(&page)?;
            }
            let line = format!("{page}\n");
            let told = end.input.as_mut().map(|input| input.write_all(line.as_bytes()));
            told.transpose()
                .map_err(|error| BenchError::Cell(format!("a page server went away: {error}")))?;
        }
        Ok(servers)
    }

    fn start_one(
        &mut self,
        plan: &Plan,
        providers: Providers,
        tell: Sender<(Providers, Event)>,
    ) -> Result<(), BenchError> {
        let configuration = self.configuration(plan, providers)?;
        let place = u16::try_from(self.ends.len() * plan.transfers.suites.len()).unwrap_or(u16::MAX);
        let ServerPlan { listen, first_port, plant, .. } = plan.servers;
        let setup = Setup {
            listen,
            first_port: if first_port == 0 { 0 } else { first_port.saturating_add(place) },
            suites: plan.transfers.suites.clone(),
            identity: self.identity.clone(),
            folder: self.folder.path().to_owned(),
            plant,
        };
        let mut command = Command::new(&plan.program);
        command.args(["bench", "tls", "--end"]).env("OPENSSL_CONF", configuration);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let failed = |reason: String| BenchError::Command { command: "the page server".to_owned(), reason };
        let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
        let mut input = child.stdin.take().expect("it is piped");
        let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
        let setup = serde_json::to_string(&setup).map_err(|error| failed(error.to_string()))?;
        // A process that ended at once says why, below.
        input.write_all(format!("{setup}\n").as_bytes()).ok();
        let mut first = String::new();
        output.read_line(&mut first).ok();
        let Ok(Said::Ready { ports, openssl, has_provider }) = serde_json::from_str(&first) else {
            drop(input);
            return Err(failed(last_words(&mut child)));
        };
        std::thread::spawn(move || pass_on(output, providers, &tell));
        let input = Some(input);
        self.ends.push(End { providers, child, input, ports, openssl, nginx: None });
        expect_provider(plan, providers, has_provider)
    }

    fn start_nginx(
        &mut self,
        plan: &Plan,
        program: &Path,
        providers: Providers,
        tell: Sender<(Providers, Event)>,
    ) -> Result<(), BenchError> {
        let configuration = self.configuration(plan, providers)?;
        let path = self.folder.path().join(format!("nginx-{}", providers.name()));
        let folder = nginx::Folder::make(path, &plan.transfers.sizes)?;
        let (mut child, ports) = folder.start(
            program,
            plan.servers.listen,
            &plan.transfers.suites,
            &self.identity,
            &configuration,
        )?;
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", child.id())).unwrap_or_default();
        std::thread::spawn(move || pass_on(output, providers, &tell));
        let openssl = "the system's libssl".to_owned();
        self.ends.push(End { providers, child, input: None, ports, openssl, nginx: Some(folder) });
        expect_provider(plan, providers, maps.contains("/evener.so"))
    }

    /// The file of OpenSSL for programs with these providers; made once.
    pub(super) fn configuration(&self, plan: &Plan, providers: Providers) -> Result<PathBuf, BenchError> {
        let path = self.folder.path().join(format!("{}.cnf", providers.name()));
        let module = plan.provider.module.as_deref().unwrap_or_else(|| Path::new("evener.so"));
        let text = providers.configuration(module, &plan.provider.settings);
        std::fs::write(&path, text).map_err(|error| file(&path, &error))?;
        Ok(path)
    }

    /// What the page is to know, as one line of JSON.
    fn page(&self, plan: &Plan) -> String {
        let ends: Vec<_> =
            self.ends.iter().map(|end| EndOfPage { name: end.providers.name(), ports: &end.ports }).collect();
        let suites: Vec<_> = plan
            .transfers
            .suites
            .iter()
            .map(|suite| json!({ "name": suite.name(), "words": suite.in_words() }))
            .collect();
        let (server, tells) = (self.server(), self.tells());
        json!({
            "version": env!("CARGO_PKG_VERSION"), "server": server, "ends": ends, "suites": suites,
            "paper": paper::uploads(), "result": RESULT, "tells": tells,
        })
        .to_string()
    }

    /// Where the page is, by the first suite's port of the first server.
    pub(super) fn url(&self, suite: Suite, providers: Providers) -> String {
        let end = self.ends.iter().find(|end| end.providers == providers).unwrap_or(&self.ends[0]);
        format!("https://{}:{}", self.host, end.ports[suite.name()])
    }

    /// What a browser is to open, so that it measures by itself.
    pub(super) fn address(&self, plan: &Plan, address: &Address<'_>) -> String {
        let sizes: Vec<String> = plan.transfers.sizes.iter().map(u64::to_string).collect();
        let directions: Vec<&str> =
            plan.transfers.directions.iter().map(|direction| direction.name()).collect();
        format!(
            "{}/?auto=1&suite={}&session={}&label={}&rounds={}&before={}&sizes={}&directions={}",
            self.url(address.suite, Providers::Default),
            address.suite.name(),
            address.session,
            address.label,
            address.rounds,
            address.rounds_before,
            sizes.join(","),
            directions.join(",")
        )
    }

    /// Waits for what happens next; `None` where nothing does for so long.
    pub(super) fn next(&self, most: Duration) -> Option<(Providers, Event)> {
        for end in &self.ends {
            if let Some(result) = end.nginx.as_ref().and_then(nginx::Folder::result) {
                return Some((end.providers, Event::Said(Said::Result(result))));
            }
        }
        self.said.recv_timeout(most).ok()
    }

    /// In words, how the server with these providers ended.
    pub(super) fn end_of(&mut self, providers: Providers) -> String {
        let end = self.ends.iter_mut().find(|end| end.providers == providers);
        end.map_or_else(|| "gone".to_owned(), |end| last_words(&mut end.child))
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Which ends there are.
    pub(super) fn providers(&self) -> impl Iterator<Item = Providers> {
        self.ends.iter().map(|end| end.providers)
    }

    /// What serves, in words.
    pub(super) fn server(&self) -> String {
        let end = &self.ends[0];
        let name = if end.nginx.is_some() { "nginx" } else { "the command's own" };
        format!("{name}, {}", end.openssl)
    }

    /// Whether they say what they saw of a request.
    pub(super) fn tells(&self) -> bool {
        self.ends.iter().all(|end| end.nginx.is_none())
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for end in &mut self.ends {
            // Uploads that go on belong to no client any more.
            drop(end.input.take());
            end.child.kill().ok();
            end.child.wait().ok();
        }
    }
}

/// A server that silently runs without the provider would be measured against itself.
fn expect_provider(plan: &Plan, providers: Providers, has_provider: bool) -> Result<(), BenchError> {
    if has_provider == (providers == Providers::Evener) {
        return Ok(());
    }
    let which = plan.provider.module.as_deref().unwrap_or_else(|| Path::new("evener.so")).display();
    let reason = format!("OpenSSL did not load {which} in it; `evener doctor` with the same module says why");
    Err(BenchError::Command { command: "the page server".to_owned(), reason })
}

fn pass_on(output: impl std::io::BufRead, providers: Providers, tell: &Sender<(Providers, Event)>) {
    for line in output.lines().map_while(Result::ok) {
        if let Ok(said) = serde_json::from_str(&line) {
            if tell.send((providers, Event::Said(said))).is_err() {
                return;
            }
        }
    }
    tell.send((providers, Event::Gone)).ok();
}

/// An address as it stands in a URL; one that means all is shown as the loopback's.
fn shown(address: IpAddr) -> String {
    match address {
        address if address.is_unspecified() => "127.0.0.1".to_owned(),
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}
