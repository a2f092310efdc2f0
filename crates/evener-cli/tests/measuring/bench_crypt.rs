//! `evener bench crypt`: what it reports holds together, and what is emulated says so. Times are never judged.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;

use crate::common::{Place, misfits};
#[cfg(target_arch = "x86_64")]
use evener_kernels::Level;
use serde_json::Value;

/// Runs a small experiment and gives its report, which fits the schema.
fn bench(options: &[&str]) -> Value {
    bench_for("1", options)
}

/// The same for so many milliseconds per cell and contender.
fn bench_for(cell_time: &str, options: &[&str]) -> Value {
    let place = Place::new();
    let small =
        ["bench", "crypt", "--count", "64", "--runs", "2", "--cell-time", cell_time, "--json", "report.json"];
    place.evener().args(small).args(options).run().succeeded();
    let report: Value = serde_json::from_slice(&fs::read(place.join("report.json")).unwrap()).unwrap();
    assert_eq!(misfits("bench-crypt.schema.json", &report), [""; 0], "{options:?}");
    report
}

fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value[name].as_array().unwrap()
}

/// Jobs that Evener counted, by worker and method.
fn jobs_of(contender: &Value, is_meant: impl Fn(&str) -> bool) -> u64 {
    let shares = list(contender, "shares").iter();
    shares.filter(|share| is_meant(share[0].as_str().unwrap())).map(|share| share[1].as_u64().unwrap()).sum()
}

#[test]
fn each_module_s_requests_are_measured_by_themselves_one_and_fifteen_together() {
    // 200 us of a core for each request.
    let module = "emulated:d=200000+0,h=1000+0,c=1000+0";
    let options = ["--sizes", "1000,1008,128K", "--module", module, "--policies", "adaptive"];
    let report = bench(&options);
    assert!(report["machine"].as_str().unwrap().contains("Linux "), "{}", report["machine"]);
    let [measured] = list(&report, "modules") else { panic!("{}", report["modules"]) };
    assert_eq!((&measured["module"], &measured["emulated"]), (&module.into(), &true.into()));
    let rows: Vec<_> =
        list(measured, "packets").iter().map(|row| (row["bytes"].as_u64(), row["burst"].as_u64())).collect();
    // 1000 bytes are no whole blocks, and 128 KiB more than a kernel takes in one piece.
    assert_eq!(rows, [(Some(1_008), Some(1)), (Some(1_008), Some(15))]);
    for row in list(measured, "packets") {
        assert!(row["core_us_per_packet"].as_f64() >= Some(200.0), "{row}");
        assert!(row["requests_per_system_call"].is_null(), "nothing is called: {row}");
    }
    assert!(list(&bench(&["--sizes", "1000"]), "modules").is_empty());
}

fn check(report: &Value) {
    for cell in list(report, "cells") {
        let (baselines, measured): (Vec<_>, Vec<_>) =
            list(cell, "contenders").iter().partition(|one| list(one, "shares").is_empty());
        assert!(!measured.is_empty(), "{cell}");
        for one in &measured {
            let rounds = one["rounds"].as_u64().unwrap();
            assert_eq!(jobs_of(one, |_| true), rounds * cell["jobs"].as_u64().unwrap(), "{cell}");
            let against: Vec<_> = list(one, "faster_than").iter().map(|pair| &pair[0]).collect();
            let name = |one: &Value| one["contender"].as_str().unwrap().to_owned();
            let is_rival =
                |other: &&&Value| name(one).contains("adaptive") && !name(other).contains("adaptive");
            let rivals = measured.iter().filter(is_rival);
            let mut names: Vec<_> = baselines.iter().chain(rivals).map(|one| &one["contender"]).collect();
            names.sort_by_key(|name| {
                list(cell, "contenders").iter().position(|one| one["contender"] == **name)
            });
            assert_eq!(against, names);
        }
        for one in list(cell, "contenders") {
            let value = |name: &str| one["milliseconds"][name].as_f64().unwrap();
            assert!(
                value("min") > 0.0 && value("low") <= value("median") && value("median") <= value("high")
            );
        }
    }
}

