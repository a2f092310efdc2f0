//! What is left of a client's keys once their sessions are closed: nothing, neither in the module's drivers nor anywhere else in
//! the host's memory.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test; a host says that it is ready")]

mod support;

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use evener::CoreDrivers;
use evener_core::{Algorithm, InlineDriver};
use evener_driver_libcrypto::Libcrypto;
use evener_driver_multibuffer::Multibuffer;
use evener_host::Module;
use evener_testing::drivers::OpenKeys;
use evener_testing::hosts::{Host, core_by, emulated_by};
use evener_testing::noise;
use evener_testing::waiting::soon;

use support::{ALL_FEATURES, Raw, cipher};

/// A core, or an emulated module, whose driver enters what it keeps.
const MODULES: [fn(&OpenKeys) -> Module; 2] = [
    |open_keys| core_by(open_keys.by(0)),
    |open_keys| emulated_by("emulated:d=0+0,h=1000+0", open_keys.by(0)),
];

/// Waits until so many are kept.
fn comes_to(open_keys: &OpenKeys, count: usize) -> bool {
    soon(|| open_keys.count() == count)
}

fn encrypts(raw: &mut Raw, session: u64) {
    let answer = raw.request(&[&cipher(true, session, 64), &[0; 16], &[7; 64]], 64);
    assert_eq!(answer.map(|(_, status)| status), Some(0));
}

fn close(raw: &Raw, session: u64) {
    raw.send(27, &session.to_ne_bytes(), &[]);
}

#[test]
fn a_session_that_is_closed_leaves_nothing_in_the_module_and_a_client_that_goes_neither() {
    for make in MODULES {
        let open_keys = OpenKeys::default();
        let host = Host::start(make(&open_keys));
        let [mut one, mut other] = [(); 2].map(|()| Raw::ready(&host.socket(), ALL_FEATURES));
        let of_one: Vec<u64> = (1..4).map(|key| one.open_cbc(&[key; 16], true)).collect();
        let of_other: Vec<u64> = (4..6).map(|key| other.open_cbc(&[key; 16], true)).collect();
        of_one.iter().for_each(|session| encrypts(&mut one, *session));
        of_other.iter().for_each(|session| encrypts(&mut other, *session));
        assert_eq!(open_keys.count(), 5);
        close(&one, of_one[1]);
        assert!(comes_to(&open_keys, 4));
        drop(one);
        assert!(comes_to(&open_keys, 2));
        encrypts(&mut other, of_other[0]);
        close(&other, of_other[0]);
        close(&other, of_other[1]);
        assert!(comes_to(&open_keys, 0));
    }
}

#[test]
fn a_session_that_a_hanging_request_still_has_is_forgotten_when_that_is_back() {
    let open_keys = OpenKeys::default();
    let host = Host::start(MODULES[1](&open_keys));
    let mut raw = Raw::ready(&host.socket(), ALL_FEATURES);
    let session = raw.open_cbc(&[1; 16], true);
    host.order("fault hang from 1");
    raw.write_request(&[&cipher(true, session, 64), &[0; 16], &[7; 64]], 64, 0);
    raw.offer(0);
    host.wait_for("taken", |report| report["module"]["submitted"] == 1);
    close(&raw, session);
    host.wait_for("closed", |report| report["clients"][0]["sessions"] == 0);
    assert_eq!(open_keys.count(), 1);
    host.order("fault none");
    host.order("reset");
    assert!(comes_to(&open_keys, 0));
}

/// The name under which a test runs itself again, as a host: which module, and where.
const HOST: &str = "HOST_TEST_KEYS";

/// A host in a process of its own.
struct Apart {
    child: Child,
    folder: PathBuf,
}

impl Apart {
    fn start(module: &str, folder: &Path) -> Self {
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "no_key_is_left_in_the_hosts_memory", "--nocapture"]);
        again.env(HOST, format!("{module}:{}", folder.display()));
        let mut child = again.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().ends_with(READY)), "the host begins");
        Self { child, folder: folder.to_owned() }
    }

    /// How often `bytes` stand in its memory.
    fn holds(&self, bytes: &[u8]) -> usize {
        let process = PathBuf::from(format!("/proc/{}", self.child.id()));
        let maps = std::fs::read_to_string(process.join("maps")).unwrap();
        let memory = File::open(process.join("mem")).unwrap();
        let mut count = 0;
        for line in maps.lines().filter(|line| line.contains(" r")) {
            let (start, end) = line.split_whitespace().next().unwrap().split_once('-').unwrap();
            let [start, end] = [start, end].map(|hex| u64::from_str_radix(hex, 16).unwrap());
            let mut content = vec![0; usize::try_from(end - start).unwrap()];
            // What the kernel has there for itself cannot be read.
            if memory.read_exact_at(&mut content, start).is_ok() {
                count += content.windows(bytes.len()).filter(|window| *window == bytes).count();
            }
        }
        count
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

const READY: &str = "the host is ready";

/// The other process: a host until its standard input ends.
fn be_a_host(asked: &str) {
    let (module, folder) = asked.split_once(':').unwrap();
    let libcrypto = Libcrypto::new().unwrap();
    let profile = libcrypto.profile().clone();
    let multi =
        (module == "multibuffer").then(|| Box::new(Multibuffer::load().unwrap()) as Box<dyn InlineDriver>);
    let core_drivers = CoreDrivers::new(Box::new(libcrypto), multi);
    let _host = Host::at(Path::new(folder), Module::core(profile, core_drivers, Algorithm::ALL.to_vec()));
    println!("{READY}");
    std::io::stdout().flush().unwrap();
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

#[test]
fn no_key_is_left_in_the_hosts_memory() {
    if let Ok(asked) = std::env::var(HOST) {
        return be_a_host(&asked);
    }
    let modules: &[&str] =
        if Multibuffer::load().is_ok() { &["libcrypto", "multibuffer"] } else { &["libcrypto"] };
    for module in modules {
        let folder = tempfile::tempdir().unwrap();
        let host = Apart::start(module, folder.path());
        let mut raw = Raw::ready(&host.folder.join("host"), ALL_FEATURES);
        for encrypt in [true, false] {
            let key = noise(u64::from(std::process::id()) + u64::from(encrypt), 16);
            assert_eq!(host.holds(&key), 0, "it was not told yet");
            let session = raw.open_cbc(&key, encrypt);
            // As many as fill the lanes, or multi-buffer is not asked.
            for slot in 0..8 {
                raw.write_request(&[&cipher(encrypt, session, 64), &[0; 16], &[7; 64]], 64, slot);
                raw.offer_quietly(slot);
            }
            raw.kick();
            assert!(raw.wait());
            // Round keys begin with the key's bytes where OpenSSL's assembly for the processor leaves them as they are.
            let least = if cfg!(target_arch = "x86_64") { 2 } else { 1 };
            assert!(host.holds(&key) >= least, "{module}: in the session, and in what the driver made of it");
            close(&raw, session);
            // An answer shows that the order was read; the module's thread looks when it comes to it.
            raw.ask(17);
            assert!(soon(|| host.holds(&key) == 0), "{module}: {} copies are left", host.holds(&key));
        }
    }
}
