//! Our front end, the driver `hosted`, with a back end of other hands: DPDK's `rte_vhost_crypto` (`interop/vhost_crypto.c`),
//! built against the installed library. Debian's package is `libdpdk-dev`, which `./x test-full` installs; where it is missing, the test prints that it is skipped.
//!
//! Its limits (DPDK 22.11): CBC only, at most 2176 bytes a request, a request that it does not take never comes back, and one is
//! given back by its place in the available ring, so names have to be places (`evener-ring`'s `virtqueue/driver.rs`).
#![allow(clippy::print_stdout, reason = "what is skipped is said")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests, where both mean a failed test")]
#![allow(clippy::vec_box, reason = "a job travels as a box of eight bytes through every queue")]

mod relay;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use evener_core::{
    Algorithm, Direction, InlineDriver as _, Job, JobError, Nanos, Outcome, Padding, QueuedDriver, Refusal,
    Session,
};
use evener_driver_libcrypto::Libcrypto;
use evener_driver_virtio::Module;

const TIMEOUT: Nanos = Nanos::from_millis(20_000);

/// First release of DPDK with the session message that we send.
const LONG_SESSION_SINCE: (u32, u32) = (25, 3);

/// The back end, ended with this.
struct Dpdk {
    child: Child,
    folder: tempfile::TempDir,
    socket: PathBuf,
}

impl Dpdk {
    /// Builds and starts it; the reason where it cannot be had.
    fn start() -> Result<Self, String> {
        let about = |specs: &[&str]| {
            let output = Command::new("pkg-config").args(specs).arg("libdpdk").output();
            let output = output.map_err(|error| format!("pkg-config: {error}"))?;
            let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            if output.status.success() { Ok(said) } else { Err("no DPDK (package libdpdk-dev)".to_owned()) }
        };
        let release = about(&["--modversion"])?;
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("vhost_crypto");
        let flags = about(&["--cflags", "--libs"])?;
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("interop/vhost_crypto.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-O1", "-DALLOW_EXPERIMENTAL_API", "-o"]).arg(&program).arg(source);
        let built = compiler.args(flags.split_whitespace()).output();
        let built = built.map_err(|error| format!("cc: {error}"))?;
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        println!("DPDK {release}");
        let socket = folder.path().join("back");
        let child = Self::run(&program, &socket);
        let mut dpdk = Self { child, folder, socket };
        if release_of(&release) < LONG_SESSION_SINCE {
            let front = dpdk.folder.path().join("front");
            let back = std::mem::replace(&mut dpdk.socket, front.clone());
            relay::start(front, back).unwrap();
        }
        Ok(dpdk)
    }

    /// Without huge pages, files of its own, or devices.
    fn run(program: &Path, socket: &Path) -> Child {
        let options = "-l 0 --no-huge -m 128 --no-shconf --no-telemetry --no-pci --vdev crypto_openssl --";
        let mut command = Command::new(program);
        command.args(options.split(' ')).arg(socket).stdin(Stdio::null());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let is_ready = lines.map_while(Result::ok).any(|line| line == "ready");
        assert!(is_ready, "DPDK did not start");
        child
    }

    fn module(&self) -> Module {
        let offer = "AES-128-CBC+AES-192-CBC+AES-256-CBC";
        let name = format!("hosted:{},offer={offer}", self.socket.display()).parse().unwrap();
        Module::open(&name).unwrap()
    }
}

impl Drop for Dpdk {
    fn drop(&mut self) {
        self.child.kill().unwrap_or_default();
        self.child.wait().map(drop).unwrap_or_default();
    }
}

