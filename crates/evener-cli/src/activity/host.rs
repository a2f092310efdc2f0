//! A host's report, asked for at its control socket (docs/design/host.md).
//!
//! Path: socket -> order `report` -> one line of JSON -> [`HostReport`]. A host that hangs is waited for no longer than
//! [`ANSWER_TIME_MAX`], and what it says is read to [`ANSWER_BYTES_MAX`] and no further.

use std::fmt;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use evener_host::{LimitsReport, Totals, UserReport};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use serde::{Deserialize, Serialize};

/// A host, and what it answered.
#[derive(Debug)]
pub(crate) struct Host {
    /// Its control socket.
    pub(crate) socket: PathBuf,
    pub(crate) answer: Result<HostReport, NoAnswer>,
}

/// As much of a report as is shown (docs/reference/schemas/host.schema.json has all). What a newer host says beyond it is passed over.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct HostReport {
    pub(crate) module: Module,
    #[serde(flatten)]
    pub(crate) connections: ConnectionCounts,
    pub(crate) clients: Vec<Client>,
    /// Of a host that tells.
    #[serde(default)]
    pub(crate) users: Vec<UserReport>,
    #[serde(default)]
    pub(crate) limits: Option<LimitsReport>,
    pub(crate) totals: Totals,
}

/// Connections since the host began: all, and what some came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct ConnectionCounts {
    #[serde(rename = "connections")]
    pub(crate) all: u64,
    pub(crate) turned_away: u64,
    pub(crate) broken_off: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Module {
    pub(crate) name: String,
    pub(crate) gone: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Client {
    in_flight: u64,
}

/// Why a host told nothing.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    Io(io::Error),
    NoReport,
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) if is_timeout(error) => f.write_str("the host does not answer"),
            Self::Io(error) => error.fmt(f),
            Self::NoReport => f.write_str("what answers is no host of Evener"),
        }
    }
}

impl From<io::Error> for NoAnswer {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl HostReport {
    /// Requests that the module holds, of all clients.
    pub(crate) fn in_flight(&self) -> u64 {
        self.clients.iter().fold(0, |sum, client| sum.saturating_add(client.in_flight))
    }
}

impl Host {
    /// Asks the host at `socket`.
    pub(crate) fn ask(socket: PathBuf) -> Self {
        let answer = ask(&socket);
        Self { socket, answer }
    }

    /// Whether no process listens there any more: a host that was killed left its socket.
    pub(crate) fn is_left_over(&self) -> bool {
        let kinds = [io::ErrorKind::ConnectionRefused, io::ErrorKind::NotFound];
        matches!(&self.answer, Err(NoAnswer::Io(error)) if kinds.contains(&error.kind()))
    }
}

/// The control sockets in `directories`: those whose name ends in `.control`, in directories of user `uid` that are closed
/// to others.
pub(crate) fn control_sockets(directories: &[PathBuf], uid: u32) -> Vec<PathBuf> {
    let is_private = |path: &&PathBuf| {
        fs::symlink_metadata(path)
            .is_ok_and(|seen| seen.is_dir() && seen.uid() == uid && seen.mode() & 0o077 == 0)
    };
    let entries = directories.iter().filter(is_private).filter_map(|path| fs::read_dir(path).ok()).flatten();
    let sockets = entries.filter_map(Result::ok).filter(|entry| {
        let is_socket = entry.file_type().is_ok_and(|kind| kind.is_socket());
        is_socket && entry.path().extension().is_some_and(|ending| ending == "control")
    });
    let mut found: Vec<PathBuf> = sockets.map(|entry| entry.path()).take(HOSTS_MAX).collect();
    found.sort();
    found
}

fn ask(socket: &Path) -> Result<HostReport, NoAnswer> {
    let until = Instant::now() + ANSWER_TIME_MAX;
    let mut stream = connect_at_once(socket)?;
    stream.set_write_timeout(Some(ANSWER_TIME_MAX))?;
    stream.write_all(b"report\n")?;
    let line = read_line(&mut stream, until)?;
    let mut report: HostReport = serde_json::from_slice(&line).map_err(|_| NoAnswer::NoReport)?;
    let plain = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    report.module.name = report.module.name.chars().take(NAME_CHARS_MAX).map(plain).collect();
    Ok(report)
}

/// Connects without waiting: at a host that was stopped the places of those who wait to be let in fill up, and a connect
/// that may block would block for ever.
fn connect_at_once(socket: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let descriptor = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&descriptor, &SocketAddrUnix::new(socket)?)?;
    let stream = UnixStream::from(descriptor);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

fn read_line(stream: &mut UnixStream, until: Instant) -> Result<Vec<u8>, NoAnswer> {
    let mut line = Vec::new();
    let mut bytes = [0; 16 << 10];
    while line.len() <= ANSWER_BYTES_MAX {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::from(io::ErrorKind::TimedOut).into());
        }
        stream.set_read_timeout(Some(left))?;
        let count = match stream.read(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            count => count?,
        };
        let new = &bytes[..count];
        let end = new.iter().position(|byte| *byte == b'\n');
        line.extend_from_slice(&new[..end.unwrap_or(count)]);
        if count == 0 || end.is_some() {
            return Ok(line);
        }
    }
    Err(NoAnswer::NoReport)
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// Assumed, not measured: 250 ms, because a screen that stands still for longer looks broken, and a host answers in less
/// than one.
const ANSWER_TIME_MAX: Duration = Duration::from_millis(250);

