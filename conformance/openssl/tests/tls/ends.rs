//! The two ends of a connection, both of them the command `openssl`.

use std::fmt;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use evener_conformance_openssl::{Setup, make_certificate};
use tempfile::TempDir;

use crate::proxy::{self, Damage};

/// How long an end may take; valgrind takes 50 times as long as the program without it.
const SECONDS_MAX: &str = "300";

/// A cipher suite and how it is to be had.
pub(crate) struct Suite {
    pub(crate) name: &'static str,
    version: &'static str,
    pub(crate) encrypts_then_macs: bool,
}

impl Suite {
    pub(crate) const fn new(name: &'static str, version: &'static str, encrypts_then_macs: bool) -> Self {
        Self { name, version, encrypts_then_macs }
    }

    pub(crate) fn is_cbc(&self) -> bool {
        !["GCM", "CCM", "TLS_"].iter().any(|part| self.name.contains(part))
    }

    /// Words for either end.
    fn words(&self) -> Vec<String> {
        let cipher = match self.version {
            "-tls1_3" => ["-ciphersuites".to_owned(), self.name.to_owned()],
            // What is older than TLS 1.2 is refused unless it is asked for.
            _ => ["-cipher".to_owned(), format!("{}:@SECLEVEL=0", self.name)],
        };
        let etm = (!self.encrypts_then_macs).then(|| "-no_etm".to_owned());
        [self.version.to_owned()].into_iter().chain(cipher).chain(etm).collect()
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.words().join(" "))
    }
}

/// A folder with a certificate and the file that is sent.
pub(crate) struct Place {
    folder: TempDir,
    pub(crate) data: Vec<u8>,
}

impl Place {
    pub(crate) fn new(bytes: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        make_certificate(folder.path());
        // A pattern that shows where something is missing: 8-byte numbers.
        let data: Vec<u8> = (0_u64..).flat_map(u64::to_be_bytes).take(bytes).collect();
        fs::write(folder.path().join("data"), &data).unwrap();
        Self { folder, data }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// What came out at the client's end.
pub(crate) struct Received {
    pub(crate) data: Vec<u8>,
    /// Lines about alerts, as `SSL3 alert write:fatal:bad record mac`.
    pub(crate) alerts: Vec<String>,
    stderr: String,
}

impl fmt::Display for Received {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes, {}", self.data.len(), self.stderr)
    }
}

/// Fetches the file of `place` over one connection.
pub(crate) fn receive(
    place: &Place,
    suite: &Suite,
    server: &Setup,
    client: &Setup,
    damage: Option<Damage>,
) -> Received {
    let server = Server::start(place, suite, server);
    let port = damage
        .map_or(server.port, |damage| proxy::start(SocketAddr::from(([127, 0, 0, 1], server.port)), damage));
    let output = connect(client, suite, port, &["-quiet", "-state"], "GET /data HTTP/1.0\r\n\r\n");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let alerts = stderr.lines().filter(|line| line.contains(" alert ")).map(str::to_owned).collect();
    Received { data: output.stdout, alerts, stderr }
}

/// What the client tells of a handshake.
pub(crate) fn handshake(place: &Place, suite: &Suite, setup: &Setup) -> String {
    let server = Server::start(place, suite, setup);
    let output = connect(setup, suite, server.port, &["-tlsextdebug"], "");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn connect(setup: &Setup, suite: &Suite, port: u16, words: &[&str], request: &str) -> Output {
    let mut command = Command::new("timeout");
    command.args([SECONDS_MAX, "openssl", "s_client", "-connect", &format!("127.0.0.1:{port}")]).args(words);
    command.args(suite.words());
    setup.applied_to(&mut command);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut client = command.spawn().unwrap();
    client.stdin.take().unwrap().write_all(request.as_bytes()).unwrap();
    client.wait_with_output().unwrap()
}

/// A server for one connection.
struct Server {
    process: Child,
    port: u16,
    /// Held open: the server would die of writing to a pipe without a reader.
    _says: BufReader<ChildStdout>,
}

impl Server {
    fn start(place: &Place, suite: &Suite, setup: &Setup) -> Self {
        let mut command = Command::new("timeout");
        command.args([
            SECONDS_MAX,
            "openssl",
            "s_server",
            "-accept",
            "127.0.0.1:0",
            "-naccept",
            "1",
            "-HTTP",
        ]);
        command.args(["-cert", "cert.pem", "-key", "key.pem"]).args(suite.words()).current_dir(place.path());
        setup.applied_to(&mut command);
        let mut process =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).stdin(Stdio::null()).spawn().unwrap();
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        let port = loop {
            let mut line = String::new();
            assert!(stdout.read_line(&mut line).unwrap() > 0, "{suite}: no server");
            let Some(address) = line.trim().strip_prefix("ACCEPT ") else { continue };
            break address.rsplit(':').next().unwrap().parse().unwrap();
        };
        Self { process, port, _says: stdout }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be waiting for the rest of a connection that a proxy cut. TERM, which `timeout` passes on.
        let id = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap_or_default();
        self.process.wait().unwrap();
    }
}
