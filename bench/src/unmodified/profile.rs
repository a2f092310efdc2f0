//! Where a program's time goes, by samples of `perf`, and which part of it the cipher has.
//!
//! libcrypto names none of its ciphers' functions in the file that a distribution installs. So `openssl speed` is sampled first: pieces of libcrypto's code in which it spends its time are the cipher's,
//! and a program's samples in the same pieces are the cipher's share of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::configuration::Configuration;
use super::place::{Place, Run, said};
use super::program::Cipher;
use super::sampler::{numbered, record};
use crate::error::BenchError;

/// Samples by the file that they fell into; of libcrypto, by the piece of its code besides.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Samples {
    all: u64,
    by_file: BTreeMap<String, u64>,
    by_piece: BTreeMap<u64, u64>,
}

/// The cipher by itself: which code it is, and how fast.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Alone {
    pieces: BTreeSet<u64>,
    /// GB/s by OpenSSL, and by kernels of the provider.
    pub(super) rates: [f64; 2],
}

/// Bytes of a piece of code: a line of the cache.
const PIECE: u64 = 64;
/// Of `openssl speed`'s samples in libcrypto, a piece of the cipher has one of so many at least.
const RARE: u64 = 250;
const LIBCRYPTO: &str = "libcrypto.so";

/// Whether `perf` is there and may look at a program of ours.
pub(super) fn is_there(place: &Place) -> bool {
    let file = place.path("perf.try");
    let words = record(&file, 1);
    let tried = Command::new(&words[0]).args(&words[1..]).arg("true").output();
    tried.is_ok_and(|output| output.status.success()) && Path::new(&numbered(&file, 1)).exists()
}

/// Samples of all commands of a run.
pub(super) fn samples(file: &Path) -> Result<Samples, BenchError> {
    let files = (1..).map(|number| numbered(file, number)).take_while(|file| Path::new(file).exists());
    let mut report = String::new();
    for file in files {
        let mut command = Command::new("perf");
        command.args(["report", "--stdio", "-q", "-n", "--sort", "dso,sym", "-t", "|", "-i", &file]);
        report += &said(command)?;
        report.push('\n');
    }
    Ok(parse(&report))
}

/// Lines such as ` 1.80%  | 24 |libcrypto.so.3 |[.] 0x0000000000241f82`.
fn parse(report: &str) -> Samples {
    let mut samples = Samples::default();
    for line in report.lines() {
        let mut fields = line.split('|').map(str::trim).skip(1);
        let (Some(Ok(count)), Some(file), Some(symbol)) =
            (fields.next().map(str::parse::<u64>), fields.next(), fields.next())
        else {
            continue;
        };
        samples.all += count;
        *samples.by_file.entry(file.to_owned()).or_default() += count;
        let address = symbol.rsplit_once("0x").and_then(|(_, hex)| u64::from_str_radix(hex, 16).ok());
        if let (true, Some(address)) = (file.starts_with(LIBCRYPTO), address) {
            *samples.by_piece.entry(address / PIECE).or_default() += count;
        }
    }
    samples
}

impl Samples {
    /// Pieces in which the time goes, and their neighbours, for a sample stands behind what it waited for.
    fn busy_pieces(&self) -> BTreeSet<u64> {
        let all: u64 = self.by_piece.values().sum();
        let busy = self.by_piece.iter().filter(|(_, count)| **count * RARE >= all);
        busy.flat_map(|(piece, _)| piece.saturating_sub(1)..=piece + 1).collect()
    }

    /// The part of all samples that fell into these pieces of libcrypto.
    #[expect(clippy::cast_precision_loss, reason = "a share for people")]
    pub(super) fn share_of(&self, alone: &Alone) -> f64 {
        let inside: u64 = self
            .by_piece
            .iter()
            .filter(|(piece, _)| alone.pieces.contains(piece))
            .map(|(_, count)| count)
            .sum();
        inside as f64 / self.all.max(1) as f64
    }

    /// The part of all samples that fell into a file whose name begins so.
    #[expect(clippy::cast_precision_loss, reason = "a share for people")]
    pub(super) fn share_in(&self, name: &str) -> f64 {
        let inside: u64 =
            self.by_file.iter().filter(|(file, _)| file.starts_with(name)).map(|(_, count)| count).sum();
        inside as f64 / self.all.max(1) as f64
    }

