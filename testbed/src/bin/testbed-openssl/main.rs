//! Runs in the guest: how fast OpenSSL is by several ways, and what an upload costs, one way after the other in turn.
//!
//! `testbed-openssl speed ROUNDS` | `testbed-openssl uploads ROUNDS URL` | `testbed-openssl count ROUNDS URL`. A way is a
//! configuration of OpenSSL and what its command is told besides ([`WAYS`]). Core time is what the guest's idle time lacks, so
//! the kernel's threads and interrupts are in it; `count` is for a guest whose clock counts instructions, and tells core time
//! in these. Prints medians and leaves every round in `/out/report.json`; `cargo xtask guest` starts it (docs/testbed.md).
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "talks to who runs it")]

use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;
use std::{env, fs};

use serde_json::{Value, json};

mod count;

/// Where the files of the way with the module lie; `cargo xtask guest` puts them there.
const WITH_MODULE: &str = "/etc/evener.cnf";

/// Both ends are OpenSSL's, which agree on Encrypt-then-MAC (RFC 7366).
const SUITE: &str = "ECDHE-ECDSA-AES128-SHA256";

/// How OpenSSL is to do its work.
struct Way {
    name: &'static str,
    configuration: &'static str,
    /// Variables over it.
    variables: &'static [(&'static str, &'static str)],
    /// What `openssl` is told besides.
    words: &'static [&'static str],
}

const WAYS: [Way; 5] = [
    Way { name: "default", configuration: "/dev/null", variables: &[], words: &[] },
    Way { name: "afalg engine", configuration: "/dev/null", variables: &[], words: &["-engine", "afalg"] },
    Way { name: "provider", configuration: WITH_MODULE, variables: &[], words: &[] },
    Way {
        name: "wait = caller",
        configuration: WITH_MODULE,
        variables: &[("EVENER_WAIT", "caller")],
        words: &[],
    },
    Way { name: "no module", configuration: WITH_MODULE, variables: &[("EVENER_MODULES", "")], words: &[] },
];

/// The ways that have the provider.
const WITH: usize = 2;
const CALLER: usize = 3;
const WITHOUT: usize = 4;

/// Sizes of `openssl speed`, in bytes.
const SPEED_BYTES: [u32; 5] = [64, 1_024, 4_096, 8_192, 16_384];

/// What every round gave, where `cargo xtask guest` finds it.
const REPORT: &str = "/out/report.json";

/// What `openssl enc` encrypts, in bytes, and reads at a time.
const ENC_BYTES: usize = 24 << 20;
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
        ["speed", rounds] => number(rounds).and_then(speed),
        ["uploads", rounds, url] => number(rounds).and_then(|rounds| uploads(rounds, url)),
        ["count", rounds, url] => number(rounds).and_then(|rounds| count::all(rounds, url)),
        _ => Err("testbed-openssl speed ROUNDS | uploads ROUNDS URL | count ROUNDS URL".to_owned()),
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

/// `openssl speed` at each size and `openssl enc` of one file, by every way.
fn speed(rounds: usize) -> Result<(), String> {
    // The first alarm in a guest's life rings at once, and the first run says nothing.
    drop(speed_of(0, SPEED_BYTES[0]));
    println!("AES-128-CBC, medians of {rounds}; MB/s, and over the better of default and engine");
    let mut rows = Vec::new();
    for bytes in SPEED_BYTES {
        let measured = in_turn(rounds, &|way| speed_of(way, bytes))?;
        rows.push(row("openssl speed", &format!("{bytes} B"), &measured));
    }
    let text: Vec<u8> = (0..=u8::MAX).cycle().take(ENC_BYTES).collect();
    fs::write("/tmp/text", text).map_err(|error| error.to_string())?;
    #[expect(clippy::cast_precision_loss, reason = "some megabytes")]
    let measured = in_turn(rounds, &|way| Ok(ENC_BYTES as f64 / busy(&mut enc(way))?.0 * 1e-3))?;
    rows.push(row("openssl enc", &format!("{ENC_BYTES} B by {ENC_BUFFER}"), &measured));
    report(&json!({ "unit": "MB/s", "rounds": rounds, "rows": rows }))
}

/// Leaves what was measured to who runs this.
fn report(what: &Value) -> Result<(), String> {
    fs::write(REPORT, format!("{what:#}\n")).map_err(|error| format!("{REPORT}: {error}"))
}

/// What `measure` says of the first ways, one after the other in each round.
fn in_turn<const N: usize>(
    rounds: usize,
    measure: &dyn Fn(usize) -> Result<f64, String>,
) -> Result<[Vec<f64>; N], String> {
    let mut all = [const { Vec::new() }; N];
    for round in 0..rounds {
        for turn in 0..N {
            let way = (round + turn) % N;
            all[way].push(measure(way)?);
        }
    }
    Ok(all)
}

