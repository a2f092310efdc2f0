//! What the command says of a run and of the machine: summary, JSON, help, manual pages, completions.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::common::{self, Place, misfits, noise};
use serde_json::Value;

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

fn inputs(place: &Place) {
    place.keyset("k.json");
    for number in 0..40_u32 {
        place.write(format!("in/{number}"), noise(number.into(), 10_000));
    }
    place.write("in/large", noise(1, 2_000_000));
    std::os::unix::fs::symlink("large", place.join("in/link")).unwrap();
}

const BYTES: u64 = 40 * 10_000 + 2_000_000;

/// Sum over all workers and ways of the counter `name`.
fn sum(report: &Value, name: &str) -> u64 {
    let parts = |worker: &Value| -> u64 {
        ["plain", "multi_buffer", "module"].iter().filter_map(|way| worker[way][name].as_u64()).sum()
    };
    report["workers"].as_array().unwrap().iter().map(parts).sum()
}

#[test]
fn the_json_report_fits_its_schema_and_adds_up() {
    let place = Place::new();
    inputs(&place);
    let encrypt =
        ["encrypt", "--key", "k.json", "--quiet", "--json", "r.json", "--skip-links", "-o", "out", "in"];
    let ran = place.evener().args(encrypt).run().succeeded();
    assert_eq!((ran.stdout(), ran.stderr()), (&b""[..], ""));
    let report = json(&fs::read(place.join("r.json")).unwrap());
    assert_eq!(misfits("report.schema.json", &report), [""; 0]);
    let facts = ["outcome", "files", "already_done", "bytes_in"].map(|name| report[name].clone());
    assert_eq!(facts, ["done".into(), 41.into(), 0.into(), Value::from(BYTES)]);
    assert_eq!(sum(&report, "bytes"), BYTES);
    assert_eq!(report["skipped"][0]["path"], "in/link");
    let written: u64 = common::files(&place.join("out"))
        .iter()
        .map(|name| fs::metadata(place.join("out").join(name)).unwrap().len())
        .sum();
    assert_eq!(report["bytes_out"], written);
    let ran = place
        .evener()
        .args(["encrypt", "--key", "k.json", "-q", "--json", "-", "--skip-links", "-o", "out", "in"])
        .run();
    let again = json(ran.succeeded().stdout());
    assert_eq!((&again["files"], &again["already_done"]), (&0.into(), &41.into()));
}

#[test]
fn a_report_of_failures_names_each_and_so_do_the_lines() {
    let place = Place::with_key();
    for number in 0..30 {
        place.write(format!("in/{number}"), "not encrypted");
    }
    let ran = place.evener().args(["decrypt", "--key", "k.json", "--json", "-", "-o", "out", "in"]).run();
    let report = json(ran.stdout());
    assert_eq!(misfits("report.schema.json", &report), [""; 0]);
    assert_eq!(report["failed"].as_array().unwrap().len(), 30);
    assert_eq!(report["outcome"], "some_failed");
    let lines: Vec<&str> = ran.stderr().lines().collect();
    let named: BTreeSet<&str> =
        lines.iter().filter_map(|line| line.strip_prefix("evener: in/")?.split(':').next()).collect();
    assert_eq!(named.len(), 30, "{lines:?}");
    ran.ended_with(1);
}

#[test]
fn a_report_that_cannot_be_written_is_a_failure_of_a_run_that_was_done() {
    let place = Place::with_key();
    place.write("a", "text");
    let ran = place
        .evener()
        .args(["encrypt", "--key", "k.json", "-q", "--json", "no/r.json", "-o", "out", "a"])
        .run();
    ran.ended_with(1).saying("no/r.json");
    assert!(place.join("out").exists());
    let ran = place.evener().args(["encrypt", "--key", "k.json", "--json", "-", "-o", "-", "a"]).run();
    assert_eq!(ran.stdout(), b"");
    ran.ended_with(2).saying("standard output");
}

#[test]
fn the_summary_is_one_and_goes_to_standard_error() {
    let place = Place::new();
    inputs(&place);
    let ran = place.evener().args(["encrypt", "--key", "k.json", "-o", "out", "in"]).run().succeeded();
    assert_eq!(ran.stdout(), b"");
    let lines: Vec<&str> = ran.stderr().lines().collect();
    assert!(lines[0].starts_with("evener: encrypted 42 files, 2.29 MiB in "), "{lines:?}");
    assert_eq!(lines.iter().filter(|line| line.starts_with("evener:")).count(), 1, "{lines:?}");
    assert!(!ran.stderr().contains('\r'), "no progress in a pipe");
}