    /// The files with the most samples, their part of all, the greatest first.
    #[expect(clippy::cast_precision_loss, reason = "a share for people")]
    pub(super) fn greatest(&self, count: usize) -> Vec<(String, f64)> {
        let mut files: Vec<_> = self.by_file.iter().collect();
        files.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let share = |(file, count): (&String, &u64)| (file.clone(), *count as f64 / self.all.max(1) as f64);
        files.into_iter().take(count).map(share).collect()
    }
}

/// Has `openssl speed` do the cipher alone in both directions, and by the provider's kernels once.
pub(super) fn alone(place: &Place, cipher: &Cipher, has_perf: bool) -> Result<Alone, BenchError> {
    let mut found = Alone::default();
    for (at, direction) in [None, Some("-decrypt")].into_iter().enumerate() {
        let file = has_perf.then(|| place.path(&format!("perf.speed.{at}")));
        let rate = speed(&place.run(Configuration::Plain, file.clone()), cipher, direction)?;
        if direction.is_some() == cipher.is_decrypted {
            found.rates[0] = rate;
        }
        if let Some(file) = file {
            found.pieces.extend(samples(&file)?.busy_pieces());
        }
    }
    let direction = cipher.is_decrypted.then_some("-decrypt");
    let run = place.run(Configuration::Default, None);
    // As much as it takes to have measured which code is quicker.
    speed(&run, cipher, direction)?;
    found.rates[1] = speed(&run, cipher, direction)?;
    Ok(found)
}

/// GB/s that `openssl speed` tells.
fn speed(run: &Run<'_>, cipher: &Cipher, direction: Option<&str>) -> Result<f64, BenchError> {
    let mut command = run.command("openssl");
    let bytes = cipher.bytes.to_string();
    command.args(["speed", "-mr", "-seconds", "1", "-bytes", &bytes]).args(direction);
    command.args(["-evp", cipher.name]);
    let told = said(command)?;
    // +F:22:AES-256-GCM:5209000000.00
    let rate =
        told.lines().rev().find_map(|line| line.strip_prefix("+F:")?.rsplit(':').next()?.parse::<f64>().ok());
    rate.map(|rate| rate / 1e9).ok_or_else(|| BenchError::Command {
        command: "openssl speed".to_owned(),
        reason: "it told no rate".to_owned(),
    })
}

/// The name by which samples know a module: that of the file itself, for what is loaded may be a link to it.
pub(super) fn file_name(module: &Path) -> String {
    let file = module.canonicalize().unwrap_or_else(|_| module.to_owned());
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// A file for the samples of a run.
pub(super) fn file_for(place: &Place, configuration: Configuration) -> PathBuf {
    place.path(&format!("perf.{}", configuration.word()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEED: &str = " 90.00%  | 900        |libcrypto.so.3      |[.] 0x0000000000241f82\n\
                          1.00%  | 10         |libcrypto.so.3      |[.] EVP_EncryptUpdate\n\
                          0.10%  | 1          |libcrypto.so.3      |[.] 0x0000000000100000\n";
    const PROGRAM: &str = " 30.00%  | 30  |libcrypto.so.3  |[.] 0x0000000000241f9f\n\
                           10.00%  | 10  |libcrypto.so.3  |[.] 0x0000000000100000\n\
                           60.00%  | 60  |[kernel.kallsyms]  |[k] clear_page_erms\n";

    #[test]
    fn a_ciphers_share_is_what_falls_where_openssl_speed_spends_its_time() {
        let alone = Alone { pieces: parse(SPEED).busy_pieces(), rates: [1.0; 2] };
        let program = parse(PROGRAM);
        assert!((program.share_of(&alone) - 0.3).abs() < 1e-9);
        assert!((program.share_in("libcrypto") - 0.4).abs() < 1e-9);
        let names: Vec<_> = program.greatest(2).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["[kernel.kallsyms]", "libcrypto.so.3"]);
    }

    #[test]
    fn the_providers_samples_are_those_in_its_file_whatever_the_build_or_a_link_calls_it() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link] = ["libevener_provider.so", "evener.so"].map(|name| folder.path().join(name));
        std::fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let samples = parse("1% | 3 |libevener_provider.so |[.] seal\n1% | 1 |libcrypto.so.3 |[.] open\n");
        for module in [file, link] {
            assert!((samples.share_in(&file_name(&module)) - 0.75).abs() < 1e-9, "{}", module.display());
        }
        assert_eq!(file_name(Path::new("/no/evener.so")), "evener.so");
    }

    #[test]
    fn a_report_without_samples_has_no_shares() {
        let nothing = parse("Error: the file has no samples\n");
        assert_eq!(nothing, Samples::default());
        assert!(nothing.share_of(&Alone::default()).abs() < 1e-9);
    }
}