/// Assumed, not measured: 4 MiB, because a client takes some 300 bytes, and a host has some thousand.
const ANSWER_BYTES_MAX: usize = 4 << 20;

/// Assumed, not measured: 64, because no user has so many hosts, and each may take [`ANSWER_TIME_MAX`].
const HOSTS_MAX: usize = 64;

/// Of a module's name.
const NAME_CHARS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::net::UnixListener;
    use std::thread;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("evener-activity-{}-{name}", std::process::id()));
            fs::create_dir(&path).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).ok();
        }
    }

    /// What is made of a host that says `said` to the one who comes, and goes on holding the connection.
    fn asked(name: &str, said: Vec<u8>) -> Host {
        let folder = Folder::new(name);
        let socket = folder.0.join("h.control");
        let listener = UnixListener::bind(&socket).unwrap();
        let host = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(&said).ok();
            stream.read_to_end(&mut Vec::new()).ok();
        });
        let asked = Host::ask(socket);
        host.join().unwrap();
        asked
    }

    const REPORT: &str = r#"{"module":{"name":"c\u001b[2Jpu","gone":false,"detail":"x"},"connections":9,"turned_away":2,"broken_off":1,
        "clients":[{"id":1,"in_flight":3},{"id":2,"in_flight":4}],"totals":{"requests":70,"bytes":1000,"refused":5,"failed":6,"calls":7},"new":[]}"#;

    #[test]
    fn a_report_is_read_with_fields_that_nobody_knows_and_without_control_characters() {
        let one_line = REPORT.replace('\n', " ") + "\n";
        let report = asked("report", one_line.into_bytes()).answer.unwrap();
        assert_eq!((report.in_flight(), report.clients.len(), report.connections.all), (7, 2, 9));
        assert_eq!(report.totals, Totals { requests: 70, bytes: 1000, refused: 5, failed: 6, calls: 7 });
        assert_eq!(report.module.name, "c\u{fffd}[2Jpu");
    }

    #[test]
    fn a_host_that_is_silent_or_talks_nonsense_is_named_and_not_waited_for() {
        let told = |name, said: &[u8]| asked(name, said.to_vec()).answer.unwrap_err().to_string();
        assert_eq!(told("silent", b""), "the host does not answer");
        assert_eq!(told("half", b"{\"module\":"), "the host does not answer");
        assert_eq!(told("nonsense", b"hello\n"), "what answers is no host of Evener");
        assert_eq!(told("flood", &vec![b'x'; ANSWER_BYTES_MAX + 1]), "what answers is no host of Evener");
    }

    #[test]
    fn a_host_that_lets_nobody_in_any_more_does_not_hold_up_who_asks() {
        let folder = Folder::new("stopped");
        let socket = folder.0.join("h.control");
        let _listener = UnixListener::bind(&socket).unwrap();
        let full = |stream: &io::Result<UnixStream>| stream.as_ref().is_err_and(is_timeout);
        let mut waiting: Vec<UnixStream> = Vec::new();
        loop {
            let next = connect_at_once(&socket);
            if full(&next) {
                break;
            }
            waiting.push(next.unwrap());
        }
        assert_eq!(Host::ask(socket).answer.unwrap_err().to_string(), "the host does not answer");
    }

    #[test]
    fn control_sockets_are_found_in_private_directories_and_nothing_else_is() {
        let folder = Folder::new("found");
        let uid = rustix::process::geteuid().as_raw();
        let socket = folder.0.join("a.control");
        let _listener = UnixListener::bind(&socket).unwrap();
        let _other = UnixListener::bind(folder.0.join("b.sock")).unwrap();
        fs::write(folder.0.join("c.control"), "").unwrap();
        let found = |uid| control_sockets(&[folder.0.clone(), folder.0.join("missing")], uid);
        assert_eq!(found(uid), vec![socket]);
        assert!(found(uid + 1).is_empty());
        fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(found(uid).is_empty());
    }
}
