//! Rates of `openssl speed` and `openssl enc`, and what of the guest's core a byte takes, by every way in turn.
//!
//! Steps of a cell: `openssl speed` starts -> it says that it [`BEGINS`] -> some [`seconds`] -> it says how many updates it
//! did -> its own rate, and what the core was not idle for in between, so that neither start nor end counts; of
//! `openssl enc` all of it counts.

use std::fs;
use std::io::Read;
use std::process::Stdio;

use serde_json::{Map, Value, json};

use super::{
    CIPHERS, CONFIGURATIONS, Cipher, ENC_BUFFER, Window, busy, enc, in_turn, median, report, speed_command,
    updates,
};

/// The papers' sizes, in bytes: of one update each.
const SIZES: [u32; 8] = [8, 16, 64, 256, 1_024, 4_096, 8_192, 16_384];

/// How long a size is tried: as `openssl speed` does by itself, for in less time what a program learns at first weighs more; and one
/// second where modules are not used and nothing is learned.
const fn seconds(bytes: u32) -> u32 {
    if bytes < 1_024 { 1 } else { 3 }
}

/// What `openssl enc` encrypts, in bytes.
const ENC_BYTES: usize = 24 << 20;

/// The end of what `openssl speed` says before it begins.
pub(crate) const BEGINS: &str = "size blocks: ";

/// The first ways are compared; the last one, the provider without its module, is for uploads.
const COMPARED: usize = 5;

/// What a run gave.
pub(crate) struct Run {
    /// 10^6 bytes per second.
    pub(crate) rate: f64,
    /// Nanoseconds for each byte.
    pub(crate) core_ns: f64,
}

/// The ciphers of these names, both where none is named.
pub(crate) fn ciphers_named(names: &[&str]) -> Result<Vec<&'static Cipher>, String> {
    let known = |name: &&str| {
        let found = CIPHERS.iter().find(|cipher| cipher.name.eq_ignore_ascii_case(name));
        found.ok_or_else(|| format!("{name}: there are {}", CIPHERS.map(|cipher| cipher.name).join(", ")))
    };
    if names.is_empty() { Ok(CIPHERS.iter().collect()) } else { names.iter().map(known).collect() }
}

/// `openssl speed` at each size and `openssl enc` of one file, by every way.
pub(crate) fn all(rounds: usize, ciphers: &[&Cipher]) -> Result<(), String> {
    // The first alarm in a guest's life rings at once, and the first run says nothing.
    drop(speed(0, &CIPHERS[0], SIZES[0]));
    let text: Vec<u8> = (0..=u8::MAX).cycle().take(ENC_BYTES).collect();
    fs::write("/tmp/text", text).map_err(|error| error.to_string())?;
    println!(
        "medians of {rounds}: MB/s, ns of core per byte, and rate over the better of default and engine"
    );
    let mut rows = Vec::new();
    for cipher in ciphers {
        for bytes in SIZES {
            let runs = in_turn(rounds, &|way| speed(way, cipher, bytes))?;
            rows.push(row(cipher, "openssl speed", bytes as usize, &format!("{bytes} B"), &runs));
        }
        let runs = in_turn(rounds, &|way| file(way, cipher))?;
        rows.push(row(cipher, "openssl enc", ENC_BYTES, &format!("{ENC_BYTES} B by {ENC_BUFFER}"), &runs));
    }
    report(&json!({ "rounds": rounds, "rows": rows }))
}

/// Shows a row, and gives it as it is kept.
fn row(cipher: &Cipher, work: &str, bytes: usize, of: &str, runs: &[Vec<Run>; COMPARED]) -> Value {
    let name = cipher.name;
    let medians = runs.each_ref().map(|runs| {
        [|run: &Run| run.rate, |run: &Run| run.core_ns].map(|value| median(runs.iter().map(value).collect()))
    });
    let best = medians[0][0].max(medians[1][0]);
    let columns = CONFIGURATIONS
        .iter()
        .zip(medians)
        .map(|(way, [rate, core_ns])| format!("  {} {rate:.3} {core_ns:.2} {:.3}", way.name, rate / best));
    println!("{name}, {work}, {of}:{}", columns.collect::<String>());
    let ways: Map<_, _> =
        CONFIGURATIONS.iter().zip(runs).map(|(way, runs)| (way.name.to_owned(), as_json(runs))).collect();
    json!({ "algorithm": name, "work": work, "bytes": bytes, "of": of, "ways": ways })
}

/// Every round.
fn as_json(runs: &[Run]) -> Value {
    let all = |value: fn(&Run) -> f64| runs.iter().map(value).collect::<Vec<_>>();
    json!({ "megabytes_per_second": all(|run| run.rate), "core_ns_per_byte": all(|run| run.core_ns) })
}