/// `script` gives the command a terminal and keeps in `shown` what it draws there. An input that waits gives it
/// time.
#[test]
fn progress_is_drawn_only_on_a_terminal_that_can_redraw_a_line() {
    if !common::there_is("script") {
        return common::skipped("there is no `script` to make a terminal");
    }
    let place = Place::with_key();
    let drawn = |terminal: &str, option: &str, wait: &str| {
        let evener = format!("{} encrypt --key k.json {option} --force -o out -", common::EVENER);
        let command = format!("({wait}; echo text) | {evener}");
        let script = place.program("script").env("TERM", terminal).env("SHELL", "/bin/sh");
        let ran = script.args(["-qefc", &command, "shown"]).run().succeeded();
        ran.stdout_text().contains("B/s  0 files")
    };
    // On a busy machine the first line may take long; only one that is never drawn is waited for to the end.
    let until_drawn = "for n in $(seq 1200); do grep -qs 'B/s  0 files' shown && break; sleep 0.1; done";
    assert!(drawn("xterm", "", until_drawn));
    assert!(!drawn("xterm", "--quiet", "sleep 0.5") && !drawn("dumb", "", "sleep 0.5"));
}

#[test]
fn what_a_module_did_is_shown_as_emulated() {
    let place = Place::new();
    inputs(&place);
    let module = "emulated:d=1000+0,h=1000+0,units=2";
    for policy in ["cpu_only", "module_only", "round_robin", "polling", "shared_queue"] {
        let run = place.evener().args(["encrypt", "--key", "k.json", "--module", module, "--policy", policy]);
        let ran =
            run.args(["--workers", "2", "--force", "--json", "r.json", "-o", "out", "in"]).run().succeeded();
        let report = json(&fs::read(place.join("r.json")).unwrap());
        assert_eq!(misfits("report.schema.json", &report), [""; 0]);
        assert_eq!((&report["policy"], sum(&report, "bytes")), (&policy.into(), BYTES), "{policy}");
        let workers = report["workers"].as_array().unwrap();
        let modules: Vec<&Value> = workers.iter().filter(|worker| worker["module"].is_object()).collect();
        assert_eq!(modules.len(), usize::from(policy != "cpu_only"), "{policy}");
        assert!(modules.iter().all(|module| module["emulated"] == true));
        assert_eq!(ran.stderr().contains("no speed of Evener"), policy != "cpu_only", "{}", ran.stderr());
        if policy == "module_only" || policy == "round_robin" {
            assert!(modules[0]["module"]["jobs"].as_u64() > Some(0), "{policy}: {report}");
        }
        place
            .evener()
            .args(["decrypt", "--key", "k.json", "-q", "--force", "-o", "back", "out"])
            .run()
            .succeeded();
        assert_eq!(fs::read(place.join("back/large")).unwrap(), noise(1, 2_000_000));
    }
}

#[test]
fn a_costed_processor_is_plain_and_named() {
    let place = Place::with_key();
    place.write("a", noise(1, 20_000));
    let cpu = "emulated:d=0+0,h=0+0,c=1000+0";
    let run = place.evener().args(["encrypt", "--key", "k.json", "--cpu-cost", cpu, "--json", "r.json"]);
    let ran = run.args(["-o", "out", "a"]).run().succeeded();
    assert!(ran.stderr().contains("no speed of Evener"), "{}", ran.stderr());
    let report = json(&fs::read(place.join("r.json")).unwrap());
    assert_eq!(misfits("report.schema.json", &report), [""; 0]);
    assert_eq!(report["emulated_cpu"], cpu);
    assert!(report["workers"].as_array().unwrap().iter().all(|worker| worker["multi_buffer"]["jobs"] == 0));
}

