//! A browser without a screen: it opens the page, which measures by itself and posts its result.
//!
//! Steps: the program with its own folder, providers and certificate -> whatever comes first: the page's result, the end of the browser or of
//! a server, fault that a page cannot post, the end of timeout -> the browser is ended.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::{Client, PYTHON, Visit, chromium_program};
use crate::error::BenchError;
use crate::tls::identity::file;
use crate::tls::page::Page;
use crate::tls::server::Said;
use crate::tls::servers::{Address, Event, Servers};

/// The script that opens `QtWebKit`.
const QTWEBKIT: &str = include_str!("../../../clients/qtwebkit.py");

/// How often a browser is looked at while nothing is said.
const LOOK: Duration = Duration::from_millis(50);
/// A browser may take so long to end after its page is done.
const END_MAX: Duration = Duration::from_secs(5);

/// A started browser, with all its processes; ended when dropped.
struct Browser {
    child: Child,
    /// What it said of itself.
    log: PathBuf,
}

pub(super) fn visit(client: Client, visit: &Visit<'_>, servers: &mut Servers) -> Result<Page, BenchError> {
    let mut browser = start(client, visit, servers)?;
    let failed = |reason: String| BenchError::Command { command: client.name().to_owned(), reason };
    let (began, mut fault) = (Instant::now(), None);
    loop {
        match servers.next(LOOK) {
            Some((_, Event::Said(Said::Result(page)))) => {
                let page = Page::read(page).map_err(&failed)?;
                if page.client.session == visit.session {
                    browser.leave(client);
                    return Ok(page);
                }
            }
            Some((_, Event::Said(Said::Fault(sentence)))) => fault = Some(sentence),
            Some((_, Event::Said(Said::Ready { .. }))) => {}
            Some((providers, Event::Gone)) => {
                let how = servers.end_of(providers);
                let which = providers.in_words();
                return Err(failed(format!("the page server {which} ended while it measured ({how})")));
            }
            None => {}
        }
        if visit.cancel.is_cancelled() {
            return Err(BenchError::Stopped);
        }
        if let Ok(Some(status)) = browser.child.try_wait() {
            // What it posted last may still be on its way.
            if let Some((_, Event::Said(Said::Result(page)))) = servers.next(LOOK) {
                return Page::read(page).map_err(&failed);
            }
            let said = browser.last_line().or(fault);
            return Err(failed(said.unwrap_or_else(|| format!("it ended without a result ({status})"))));
        }
        if began.elapsed() > visit.plan.timeout {
            let seconds = visit.plan.timeout.as_secs();
            let said = fault.map_or_else(String::new, |sentence| format!("; the server said: {sentence}"));
            return Err(failed(format!("its page posted nothing within {seconds} s{said}")));
        }
    }
}

fn start(client: Client, visit: &Visit<'_>, servers: &Servers) -> Result<Browser, BenchError> {
    let folder = servers.folder().join(format!("{}-{}", client.name(), visit.session));
    std::fs::create_dir(&folder).map_err(|error| file(&folder, &error))?;
    let label = visit.label(client);
    let address = Address {
        suite: visit.suite,
        session: &visit.session,
        label: &label,
        rounds: visit.rounds,
        rounds_before: visit.rounds_before,
    };
    let url = servers.address(visit.plan, &address);
    let mut command = match client {
        Client::Chromium => chromium(&folder, servers)?,
        _ => qtwebkit(&folder)?,
    };
    command.arg(url);
    if client == Client::QtWebKit {
        // Its OpenSSL takes the first of both.
        command.arg(&servers.identity().certificate);
    }
    command.env("OPENSSL_CONF", servers.configuration(visit.plan, visit.providers)?);
    let log = folder.join("log");
    let said = File::create(&log).map_err(|error| file(&log, &error))?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said).process_group(0);
    // Neither a user's settings nor what other sessions of his share.
    command.env("HOME", &folder).env("XDG_RUNTIME_DIR", &folder).env("XDG_CONFIG_HOME", &folder);
    let child = command.spawn().map_err(|error| BenchError::Command {
        command: client.name().to_owned(),
        reason: error.to_string(),
    })?;
    Ok(Browser { child, log })
}

fn qtwebkit(folder: &std::path::Path) -> Result<Command, BenchError> {
    let script = folder.join("qtwebkit.py");
    std::fs::write(&script, QTWEBKIT).map_err(|error| file(&script, &error))?;
    let mut command = Command::new(PYTHON);
    command.arg(script).env("QT_QPA_PLATFORM", "offscreen");
    Ok(command)
}

fn chromium(folder: &std::path::Path, servers: &Servers) -> Result<Command, BenchError> {
    let program = chromium_program().unwrap_or_else(|| "chromium".into());
    let mut command = Command::new(program);
    command.args([
        "--headless=new",
        "--disable-gpu",
        "--no-first-run",
        "--disable-sync",
        "--disable-extensions",
    ]);
    command.args(["--disable-background-networking", "--disable-component-update", "--disable-default-apps"]);
    // Names are not looked up: nothing leaves this machine.
    command.args(["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--remote-debugging-port=0"]);
    command
        .arg(format!("--ignore-certificate-errors-spki-list={}", servers.identity().key_pins()?.join(",")));
    command.arg(format!("--user-data-dir={}", folder.display()));
    if rustix::process::geteuid().is_root() {
        // Chromium refuses to start for root with it.
        command.arg("--no-sandbox");
    }
    Ok(command)
}

impl Browser {
    /// The script ends by itself, Chromium does not.
    fn leave(&mut self, client: Client) {
        let began = Instant::now();
        while client == Client::QtWebKit && began.elapsed() < END_MAX {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn last_line(&self) -> Option<String> {
        let text = std::fs::read(&self.log).ok()?;
        let text = String::from_utf8_lossy(&text);
        text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Best effort: where they are gone already there is nothing to end.
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            kill_process_group(group, Signal::KILL).ok();
        }
        self.child.wait().ok();
    }
}
