//! `cargo xtask guest`: OpenSSL programs with Evener's provider and a module, measured in the test bed's guest.
//!
//! `speed` compares OpenSSL's own engine for AF_ALG with the default provider and ours at the papers' sizes; `uploads`
//! is paper 003's experiment, from the guest to an nginx on this machine; `count` tells the instructions that all of
//! this takes. Steps: provider and program are built -> nginx, for uploads -> a guest -> what `testbed-openssl`
//! prints there.

use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use evener_testbed::{Awake, Builder, Icount};
use serde_json::{Value, json};

use super::circumstances::{circumstances, load, sleep};
use super::{guest_files, papers, processes, provider_guest};
use crate::programs::{built_evener, built_of};

const USAGE: &str = "usage: cargo xtask guest speed [ROUNDS [CIPHER ...]]
           openssl speed and enc: default, afalg engine, provider with module; CIPHER is AES-128-CBC or AES-256-CBC
       cargo xtask guest counted-speed ROUNDS [CIPHER ...]
           the same in a guest whose clock counts instructions
       cargo xtask guest uploads [ROUNDS]
           paper 003: uploads over TLS with offload and without
       cargo xtask guest counted-uploads ROUNDS
           the same in a guest whose clock counts instructions: 500,000 a ms
       cargo xtask guest browser-uploads [ROUNDS [SIZES]]
           the same by QtWebKit in such a guest, measured by its page; SIZES as 70,57654
       cargo xtask guest waits [ROUNDS]
           ways to wait for AF_ALG, bare, beside the engine and the provider; the guest's clock counts instructions
       cargo xtask guest count [ROUNDS]
           instructions of commands, updates and uploads, by each of these ways
       cargo xtask guest files [ROUNDS]
           instructions a byte of file encryption beside Debian's age, in the guests of ARM's processors
       cargo xtask guest processes [afalg|slow|virtio]
           paper 001: 1 to 1500 processes at a module, without an order, with the paper's lists and the arbiter's FIFO";