#[test]
fn devices_fits_its_schema_and_the_table_is_kept() {
    let place = Place::new();
    let devices = |options: &[&str]| {
        let run = place.evener().env("EVENER_CACHE_DIR", place.join("cache"));
        json(run.args(["devices", "--json"]).args(options).run().succeeded().stdout())
    };
    let first = devices(&[]);
    assert_eq!(misfits("devices.schema.json", &first), [""; 0]);
    assert_eq!(first["drivers"][0]["name"], "libcrypto");
    assert!(first["drivers"][0]["detail"].as_str().unwrap().starts_with("OpenSSL 3."));
    assert!(first["modules"].as_array().unwrap().iter().all(|module| module["emulated"] == true));
    assert!(first["workers"]["count"].as_u64() > Some(0));
    if first["drivers"][1]["missing"].is_string() {
        return common::skipped("there is no multi-buffer library, so no table");
    }
    assert_eq!(first["methods"]["state"], "measured now");
    let second = devices(&[]);
    assert_eq!(second["methods"]["state"], "measured by an earlier run");
    assert_eq!(second["methods"]["rows"], first["methods"]["rows"]);
    let third = devices(&["--measure"]);
    assert_eq!(third["methods"]["state"], "measured now");
}

#[test]
fn a_table_that_is_damaged_or_cannot_be_kept_stops_nothing() {
    let place = Place::new();
    place.write("a", "text");
    place.keyset("k.json");
    let cache = place.join("cache");
    let encrypt = |cache: &Path| {
        let run = place.evener().env("EVENER_CACHE_DIR", cache);
        run.args(["encrypt", "--key", "k.json", "-q", "--force", "-o", "out", "a"]).run().succeeded()
    };
    encrypt(&cache);
    for table in common::files(&cache) {
        fs::write(cache.join(table), "nonsense").unwrap();
        encrypt(&cache).saying("learned again");
        assert_eq!(encrypt(&cache).stderr(), "");
    }
    encrypt(Path::new("/proc/nowhere"));
    encrypt(&place.write("a file", ""));
}

/// Tink files need AES-GCM alone: where kernels of our own do it, such a run opens neither the library nor what OpenSSL reads when it is set up.
#[test]
fn a_run_that_kernels_do_opens_no_library_and_makes_the_same_files() {
    let place = Place::with_key();
    place.write("a", noise(1, 100_000));
    let encrypt = |disabled: &str, out: &str| {
        let run = place.evener().env("EVENER_DISABLE", disabled);
        run.args(["encrypt", "--key", "k.json", "-q", "-o", out, "a"]).run().succeeded();
    };
    let opened = |disabled: &str, out: &str| {
        let traced = place.program("strace").args(["-f", "-e", "trace=openat", common::EVENER]);
        let traced = traced.args(["decrypt", "--key", "k.json", "-q", "-o", out, "sealed"]);
        let done = traced.env("EVENER_DISABLE", disabled).run().succeeded();
        ["IPSec_MB", "openssl.cnf"].map(|name| done.stderr().contains(name))
    };
    encrypt("", "sealed");
    if evener_kernels::Level::best().is_none_or(|level| level.bits() < 256) {
        return common::skipped("this processor lacks the instructions by which kernels win for certain");
    }
    if !common::there_is("strace") {
        return common::skipped("strace is not installed");
    }
    // The first run measures, and for that has everything.
    opened("", "once");
    assert_eq!(opened("", "by kernels"), [false, false]);
    assert!(opened("lanes", "by OpenSSL")[1], "what is looked for is what it opens");
    let read = |name: &str| fs::read(place.join(name)).unwrap();
    assert!(read("by kernels") == read("a") && read("by OpenSSL") == read("a"));
}

/// By the age format, which no kernel of ours does: the library is looked for where there is enough to do.
#[test]
fn a_few_small_files_wait_for_no_library() {
    let place = Place::with_programs(&["strace"]);
    let Some(place) = place else { return };
    place.evener().args(["keygen", "--age", "id"]).run().succeeded();
    place.write("small", noise(1, 100));
    place.write("large", noise(2, 1 << 20));
    let opened = |names: &[&str]| {
        let traced = place.program("strace").args(["-f", "-e", "trace=openat", common::EVENER]);
        let traced = traced.args(["encrypt", "-q", "-i", "id", "--force", "-o", "out/"]).args(names);
        traced.run().succeeded().stderr().contains("IPSec_MB")
    };
    let devices = place.evener().arg("devices").run().succeeded();
    let is_there = devices.stdout_text().contains("libipsec-mb ");
    assert!(!opened(&["small"]));
    assert_eq!([opened(&["small", "large"]), opened(&["large"])], [is_there; 2]);
    place.evener().args(["decrypt", "-q", "-i", "id", "-o", "back", "out"]).run().succeeded();
    for name in ["small", "large"] {
        assert!(
            fs::read(place.join("back").join(name)).unwrap() == fs::read(place.join(name)).unwrap(),
            "{name}"
        );
    }
}

