//! Runs in the guest: how fast OpenSSL is by several ways, and what an upload costs, one way after the other in turn.
//!
//! `testbed-openssl speed ROUNDS [CIPHER ...]` | `testbed-openssl uploads ROUNDS URL` | `testbed-openssl count ROUNDS
//! URL` | `testbed-openssl waits ROUNDS`. A configuration is a file of OpenSSL, variables and words for its command ([`CONFIGURATIONS`]). Core time is what the
//! guest's idle time lacks, so the kernel's threads and interrupts are in it; `count` is for a guest whose clock counts
//! instructions, and gives core time in these. Prints medians and leaves every round in `/out/report.json`;
//! `cargo xtask guest` starts it (docs/design/testbed.md).
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "prints for the user")]

use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;
use std::{env, fs};

use serde_json::{Value, json};

mod count;
mod speed;
mod waits;

/// Where the files of the way with the module lie; `cargo xtask guest` puts them there.
const WITH_MODULE: &str = "/etc/evener.cnf";

/// Both ends are OpenSSL's, which agree on Encrypt-then-MAC (RFC 7366).
const SUITE: &str = "ECDHE-ECDSA-AES128-SHA256";

/// How OpenSSL is to do its work.
struct Configuration {
    name: &'static str,
    configuration: &'static str,
    /// Variables over it.
    variables: &'static [(&'static str, &'static str)],
    /// Further words for `openssl`.
    words: &'static [&'static str],
}

const CONFIGURATIONS: [Configuration; 6] = [
    Configuration { name: "default", configuration: "/dev/null", variables: &[], words: &[] },
    Configuration {
        name: "afalg engine",
        configuration: "/dev/null",
        variables: &[],
        words: &["-engine", "afalg"],
    },
    Configuration { name: "provider", configuration: WITH_MODULE, variables: &[], words: &[] },
    Configuration {
        name: "wait = caller",
        configuration: WITH_MODULE,
        variables: &[("EVENER_WAIT", "caller")],
        words: &[],
    },
    Configuration {
        name: "virtio",
        configuration: WITH_MODULE,
        variables: &[("EVENER_MODULES", "virtio:0000:00:10.0")],
        words: &[],
    },
    Configuration {
        name: "no module",
        configuration: WITH_MODULE,
        variables: &[("EVENER_MODULES", "")],
        words: &[],
    },
];

const ENGINE: usize = 1;
/// The ways that have the provider.
const WITH: usize = 2;
const CALLER: usize = 3;
/// By a module that the program drives itself.
const VIRTIO: usize = 4;
const WITHOUT: usize = 5;

/// What every round gave, where `cargo xtask guest` finds it.
const REPORT: &str = "/out/report.json";

/// What `openssl enc` reads at a time, in bytes.
const ENC_BUFFER: &str = "65536";

