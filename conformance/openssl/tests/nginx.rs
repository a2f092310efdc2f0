//! Files through nginx, whose workers fork after the provider is loaded, and curl.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use evener_conformance_openssl::{
    Setup, assert_no_growth, bounded, fetched, growth, make_certificate, print_line, skipped,
};
use evener_testing::hosts::{AT_ONCE, HostProcess, requests as asked, serve};
use evener_testing::waiting::soon;
use tempfile::TempDir;

const FILE_BYTES: usize = 20_000_000;

/// The fields of a connection that curl prints.
const SUITES: &[&[&str]] = &[
    &["--tls-max", "1.2", "--ciphers", "ECDHE-ECDSA-AES128-SHA"],
    &["--tls-max", "1.2", "--ciphers", "ECDHE-ECDSA-AES128-SHA256"],
    &["--tls-max", "1.2", "--ciphers", "ECDHE-ECDSA-AES256-SHA384"],
    &["--tls-max", "1.2", "--ciphers", "ECDHE-ECDSA-AES256-GCM-SHA384"],
    &["--tls13-ciphers", "TLS_AES_128_GCM_SHA256"],
    &["--tls13-ciphers", "TLS_AES_256_GCM_SHA384", "--http2"],
];

/// A folder with certificate, configuration and the file; its `in` takes uploads.
fn site(port: u16, workers: u32) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    make_certificate(folder.path());
    let data: Vec<u8> = (0_u64..).flat_map(u64::to_be_bytes).take(FILE_BYTES).collect();
    fs::write(folder.path().join("data"), data).unwrap();
    fs::create_dir(folder.path().join("in")).unwrap();
    let at = folder.path().display();
    // The folder is its owner's alone, and so must be the workers of a server that root starts.
    let user = if rustix::process::getuid().is_root() { "user root;\n" } else { "" };
    let text = format!(
        "{user}worker_processes {workers};\npid {at}/pid;\nerror_log {at}/error.log;\nevents {{}}\n\
         http {{\naccess_log off;\nclient_body_temp_path {at}/body;\nproxy_temp_path {at}/p;\n\
         fastcgi_temp_path {at}/f;\nuwsgi_temp_path {at}/u;\nscgi_temp_path {at}/s;\n\
         server {{\nlisten 127.0.0.1:{port} ssl http2;\nroot {at};\nclient_max_body_size 0;\ndav_methods PUT;\n\
         ssl_certificate {at}/cert.pem;\nssl_certificate_key {at}/key.pem;\nssl_protocols TLSv1.2 TLSv1.3;\n\
         ssl_ciphers ALL;\n}}\n}}\n"
    );
    fs::write(folder.path().join("nginx.conf"), text).unwrap();
    folder
}

/// A server, which ends with this value.
struct Nginx {
    process: Child,
    site: TempDir,
    port: u16,
}

impl Nginx {
    fn start(program: &Path, setup: &Setup, workers: u32) -> Self {
        // Free a moment ago; no other program on this machine knows of it.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let site = site(port, workers);
        let mut command = Command::new("timeout");
        setup.applied_to(&mut command);
        command.arg("300").arg(program).args(["-e", "stderr", "-g", "daemon off;", "-p"]).arg(site.path());
        command.arg("-c").arg(site.path().join("nginx.conf"));
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        // It listens before it writes its process number, into a file that is empty first.
        let has_number = || fs::read_to_string(site.path().join("pid")).is_ok_and(|id| id.ends_with('\n'));
        let is_up = || has_number() && TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
        while !is_up() {
            assert!(Instant::now() < deadline, "nginx does not listen");
            thread::sleep(Duration::from_millis(20));
        }
        Self { process, site, port }
    }

    fn master(&self) -> String {
        fs::read_to_string(self.site.path().join("pid")).unwrap().trim().to_owned()
    }

    /// The master's memory has the module mapped, and the workers are its children.
    fn has_module(&self) -> bool {
        fs::read_to_string(format!("/proc/{}/maps", self.master())).unwrap().contains("/evener.so")
    }

    /// The only worker, where there is one.
    fn worker(&self) -> u32 {
        let (master, mut worker) = (self.master(), None);
        assert!(soon(|| {
            let children = fs::read_to_string(format!("/proc/{master}/task/{master}/children")).unwrap();
            worker = children.split_whitespace().next().and_then(|id| id.parse().ok());
            worker.is_some()
        }));
        worker.unwrap()
    }