#[test]
fn sizes_count_plaintext_and_every_job_is_counted_once() {
    let report = bench(&["--sizes", "8,1K", "--workers", "2"]);
    check(&report);
    let cells: Vec<_> =
        list(&report, "cells").iter().map(|cell| (&cell["cell"], &cell["plain_bytes"])).collect();
    assert_eq!(cells, [(&"8".into(), &(64 * 8).into()), (&"1024".into(), &(64 << 10).into())]);
}

/// Names of contenders at the first cell.
fn contenders(options: &[&str], left_out: &str) -> Vec<String> {
    let place = Place::new();
    let small =
        ["bench", "crypt", "--count", "64", "--runs", "1", "--cell-time", "1", "--json", "report.json"];
    let evener = place.evener().env("EVENER_DISABLE", left_out);
    evener.args(small).args(options).args(["--sizes", "1K", "--workers", "2"]).run().succeeded();
    let report: Value = serde_json::from_slice(&fs::read(place.join("report.json")).unwrap()).unwrap();
    let all = list(&report["cells"][0], "contenders").iter();
    all.map(|one| one["contender"].as_str().unwrap().to_owned()).collect()
}

#[test]
#[cfg(target_arch = "x86_64")]
fn each_kernel_of_our_own_is_a_contender_by_the_instructions_that_it_is_forced_to() {
    use std::arch::is_x86_feature_detected as has;
    let expected = |widths: &[(bool, &str)]| -> Vec<String> {
        let there = widths.iter().filter(|(is_there, _)| *is_there);
        there.map(|(_, name)| format!("own lanes {name}, 2 cores")).collect()
    };
    let kernels = |options: &[&str], left_out: &str| -> Vec<String> {
        contenders(options, left_out).into_iter().filter(|name| name.starts_with("own lanes")).collect()
    };
    let (has_vaes, has_wide) = (has!("vaes") && has!("avx2"), has!("avx512bw") && has!("avx512vl"));
    let of_ciphers = expected(&[
        (has!("aes"), "aes+pclmulqdq"),
        (has_vaes, "vaes+vpclmulqdq+avx2"),
        (has_vaes && has_wide, "vaes+vpclmulqdq+avx512"),
    ]);
    for (algorithm, direction) in [
        ("AES-128-CBC", "encrypt"),
        ("AES-128-CBC", "decrypt"),
        ("AES-256-GCM", "encrypt"),
        ("AES-256-XTS", "decrypt"),
    ] {
        let found = kernels(&["--algorithm", algorithm, "--direction", direction], "");
        assert!(found == of_ciphers || found.is_empty() && !Level::ARE_BUILT, "{found:?}");
    }
    let found = kernels(&["--algorithm", "SHA-256"], "");
    for (is_there, name) in [(has!("sha"), "sha"), (has!("avx2"), "avx2"), (has_wide, "avx512")] {
        let is_found = found.iter().any(|one| *one == format!("own lanes {name}, 2 cores"));
        assert_eq!(is_found, is_there && Level::ARE_BUILT, "{name} of {found:?}");
    }
    assert_eq!(kernels(&["--algorithm", "CHACHA20-POLY1305"], ""), [""; 0], "there is no kernel for it");
    assert_eq!(kernels(&[], "lanes"), [""; 0], "they are left out");
    let has_copy = |options: &[&str]| contenders(options, "").contains(&"copy, 2 cores".to_owned());
    assert!(has_copy(&[]) && has_copy(&["--layout", "in-place"]), "a copy bounds what goes through memory");
    assert!(!has_copy(&["--layout", "cache"]), "and nothing in the caches");
}

#[test]
fn every_kind_of_algorithm_layout_and_direction_can_be_measured() {
    let kinds: [&[&str]; 8] = [
        &["--sizes", "100", "--policies", "cpu_only,shared_queue,adaptive"],
        &["--algorithm", "AES-256-CBC", "--sizes", "100", "--layout", "cache"],
        &["--algorithm", "AES-256-CBC", "--sizes", "4K", "--direction", "decrypt"],
        &["--algorithm", "AES-256-GCM", "--sizes", "4K", "--direction", "decrypt"],
        &["--algorithm", "AES-256-GCM", "--sizes", "4K", "--layout", "in-place"],
        &["--algorithm", "SHA-256", "--sizes", "1K"],
        &["--mix", "lognormal"],
        &["--mix", "uniform"],
    ];
    for kind in kinds {
        check(&bench(kind));
    }
}