/// Year and month of a release.
fn release_of(text: &str) -> (u32, u32) {
    let mut numbers = text.split('.').map(|part| part.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

fn session(algorithm: Algorithm, direction: Direction, padding: Padding) -> Arc<Session> {
    let key: Vec<u8> = (1..).take(algorithm.key_bytes().unwrap()).collect();
    Arc::new(Session::new(algorithm, direction, padding, &key).unwrap())
}

/// Jobs over texts of those lengths, in memory that lives as long as any driver.
fn jobs(session: &Arc<Session>, lengths: &[usize]) -> Vec<Box<Job<'static>>> {
    let job = |(&bytes, mark): (&usize, u64)| {
        let text = (0..bytes + 16).map(|at| u8::try_from(at * 7 % 251).unwrap()).collect::<Vec<_>>();
        let mut job = Job::in_place(text.leak());
        job.arm(Arc::clone(session), &[3; 16], bytes);
        job.mark = mark;
        job
    };
    lengths.iter().zip(0..).map(job).collect()
}

/// Runs all jobs by the module, as many at a time as it takes; they come back in the order of their marks.
fn through(
    driver: &mut dyn QueuedDriver<'static>,
    mut waiting: Vec<Box<Job<'static>>>,
) -> Vec<Box<Job<'static>>> {
    let (count, mut done) = (waiting.len(), Vec::new());
    while done.len() < count {
        while let Some(job) = waiting.pop() {
            match driver.submit(job) {
                Ok(()) => {}
                Err((job, Refusal::Full)) => {
                    waiting.push(job);
                    break;
                }
                Err((_, refusal)) => panic!("{refusal:?}"),
            }
        }
        assert!(driver.poll(&mut done, TIMEOUT) > 0, "nothing comes back");
    }
    done.sort_by_key(|job| job.mark);
    done
}

#[test]
fn what_dpdk_computes_for_our_front_end_is_libcryptos_and_what_it_never_returns_is_redone() {
    let dpdk = match Dpdk::start() {
        Ok(dpdk) => dpdk,
        Err(reason) => return println!("skipped: {reason}"),
    };
    let module = dpdk.module();
    let mut driver = module.driver();
    let mut compared = 0;
    for algorithm in [Algorithm::Aes128Cbc, Algorithm::Aes192Cbc, Algorithm::Aes256Cbc] {
        for (direction, padding) in [
            (Direction::Encrypt, Padding::None),
            (Direction::Encrypt, Padding::Pkcs7),
            (Direction::Decrypt, Padding::None),
        ] {
            let whole = |step: usize| step * 20 / 16 * 16 + 16;
            let lengths: Vec<usize> = match padding {
                Padding::None => (1..=100).map(whole).collect(),
                Padding::Pkcs7 => (1..=100).map(|step| step * 20 + 1).collect(),
            };
            let session = session(algorithm, direction, padding);
            let mut right = jobs(&session, &lengths);
            Libcrypto::new().unwrap().run(&mut right);
            for (ours, right) in through(&mut *driver, jobs(&session, &lengths)).iter().zip(&right) {
                let seen = (ours.outcome(), ours.output());
                assert_eq!(seen, (right.outcome(), right.output()), "{session:?} {}", right.input_bytes());
                compared += 1;
            }
        }
    }
    println!("{compared} requests compared");
    never_returned(&mut *driver);
}

/// A request that DPDK does not take: the deadline is the caller's, and the input is what it was.
fn never_returned(driver: &mut dyn QueuedDriver<'static>) {
    let session = session(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None);
    let text = jobs(&session, &[16_384])[0].input().to_vec();
    let mut done = Vec::new();
    jobs(&session, &[16_384]).into_iter().for_each(|job| driver.submit(job).unwrap());
    let until = Instant::now() + Duration::from_millis(300);
    while Instant::now() < until && done.is_empty() {
        driver.poll(&mut done, Nanos::from_millis(50));
    }
    driver.abandon(&mut done);
    assert_eq!((done.len(), driver.in_flight()), (1, 0));
    match done[0].outcome() {
        Outcome::Failed(JobError::ModuleLost) => assert_eq!(done[0].input(), text),
        // A later DPDK may take it, or say that it does not.
        outcome => println!("16 KiB: {outcome:?}"),
    }
}
