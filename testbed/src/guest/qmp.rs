//! QEMU's monitor: what the module did, and how fast it may be, while a guest runs (QEMU, docs/interop/qmp-spec.rst).

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use crate::error::{Error, at};

/// How long QEMU may take for an answer; it takes milliseconds.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A connection to QEMU's monitor.
#[derive(Debug)]
pub struct Qmp(BufReader<UnixStream>);

/// Most that the built-in module may do in a second; 0 is no limit. It is a leaky bucket that lets 100 ms pass at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttle {
    /// Bytes per second.
    pub bytes_per_s: u64,
    /// Operations per second.
    pub ops_per_s: u64,
}

/// What the module did since the guest was started, counted by QEMU. The kernel's own tests at driver load are in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ModuleCounts {
    /// Encryptions.
    pub encrypted_count: u64,
    /// Decryptions.
    pub decrypted_count: u64,
    /// Bytes encrypted.
    pub encrypted_bytes: u64,
    /// Bytes decrypted.
    pub decrypted_bytes: u64,
}

impl Qmp {
    pub(crate) fn connect(path: &Path) -> Result<Self, Error> {
        let stream = UnixStream::connect(path).map_err(|error| at(path, error))?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        let mut qmp = Self(BufReader::new(stream));
        qmp.read()?; // the greeting
        qmp.command("qmp_capabilities", json!({}))?;
        Ok(qmp)
    }

    /// Runs one command of QEMU's and gives what it returns.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] with QEMU's reason.
    pub fn command(&mut self, command: &str, arguments: Value) -> Result<Value, Error> {
        let line = json!({ "execute": command, "arguments": arguments }).to_string();
        writeln!(self.0.get_mut(), "{line}")?;
        loop {
            let mut answer = self.read()?;
            if let Some(value) = answer.get_mut("return") {
                return Ok(value.take());
            }
            if let Some(error) = answer.get("error") {
                let reason = error["desc"].as_str().unwrap_or_default().to_owned();
                return Err(Error::Refused { command: command.to_owned(), reason });
            }
            // Everything else is an event.
        }
    }

    /// Sets how much the built-in module may do from now on.
    ///
    /// # Errors
    ///
    /// As of [`Qmp::command`]; QEMU 7 has no such thing.
    pub fn throttle(&mut self, throttle: Throttle) -> Result<(), Error> {
        self.throttle_backend("cryptodev0", throttle)
    }

    /// As [`Qmp::throttle`], for the module of [`crate::Builder::user_space_module`].
    ///
    /// # Errors
    ///
    /// As of [`Qmp::command`]; QEMU 7 has no such thing.
    pub fn throttle_user_space_module(&mut self, throttle: Throttle) -> Result<(), Error> {
        self.throttle_backend("cryptodev1", throttle)
    }

    fn throttle_backend(&mut self, backend: &str, throttle: Throttle) -> Result<(), Error> {
        let path = format!("/objects/{backend}");
        for (property, value) in
            [("throttle-bps", throttle.bytes_per_s), ("throttle-ops", throttle.ops_per_s)]
        {
            let arguments = json!({ "path": path, "property": property, "value": value });
            self.command("qom-set", arguments)?;
        }
        Ok(())
    }

    /// What the built-in module did until now.
    ///
    /// # Errors
    ///
    /// As of [`Qmp::command`]; QEMU 7 does not count.
    pub fn module_counts(&mut self) -> Result<ModuleCounts, Error> {
        self.counts_of("cryptodev0")
    }

    /// What the module of [`crate::Builder::user_space_module`] did until now.
    ///
    /// # Errors
    ///
    /// As of [`Qmp::module_counts`]; [`Error::Protocol`] where the guest has no such module.
    pub fn user_space_module_counts(&mut self) -> Result<ModuleCounts, Error> {
        self.counts_of("cryptodev1")
    }

    fn counts_of(&mut self, backend: &str) -> Result<ModuleCounts, Error> {
        let answer = self.command("query-stats", json!({ "target": "cryptodev" }))?;
        counts(&answer, backend).ok_or_else(|| Error::Protocol { peer: "QEMU", answer: answer.to_string() })
    }

    fn read(&mut self) -> Result<Value, Error> {
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        serde_json::from_str(&line).map_err(|_| Error::Protocol { peer: "QEMU", answer: line })
    }
}

fn counts(answer: &Value, backend: &str) -> Option<ModuleCounts> {
    let path = format!("/objects/{backend}");
    let of_module = answer.as_array()?.iter().filter(|one| one["qom-path"] == path.as_str());
    let statistics: Vec<&Value> = of_module.filter_map(|one| one["stats"].as_array()).flatten().collect();
    let value = |name: &str| {
        let found = statistics.iter().filter(|one| one["name"] == name).map(|one| one["value"].as_u64());
        found.sum::<Option<u64>>().filter(|_| statistics.iter().any(|one| one["name"] == name))
    };
    Some(ModuleCounts {
        encrypted_count: value("sym-encrypt-ops")?,
        decrypted_count: value("sym-decrypt-ops")?,
        encrypted_bytes: value("sym-encrypt-bytes")?,
        decrypted_bytes: value("sym-decrypt-bytes")?,
    })
}