/// Paper 003, table 1: bytes, milliseconds with offload and without.
const PAPER: [(usize, u32, u32); 9] = [
    (70, 402, 362),
    (57_654, 442, 436),
    (2_359_350, 1_206, 2_592),
    (3_240_054, 1_480, 3_086),
    (6_350_454, 2_512, 5_320),
    (14_288_454, 5_581, 10_564),
    (15_046_694, 6_331, 11_597),
    (18_207_342, 6_704, 13_293),
    (18_948_662, 7_784, 13_848),
];

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let done = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["speed", rounds, ref ciphers @ ..] => {
            number(rounds).and_then(|rounds| speed::all(rounds, &speed::ciphers_named(ciphers)?))
        }
        ["uploads", rounds, url] => number(rounds).and_then(|rounds| uploads(rounds, url)),
        ["waits", rounds] => number(rounds).and_then(waits::all),
        ["count", rounds, url] => number(rounds).and_then(|rounds| count::all(rounds, url)),
        _ => Err("testbed-openssl speed ROUNDS [CIPHER ...] | uploads ROUNDS URL | count ROUNDS URL | \
                  waits ROUNDS"
            .to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("testbed-openssl: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn number(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&rounds| rounds > 0).ok_or_else(|| format!("{text}: no number of rounds"))
}

/// Leaves the measurements to the caller of the guest.
fn report(what: &Value) -> Result<(), String> {
    fs::write(REPORT, format!("{what:#}\n")).map_err(|error| format!("{REPORT}: {error}"))
}

/// What `measure` says of the first ways, one after the other in each round.
fn in_turn<T, const N: usize>(
    rounds: usize,
    measure: &dyn Fn(usize) -> Result<T, String>,
) -> Result<[Vec<T>; N], String> {
    let mut all = [const { Vec::new() }; N];
    for round in 0..rounds {
        for turn in 0..N {
            let way = (round + turn) % N;
            all[way].push(measure(way)?);
        }
    }
    Ok(all)
}

fn openssl(way: usize, words: &[&str]) -> Command {
    let mut command = by_way(way, "openssl");
    command.args(words).args(CONFIGURATIONS[way].words);
    command
}

/// `program` by the configuration of a way.
fn by_way(way: usize, program: &str) -> Command {
    let mut command = Command::new(program);
    command
        .env("OPENSSL_CONF", CONFIGURATIONS[way].configuration)
        .envs(CONFIGURATIONS[way].variables.iter().copied());
    command.stdin(Stdio::null());
    command
}

/// A cipher that the module has.
struct Cipher {
    /// As in reports.
    name: &'static str,
    /// Its name for `openssl`.
    word: &'static str,
    /// In hexadecimal digits.
    key: &'static str,
}

const CIPHERS: [Cipher; 2] = [
    Cipher { name: "AES-128-CBC", word: "aes-128-cbc", key: "00112233445566778899aabbccddeeff" },
    Cipher {
        name: "AES-256-CBC",
        word: "aes-256-cbc",
        key: "00112233445566778899aabbccddeeff0123456789abcdef0123456789abcdef",
    },
];

/// `openssl speed` for so many seconds.
fn speed_command(way: usize, cipher: &Cipher, bytes: u32, seconds: u32) -> Command {
    let (bytes, seconds) = (bytes.to_string(), seconds.to_string());
    openssl(way, &["speed", "-elapsed", "-seconds", &seconds, "-bytes", &bytes, "-evp", cipher.word])
}

/// How many updates were done, of what `openssl speed` says:
/// `Doing AES-128-CBC for 1s on 1024 size blocks: 15258 AES-128-CBC's in 1.00s`.
fn updates(stderr: &str) -> Option<f64> {
    stderr.split(speed::BEGINS).nth(1)?.split(' ').next()?.parse().ok()
}

/// The encryption of /tmp/text.
fn enc(way: usize, cipher: &Cipher) -> Command {
    let method = format!("-{}", cipher.word);
    let mut words = vec!["enc", &method, "-K", cipher.key, "-iv", "ffeeddccbbaa99887766554433221100"];
    words.extend(["-bufsize", ENC_BUFFER, "-in", "/tmp/text", "-out", "/dev/null"]);
    let mut command = openssl(way, &words);
    command.stderr(Stdio::null());
    command
}

/// Uploads of the paper's sizes with the provider, without the module and with it by both ways of waiting.
fn uploads(rounds: usize, url: &str) -> Result<(), String> {
    println!("uploads over TLS 1.2, {SUITE}, Encrypt-then-MAC; medians of {rounds}");
    println!(
        "{:>10}  {:>19}  {:>19}  {:>19}  {:>19}  {:>11}  {:>13}  {:>13}  paper 003",
        "bytes",
        "no module: ms, core",
        "module: ms, core",
        "caller: ms, core",
        "virtio: ms, core",
        "wall, core",
        "caller's",
        "virtio's"
    );
    // The first upload of a guest's life takes several times as long: nothing is loaded yet.
    fs::write("/tmp/file", [0x42; 70]).map_err(|error| error.to_string())?;
    busy(&mut curl(WITHOUT, url))?;
    let mut rows = Vec::new();
    for (bytes, with_ms, without_ms) in PAPER {
        fs::write("/tmp/file", vec![0x42; bytes]).map_err(|error| error.to_string())?;
        let ways = [WITHOUT, WITH, CALLER, VIRTIO];
        let mut measured: [[Vec<f64>; 2]; 4] = Default::default();
        for round in 0..rounds {
            for turn in 0..ways.len() {
                let place = (round + turn) % ways.len();
                let (wall, core) = busy(&mut curl(ways[place], url))?;
                measured[place][0].push(wall);
                measured[place][1].push(core);
            }
        }
        let medians_by_way: serde_json::Map<_, _> = ways
            .iter()
            .zip(&measured)
            .map(|(&way, [wall, core])| {
                (CONFIGURATIONS[way].name.to_owned(), json!({ "wall_ms": wall, "core_ms": core }))
            })
            .collect();
        let paper = json!({ "with_ms": with_ms, "without_ms": without_ms });
        rows.push(json!({ "bytes": bytes, "paper": paper, "ways": medians_by_way }));
        let [without, with @ ..] = measured.map(|way| way.map(median));
        let all = std::iter::once(without).chain(with);
        let columns: String = all.map(|[wall, core]| format!("  {wall:>9.1} {core:>9.1}")).collect();
        let over =
            with.map(|[wall, core]| format!("  {:>6.3} {:>5.3}", wall / without[0], core / without[1]));
        println!("{bytes:>10}{columns}{}  {:.2}", over.concat(), f64::from(with_ms) / f64::from(without_ms));
    }
    report(&json!({ "unit": "ms", "rounds": rounds, "rows": rows }))
}

/// The upload of /tmp/file by a way without words for `openssl`.
fn curl(way: usize, url: &str) -> Command {
    let mut command = by_way(way, "curl");
    // The guest's clock knows nothing of certificates.
    command.args(["-sSf", "--insecure", "--tls-max", "1.2", "--ciphers", SUITE]);
    command.args(["-H", "Expect:", "-T", "/tmp/file", "-o", "/dev/null", url]);
    command
}

/// Runs `command`: milliseconds that passed, and that the guest's processor was not idle.
fn busy(command: &mut Command) -> Result<(f64, f64), String> {
    let window = Window::open()?;
    let status = command.status().map_err(|error| error.to_string())?;
    let times = window.close()?;
    if status.success() { Ok(times) } else { Err(format!("{command:?}: {status}")) }
}

/// A stretch of time that goes on.
struct Window {
    began: Instant,
    idle_ms: f64,
}

impl Window {
    fn open() -> Result<Self, String> {
        Ok(Self { began: Instant::now(), idle_ms: idle_ms()? })
    }

    /// Milliseconds that passed since, and that the guest's processor was not idle.
    fn close(self) -> Result<(f64, f64), String> {
        let (wall, idle) = (self.began.elapsed().as_secs_f64() * 1e3, idle_ms()? - self.idle_ms);
        Ok((wall, (wall - idle).max(0.0)))
    }
}

/// Idle time of the guest's one processor so far, in milliseconds, which the kernel counts to the nanosecond. /proc/stat
/// has the same in steps of 10 ms; what it has as busy are ticks, of which an emulated core misses most where it often
/// sleeps: 13 where 84 were not idle, beside the engine.
fn idle_ms() -> Result<f64, String> {
    let list = fs::read_to_string("/proc/timer_list").map_err(|error| error.to_string())?;
    let line = list.lines().find_map(|line| line.trim().strip_prefix(".idle_sleeptime"));
    let number = line.and_then(|rest| rest.split([' ', ':']).find_map(|word| word.parse::<f64>().ok()));
    number.map(|nanos| nanos * 1e-6).ok_or_else(|| "/proc/timer_list tells no idle time".to_owned())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
