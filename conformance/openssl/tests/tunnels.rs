//! Programs that carry others' bytes, as their distributors made them: OpenSSH (ssh, sftp, and sshd, whose children enter a filter of system calls) with a new key each megabyte, and
//! stunnel. What they carry comes out as it went in, is counted, and goes to a module where one is configured.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use evener::core::counts::{Count, Row};
use evener::counts_file::{DIRECTORY_VARIABLE, Directories, of_user};
use evener_conformance_openssl::{Setup, bounded, fetched, make_certificate, skipped};
use evener_testing::hosts::{AT_ONCE, HostProcess, requests, serve};
use evener_testing::waiting::soon;

/// Some of OpenSSH's packets for each key.
const BYTES: usize = 8_000_000;

/// A program, and where its libraries lie if not among the system's.
#[derive(Clone)]
struct Unpacked(PathBuf, Option<PathBuf>);

impl Unpacked {
    /// The system's, else what `x` has fetched.
    fn find(installed: &str, name: &str) -> Option<Self> {
        if Path::new(installed).exists() {
            return Some(Self(installed.into(), None));
        }
        let program = fetched(&format!("{name}{installed}"))?;
        Some(Self(program, fetched(&format!("{name}/usr/lib/x86_64-linux-gnu"))))
    }

    fn command(&self, setup: &Setup) -> Command {
        let mut command = setup.command(&self.0.to_string_lossy());
        self.1.iter().for_each(|folder| _ = command.env("LD_LIBRARY_PATH", folder));
        command
    }
}

#[test]
#[ignore = "the process of a host, which the tests start"]
fn host_process() {
    serve();
}

/// Ends with this value.
struct Server(Child);

impl Server {
    /// Waits until it listens.
    fn start(command: &mut Command, port: u16) -> Self {
        let mut process =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            assert!(process.try_wait().unwrap().is_none() && Instant::now() < deadline, "it does not listen");
            thread::sleep(Duration::from_millis(20));
        }
        Self(process)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.0.kill().unwrap_or_default();
        self.0.wait().unwrap();
    }
}

/// Free a moment ago; no other program on this machine knows of it.
fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

fn is_there(program: &str) -> bool {
    Command::new(program).arg("-V").stdin(Stdio::null()).output().is_ok()
}

fn data() -> Vec<u8> {
    (0_u64..).flat_map(u64::to_be_bytes).take(BYTES).collect()
}

/// What programs counted in `directory` of AES: bytes, and requests that went to a module.
fn counted(directory: &Path) -> [u64; 2] {
    let records = of_user(&Directories::only(directory.into()), rustix::process::geteuid().as_raw());
    let of_aes = |row: &Row| row.kind().name().starts_with("AES");
    [Count::Bytes, Count::Routed].map(|what| {
        let of = |record: evener::counts_file::Record| {
            Row::all().filter(of_aes).map(|row| record.count(row, what)).sum::<u64>()
        };
        records.iter().map(|(_, record)| of(record.as_ref().unwrap().clone())).sum()
    })
}

/// Modules for everything from a kilobyte on.
fn armed(host: &HostProcess) -> Setup {
    // GCM is counted where it may be split, which takes longer messages than these.
    let keys =
        format!("guard = off\nthreshold = 1024\nthreads = 2\nsplit = 1048576\nmodules = {}", host.module());
    Setup::evener(&keys).without_legacy()
}

/// Two pairs of keys and the configuration of a server for this user.
fn ssh_site(port: u16) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["host", "user"] {
        let mut command = Command::new("ssh-keygen");
        command.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(folder.path().join(name));
        assert!(command.output().unwrap().status.success());
    }
    let at = folder.path().display();
    let text = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {at}/host\nAuthorizedKeysFile {at}/user.pub\nStrictModes no\n\
         UsePAM no\nPermitRootLogin yes\nPidFile none\nCiphers aes128-ctr,aes256-gcm@openssh.com,aes128-cbc\n\
         Subsystem sftp internal-sftp\n"
    );
    fs::write(folder.path().join("sshd_config"), text).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

/// sshd by that setup, which counts in `directory`.
fn sshd(program: &Unpacked, setup: &Setup, site: &Path, port: u16, directory: &Path) -> Server {
    let mut server = program.command(setup);
    server.args(["-D", "-f"]).arg(site.join("sshd_config")).env(DIRECTORY_VARIABLE, directory);
    Server::start(&mut server, port)
}

