//! Fetches in a fresh process: this command starts itself, so that libcrypto reads the configuration anew.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use evener::core::counts::Kind;
use evener_driver_libcrypto::service::{self, Service};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::terminal::{Exit, output};

/// What a fresh process found.
#[derive(Serialize, Deserialize)]
pub(super) struct Probe {
    /// Of libcrypto, as `3.0.19`.
    pub(super) version: String,
    pub(super) evener_active: bool,
    default_active: bool,
    pub(super) fips: bool,
    algorithms: Vec<Served>,
    /// What the provider says of values and keys of its configuration.
    pub(super) complaints: Vec<String>,
}

/// The provider that serves an algorithm.
#[derive(Serialize, Deserialize)]
pub(super) struct Served {
    name: String,
    /// A provider's name; null: none serves it.
    by: Option<String>,
    /// Whether Evener's provider has it.
    evener_has_it: bool,
}

/// What Evener's provider may have beside ciphers, under OpenSSL's names.
const DIGESTS: [&str; 6] = ["SHA1", "SHA2-224", "SHA2-256", "SHA2-384", "SHA2-512", "MD5"];

/// Fetches in this process and prints what came of it.
pub(super) fn answer() -> anyhow::Result<Exit> {
    // Ciphers have the same names there and here.
    let kinds = [(Service::Cipher, &Kind::NAMES[..Kind::CIPHERS]), (Service::Digest, &DIGESTS[..])];
    let rows = kinds.iter().flat_map(|(service, names)| names.iter().map(move |name| (*service, *name)));
    let served = |(service, name): (Service, &str)| Served {
        name: name.to_owned(),
        by: service.served_by(name, ""),
        evener_has_it: service.served_by(name, "provider=evener").is_some(),
    };
    let algorithms = rows.map(served).collect();
    let probe = Probe {
        version: service::version(),
        evener_active: service::has_provider("evener"),
        default_active: service::has_provider("default"),
        fips: service::asks_for_fips(),
        algorithms,
        complaints: complaints(),
    };
    output::answer(serde_json::to_string(&probe)?.as_bytes())
}

/// What stands in the provider's build information in the place of its version.
fn complaints() -> Vec<String> {
    let info = service::build_info("AES-256-CTR", "provider=evener").unwrap_or_default();
    info.split("; ").filter(|part| part.contains(' ')).map(str::to_owned).collect()
}

/// Asks a fresh process, which looks for libcrypto in `directory` first.
pub(super) fn query(directory: Option<&Path>) -> anyhow::Result<Probe> {
    answer_of(fresh_process(&["--probe".as_ref()], directory)?)
}

/// This command as it begins anew, with a libcrypto in `directory` before all others: `evener doctor` and these words.
pub(super) fn fresh_process(words: &[&OsStr], directory: Option<&Path>) -> anyhow::Result<Command> {
    let mut command = Command::new(env::current_exe().context("cannot find this command's own file")?);
    command.arg("doctor").args(words).stdin(Stdio::null()).stderr(Stdio::piped());
    if let Some(directory) = directory {
        let rest = env::var_os("LD_LIBRARY_PATH")
            .into_iter()
            .flat_map(|paths| env::split_paths(&paths).collect::<Vec<_>>());
        command.env("LD_LIBRARY_PATH", env::join_paths(std::iter::once(directory.to_owned()).chain(rest))?);
    }
    Ok(command)
}

/// What it printed as JSON.
pub(super) fn answer_of<T: DeserializeOwned>(mut command: Command) -> anyhow::Result<T> {
    let output = command.output().context("cannot start a fresh process")?;
    if !output.status.success() {
        bail!(
            "a fresh process ended with {}: {}",
            output.status,
            output::one_line(&String::from_utf8_lossy(&output.stderr))
        );
    }
    serde_json::from_slice(&output.stdout).context("a fresh process gave no answer")
}

impl Probe {
    /// Algorithms that Evener has and another provider serves.
    pub(super) fn missed(&self) -> Vec<&str> {
        let missed =
            self.algorithms.iter().filter(|one| one.evener_has_it && one.by.as_deref() != Some("evener"));
        missed.map(|one| one.name.as_str()).collect()
    }

    pub(super) fn by_server(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut all: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for one in &self.algorithms {
            all.entry(one.by.as_deref().unwrap_or("nobody")).or_default().push(&one.name);
        }
        all
    }
}
