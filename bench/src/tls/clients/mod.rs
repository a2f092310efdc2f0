//! The clients: who they are, whose TLS they have, and how each is made to measure.
//!
//! Path of one visit: a browser opens the page ([`Servers::address`]), which posts what it measured; or curl moves each file and
//! says what it took (`curl.rs`). Either gives a [`Page`].

mod browser;
mod curl;

use std::path::PathBuf;
use std::process::Command;
use std::str::FromStr;

use evener::Cancel;
use serde::{Deserialize, Serialize};

use super::Plan;
use super::page::Page;
use super::servers::Servers;
use super::suite::Suite;
use crate::error::BenchError;
use crate::programs::openssl_conf::Providers;

/// A client that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Client {
    /// Qt's `WebKit`, driven by a script; its TLS is the system's OpenSSL, so that the browser itself may have a module.
    QtWebKit,
    /// Chromium without a window; it has a TLS library of its own, so that only the server may have a module.
    Chromium,
    /// `curl`: the control.
    Curl,
}

/// What a client is, or why it takes no part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Facts {
    /// Who.
    pub client: Client,
    /// What it calls itself.
    pub version: Option<String>,
    /// Whose TLS it has.
    pub tls_library: Option<String>,
    /// Whether Evener's provider can serve it.
    pub can_offload: bool,
    /// Why it takes no part.
    pub missing: Option<String>,
}

/// One session of one client.
pub(super) struct Visit<'a> {
    pub(super) plan: &'a Plan,
    pub(super) suite: Suite,
    pub(super) providers: Providers,
    pub(super) rounds: usize,
    /// Rounds in visits before this one: another server goes first in each round.
    pub(super) rounds_before: usize,
    pub(super) session: String,
    pub(super) cancel: &'a Cancel,
}

impl Visit<'_> {
    /// Client and providers, as pages carry them.
    pub(super) fn label(&self, client: Client) -> String {
        format!("{}:{}", client.name(), self.providers.name())
    }
}

/// Debian's Python, for which its Qt is built; another in the path has no PyQt5.
const PYTHON: &str = "/usr/bin/python3";

impl Client {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::QtWebKit, Self::Chromium, Self::Curl];

    /// What options and reports call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::QtWebKit => "qtwebkit",
            Self::Chromium => "chromium",
            Self::Curl => "curl",
        }
    }

    /// Who it is on this machine.
    #[must_use]
    pub fn facts(self) -> Facts {
        let found = match self {
            Self::QtWebKit => qtwebkit(),
            Self::Chromium => chromium(),
            Self::Curl => curl::version(),
        };
        let (version, tls_library, missing) = match found {
            Ok((version, library)) => (Some(version), Some(library), None),
            Err(reason) => (None, None, Some(reason)),
        };
        let can_offload = tls_library.as_ref().is_some_and(|library| library.starts_with("OpenSSL 3"));
        Facts { client: self, version, tls_library, can_offload, missing }
    }

    /// Has it measure.
    pub(super) fn visit(self, visit: &Visit<'_>, servers: &mut Servers) -> Result<Page, BenchError> {
        match self {
            Self::QtWebKit | Self::Chromium => browser::visit(self, visit, servers),
            Self::Curl => curl::visit(visit, servers),
        }
    }
}

impl FromStr for Client {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let client = Self::ALL.into_iter().find(|client| client.name() == word);
        client.ok_or_else(|| format!("{word} is none of {}", Self::ALL.map(Self::name).join(", ")))
    }
}

/// Version and TLS library, or what is missing.
type Found = Result<(String, String), String>;

fn qtwebkit() -> Found {
    let script = "from PyQt5.QtWebKitWidgets import QWebPage\nfrom PyQt5.QtWebKit import qWebKitVersion\n\
                  from PyQt5.QtNetwork import QSslSocket\nprint(qWebKitVersion())\nprint(QSslSocket.sslLibraryVersionString())";
    let mut python = Command::new(PYTHON);
    python.args(["-c", script]).env("QT_QPA_PLATFORM", "offscreen").env("OPENSSL_CONF", "/dev/null");
    let text = answer(python).ok_or("python3-pyqt5.qtwebkit is not installed")?;
    let mut lines = text.lines();
    match (lines.next(), lines.next()) {
        (Some(version), Some(library)) if !library.is_empty() => {
            Ok((format!("QtWebKit {version}"), format!("{library}, the system's libssl")))
        }
        _ => Err("QtWebKit has no TLS here".to_owned()),
    }
}

fn chromium() -> Found {
    let program = chromium_program().ok_or("chromium is not installed")?;
    let mut command = Command::new(program);
    command.arg("--version");
    let version = answer(command).ok_or("chromium does not start")?;
    Ok((version.trim().to_owned(), "BoringSSL, inside it".to_owned()))
}

fn chromium_program() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let all =
        names.iter().flat_map(|name| std::env::split_paths(&folders).map(move |folder| folder.join(name)));
    all.into_iter().find(|path| path.is_file())
}

fn answer(mut command: Command) -> Option<String> {
    let output = command.stdin(std::process::Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
