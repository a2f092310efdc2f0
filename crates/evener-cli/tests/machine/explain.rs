//! `evener explain` and the costs that are kept between runs: the way that is named is the cheapest of its own table,
//! what was learned is known again, and a file that is not ours stops nothing.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use crate::common::{self, Place, Ran, misfits};
use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};
use serde_json::Value;

const MODULE: &str = "emulated:d=1000+0,h=1000+0";
const JOB: [&str; 4] = ["--algorithm", "AES-128-CBC", "--size", "16K"];

/// Runs `evener explain` on the job, with a cache in this place.
fn explain(place: &Place, options: &[&str]) -> Ran {
    let run = place.evener().env("EVENER_CACHE_DIR", place.join("cache"));
    run.arg("explain").args(JOB).args(options).run()
}

/// The answer as JSON, which fits its schema.
fn facts(place: &Place, options: &[&str]) -> Value {
    let ran = explain(place, &[options, &["--json"]].concat()).succeeded();
    let facts: Value = serde_json::from_slice(ran.stdout()).unwrap();
    assert_eq!(misfits("explain.schema.json", &facts), [""; 0]);
    facts
}

fn costs_file(place: &Place) -> PathBuf {
    let is_costs = |path: &PathBuf| path.to_str().is_some_and(|name| name.starts_with("costs-"));
    let found = common::files(&place.join("cache")).into_iter().find(is_costs);
    place.join("cache").join(found.expect("costs were kept"))
}

/// A place where a job's costs are known, in nanoseconds; whether there is multi-buffer.
fn knowing(c: [u64; 2], d: u64, h: u64, width: u32) -> (Place, bool) {
    let place = Place::new();
    explain(&place, &["--burst", &width.to_string(), "--module", MODULE]).succeeded();
    let kind = "AES-128-CBC encrypt 16384 out-of-place";
    let [mut c, mut d, mut h] = [c.to_vec(), vec![d], vec![h]].map(Vec::into_iter);
    let known = |line: &str| match line.split_once(' ') {
        Some(("c", rest)) if rest.starts_with(kind) => {
            format!("c {kind} {width} 9 {}.0 16384.0\n", c.next().unwrap())
        }
        Some(("d", _)) => format!("d {kind} 9 {}.0 16384.0\n", d.next().unwrap()),
        Some(("h", _)) => format!("h {kind} 9 {}.0 16384.0\n", h.next().unwrap()),
        _ => format!("{line}\n"),
    };
    let text: String = fs::read_to_string(costs_file(&place)).unwrap().lines().map(known).collect();
    fs::write(costs_file(&place), &text).unwrap();
    (place, text.contains("\nmulti-buffer"))
}

fn ways(facts: &Value) -> &[Value] {
    facts["ways"].as_array().unwrap()
}

fn chosen(facts: &Value) -> Vec<&str> {
    let chosen = ways(facts).iter().filter(|way| way["chosen"] == true);
    chosen.map(|way| way["name"].as_str().unwrap()).collect()
}

/// The formula, made anew from the parts that the table shows.
fn total_of(way: &Value, lambda: f64) -> f64 {
    let part = |name: &str| way[name].as_f64().unwrap_or_default();
    let core = part("c_ns") + part("d_ns");
    part("wait_ns") + core + part("h_ns") + lambda * core
}

#[test]
fn the_way_that_is_named_is_the_cheapest_of_its_own_table() {
    for (c, d, h, expected) in [
        ([24_000, 90_000], 142_000, 400_000, "plain"),
        ([90_000, 24_000], 142_000, 400_000, "multi-buffer"),
        ([900_000, 990_000], 42_000, 50_000, MODULE),
        ([900_000, 990_000], 42_000, 9_000_000, "plain"),
    ] {
        let (place, has_multi_buffer) = knowing(c, d, h, 1);
        if expected == "multi-buffer" && !has_multi_buffer {
            common::skipped("there is no multi-buffer library");
            continue;
        }
        let facts = facts(&place, &["--module", MODULE]);
        assert_eq!(chosen(&facts), [expected]);
        let lambda = facts["lambda"].as_f64().unwrap();
        let total = |way: &Value| way["total_ns"].as_f64().unwrap();
        let least = ways(&facts).iter().min_by(|one, other| total(one).total_cmp(&total(other))).unwrap();
        assert_eq!(least["name"], expected, "{facts}");
        for way in ways(&facts) {
            assert!((total(way) - total_of(way, lambda)).abs() < 1.0, "{way} at {lambda}");
            assert_eq!((&way["samples"], &way["measured_now"]), (&9.into(), &false.into()));
        }
        let text = explain(&place, &["--module", MODULE]).succeeded().stdout_text().to_owned();
        let marked: Vec<&str> = text.lines().filter(|line| line.starts_with(" > ")).collect();
        assert!(marked.len() == 1 && marked[0].starts_with(&format!(" > {expected} ")), "{text}");
        assert!(text.contains(&format!("\n{expected}: ")), "{text}");
        assert!(text.contains("no speed of Evener"), "{text}");
    }
}