#[test]
fn multi_buffer_can_be_left_out() {
    let place = Place::with_key();
    place.write("a", noise(1, 100_000));
    let run = place.evener().env("EVENER_DISABLE", "multibuffer,lanes");
    let args = ["encrypt", "--key", "k.json", "-q", "--json", "-", "-o", "out", "a"];
    let report = json(run.args(args).run().succeeded().stdout());
    assert!(report["workers"].as_array().unwrap().iter().all(|worker| worker["multi_buffer"]["jobs"] == 0));
    let devices = place.evener().env("EVENER_DISABLE", "multibuffer").args(["devices"]).run().succeeded();
    assert!(devices.stdout_text().contains("EVENER_DISABLE"), "{}", devices.stdout_text());
    place.evener().env("EVENER_DISABLE", "openssl").arg("devices").run().succeeded().saying("openssl");
}

#[test]
fn without_instructions_for_aes_lanes_are_bitsliced() {
    let place = Place::new();
    let says = |disabled: &str| {
        let run = place.evener().env("EVENER_DISABLE", disabled).arg("devices").run().succeeded();
        // Costs that are kept name what they were measured with.
        let driver = run.stdout_text().lines().find(|line| line.starts_with("  lanes ")).unwrap();
        driver.contains("AES-CBC encryption, bitsliced")
    };
    assert!(says("aes"));
    assert!(!says("aes,lanes"));
    assert_eq!(says(""), !evener_kernels::Level::has_aes());
}

#[test]
fn every_subcommand_has_help_a_manual_page_and_completions() {
    let place = Place::new();
    let help = place.evener().arg("--help").run().succeeded().stdout_text().to_owned();
    place.evener().args(["man", "."]).run().succeeded();
    for subcommand in ["keygen", "encrypt", "decrypt", "devices", "explain", "bench", "completions", "man"] {
        let is_listed = help.contains(&format!("\n  {subcommand} "));
        assert!(is_listed || help.contains(&format!("`evener {subcommand}`")), "{help}");
        place.evener().args([subcommand, "--help"]).run().succeeded();
        let page = fs::read_to_string(place.join(format!("evener-{subcommand}.1"))).unwrap();
        assert!(page.contains(".TH evener-"), "{page}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = place.evener().args(["completions", shell]).run().succeeded();
        for word in ["--recipients-file", "--associated-data", "AES256_GCM_HKDF_1MB", "shared_queue"] {
            let bare = word.trim_start_matches("--");
            assert!(script.stdout_text().contains(bare), "{shell} {word}");
        }
    }
    place.evener().arg("--version").run().succeeded();
    let ran = place.evener().run().ended_with(2);
    assert!(ran.stderr().contains("Usage:"));
}

#[test]
fn an_answer_into_a_closed_pipe_is_no_error() {
    let place = Place::new();
    let script = r#""$0" completions bash | true; "$0" devices | true"#;
    let ran = place.program("sh").args(["-c", script, common::EVENER]).run().succeeded();
    assert_eq!(ran.stderr(), "");
}

#[test]
fn a_budget_of_core_time_and_an_objective_change_when_things_happen_but_not_what() {
    let place = Place::new();
    inputs(&place);
    let encrypt = ["encrypt", "--key", "k.json", "--cpu-budget", "40", "--objective", "cpu"];
    let module = ["--module", "emulated:am3358", "--json", "r.json", "-q", "-o", "out", "in"];
    place.evener().args(encrypt).args(module).run().succeeded();
    let report = json(&fs::read(place.join("r.json")).unwrap());
    assert_eq!(misfits("report.schema.json", &report), [""; 0]);
    assert_eq!((&report["policy"], sum(&report, "bytes")), (&"adaptive".into(), BYTES));
    place.evener().args(["decrypt", "--key", "k.json", "-q", "-o", "back", "out"]).run().succeeded();
    for name in common::files(&place.join("back")) {
        assert_eq!(
            fs::read(place.join("back").join(&name)).unwrap(),
            fs::read(place.join("in").join(&name)).unwrap()
        );
    }
}