    /// So many downloads of a short file, one after the other.
    fn ask(&self, count: u32) {
        let plain = Setup::plain();
        let mut command = self.curl(&plain, SUITES[1]);
        let url = format!("https://127.0.0.1:{}/cert.pem?[1-{count}]", self.port);
        let output = bounded(600, command.args(["--max-time", "600", "-o", "/dev/null"]).arg(url));
        assert!(output.status.success(), "{output:?}");
    }

    fn curl(&self, setup: &Setup, words: &[&str]) -> Command {
        let mut command = Command::new("curl");
        setup.applied_to(&mut command);
        command.args(["--silent", "--show-error", "--fail", "--insecure", "--max-time", "60"]).args(words);
        command
    }

    /// The file comes back as it was sent, by download and by upload.
    fn passes(&self, client: &Setup, words: &[&str]) {
        let (sent, got) = (self.site.path().join("data"), self.site.path().join("got"));
        let mut down = self.curl(client, words);
        down.arg("-o").arg(&got).arg(format!("https://127.0.0.1:{}/data", self.port));
        let output = bounded(90, &down);
        assert!(output.status.success(), "{words:?}: {output:?}");
        let mut up = self.curl(client, words);
        up.arg("-T").arg(&sent).arg(format!("https://127.0.0.1:{}/in/data", self.port));
        let output = bounded(90, &up);
        assert!(output.status.success(), "{words:?}: {output:?}");
        let sent = fs::read(sent).unwrap();
        for back in [got, self.site.path().join("in/data")] {
            assert!(fs::read(&back).unwrap() == sent, "{words:?}: {}", back.display());
            fs::remove_file(back).unwrap();
        }
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // TERM, which `timeout` passes on, and the master to its workers.
        let id = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap_or_default();
        self.process.wait().unwrap();
    }
}

#[test]
#[ignore = "the process of a host, which the tests start"]
fn host_process() {
    serve();
}

fn worker_after(requests: u32, kib_max: i64) {
    let Some(program) = fetched("nginx/usr/sbin/nginx") else {
        return skipped("nginx is not there (`./x prepare` fetches it)");
    };
    if Command::new("curl").arg("--version").output().is_err() {
        return skipped("curl is not installed");
    }
    let host = HostProcess::start("host_process", AT_ONCE);
    let hosted = format!("guard = off\nthreshold = 16\nmodules = {}", host.module());
    let armed = ["combine = auto\nthreads = auto", "kernels = on", &hosted].map(Setup::evener);
    let setups: Vec<Setup> = [Setup::plain()].into_iter().chain(armed).collect();
    assert_no_growth(&setups, kib_max, |setup| {
        let nginx = Nginx::start(&program, setup, 1);
        growth(nginx.worker(), requests, |count| nginx.ask(count))
    });
    assert!(asked(&host.control()) >= u64::from(requests) / 2, "each answer is a request there");
}

#[test]
fn a_worker_does_not_grow_with_its_requests() {
    // What the heap finds its layout by may differ so early.
    worker_after(600, 64);
}

#[test]
#[ignore = "takes a minute; for test-full"]
fn a_worker_does_not_grow_with_twenty_thousand_requests() {
    worker_after(20_000, 8);
}

#[test]
fn nginx_serves_and_takes_files_byte_for_byte() {
    let Some(program) = fetched("nginx/usr/sbin/nginx") else {
        return skipped("nginx is not there (`./x prepare` fetches it)");
    };
    if Command::new("curl").arg("--version").output().is_err() {
        return skipped("curl is not installed");
    }
    let (plain, evener) = (Setup::plain(), Setup::evener(""));
    for (server, client) in [(&evener, &plain), (&plain, &evener)] {
        let nginx = Nginx::start(&program, server, 2);
        assert_eq!(nginx.has_module(), server.name() != "default");
        SUITES.iter().for_each(|words| nginx.passes(client, words));
    }
    let routed = Setup::routed();
    for (server, client) in [(&routed, &plain), (&plain, &routed)] {
        let before = routed.routed_count();
        let nginx = Nginx::start(&program, server, 2);
        SUITES.iter().for_each(|words| nginx.passes(client, words));
        let count = routed.routed_count() - before;
        print_line(&format!("server with {}: {count} requests routed", server.name()));
        // Three suites with CBC, down and up.
        assert!(count >= 3 * 2 * (FILE_BYTES >> 14) as u64, "{count}");
    }
    print_line(&format!("{} suites, {FILE_BYTES} bytes each way", SUITES.len()));
}