#[test]
fn the_reason_names_both_core_times() {
    let (place, _) = knowing([24_000, 24_000], 142_000, 400_000, 1);
    let why = facts(&place, &["--module", MODULE])["why"].clone();
    let why = why.as_str().unwrap();
    assert!(why.ends_with(&format!("{MODULE} would cost 142 us of core time, the CPU 24 us")), "{why}");
}

/// 100 us on a core against 10 us and 150 us: the module ends later and saves core time.
#[test]
fn core_time_has_its_full_price_where_it_is_what_counts() {
    let (place, _) = knowing([100_000, 100_000], 10_000, 150_000, 1);
    let facts = facts(&place, &["--module", MODULE, "--objective", "cpu"]);
    assert_eq!((&facts["lambda"], chosen(&facts)), (&1.0.into(), vec![MODULE]));
}

/// On one core, which others than this request would use: to a single request that counts for little where its end is what counts.
#[test]
fn a_single_request_s_table_has_the_price_by_which_it_is_sent() {
    let (place, _) = knowing([1_400_000, 1_400_000], 10_000, 1_500_000, 1);
    let mut one = CpuSet::new();
    one.set(sched_getcpu());
    sched_setaffinity(None, &one).unwrap();
    let facts = facts(&place, &["--module", MODULE, "--objective", "latency"]);
    let total = |way: &Value| way["total_ns"].as_f64().unwrap();
    let least = ways(&facts).iter().min_by(|one, other| total(one).total_cmp(&total(other))).unwrap();
    assert_eq!(chosen(&facts), [least["name"].as_str().unwrap()], "{facts}");
    let lambda = facts["lambda"].as_f64().unwrap();
    assert!(lambda > 0.0 && lambda < 0.2, "{lambda}");
    assert!((total(least) - total_of(least, lambda)).abs() < 1.0, "{facts}");
}

#[test]
fn a_large_burst_goes_to_the_cores_and_to_a_module_that_pays() {
    let (place, _) = knowing([1_000_000, 1_000_000], 1_000, 19_000, 16);
    let shared = facts(&place, &["--module", MODULE, "--burst", "1000"]);
    assert_eq!((chosen(&shared).len(), chosen(&shared).last()), (2, Some(&MODULE)), "{shared}");
    // Where core time is what counts, cores leave to the module what it does for less.
    let left = facts(&place, &["--module", MODULE, "--burst", "1000", "--objective", "cpu"]);
    assert_eq!(chosen(&left), [MODULE], "{left}");
    let (place, _) = knowing([1_000, 1_000], 400_000, 19_000, 16);
    let alone = facts(&place, &["--module", MODULE, "--burst", "1000"]);
    assert!(chosen(&alone).len() == 1 && chosen(&alone) != [MODULE], "{alone}");
}

#[test]
fn what_is_not_known_is_measured_once_and_kept_for_its_owner_only() {
    let place = Place::new();
    let options = ["--module", MODULE, "--burst", "3", "--direction", "decrypt"];
    let first = facts(&place, &options);
    assert!(ways(&first).iter().all(|way| way["measured_now"] == true), "{first}");
    let second = facts(&place, &options);
    for (first, second) in ways(&first).iter().zip(ways(&second)) {
        assert_eq!((&second["measured_now"], &second["samples"]), (&false.into(), &first["samples"]));
        let core = |way: &Value| total_of(way, 0.0) - way["h_ns"].as_f64().unwrap_or_default();
        assert!((core(first) - core(second)).abs() <= 2.0, "{first} {second}");
    }
    assert_eq!(fs::metadata(costs_file(&place)).unwrap().permissions().mode() & 0o777, 0o600);
    let other = facts(&place, &["--module", MODULE, "--burst", "3"]);
    assert!(ways(&other).iter().all(|way| way["measured_now"] == true), "{other}");
}

#[test]
fn authenticated_decryption_is_measured_on_what_is_authentic() {
    let place = Place::new();
    for layout in ["in-place", "out-of-place"] {
        let run = place.evener().env("EVENER_CACHE_DIR", place.join("cache")).arg("explain");
        let args =
            ["--algorithm", "aes-256-gcm", "--size", "1000", "--direction", "decrypt", "--layout", layout];
        let ran = run.args(args).args(["--module", MODULE, "--json"]).run().succeeded();
        let facts: Value = serde_json::from_slice(ran.stdout()).unwrap();
        assert!(ways(&facts).iter().all(|way| way["missing"].is_null()), "{facts}");
    }
}

