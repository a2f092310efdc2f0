//! `cargo xtask testbed papers`: the papers' experiments in a guest, and the page of them.
//!
//! Steps: a row of [`REPORTS`] -> a guest of its own -> the command in it, on the module behind AF_ALG -> its report, with command and
//! circumstances, in `docs/results/guest/NAME.json.gz` ([`keep`]) -> `guest_pages` of the bench draws all reports that are there ([`draw`]).
//! `cargo xtask figures` takes the same names. Under `NAME-counted` a report is made in a guest whose clock counts instructions, under
//! `virtio/NAME-counted` with a module that the command drives itself, under `armv7/NAME-counted` and `aarch64/NAME-counted` in a guest of
//! that profile, each kept and drawn in a folder of its own ([`PLACES`]).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use evener_testbed::{Awake, Guest, Icount, ModuleCounts, Profile, Qmp, Toolchain, USER_SPACE_MODULE};
use serde_json::{Value, json};

use super::circumstances::{circumstances, circumstances_of, commit, load, sleep};
use super::packed;
use crate::programs::{built_evener, run};
use crate::tree::{cargo, root};

/// A kind of guest, with a module.
struct Place {
    /// What begins the names of its reports.
    prefix: &'static str,
    /// Where they are kept, below `docs/results`.
    folder: &'static str,
    profile: Profile,
    /// Whether programs drive the module themselves.
    is_virtio: bool,
    /// Whether there are reports by the guest's own clock, too.
    has_own_clock: bool,
}

const PLACES: [Place; 4] = [
    Place { prefix: "", folder: "guest", profile: Profile::X86_64, is_virtio: false, has_own_clock: true },
    Place {
        prefix: "virtio/",
        folder: "guest-virtio",
        profile: Profile::X86_64,
        is_virtio: true,
        has_own_clock: false,
    },
    Place {
        prefix: "armv7/",
        folder: "guest-armv7",
        profile: Profile::Armv7,
        is_virtio: false,
        has_own_clock: false,
    },
    Place {
        prefix: "aarch64/",
        folder: "guest-aarch64",
        profile: Profile::Aarch64,
        is_virtio: false,
        has_own_clock: false,
    },
];

/// The module, by its driver's name; the one that programs drive themselves, by its place.
const MODULE: &str = "--module afalg:virtio_crypto_aes_cbc";
const VIRTIO_MODULE: &str = "--module virtio:";
const SETTING: &str = "export HOME=/tmp EVENER_CACHE_DIR=/tmp/costs";
/// Life of a guest: none of the reports takes so long, on a busy host either.
const LIFE: Duration = Duration::from_secs(3_600);
/// 4000 jobs of 16 KiB out of place are 128 MiB, beside their copies.
const MEMORY_MIB: u32 = 1_024;

/// All policies of paper 002, and ours.
const ALL: &str = "--policies cpu_only,module_only,round_robin,polling,shared_queue,adaptive";
/// Without the one that polls, of which the papers have figures for AES-128 encryption only.
const SOME: &str = "--policies cpu_only,module_only,round_robin,shared_queue,adaptive";
/// As many jobs as the papers have, and how busy the guest's core is (a hog of 0 %); a report takes some three to six minutes.
const JOBS: &str = "--count 4000 --runs 5 --hog 0";
const JOBS_ON_ARM: &str = "--count 4000 --runs 3 --hog 0";
const MIX: &str = "--mix uniform";
/// Where the speed of an emulated core strays by a third within seconds, only many pairs tell a policy from another: first those sizes
/// that the module is too slow for, then the one at which the two are near each other.
const EVEN: &str = "--policies cpu_only,adaptive --sizes 8,16,64,256,1K,4K,8K --count 4000 --runs 31";
const NEAR: &str = "--policies cpu_only,module_only,shared_queue,adaptive --sizes 16K --count 4000 --runs 15";
const SIZES_000: &str = "--sizes 5,20,50,100,500,1000,3000,5000,7000";
/// Windows of 300 ms: each holds some hundred alarms.
const BESIDE: &str = "--probe-latency --count 250 --runs 5 --cell-time 1500 \
                      --policies cpu_only,module_only,round_robin,shared_queue,adaptive";
/// Idle time is counted in steps of 10 ms: windows of half a second.
const BUSY: &str = "--hog 0 --runs 5 --cell-time 2500";