/// Updates of so many bytes for some [`seconds`].
pub(crate) fn speed(way: usize, cipher: &Cipher, bytes: u32) -> Result<Run, String> {
    let text = |error: std::io::Error| error.to_string();
    let mut command = speed_command(way, cipher, bytes, seconds(bytes));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(text)?;
    let (Some(mut stdout), Some(mut stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err("openssl speed has no output".to_owned());
    };
    let mut printed = String::new();
    read_until(&mut stderr, &mut printed, |printed| printed.contains(BEGINS)).map_err(text)?;
    let window = Window::open()?;
    read_until(&mut stderr, &mut printed, |printed| {
        printed.split(BEGINS).nth(1).is_some_and(|it| it.contains('\n'))
    })
    .map_err(text)?;
    let (_, busy_ms) = window.close()?;
    stderr.read_to_string(&mut printed).map_err(text)?;
    let mut table = String::new();
    stdout.read_to_string(&mut table).map_err(text)?;
    let status = child.wait().map_err(text)?;
    let odd = || format!("{command:?}: {status}, said {printed:?} and {table:?}");
    let (done, rate) = updates(&printed).zip(rate(&table)).filter(|_| status.success()).ok_or_else(odd)?;
    Ok(Run { rate, core_ns: busy_ms * 1e6 / (done * f64::from(bytes)) })
}

/// Adds what comes to `printed` until it is `enough`, or nothing comes any more.
fn read_until(
    from: &mut impl Read,
    printed: &mut String,
    enough: impl Fn(&str) -> bool,
) -> std::io::Result<()> {
    let mut bytes = [0; 512];
    while !enough(printed) {
        match from.read(&mut bytes)? {
            0 => break,
            count => printed.push_str(&String::from_utf8_lossy(&bytes[..count])),
        }
    }
    Ok(())
}

/// Of a table that ends with `AES-128-CBC      49633.58k`, thousands of bytes a second, or with bytes where they are few.
fn rate(table: &str) -> Option<f64> {
    let last =
        table.lines().skip_while(|line| !line.starts_with("type ")).nth(1)?.split_whitespace().last()?;
    let (number, scale) = last.strip_suffix('k').map_or((last, 1e-6), |number| (number, 1e-3));
    Some(number.parse::<f64>().ok()? * scale)
}

/// The encryption of the file, the program's start and end included.
#[expect(clippy::cast_precision_loss, reason = "some megabytes")]
fn file(way: usize, cipher: &Cipher) -> Result<Run, String> {
    let (wall_ms, busy_ms) = busy(&mut enc(way, cipher))?;
    Ok(Run { rate: ENC_BYTES as f64 / wall_ms * 1e-3, core_ns: busy_ms * 1e6 / ENC_BYTES as f64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str =
        "Engine \"afalg\" set.\nDoing AES-128-CBC for 1s on 1024 size blocks: 15258 AES-128-CBC's in 1.00s\n";

    /// Gives one byte at a time, as a pipe may.
    struct Drops<'b>(&'b [u8]);

    impl Read for Drops<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.0.read(&mut buffer[..1])
        }
    }

    #[test]
    fn the_window_opens_where_speed_begins_and_closes_where_it_tells_its_updates() {
        let (mut from, mut printed) = (Drops(SAID.as_bytes()), String::new());
        read_until(&mut from, &mut printed, |printed| printed.contains(BEGINS)).unwrap();
        assert!(printed.ends_with("1024 size blocks: "), "{printed:?}");
        assert_eq!(updates(&printed), None);
        read_until(&mut from, &mut printed, |_| false).unwrap();
        assert_eq!((printed.as_str(), updates(&printed)), (SAID, Some(15_258.0)));
    }

    #[test]
    fn the_rate_is_the_table_s_and_none_where_speed_failed() {
        let head = "version: 3.0.19\nThe 'numbers' are in 1000s of bytes per second processed.\n";
        let table = |number: &str| format!("{head}type             1024 bytes\nAES-128-CBC      {number}\n");
        for (number, megabytes) in [("49633.58k", 49.633_58), ("3458.59 ", 0.003_458_59)] {
            assert!(rate(&table(number)).is_some_and(|rate| (rate - megabytes).abs() < 1e-9), "{number}");
        }
        assert_eq!(rate(head), None);
    }

    #[test]
    fn ciphers_are_asked_for_by_name_and_are_both_where_none_is_said() {
        let names = |words: &[&str]| {
            ciphers_named(words).map(|all| all.iter().map(|one| one.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&[]), Ok(vec!["AES-128-CBC", "AES-256-CBC"]));
        assert_eq!(names(&["aes-256-cbc"]), Ok(vec!["AES-256-CBC"]));
        assert!(names(&["AES-128-GCM"]).is_err_and(|reason| reason.contains("AES-128-CBC")));
        for cipher in &CIPHERS {
            let bits = 4 * cipher.key.len();
            assert_eq!(cipher.name, format!("AES-{bits}-CBC"));
            assert_eq!(cipher.word, cipher.name.to_lowercase());
        }
    }
}