pub(crate) fn run(words: &[&str]) -> ExitCode {
    let done = match words {
        ["speed"] => speed("5", &[]),
        ["speed", rounds, ciphers @ ..] => speed(rounds, ciphers),
        ["counted-speed", rounds, ciphers @ ..] => counted_speed(rounds, ciphers),
        ["uploads"] => uploads("5"),
        ["uploads", rounds] => uploads(rounds),
        ["counted-uploads", rounds] => counted_uploads(rounds),
        ["browser-uploads"] => super::browser::uploads("3", None),
        ["browser-uploads", rounds] => super::browser::uploads(rounds, None),
        ["browser-uploads", rounds, sizes] => super::browser::uploads(rounds, Some(sizes)),
        ["waits"] => waits("5"),
        ["waits", rounds] => waits(rounds),
        ["count"] => count("3"),
        ["count", rounds] => count(rounds),
        ["files"] => guest_files::measure("3"),
        ["files", rounds] => guest_files::measure(rounds),
        ["processes"] => ["afalg", "slow", "virtio"].into_iter().try_for_each(processes::measure),
        ["processes", name] => processes::measure(name),
        _ => Err(USAGE.to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}

// The engine is in every guest.
fn speed(rounds: &str, ciphers: &[&str]) -> Result<(), String> {
    let words = [&[rounds], ciphers].concat().join(" ");
    measure(guest()?, &format!("testbed-openssl speed {words}"), Some(("openssl-speed", "speed", &words)))
}

fn counted_speed(rounds: &str, ciphers: &[&str]) -> Result<(), String> {
    let words = [&[rounds], ciphers].concat().join(" ");
    let saved_as = Some(("openssl-speed-counted", "counted-speed", words.as_str()));
    measure(guest()?.icount(Icount::NEAR_AM3358), &format!("testbed-openssl speed {words}"), saved_as)
}

fn uploads(rounds: &str) -> Result<(), String> {
    let site = Site::start()?;
    let command = format!("testbed-openssl uploads {rounds} {}", site.url());
    measure(with_curl(guest()?)?, &command, Some(("uploads", "uploads", rounds)))
}

fn counted_uploads(rounds: &str) -> Result<(), String> {
    let site = Site::start()?;
    let builder = with_curl(guest()?)?.icount(Icount::NEAR_AM3358);
    let command = format!("testbed-openssl uploads {rounds} {}", site.url());
    measure(builder, &command, Some(("uploads-counted", "counted-uploads", rounds)))
}

fn waits(rounds: &str) -> Result<(), String> {
    let builder = guest()?.icount(Icount::NEAR_AM3358);
    measure(builder, &format!("testbed-openssl waits {rounds}"), Some(("waits-counted", "waits", rounds)))
}

fn count(rounds: &str) -> Result<(), String> {
    let site = Site::start()?;
    let builder = with_curl(guest()?)?.icount(Icount::NEAR_AM3358);
    measure(builder, &format!("testbed-openssl count {rounds} {}", site.url()), None)
}

fn with_curl(builder: Builder) -> Result<Builder, String> {
    let curl = ["/usr/bin/curl", "/bin/curl"].into_iter().map(Path::new).find(|path| path.exists());
    Ok(builder.program(curl.ok_or("curl is not installed")?).host_loopback())
}

/// A guest with the provider and what measures it.
fn guest() -> Result<Builder, String> {
    let program = built_of("evener-testbed", &["--bin", "testbed-openssl"])?.join("testbed-openssl");
    Ok(provider_guest::with_provider()?.program(program))
}

/// Runs `command` in a guest; what it leaves is kept under the first name, as made by `cargo xtask guest` with the
/// other words.
fn measure(builder: Builder, command: &str, saved_as: Option<(&str, &str, &str)>) -> Result<(), String> {
    let (evener, load_before) = (built_evener()?, load());
    let awake = Awake::hold();
    let mut guest = builder.boot().map_err(|error| error.to_string())?;
    let is_apart = guest.set_apart().map_err(|error| error.to_string())?;
    let outcome = guest.run(command).map_err(|error| error.to_string())?;
    let state = sleep(awake.as_ref()) + papers::apart(is_apart);
    print!("{}{state}", outcome.stdout);
    eprint!("{}", outcome.stderr);
    guest.shut_down().map_err(|error| error.to_string())?;
    if outcome.status != 0 {
        return Err(format!("status {}", outcome.status));
    }
    let Some((name, word, words)) = saved_as else { return Ok(()) };
    let report = outcome.files.get("report.json").ok_or("the guest left no report")?;
    let report: Value = serde_json::from_slice(report).map_err(|error| error.to_string())?;
    let circumstances = circumstances(&evener, &load_before)? + &state + papers::clock(name);
    let command = format!("cargo xtask guest {word} {words}");
    papers::keep(name, &json!({ "command": command, "circumstances": circumstances, "report": report }))?;
    papers::draw()
}

/// An nginx that takes uploads, until this value goes.
struct Site {
    process: Child,
    _folder: tempfile::TempDir,
    port: u16,
}

impl Site {
    fn start() -> Result<Self, String> {
        let text = |error: std::io::Error| error.to_string();
        let folder = tempfile::tempdir().map_err(text)?;
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
        let port = free.map_err(text)?.port();
        let words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost -keyout key.pem -out cert.pem";
        let mut made = Command::new("openssl");
        made.args(words.split(' ')).current_dir(folder.path()).stderr(Stdio::null());
        if !made.status().is_ok_and(|status| status.success()) {
            return Err("openssl makes no certificate".to_owned());
        }
        fs::create_dir(folder.path().join("in")).map_err(text)?;
        let at = folder.path().display();
        // A server that root starts would give its files to another user, who may not enter this folder.
        let configuration = format!(
            "pid {at}/pid;\nerror_log {at}/error.log;\ndaemon off;\nmaster_process off;\nevents {{}}\n\
             http {{\naccess_log off;\nclient_body_temp_path {at}/body;\nproxy_temp_path {at}/p;\n\
             fastcgi_temp_path {at}/f;\nuwsgi_temp_path {at}/u;\nscgi_temp_path {at}/s;\n\
             server {{\nlisten 127.0.0.1:{port} ssl;\nroot {at};\nclient_max_body_size 0;\ndav_methods PUT;\n\
             ssl_certificate {at}/cert.pem;\nssl_certificate_key {at}/key.pem;\nssl_protocols TLSv1.2;\n\
             ssl_ciphers ALL;\n}}\n}}\n"
        );
        let path = folder.path().join("nginx.conf");
        fs::write(&path, configuration).map_err(text)?;
        // The one that `x` unpacked for tests, else an installed one.
        let unpacked = crate::tree::root().join("target/foreign/nginx/usr/sbin/nginx");
        let program = if unpacked.exists() { unpacked } else { PathBuf::from("/usr/sbin/nginx") };
        let mut command = Command::new(program);
        command.args(["-e", "stderr", "-p"]).arg(folder.path()).arg("-c").arg(&path);
        let process = command.stdin(Stdio::null()).spawn().map_err(|error| format!("nginx: {error}"))?;
        let site = Self { process, _folder: folder, port };
        let deadline = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if Instant::now() > deadline {
                return Err("nginx does not listen".to_owned());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(site)
    }
}

impl Site {
    /// As the guest reaches it.
    fn url(&self) -> String {
        format!("https://10.0.2.2:{}/in/file", self.port)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // It may be gone already.
        self.process.kill().unwrap_or_default();
        drop(self.process.wait());
    }
}