/// What is run, by the name of its report.
const REPORTS: [(&str, &str, &[&str]); 21] = [
    ("aes-128-encrypt", "bench crypt --algorithm AES-128-CBC", &[JOBS, ALL]),
    ("aes-192-encrypt", "bench crypt --algorithm AES-192-CBC", &[JOBS, ALL]),
    ("aes-256-encrypt", "bench crypt --algorithm AES-256-CBC", &[JOBS, ALL]),
    ("aes-128-decrypt", "bench crypt --algorithm AES-128-CBC --direction decrypt", &[JOBS, ALL]),
    ("aes-192-decrypt", "bench crypt --algorithm AES-192-CBC --direction decrypt", &[JOBS, ALL]),
    ("aes-256-decrypt", "bench crypt --algorithm AES-256-CBC --direction decrypt", &[JOBS, ALL]),
    ("paper-000", "bench crypt --algorithm AES-256-CBC", &[SIZES_000, JOBS, ALL]),
    ("aes-128-mix", "bench crypt --algorithm AES-128-CBC", &[MIX, JOBS, ALL]),
    ("aes-256-mix", "bench crypt --algorithm AES-256-CBC", &[MIX, JOBS, ALL]),
    ("aes-128-even", "bench crypt --algorithm AES-128-CBC", &[EVEN]),
    ("aes-256-even", "bench crypt --algorithm AES-256-CBC", &[EVEN]),
    ("aes-128-near", "bench crypt --algorithm AES-128-CBC", &[NEAR]),
    ("aes-256-near", "bench crypt --algorithm AES-256-CBC", &[NEAR]),
    ("busy-16k", "bench crypt --sizes 16K --count 500", &[BUSY, SOME]),
    ("busy-1m", "bench crypt --sizes 1M --count 16", &[BUSY, SOME]),
    ("hog-0", "bench crypt --hog 0", &[BESIDE]),
    ("hog-25", "bench crypt --hog 25", &[BESIDE]),
    ("hog-50", "bench crypt --hog 50", &[BESIDE]),
    ("hog-75", "bench crypt --hog 75", &[BESIDE]),
    ("hog-100", "bench crypt --hog 100", &[BESIDE]),
    ("simulated", "sim live", &["--count 4000 --runs 5", SOME]),
];

/// What ends the names of reports from a guest whose clock counts instructions: a host that strays cannot be seen there.
const COUNTED: &str = "-counted";
/// Many pairs are for a clock that strays.
const NEVER_COUNTED: [&str; 4] = ["aes-128-even", "aes-256-even", "aes-128-near", "aes-256-near"];

/// One of [`REPORTS`] in one of [`PLACES`], by the guest's own clock or by counted instructions.
struct Wanted {
    name: String,
    words: String,
    is_counted: bool,
    place: &'static Place,
}

fn all() -> impl Iterator<Item = Wanted> {
    let clocks = |place: &'static Place| {
        [false, true]
            .into_iter()
            .filter(|is_counted| *is_counted || place.has_own_clock)
            .map(move |it| (place, it))
    };
    let wanted = |(place, is_counted): (&'static Place, bool)| {
        let rows = REPORTS.iter().filter(move |(name, ..)| !is_counted || !NEVER_COUNTED.contains(name));
        let module =
            if place.is_virtio { format!("{VIRTIO_MODULE}{USER_SPACE_MODULE}") } else { MODULE.to_owned() };
        rows.map(move |(name, words, more)| Wanted {
            name: format!("{}{name}{}", place.prefix, if is_counted { COUNTED } else { "" }),
            words: format!("{words} {} {module}", words_of(place, more)),
            is_counted,
            place,
        })
    };
    PLACES.iter().flat_map(clocks).flat_map(wanted)
}

/// What a report is told besides. On `cortex-a7` a report of five runs takes more than a quarter of
/// an hour; runs hardly differ where the clock counts.
fn words_of(place: &Place, more: &[&str]) -> String {
    let more = more.join(" ");
    match place.profile {
        Profile::X86_64 => more,
        _ => more.replace(JOBS, JOBS_ON_ARM).replace(ALL, SOME),
    }
}

/// The names of all reports.
pub(crate) fn names() -> impl Iterator<Item = String> {
    all().map(|wanted| wanted.name)
}