#[test]
fn a_module_takes_part_and_nothing_hides_that_it_is_emulated() {
    let place = Place::new();
    let policies = ["module_only", "round_robin", "polling", "shared_queue"];
    let module = ["--module", "emulated:am3358", "--cpu-cost", "emulated:am3358", "--workers", "1"];
    // Many rounds: in one of two milliseconds the module's thread may get no core.
    let small = ["bench", "crypt", "--count", "64", "--runs", "1", "--cell-time", "100", "--sizes", "64"];
    let files = ["--json", "report.json", "--svg", "picture.svg"];
    let offloaded = |contender: &Value| jobs_of(contender, |worker| worker.contains("emulated:am3358"));
    let measure = || {
        let policies = policies.join(",");
        let ran = place.evener().args(small).args(module).args(["--policies", &policies]).args(files).run();
        let text = ran.succeeded().stdout_text().to_owned();
        let report: Value = serde_json::from_slice(&fs::read(place.join("report.json")).unwrap()).unwrap();
        (text, report)
    };
    // On a busy machine one of four threads may get no core in all of a tenth of a second.
    let all_took_part =
        |report: &Value| list(&report["cells"][0], "contenders").iter().all(|it| offloaded(it) > 0);
    let (text, report) =
        (0..4).map(|_| measure()).find(|(_, report)| all_took_part(report)).unwrap_or_else(measure);
    check(&report);
    let contenders = list(&report["cells"][0], "contenders");
    assert_eq!(contenders.len(), policies.len());
    for (contender, policy) in contenders.iter().zip(policies) {
        assert!(contender["contender"].as_str().unwrap().contains(policy));
        assert_eq!(contender["emulated"], true);
        assert!(offloaded(contender) > 0, "{policy} gave the module nothing: {contender}");
        let line = text.lines().find(|line| line.contains(policy)).unwrap();
        assert!(line.contains("emulated"), "{line}");
    }
    let picture = fs::read_to_string(place.join("picture.svg")).unwrap();
    for text in ["EMULATED", "bound: nobody waits", "MB/s"] {
        assert!(picture.contains(text), "{text}: {picture}");
    }
}

#[test]
fn single_requests_are_timed_one_by_one_and_go_where_the_policy_says() {
    let plain = bench(&["--sizes", "64", "--one-by-one"]);
    check(&plain);
    let contenders = list(&plain["cells"][0], "contenders");
    assert_eq!(contenders[1]["contender"], "evener adaptive, one by one");
    assert!(contenders[0]["request_microseconds"].is_null());
    let costs = "emulated:d=1000+0,h=1000+0,c=1000+0";
    let module = ["--module", costs, "--cpu-cost", costs];
    let policies = ["--sizes", "64", "--one-by-one", "--policies", "cpu_only,module_only"];
    let report = bench(&[&module[..], &policies].concat());
    check(&report);
    for (one, way) in list(&report["cells"][0], "contenders").iter().zip(["caller 0", "emulated:"]) {
        assert_eq!(jobs_of(one, |worker| !worker.contains(way)), 0, "{one}");
        let value = |name: &str| one[name]["median"].as_f64().unwrap();
        assert!(0.0 < value("request_microseconds"));
        assert!(value("request_microseconds") <= value("request_p99_microseconds"));
    }
}

#[test]
fn single_requests_that_take_several_turns_over_their_memory_are_compared_after_the_first() {
    // In place, a second turn would encrypt what the first one made.
    let report = bench(&["--sizes", "64K", "--one-by-one", "--layout", "cache"]);
    check(&report);
}