/// Shows a row, and gives it as it is kept.
fn row(work: &str, of: &str, measured: &[Vec<f64>; 4]) -> Value {
    let [default, engine, provider, caller] = measured.clone().map(median);
    let best = default.max(engine);
    println!(
        "{:34} default {default:7.1}  afalg engine {engine:7.1}  provider {provider:7.1}  {:.2}  wait = caller {caller:7.1}  {:.2}",
        format!("{work}, {of}"),
        provider / best,
        caller / best
    );
    let ways: serde_json::Map<_, _> =
        WAYS.iter().zip(measured).map(|(way, values)| (way.name.to_owned(), json!(values))).collect();
    json!({ "work": work, "of": of, "ways": ways })
}

fn openssl(way: usize, words: &[&str]) -> Command {
    let mut command = by_way(way, "openssl");
    command.args(words).args(WAYS[way].words);
    command
}

/// `program` by the configuration of a way.
fn by_way(way: usize, program: &str) -> Command {
    let mut command = Command::new(program);
    command.env("OPENSSL_CONF", WAYS[way].configuration).envs(WAYS[way].variables.iter().copied());
    command.stdin(Stdio::null());
    command
}

/// `openssl speed` for so many seconds.
fn speed_command(way: usize, bytes: u32, seconds: u32) -> Command {
    let (bytes, seconds) = (bytes.to_string(), seconds.to_string());
    openssl(way, &["speed", "-elapsed", "-seconds", &seconds, "-bytes", &bytes, "-evp", "aes-128-cbc"])
}

fn speed_of(way: usize, bytes: u32) -> Result<f64, String> {
    let output = speed_command(way, bytes, 1).output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    // `AES-128-CBC      49633.58k`, thousands of bytes a second.
    let rate = said.lines().find(|line| line.ends_with('k')).and_then(|line| line.split_whitespace().last());
    let rate = rate.and_then(|rate| rate.trim_end_matches('k').parse::<f64>().ok());
    rate.map(|rate| rate * 1e-3).ok_or_else(|| format!("openssl speed said {said:?}"))
}

/// The encryption of /tmp/text.
fn enc(way: usize) -> Command {
    let (key, iv) = ("00112233445566778899aabbccddeeff", "ffeeddccbbaa99887766554433221100");
    let mut words = vec!["enc", "-aes-128-cbc", "-K", key, "-iv", iv];
    words.extend(["-bufsize", ENC_BUFFER, "-in", "/tmp/text", "-out", "/dev/null"]);
    let mut command = openssl(way, &words);
    command.stderr(Stdio::null());
    command
}

/// Uploads of the paper's sizes with the provider, without the module and with it by both ways of waiting.
fn uploads(rounds: usize, url: &str) -> Result<(), String> {
    println!("uploads over TLS 1.2, {SUITE}, Encrypt-then-MAC; medians of {rounds}");
    println!(
        "{:>10}  {:>19}  {:>19}  {:>19}  {:>11}  {:>13}  paper 003",
        "bytes", "no module: ms, core", "module: ms, core", "caller: ms, core", "wall, core", "caller's"
    );
    let mut rows = Vec::new();
    for (bytes, with_ms, without_ms) in PAPER {
        fs::write("/tmp/file", vec![0x42; bytes]).map_err(|error| error.to_string())?;
        let ways = [WITHOUT, WITH, CALLER];
        let mut seen: [[Vec<f64>; 2]; 3] = Default::default();
        for round in 0..rounds {
            for turn in 0..ways.len() {
                let place = (round + turn) % ways.len();
                let (wall, core) = busy(&mut curl(ways[place], url))?;
                seen[place][0].push(wall);
                seen[place][1].push(core);
            }
        }
        let kept: serde_json::Map<_, _> = ways
            .iter()
            .zip(&seen)
            .map(|(&way, [wall, core])| {
                (WAYS[way].name.to_owned(), json!({ "wall_ms": wall, "core_ms": core }))
            })
            .collect();
        let paper = json!({ "with_ms": with_ms, "without_ms": without_ms });
        rows.push(json!({ "bytes": bytes, "paper": paper, "ways": kept }));
        let [without, with, caller] = seen.map(|way| way.map(median));
        let columns =
            [without, with, caller].map(|[wall, core]| format!("  {wall:>9.1} {core:>9.1}")).concat();
        let over = [with, caller]
            .map(|[wall, core]| format!("  {:>6.3} {:>5.3}", wall / without[0], core / without[1]));
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
    let (began, idle) = (Instant::now(), idle_ms()?);
    let status = command.status().map_err(|error| error.to_string())?;
    let (wall, idle) = (began.elapsed().as_secs_f64() * 1e3, idle_ms()? - idle);
    match status.success() {
        true => Ok((wall, (wall - idle).max(0.0))),
        false => Err(format!("{command:?}: {status}")),
    }
}

/// Idle time of the guest's one processor so far, in milliseconds, which the kernel tells to the nanosecond.
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