/// Makes the reports named, all where none is, and draws the page.
///
/// # Errors
///
/// Where a name is not known, something does not build, or a guest or the command in it fails.
pub(crate) fn make(names_given: &[&str]) -> Result<(), String> {
    if let Some(unknown) = names_given.iter().find(|names_given| !names().any(|name| name == **names_given)) {
        return Err(format!(
            "there is no report {unknown:?}; there are {}",
            names().collect::<Vec<_>>().join(", ")
        ));
    }
    for wanted in all().filter(|wanted| names_given.is_empty() || names_given.contains(&wanted.name.as_str()))
    {
        println!("== {}: evener {}", wanted.name, wanted.words);
        let evener = built_for(wanted.place.profile)?;
        keep(&wanted.name, &report(&evener, &wanted)?)?;
    }
    draw()
}

/// The command for a guest's processor, built with optimisation.
///
/// # Errors
///
/// Where there is no compiler for it, or it does not build.
pub(crate) fn built_for(profile: Profile) -> Result<PathBuf, String> {
    if profile == Profile::X86_64 {
        return built_evener();
    }
    let toolchain = Toolchain::find(profile).map_err(|error| error.to_string())?;
    let mut build = toolchain.cargo(cargo().get_program());
    build.args(["build", "-q", "--release", "-p", "evener-cli"]);
    run(build)?;
    Ok(toolchain.built_with_optimisation().join("evener"))
}

/// Has the simulator predict once more the runs of the reports of these names, from the costs and live runs in them, and draws the page.
///
/// # Errors
///
/// Where a report is not there or not of that kind, or something does not build.
pub(crate) fn predict_again(names_given: &[&str]) -> Result<(), String> {
    let evener = built_evener()?;
    for name in names_given {
        let text = packed::unpack(&path_of(name).with_extension(packed::ENDING))?;
        let mut saved: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let file = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
        fs::write(&file, saved["report"].to_string()).map_err(|error| error.to_string())?;
        let mut again = Command::new(&evener);
        again.args(["sim", "live", "--again"]).arg(file.path()).arg("--json").arg(file.path());
        run(again)?;
        let text = fs::read(&file).map_err(|error| error.to_string())?;
        saved["report"] = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
        let circumstances = saved["circumstances"].as_str().unwrap_or_default();
        let (circumstances, _) = circumstances.split_once(AGAIN).unwrap_or((circumstances, ""));
        saved["circumstances"] = Value::from(format!("{circumstances}{AGAIN}{}\n", commit()));
        keep(name, &saved)?;
    }
    draw()
}

/// Begins the last line of the circumstances of a report whose predictions were made later.
const AGAIN: &str = "- predicted again, from the same costs and live runs: commit ";

fn path_of(name: &str) -> PathBuf {
    // The last whose prefix fits, for the first has none.
    let place = PLACES.iter().rfind(|place| name.starts_with(place.prefix));
    let Place { prefix, folder, .. } = place.unwrap_or(&PLACES[0]);
    folder_of(folder).join(name.trim_start_matches(prefix)).with_extension("json")
}

fn folder_of(name: &str) -> PathBuf {
    root().join("docs/results").join(name)
}

/// Keeps a report with how it came about.
pub(crate) fn keep(name: &str, report: &Value) -> Result<(), String> {
    let path = path_of(name);
    let text = serde_json::to_string_pretty(report).map_err(|error| error.to_string())? + "\n";
    let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
    folder.and_then(|()| fs::write(&path, text)).map_err(|error| format!("{}: {error}", path.display()))?;
    packed::pack(&path)
}

