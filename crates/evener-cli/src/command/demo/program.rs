//! A program of other hands, unmodified: OpenSSL's own command, in turns with the plain library and with the provider.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use evener_bench::medians::Spread;

use super::page::{Part, Section};
use super::stage::{Stage, say, say_indented};
use super::{Demo, Shown};
use crate::command::bench::provider_file::{beside_or_installed, named};

/// What `openssl speed` is asked for.
struct Work {
    what: &'static str,
    why: &'static str,
    words: &'static str,
}

const WORKS: [Work; 2] = [
    Work {
        what: "AES-256-GCM, 8 KiB at a time",
        why: "kernels of Evener's for this processor, where OpenSSL has none of its own",
        words: "-evp aes-256-gcm -bytes 8192",
    },
    Work {
        what: "AES-128-CBC, 16 KiB at a time, 16 jobs in flight",
        why: "messages of several jobs side by side in one register",
        words: "-evp aes-128-cbc -bytes 16384 -async_jobs 16",
    },
];

/// Rates in 10^6 bytes per second, turn by turn.
#[derive(Default)]
struct Rates {
    plain: Vec<f64>,
    ours: Vec<f64>,
}

pub(super) fn with_provider(stage: &Stage<'_>, arguments: &Demo) -> anyhow::Result<Shown> {
    let mut shown = Shown { section: Section::new("An unmodified program: openssl"), ..Shown::default() };
    let module = match module(arguments) {
        Ok(module) if has_openssl(stage) => module,
        Ok(_) => {
            return without(
                shown,
                "Without openssl: it is not installed, so no program was shown with the provider.",
            );
        }
        Err(error) => return without(shown, &format!("Without the provider: {error}.")),
    };
    let module = under_its_name(stage, module)?;
    let configuration = stage.path("evener.cnf");
    let words = "provider config --file";
    say(format!("$ evener {words} {} >evener.cnf", module.display()))?;
    let mut config = stage.own();
    config.args(words.split_whitespace()).arg(&module);
    std::fs::write(&configuration, stage.run(config)?).context("cannot write evener.cnf")?;
    let mut rates = [Rates::default(), Rates::default()];
    let mut status = String::new();
    for run in 0..arguments.runs {
        for (work, rates) in WORKS.iter().zip(&mut rates) {
            say(format!("$ openssl speed {} (turn {} of {})", work.words, run + 1, arguments.runs))?;
            rates.plain.push(speed(stage, work, Path::new("/dev/null"))?);
            rates.ours.push(speed(stage, work, &configuration)?);
        }
        // Processes that have ended are told once: so the last turn's remain.
        let mut counts = stage.own();
        counts.arg("status");
        status = stage.run(counts)?;
    }
    let rows: Vec<_> = WORKS.iter().zip(&rates).filter_map(|(work, rates)| Row::of(work, rates)).collect();
    for row in &rows {
        say(format!(
            "  {}: {} MB/s plain, {} with evener.so: {} times",
            row.cells[0], row.cells[1], row.cells[2], row.cells[3]
        ))?;
    }
    say("$ evener status")?;
    say_indented(&status)?;
    shown.result = Some(result(&rows));
    shown.section.parts = parts(rows, status);
    Ok(shown)
}

fn module(arguments: &Demo) -> anyhow::Result<PathBuf> {
    match &arguments.module {
        Some(path) => named(path),
        None => beside_or_installed(&std::env::current_exe()?, ""),
    }
}

/// The file as `evener.so`, by which name programs load it: as cargo builds it it has another.
fn under_its_name(stage: &Stage<'_>, module: PathBuf) -> anyhow::Result<PathBuf> {
    if module.file_name().is_some_and(|name| name == "evener.so") {
        return Ok(module);
    }
    let link = stage.path("evener.so");
    std::os::unix::fs::symlink(std::path::absolute(module)?, &link).context("cannot link to evener.so")?;
    Ok(link)
}

fn has_openssl(stage: &Stage<'_>) -> bool {
    let mut version = stage.command("openssl");
    version.arg("version");
    stage.run(version).is_ok()
}

fn without(mut shown: Shown, why: &str) -> anyhow::Result<Shown> {
    say(why)?;
    shown.section.parts.push(Part::Sentence(why.to_owned()));
    shown.missing.push(why.to_owned());
    Ok(shown)
}

/// One second of it.
fn speed(stage: &Stage<'_>, work: &Work, configuration: &Path) -> anyhow::Result<f64> {
    let mut command = stage.command("openssl");
    command.args(["speed", "-mr", "-seconds", "1"]).args(work.words.split_whitespace());
    command.env("OPENSSL_CONF", configuration);
    let said = stage.run(command)?;
    rate(&said).with_context(|| format!("`openssl speed {}` told no rate", work.words))
}

/// In 10^6 bytes per second, from a line as `+F:25:AES-256-GCM:1834759876.92`.
fn rate(said: &str) -> Option<f64> {
    let line = said.lines().find(|line| line.starts_with("+F:"))?;
    let bytes: f64 = line.rsplit(':').next()?.trim().parse().ok()?;
    Some(bytes / 1e6)
}

struct Row {
    cells: Vec<String>,
    times: f64,
    what: &'static str,
}

impl Row {
    fn of(work: &Work, rates: &Rates) -> Option<Self> {
        let ratios: Vec<f64> =
            rates.ours.iter().zip(&rates.plain).map(|(ours, plain)| ours / plain).collect();
        let [plain, ours, times] =
            [&rates.plain, &rates.ours, &ratios].map(|values| Spread::of(values.as_slice()));
        let (plain, ours, times) = (plain?, ours?, times?);
        let cells = vec![
            work.what.to_owned(),
            format!("{:.0}", plain.median),
            format!("{:.0}", ours.median),
            format!("{:.2} [{:.2} {:.2}]", times.median, times.min, times.max),
            work.why.to_owned(),
        ];
        Some(Self { cells, times: times.median, what: work.what })
    }
}

fn result(rows: &[Row]) -> String {
    let told: Vec<String> = rows.iter().map(|row| format!("{:.1} times ({})", row.times, row.what)).collect();
    format!("the command openssl ran at {} of its own speed with evener.so", told.join(" and "))
}

fn parts(rows: Vec<Row>, status: String) -> Vec<Part> {
    let sentence = "The command openssl of this system, not rebuilt: OPENSSL_CONF names a configuration that loads evener.so. In brackets are the least and the \
                    greatest ratio of two runs that followed each other.";
    let head = vec!["openssl speed", "MB/s plain", "MB/s with evener.so", "times", "by"];
    let rows = rows.into_iter().map(|row| row.cells).collect();
    let counted = "How one sees it: what the provider counted in those two programs.";
    vec![
        Part::Sentence(sentence.to_owned()),
        Part::Table { head, rows },
        Part::Sentence(counted.to_owned()),
        Part::Screen(format!("$ evener status\n{status}")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_read_from_openssls_own_line() {
        let said = "+DT:AES-256-GCM:1:1024\n+R:1790000:AES-256-GCM:1.0\n+F:25:AES-256-GCM:1834759876.92\n";
        assert_eq!(rate(said).map(f64::round), Some(1_835.0));
        assert_eq!(rate("+F:25:AES-256-GCM:none\n"), None);
    }
}