#[test]
fn a_file_of_costs_that_is_not_ours_is_named_and_replaced() {
    let place = Place::new();
    explain(&place, &[]).succeeded();
    let text = fs::read_to_string(costs_file(&place)).unwrap();
    let foreign = [
        ("nonsense".to_owned(), "line 1"),
        (text.replace("evener costs 1", "evener costs 2"), "line 1: is not \"evener costs 1\""),
        (text.replace("processor ", "processor not "), "another processor"),
        (text.replace(" 16384 ", " 16383 "), "names no class"),
        (text[..text.len() - 3].to_owned(), "cut off"),
    ];
    for (text, words) in foreign {
        fs::write(costs_file(&place), &text).unwrap();
        explain(&place, &[]).succeeded().saying("warning: ").saying(words);
        assert_eq!(explain(&place, &[]).succeeded().stderr(), "", "{text}");
    }
    fs::write(costs_file(&place), [0xFF; 100]).unwrap();
    explain(&place, &[]).succeeded().saying("UTF-8");
}

#[test]
fn costs_of_another_library_are_left_out() {
    let place = Place::new();
    explain(&place, &["--module", MODULE]).succeeded();
    let text = fs::read_to_string(costs_file(&place)).unwrap();
    assert!(text.contains("\nplain OpenSSL 3."), "{text}");
    let slower = facts(&place, &["--cpu-cost", "emulated:am3358"]);
    assert_eq!((ways(&slower).len(), &ways(&slower)[0]["measured_now"]), (1, &true.into()), "{slower}");
    fs::write(costs_file(&place), text.replace("plain OpenSSL", "plain OtherSSL")).unwrap();
    let facts = facts(&place, &["--module", MODULE]);
    let is_new = |way: &Value| way["measured_now"] == true;
    let new: Vec<&Value> = ways(&facts).iter().filter(|way| is_new(way)).map(|way| &way["name"]).collect();
    assert_eq!(new, ["plain"]);
    assert!(fs::read_to_string(costs_file(&place)).unwrap().contains("plain OtherSSL"));
}

#[test]
fn costs_lie_in_the_users_cache_and_nowhere_without_one() {
    let place = Place::new();
    let at = |variables: &[(&str, PathBuf)]| {
        let mut run = place.evener().arg("explain").args(JOB);
        for name in ["EVENER_CACHE_DIR", "XDG_CACHE_HOME", "HOME"] {
            run.command.env_remove(name);
        }
        run.command.envs(variables.iter().cloned());
        assert_eq!(run.run().succeeded().stderr(), "");
    };
    at(&[]);
    assert!(common::files(place.path()).is_empty());
    at(&[("HOME", place.join("home"))]);
    at(&[("HOME", place.join("home")), ("XDG_CACHE_HOME", place.join("xdg"))]);
    for folder in ["home/.cache/evener", "xdg/evener"] {
        let saved = common::files(&place.join(folder));
        assert!(saved.iter().any(|path| path.to_str().unwrap().starts_with("costs-")), "{folder}: {saved:?}");
    }
}