/// Runs the command in a guest of its own.
fn report(evener: &Path, wanted: &Wanted) -> Result<Value, String> {
    let load_before = load();
    let awake = Awake::hold();
    let Place { profile, is_virtio, .. } = *wanted.place;
    let builder = Guest::builder().profile(profile).program(evener).memory_mib(MEMORY_MIB).limit(LIFE);
    let builder = if wanted.is_counted { builder.icount(Icount::NEAR_AM3358) } else { builder };
    let builder = if is_virtio { builder.user_space_module() } else { builder };
    let mut guest = builder.boot().map_err(|error| error.to_string())?;
    // QEMU 7 does not count.
    let counts = |guest: &Guest| {
        let counts = if is_virtio { Qmp::user_space_module_counts } else { Qmp::module_counts };
        guest.qmp().and_then(|mut qmp| counts(&mut qmp)).ok()
    };
    // Before it is used the first time the kernel may still be trying the module itself. What this learns of costs is not kept.
    let look = "EVENER_CACHE_DIR=/tmp/looked HOME=/tmp evener devices --json && evener --version | head -n 1";
    let looked = guest.run(look).map_err(|error| error.to_string())?;
    let before = counts(&guest);
    let is_apart = guest.set_apart().map_err(|error| error.to_string())?;
    let command = format!("{SETTING}; evener {} --json /out/report.json", wanted.words);
    let outcome = guest.run(&command).map_err(|error| error.to_string())?;
    print!("{}", outcome.stdout);
    let bytes = outcome.files.get("report.json").filter(|_| outcome.status == 0);
    let bytes = bytes.ok_or_else(|| format!("status {} in the guest\n{}", outcome.status, outcome.stderr))?;
    let report: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let after = counts(&guest);
    if let (Some(before), Some(after)) = (before, after) {
        must_agree(&report, before, after)?;
    }
    guest.shut_down().map_err(|error| error.to_string())?;
    // A command for another processor does not run here.
    let circumstances = match profile {
        Profile::X86_64 => circumstances(evener, &load_before)?,
        _ => circumstances_of(&looked.stdout, &load_before)?,
    };
    Ok(json!({
        "command": format!("evener {}", wanted.words),
        "circumstances": circumstances + &sleep(awake.as_ref()) + apart(is_apart) + clock(&wanted.name),
        "module": after,
        "report": report,
    }))
}

/// Whether core and module had processors of their own, as a line of the circumstances.
pub(crate) const fn apart(is_apart: bool) -> &'static str {
    if is_apart {
        "- threads of QEMU: the core's on one processor, all others beside it\n"
    } else {
        "- threads of QEMU: on any processor\n"
    }
}

/// What the guest's clock counts in the report of that name, as a line of the circumstances; the usual is left out.
pub(crate) fn clock(name: &str) -> &'static str {
    if name.ends_with(COUNTED) {
        "- clock of the guest: counts instructions, 2 ns each; the module has real time\n"
    } else {
        ""
    }
}

/// The requests that the report's program counts are those that the module has counted meanwhile. What `sim live` reports
/// has no such count.
fn must_agree(report: &Value, before: ModuleCounts, after: ModuleCounts) -> Result<(), String> {
    let Some(reported) = report["module_requests"][0][1].as_u64() else { return Ok(()) };
    let count = |counts: ModuleCounts| counts.encrypted_count + counts.decrypted_count;
    match count(after) - count(before) {
        counted if counted == reported => Ok(()),
        counted => Err(format!("the report has {reported} requests of the module, QEMU counted {counted}")),
    }
}

/// Draws a page from each folder's reports.
pub(crate) fn draw() -> Result<(), String> {
    for folder in PLACES.iter().map(|place| folder_of(place.folder)).filter(|folder| folder.exists()) {
        let mut pages: Command = cargo();
        pages.args(["run", "-q", "-p", "evener-bench", "--bin", "guest_pages"]).arg(folder);
        run(pages)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_whose_count_is_not_the_module_s_own_is_none() {
        let counts = |encrypted_count, decrypted_count| ModuleCounts {
            encrypted_count,
            decrypted_count,
            ..ModuleCounts::default()
        };
        let (before, after) = (counts(7, 55), counts(107, 58));
        let report = |count: u64| json!({ "module_requests": [["afalg:virtio_crypto_aes_cbc", count]] });
        assert_eq!(must_agree(&report(103), before, after), Ok(()));
        assert!(must_agree(&report(104), before, after).is_err_and(|reason| reason.contains("103")));
        assert_eq!(must_agree(&json!({ "schema": "of another kind" }), before, after), Ok(()));
    }

    #[test]
    fn a_report_is_kept_where_its_name_says() {
        for (name, place) in [
            ("hog-50", "guest/hog-50.json"),
            ("virtio/hog-50-counted", "guest-virtio/hog-50-counted.json"),
            ("aarch64/aes-128-encrypt-counted", "guest-aarch64/aes-128-encrypt-counted.json"),
        ] {
            assert!(path_of(name).ends_with(place), "{}", path_of(name).display());
        }
    }

    #[test]
    fn every_report_has_a_name_of_its_own() {
        let different: std::collections::BTreeSet<_> = names().collect();
        assert_eq!(different.len(), names().count());
        assert_eq!(names().count(), 5 * REPORTS.len() - 4 * NEVER_COUNTED.len());
        let names_both = |reason: String| reason.contains("hog-100") && reason.contains("busy-1m-counted");
        assert!(make(&["hog-1"]).is_err_and(names_both));
    }
}
