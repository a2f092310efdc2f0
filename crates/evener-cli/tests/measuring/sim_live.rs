//! `evener sim live`: what it prints and writes holds together. Neither times nor errors are judged.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;

use crate::common::Place;
use serde_json::Value;

const MACHINE: [&str; 6] = [
    "--module",
    "emulated:d=20000+0,h=30000+0",
    "--cpu-cost",
    "emulated:d=0+0,h=0+0,c=60000+0",
    "--workers",
    "1",
];

#[test]
fn every_policy_is_run_and_predicted_and_jobs_add_up() {
    let place = Place::new();
    let part =
        ["sim", "live", "--algorithm", "AES-128-CTR", "--sizes", "64,1K", "--count", "64", "--runs", "2"];
    let files = ["--json", "live.json", "--csv", "live.csv"];
    let ran = place.evener().args(part).args(MACHINE).args(files).run().succeeded();
    let results: Value = serde_json::from_slice(&fs::read(place.join("live.json")).unwrap()).unwrap();
    let csv = fs::read_to_string(place.join("live.csv")).unwrap();
    let sizes = results["sizes"].as_array().unwrap();
    assert_eq!((sizes.len(), csv.lines().count()), (2, 1 + 2 * 6));
    for size in sizes {
        for line in size["policies"].as_array().unwrap() {
            let number = |key: &str| line[key].as_f64().unwrap();
            for jobs in [number("live_module_jobs"), number("predicted_module_jobs")] {
                assert!((0.0..=64.0).contains(&jobs), "{line}");
                match line["policy"].as_str().unwrap() {
                    "cpu_only" => assert_eq!(jobs, 0.0, "{line}"),
                    "module_only" => assert_eq!(jobs, 64.0, "{line}"),
                    "round_robin" => assert_eq!(jobs, 32.0, "{line}"),
                    _ => {}
                }
            }
            let error = 100.0 * (number("predicted_ms") / line["live_ms"]["median"].as_f64().unwrap() - 1.0);
            assert!((error - number("error_percent")).abs() < 1e-6, "{line}");
        }
        // What is programmed is learned: a job on the core costs 60 us of core time and no less.
        assert!(size["c_ns"].as_u64().unwrap() >= 59_000, "{size}");
        assert!(size["modules"][0]["d_ns"].as_u64().unwrap() >= 19_000, "{size}");
    }
    assert!(ran.stdout_text().contains("emulated:d=20000+0,h=30000+0"), "{}", ran.stdout_text());
}

#[test]
fn what_a_report_tells_is_predicted_again_from_what_stands_in_it() {
    let place = Place::new();
    let part = ["sim", "live", "--sizes", "64,4K", "--count", "64", "--runs", "2", "--json", "live.json"];
    place.evener().args(part).args(MACHINE).run().succeeded();
    let expected = fs::read_to_string(place.join("live.json")).unwrap();
    // What was predicted at first is of no account, nor is the machine of the second time.
    let mut spoilt: Value = serde_json::from_str(&expected).unwrap();
    spoilt["sizes"][1]["policies"][2]["predicted_ms"] = 1e9.into();
    fs::write(place.join("spoilt.json"), spoilt.to_string()).unwrap();
    let part = ["sim", "live", "--again", "spoilt.json", "--json", "again.json"];
    place.evener().args(part).run().succeeded();
    assert_eq!(fs::read_to_string(place.join("again.json")).unwrap(), expected);
    fs::write(place.join("other.json"), "{}").unwrap();
    let part = ["sim", "live", "--again", "other.json"];
    place.evener().args(part).run().ended_with(2).saying("other.json is no report of evener sim live");
    let spoilt: [(&str, Value, &str); 3] = [
        ("/cores", 0.into(), "cores: 0 is not within 1 to 1024"),
        ("/sizes/0/modules/0/units", 0.into(), "units: 0 is not within 1 to 4096"),
        ("/schema", "evener-sim-live/99".into(), r#"its schema is "evener-sim-live/99""#),
    ];
    for (place_in_it, value, said) in spoilt {
        let mut report: Value = serde_json::from_str(&expected).unwrap();
        *report.pointer_mut(place_in_it).unwrap() = value;
        fs::write(place.join("other.json"), report.to_string()).unwrap();
        place.evener().args(part).run().ended_with(2).saying(said);
    }
}

#[test]
fn what_cannot_be_kept_is_said_before_anything_is_measured_and_what_was_measured_is_shown() {
    let place = Place::new();
    let part = ["sim", "live", "--sizes", "64", "--count", "16", "--runs", "1", "--policies", "cpu_only"];
    for option in ["--json", "--csv"] {
        let ran =
            place.evener().args(part).args(MACHINE).args([option, "missing/report"]).run().ended_with(2);
        assert_eq!(ran.stdout_text(), "");
        ran.saying("cannot write missing/report");
        let ran = place.evener().args(part).args(MACHINE).args([option, "/dev/full"]).run().ended_with(1);
        assert!(ran.stdout_text().contains("cpu_only"), "{}", ran.stdout_text());
        assert!(ran.stderr().contains("cannot write /dev/full: No space left on device"), "{}", ran.stderr());
    }
    // Of a measurement that fails nothing is left, and what stood there stays.
    fs::write(place.join("kept.json"), "kept").unwrap();
    for name in ["new.json", "kept.json"] {
        place.evener().args(["sim", "live", "--again", "missing", "--json", name]).run().ended_with(2);
    }
    assert!(!place.join("new.json").exists());
    assert_eq!(fs::read_to_string(place.join("kept.json")).unwrap(), "kept");
}

#[test]
fn policies_can_be_chosen() {
    let place = Place::new();
    let part =
        ["sim", "live", "--sizes", "64", "--count", "16", "--runs", "1", "--policies", "cpu_only,adaptive"];
    place.evener().args(part).args(MACHINE).args(["--csv", "live.csv"]).run().succeeded();
    let csv = fs::read_to_string(place.join("live.csv")).unwrap();
    let names: Vec<&str> = csv.lines().skip(1).map(|line| line.split(',').nth(2).unwrap()).collect();
    assert_eq!(names, ["cpu_only", "adaptive"]);
}

#[test]
fn without_a_module_there_is_nothing_to_predict() {
    Place::new().evener().args(["sim", "live"]).run().ended_with(2).saying("--module emulated:am3358");
}