#[test]
fn devices_says_what_is_in_the_way_of_each_engine() {
    let place = Place::new();
    let system = place.join("system");
    fs::create_dir_all(system.join("proc/sys/kernel")).unwrap();
    fs::write(system.join("proc/sys/kernel/osrelease"), "7.2.4\n").unwrap();
    let listed = "name : cbc(aes)\ndriver : cbc-aes-caam\ninternal : no\ntype : skcipher\nasync : yes\n";
    fs::write(system.join("proc/crypto"), listed).unwrap();
    let devices = |option: &[&str]| {
        let run =
            place.evener().env("EVENER_CACHE_DIR", place.join("cache")).args(["devices", "--system-root"]);
        run.args([&system]).args(option).run().succeeded().stdout_text().to_owned()
    };
    let shown: Value = serde_json::from_str(&devices(&["--json"])).unwrap();
    assert_eq!(misfits("devices.schema.json", &shown), [""; 0]);
    let names: Vec<&str> =
        shown["device_paths"].as_array().unwrap().iter().map(|path| path["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["afalg", "afalg:cbc-aes-caam", "devcrypto", "virtio"]);
    assert_eq!(shown["device_paths"][1]["obstacle"]["kind"], "kernel-version");
    let text = devices(&[]);
    let paths = text.split("\nDevice paths\n").nth(1).unwrap();
    assert!(
        paths.contains(
            "  afalg:cbc-aes-caam (NXP i.MX6, 7, 8M, LS10xx, QorIQ, cbc(aes)): shut (kernel-version): "
        ),
        "{paths}"
    );
    assert!(paths.contains("    do: build cryptodev-linux"), "{paths}");
}

#[test]
fn devices_shows_what_was_learned_and_forgets_it() {
    let place = Place::new();
    let devices = |option: &[&str]| {
        let run = place.evener().env("EVENER_CACHE_DIR", place.join("cache")).arg("devices").args(option);
        run.run().succeeded().stdout_text().to_owned()
    };
    assert!(devices(&["--forget"]).contains("nothing to forget"));
    explain(&place, &["--module", MODULE]).succeeded();
    let shown = devices(&[]);
    assert!(shown.contains("\nCosts (learned by earlier runs, the last one "), "{shown}");
    assert!(shown.contains(&format!("  {MODULE}, 1 class of jobs (")), "{shown}");
    let shown: Value = serde_json::from_str(&devices(&["--json"])).unwrap();
    assert_eq!(misfits("devices.schema.json", &shown), [""; 0]);
    assert!(shown["costs"]["saved_s"].as_u64() > Some(1_700_000_000), "{shown}");
    assert!(shown["costs"]["sources"][0]["classes"].as_u64() > Some(0), "{shown}");
    let file = costs_file(&place);
    let removed = devices(&["--forget"]);
    assert!(removed.starts_with(&format!("removed {}\n  plain, ", file.display())), "{removed}");
    assert!(!file.exists());
    assert!(devices(&["--forget"]).contains("nothing to forget"));
    assert!(ways(&facts(&place, &[])).iter().all(|way| way["measured_now"] == true));
    fs::write(&file, "nonsense").unwrap();
    let run = place.evener().env("EVENER_CACHE_DIR", place.join("cache")).arg("devices");
    run.run().succeeded().saying("what jobs cost is learned again");
    // What a newer version wrote is left out; the rest is known still.
    explain(&place, &["--module", MODULE]).succeeded();
    let saved = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{saved}watts 3\n")).unwrap();
    let run = place.evener().env("EVENER_CACHE_DIR", place.join("cache")).arg("devices");
    run.run().succeeded().saying(" is of another version and left out");
    assert!(devices(&[]).contains(&format!("  {MODULE}, 1 class of jobs (")));
    fs::write(&file, "nonsense").unwrap();
    assert!(devices(&["--forget"]).contains("could not be read"));
    assert!(!file.exists());
}

/// A class that calibration has measured, and one beside it that has not been measured.
#[test]
fn a_method_is_chosen_by_what_both_cost_and_not_by_a_hair() {
    for (multi, expected) in [(80_000, "multi-buffer"), (97_000, "plain")] {
        let (place, has_multi_buffer) = knowing([100_000, multi], 1_000_000, 0, 16);
        if !has_multi_buffer {
            return common::skipped("there is no multi-buffer library");
        }
        let facts = facts(&place, &["--burst", "16"]);
        assert_eq!(
            (chosen(&facts), &facts["method_of_a_run"]),
            (vec![expected], &expected.into()),
            "{facts}"
        );
        let is_close = facts["why"].as_str().unwrap().contains("less apart than costs may err");
        assert_eq!(is_close, expected == "plain", "{facts}");
    }
}

#[test]
fn bad_input_is_one_line_and_nothing_is_done() {
    let place = Place::new();
    let refused = |args: &[&str], words: &str| {
        place.evener().arg("explain").args(args).run().ended_with(2).saying(words);
    };
    refused(&["--algorithm", "ROT-13", "--size", "16"], "unknown algorithm \"ROT-13\"");
    refused(&["--algorithm", "SHA-256", "--size", "0"], "1 byte to 1 GiB");
    refused(&["--algorithm", "SHA-256", "--size", "1073741825"], "1 byte to 1 GiB");
    refused(&["--algorithm", "SHA-256", "--size", "many"], "is not a size");
    refused(&["--algorithm", "SHA-256", "--size", "16", "--burst", "0"], "burst");
    refused(&["--algorithm", "SHA-256", "--size", "16", "--direction", "decrypt"], "nothing to decrypt");
    refused(&["--algorithm", "SHA-256", "--size", "16", "--objective", "joy"], "unknown objective");
    refused(&["--algorithm", "SHA-256", "--size", "16", "--layout", "on-tape"], "on-tape");
    refused(&["--algorithm", "SHA-256", "--size", "16", "--module", "am3358"], "am3358");
    refused(&["--size", "16"], "--algorithm");
}