#[test]
fn neighbours_are_told_of_beside_every_policy_and_alone() {
    let wanted = ["--sizes", "1K", "--policies", "cpu_only,adaptive"];
    // Half a second for each: on a busy machine, too, everybody has a turn.
    let report = bench_for("1000", &[&wanted[..], &["--hog", "50", "--probe-latency"]].concat());
    check(&report);
    assert_eq!(report["hog_percent"], 50);
    let cell = &report["cells"][0];
    let names: Vec<_> = list(cell, "contenders").iter().map(|one| &one["contender"]).collect();
    assert_eq!(names, ["evener cpu_only", "evener adaptive"]);
    for got in list(cell, "contenders").iter().map(|one| &one["beside"]).chain([&cell["nobody"]]) {
        let value = |name: &str| got[name]["median"].as_f64().unwrap();
        assert!(0.0 < value("hog_share") && value("hog_share") <= 1.0, "{got}");
        assert!(value("late_microseconds") <= value("late_p99_microseconds"), "{got}");
        assert!(value("late_p99_microseconds") <= value("late_max_microseconds"), "{got}");
    }
    assert!(list(cell, "contenders").iter().all(|one| !one["beside"]["hog_speed"].is_null()), "{cell}");
    // Without a hog there is nothing to say of it.
    let report = bench(&[&wanted[..], &["--hog", "0"]].concat());
    let beside = &report["cells"][0]["contenders"][0]["beside"];
    assert!(beside["hog_share"].is_null() && beside["late_microseconds"].is_null(), "{beside}");
    assert!(!beside["busy_cores"].is_null(), "{beside}");
    assert!(bench(&["--sizes", "64"])["cells"][0]["contenders"][0]["beside"].is_null());
    Place::new().evener().args(["bench", "crypt", "--hog", "101"]).run().ended_with(2).saying("101");
}

#[test]
fn costs_that_are_learned_are_kept_and_the_objective_is_named() {
    let place = Place::new();
    let module = ["--module", "emulated:d=1000+0,h=1000+0", "--policies", "adaptive"];
    let small = ["bench", "crypt", "--count", "64", "--runs", "1", "--sizes", "1K"];
    let files = ["--json", "report.json"];
    let run = place.evener().env("EVENER_CACHE_DIR", place.join("cache"));
    run.args(small).args(files).args(module).args(["--objective", "cpu"]).run().succeeded();
    let report: Value = serde_json::from_slice(&fs::read(place.join("report.json")).unwrap()).unwrap();
    assert_eq!(list(&report, "cells")[0]["contenders"][0]["contender"], "adaptive for cpu, emulated");
    let cache_files = fs::read_dir(place.join("cache"))
        .unwrap()
        .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap());
    let text: String = cache_files.collect();
    assert!(text.contains("c AES-128-CBC encrypt 1024 out-of-place"), "{text}");
    place.evener().args(small).args(["--objective", "joy"]).run().ended_with(2).saying("joy");
}

#[test]
fn what_cannot_be_kept_is_said_before_anything_is_measured_and_what_was_measured_is_shown() {
    let place = Place::new();
    let small = ["bench", "crypt", "--sizes", "64", "--count", "8", "--runs", "1", "--cell-time", "1"];
    for option in ["--json", "--svg"] {
        let ran = place.evener().args(small).args([option, "missing/file"]).run().ended_with(2);
        let ran = ran.saying("cannot write missing/file");
        assert_eq!(ran.stdout_text(), "");
    }
    let ran = place.evener().args(small).args(["--json", "/dev/full"]).run().ended_with(1);
    assert!(ran.stdout_text().contains("evener adaptive"), "{}", ran.stdout_text());
    assert!(ran.stderr().contains("cannot write /dev/full"), "{}", ran.stderr());
}

#[test]
fn jobs_that_no_memory_holds_or_that_no_library_does_are_refused_in_a_sentence() {
    let place = Place::new();
    let huge: &[_] = &["--sizes", "1G", "--count", "1000000"];
    let short: &[_] = &["--algorithm", "AES-128-XTS", "--sizes", "7", "--count", "1"];
    let refused =
        [(huge, "do not fit this machine's"), (short, "libcrypto does not do 7 bytes by AES-128-XTS")];
    for (options, words) in refused {
        let ran = place.evener().args(["bench", "crypt"]).args(options).run().ended_with(2);
        assert!(ran.stderr().lines().last().unwrap().contains(words), "{}", ran.stderr());
    }
}
