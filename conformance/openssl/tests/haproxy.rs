//! Downloads through haproxy, behind it a host's module: with `ssl-mode-async`, where connections' work is done in asynchronous jobs, and thousands by one thread.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use evener_conformance_openssl::program::Program;
use evener_conformance_openssl::{
    Setup, assert_no_growth, bounded, fetched, growth, make_certificate, skipped,
};
use evener_testing::hosts::{AT_ONCE, HostProcess, requests, serve};
use tempfile::TempDir;

/// Short: after its handshake haproxy works in no jobs.
const FILE_BYTES: usize = 40_000;
const DOWNLOADS: usize = 12;

#[test]
#[ignore = "the process of a host, which the tests start"]
fn host_process() {
    serve();
}

/// The program, and where its libraries lie if not among the system's.
fn program() -> Option<(PathBuf, Option<PathBuf>)> {
    match fetched("haproxy/usr/sbin/haproxy") {
        Some(program) => Some((program, fetched("haproxy/usr/lib/x86_64-linux-gnu"))),
        None => {
            Some(PathBuf::from("/usr/sbin/haproxy")).filter(|path| path.exists()).map(|path| (path, None))
        }
    }
}

/// Serves the same bytes to each client, for as long as the test's process lives.
fn back_end() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            thread::spawn(move || answer(client));
        }
    });
    port
}

fn answer(mut client: TcpStream) {
    let lines = BufReader::new(client.try_clone().unwrap()).lines();
    // Up to the empty line. A client that has gone is none of this test's.
    _ = lines.map_while(Result::ok).take_while(|line| !line.is_empty()).count();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {FILE_BYTES}\r\nConnection: close\r\n\r\n");
    _ = client.write_all(&[head.as_bytes(), &file()].concat());
}

fn file() -> Vec<u8> {
    (0_u64..).flat_map(u64::to_be_bytes).take(FILE_BYTES).collect()
}

/// A free port of a moment ago; no other program on this machine knows of it.
fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

/// A folder with its configuration and certificate.
fn site(port: u16, back_end: u16, threads: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    make_certificate(folder.path());
    let both = ["cert.pem", "key.pem"].map(|name| fs::read(folder.path().join(name)).unwrap()).concat();
    let at = folder.path().display();
    fs::write(folder.path().join("both.pem"), both).unwrap();
    let text = format!(
        "global\n{threads}\nmaxconn 100\ndefaults\nmode http\ntimeout connect 10s\ntimeout client 60s\ntimeout server 60s\n\
         frontend in\nbind 127.0.0.1:{port} ssl crt {at}/both.pem ssl-max-ver TLSv1.2 ciphers ECDHE-ECDSA-AES128-SHA256\n\
         default_backend out\nbackend out\nserver one 127.0.0.1:{back_end}\n"
    );
    fs::write(folder.path().join("haproxy.cfg"), text).unwrap();
    folder
}

/// A proxy that listens, and whose threads, where `late` is preloaded, find answers there before they look.
fn start(setup: &Setup, late: Option<&Program>, site: &Path, port: u16) -> Child {
    let (program, libraries) = program().unwrap();
    let mut command = setup.command(&program.to_string_lossy());
    libraries.iter().for_each(|folder| _ = command.env("LD_LIBRARY_PATH", folder));
    late.iter().for_each(|late| _ = command.env("LD_PRELOAD", late.path()));
    command.arg("-db").arg("-f").arg(site.join("haproxy.cfg")).stdin(Stdio::null()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        assert!(
            process.try_wait().unwrap().is_none() && Instant::now() < deadline,
            "haproxy does not listen"
        );
        thread::sleep(Duration::from_millis(20));
    }
    process
}

fn curl(seconds: u32) -> Command {
    let mut command = Command::new("curl");
    command.env_remove("OPENSSL_CONF");
    command.args("--silent --show-error --fail --insecure --tls-max 1.2 --max-time".split(' '));
    command.arg(seconds.to_string());
    command
}