/// A client of OpenSSH's by that setup, with a new key each megabyte.
fn ssh_client(setup: &Setup, program: &str, site: &Path, port: u16, cipher: &str) -> Command {
    let mut command = setup.command(program);
    command.args(["-F", "none", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"]);
    command.args(["-o", "RekeyLimit=1M", "-o", "BatchMode=yes", "-c", cipher]);
    command.args(["-o", &format!("Port={port}")]).arg("-i").arg(site.join("user"));
    command
}

/// There and back by a remote `cat`, and by sftp up and down.
fn carries(client: &Setup, site: &Path, port: u16, cipher: &str, directory: &Path) {
    let user = String::from_utf8(Command::new("id").arg("-un").output().unwrap().stdout).unwrap();
    let at = format!("{}@127.0.0.1", user.trim());
    let sent = fs::read(site.join("data")).unwrap();
    let mut ssh = ssh_client(client, "ssh", site, port, cipher);
    ssh.env(DIRECTORY_VARIABLE, directory).arg(&at).arg("cat");
    let output = ssh.stdin(File::open(site.join("data")).unwrap()).output().unwrap();
    assert!(output.status.success(), "{cipher}: {}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stdout == sent, "{cipher}: what came back is another");
    let (batch, [up, down]) = (site.join("batch"), ["up", "down"].map(|name| site.join(name)));
    fs::write(
        &batch,
        format!("put {} {}\nget {1} {2}\n", site.join("data").display(), up.display(), down.display()),
    )
    .unwrap();
    let mut sftp = ssh_client(client, "sftp", site, port, cipher);
    sftp.env(DIRECTORY_VARIABLE, directory).arg("-b").arg(batch).arg(&at);
    let output = bounded(120, &sftp);
    assert!(output.status.success(), "{cipher}: {}", String::from_utf8_lossy(&output.stderr));
    assert!(fs::read(up).unwrap() == sent && fs::read(down).unwrap() == sent, "{cipher}: a file is another");
}

#[test]
fn openssh_carries_what_it_is_given_and_a_module_does_its_aes() {
    let found = Unpacked::find("/usr/sbin/sshd", "openssh-server").filter(|_| is_there("ssh"));
    let Some(program) = found else {
        return skipped("OpenSSH is not there (`./x prepare` fetches its server; Debian: openssh-client)");
    };
    if rustix::process::getuid().is_root() {
        // Where a server that root starts parts from its rights; the distribution makes it at the machine's start.
        fs::create_dir_all("/run/sshd").unwrap();
        // Its children become that user; the distribution makes it with the package.
        if !fs::read_to_string("/etc/passwd").is_ok_and(|users| users.contains("\nsshd:")) {
            return skipped("there is no user sshd");
        }
    }
    let host = HostProcess::start("host_process", AT_ONCE);
    let (plain, armed) = (Setup::plain().without_legacy(), armed(&host));
    for (who, server, client) in [("client", &plain, &armed), ("server", &armed, &plain)] {
        let port = free_port();
        let site = ssh_site(port);
        fs::write(site.path().join("data"), data()).unwrap();
        // GCM's messages are too short to be split; they are counted.
        for (cipher, is_routed) in
            [("aes128-ctr", true), ("aes128-cbc", true), ("aes256-gcm@openssh.com", false)]
        {
            let directory = site.path().join(cipher);
            let before = requests(&host.control());
            let server = sshd(&program, server, site.path(), port, &directory);
            carries(client, site.path(), port, cipher, &directory);
            drop(server);
            // There and back by the last program; what the one before it has counted may be cleared away. A server's child ends after its client.
            let least = 2 * BYTES as u64;
            assert!(soon(|| counted(&directory)[0] >= least), "{who}, {cipher}: {:?}", counted(&directory));
            let routed = counted(&directory)[1];
            let packets = least / 40_000;
            assert!(!is_routed || routed >= packets, "{who}, {cipher}: {routed} routed");
            assert!(requests(&host.control()) - before >= routed, "{who}, {cipher}");
        }
    }
}

/// Serves the same bytes to each client, for as long as the test's process lives.
fn back_end() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let lines = BufReader::new(client.try_clone().unwrap()).lines();
            _ = lines.map_while(Result::ok).take_while(|line| !line.is_empty()).count();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {BYTES}\r\nConnection: close\r\n\r\n");
            _ = client.write_all(&[head.as_bytes(), &data()].concat());
        }
    });
    port
}

/// It makes its contexts with properties of its own (`provider!=fips`).
#[test]
fn stunnel_carries_what_it_is_given_and_a_module_does_its_aes() {
    let found = Unpacked::find("/usr/bin/stunnel4", "stunnel4").filter(|_| is_there("curl"));
    let Some(program) = found else {
        return skipped("stunnel or curl is not there (`./x prepare` fetches stunnel; Debian: curl)");
    };
    let (host, port) = (HostProcess::start("host_process", AT_ONCE), free_port());
    let site = tempfile::tempdir().unwrap();
    make_certificate(site.path());
    let at = site.path().display();
    let text = format!(
        "foreground = yes\npid =\n[one]\naccept = 127.0.0.1:{port}\nconnect = 127.0.0.1:{}\ncert = {at}/cert.pem\nkey = {at}/key.pem\n",
        back_end()
    );
    fs::write(site.path().join("stunnel.conf"), text).unwrap();
    let directory = site.path().join("counts");
    let setup = armed(&host);
    let mut server = program.command(&setup);
    server.arg(site.path().join("stunnel.conf")).env(DIRECTORY_VARIABLE, &directory);
    let (server, plain) = (Server::start(&mut server, port), Setup::plain());
    for suite in ["ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA384"] {
        let got = site.path().join("got");
        let mut client = plain.command("curl");
        client.args("-sSfk --max-time 60 --tls-max 1.2".split(' '));
        client.args(["--ciphers", suite, "-o"]).arg(&got).arg(format!("https://127.0.0.1:{port}/"));
        let output = bounded(90, &client);
        assert!(output.status.success(), "{suite}: {output:?}");
        assert!(fs::read(&got).unwrap() == data(), "{suite}");
    }
    drop(server);
    let [bytes, routed] = counted(&directory);
    assert!(
        bytes >= 2 * BYTES as u64 && routed >= 2 * BYTES as u64 / 16_400,
        "{bytes} bytes, {routed} routed"
    );
    assert!(requests(&host.control()) >= routed);
}