/// Downloads side by side; each gets the whole file.
fn download(port: u16) -> Result<(), String> {
    let one = || bounded(90, curl(60).arg(format!("https://127.0.0.1:{port}/")));
    let outputs = thread::scope(|scope| {
        let all: Vec<_> = (0..DOWNLOADS).map(|_| scope.spawn(one)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect::<Vec<_>>()
    });
    let file = file();
    match outputs.iter().find(|output| !output.status.success() || output.stdout != file) {
        Some(bad) => Err(format!("{:?}: {}", bad.status, String::from_utf8_lossy(&bad.stderr))),
        None => Ok(()),
    }
}

fn end(mut process: Child) {
    let id = rustix::process::Pid::from_child(&process);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    process.wait().unwrap();
}

fn worker_after(count: u32, kib_max: i64) {
    if program().is_none() || Command::new("curl").arg("--version").output().is_err() {
        return skipped("haproxy or curl is not there (`./x prepare` fetches haproxy)");
    }
    let (host, back_end) = (HostProcess::start("host_process", AT_ONCE), back_end());
    let hosted = format!("guard = off\nthreshold = 1024\nmodules = {}", host.module());
    let armed = ["combine = auto\nthreads = auto", "kernels = on", &hosted];
    let plain = [Setup::plain().without_legacy()];
    let setups: Vec<Setup> =
        plain.into_iter().chain(armed.map(|keys| Setup::evener(keys).without_legacy())).collect();
    assert_no_growth(&setups, kib_max, |setup| {
        let port = free_port();
        let site = site(port, back_end, "nbthread 1");
        let process = start(setup, None, site.path(), port);
        let grown = growth(process.id(), count, |part| {
            let mut command = curl(600);
            command.args(["-o", "/dev/null"]).arg(format!("https://127.0.0.1:{port}/?[1-{part}]"));
            let output = bounded(600, &command);
            assert!(output.status.success(), "{output:?}");
        });
        end(process);
        grown
    });
    assert!(requests(&host.control()) >= u64::from(count));
}

#[test]
fn a_proxy_does_not_grow_with_its_requests() {
    // What the heap finds its layout by may differ so early.
    worker_after(600, 64);
}

#[test]
#[ignore = "takes a minute; for test-full"]
fn a_proxy_does_not_grow_with_twenty_thousand_requests() {
    worker_after(20_000, 8);
}

/// So many lives of a proxy, each with downloads.
fn lives(count: usize) {
    if program().is_none() {
        return skipped("haproxy is not there (`./x prepare` fetches it)");
    }
    if Command::new("curl").arg("--version").output().is_err() {
        return skipped("curl is not installed");
    }
    let (host, back_end) = (HostProcess::start("host_process", AT_ONCE), back_end());
    let keys = format!("guard = off\nthreshold = 16\nmodules = {}", host.module());
    let setup = Setup::evener(&keys).without_legacy();
    let late = Program::library("late_thread");
    for life in 0..count {
        let (port, before) = (free_port(), requests(&host.control()));
        let site = site(port, back_end, "nbthread 2\nssl-mode-async");
        let mut process = start(&setup, Some(&late), site.path(), port);
        let downloaded = download(port);
        let ended = process.try_wait().unwrap();
        assert!(ended.is_none() && downloaded.is_ok(), "life {life}: haproxy {ended:?}, curl {downloaded:?}");
        end(process);
        let count = requests(&host.control()) - before;
        assert!(count >= ((DOWNLOADS * FILE_BYTES) >> 14) as u64, "life {life}: {count} requests routed");
    }
}

#[test]
fn a_proxy_that_works_in_jobs_serves_on() {
    lives(4);
}

#[test]
#[ignore = "takes a minute; for test-full"]
fn fifty_proxies_that_work_in_jobs_serve_on() {
    lives(50);
}
