//! `evener sim run`: what it prints of a scenario, and the error of a wrong one.
#![allow(clippy::unwrap_used, reason = "a test")]

use crate::common::Place;
use serde_json::Value;

/// Small, so that six policies take no time.
const SMALL: &str = include_str!("../../../evener-sim/presets/am3358-aes-128.toml");

fn place() -> Place {
    let place = Place::new();
    place.write("small.toml", SMALL.replace("jobs = 4000", "jobs = 400"));
    place
}

fn json(place: &Place, arguments: &[&str]) -> Value {
    let ran = place.evener().args(["sim", "run", "--json"]).args(arguments).run().succeeded();
    serde_json::from_slice(ran.stdout()).unwrap()
}

#[test]
fn a_file_is_run_under_all_six_policies_none_of_which_beats_the_bound() {
    let ran = json(&place(), &["small.toml"]);
    let names: Vec<&str> =
        ran["policies"].as_array().unwrap().iter().map(|it| it["policy"].as_str().unwrap()).collect();
    assert_eq!(names, ["cpu_only", "module_only", "round_robin", "polling", "shared_queue", "adaptive"]);
    for line in ran["policies"].as_array().unwrap() {
        let number = |key: &str| line[key].as_f64().unwrap();
        assert_eq!(number("cpu_jobs") + number("module_jobs"), 400.0, "{line}");
        assert!(number("over_bound") > 0.97, "{line}");
        assert!(line["hog_percent"].is_null() && line["p99_ms"].is_null());
    }
    // Paper 002, table 2, 8192 bytes: 4000 jobs on the CPU alone took 2153 ms.
    let cpu_only = ran["policies"][0]["makespan_ms"].as_f64().unwrap();
    assert!((210.0..220.0).contains(&cpu_only), "{cpu_only}");
    assert_eq!(ran["simulated"], true);
}

#[test]
fn what_a_file_calls_itself_and_costs_of_nothing_reach_the_table_as_text() {
    let place = place();
    let named = SMALL.replace("jobs = 4000", "jobs = 40").replacen("name = \"", "name = \"a\\u001b[31mb", 1);
    assert!(named.contains("\\u001b"), "the preset has a name of another form");
    place.write("named.toml", named);
    let ran = place.evener().args(["sim", "run", "named.toml", "--policy", "cpu_only"]).run().succeeded();
    assert!(!ran.stdout_text().contains('\u{1b}'), "{:?}", ran.stdout_text());
    let endless = place.evener().args(["sim", "run", "/dev/zero"]).run().ended_with(2);
    endless.saying("cannot read /dev/zero");
}

#[test]
fn a_policy_that_does_not_end_is_named_and_takes_nothing_from_the_others() {
    let place = Place::new();
    // The processor alone takes 2.15 s for its 4000 jobs, the module 1.83.
    place.write("short.toml", SMALL.replace("limit_s = 600", "limit_s = 2"));
    let both = ["sim", "run", "short.toml", "--policy", "cpu_only", "--policy", "module_only"];
    let ran = place.evener().args(both).run().ended_with(1).saying("cpu_only: the run is not over");
    let text = ran.stdout_text();
    assert!(text.contains("\nmodule_only ") && !text.contains("\ncpu_only "), "{text}");
    let alone = place.evener().args(["sim", "run", "short.toml", "--policy", "cpu_only"]).run();
    assert_eq!(alone.ended_with(2).saying("cpu_only: the run is not over").stdout_text(), "");
}

#[test]
fn the_adaptive_policy_is_not_the_plan_of_the_papers() {
    let ran = json(&Place::new(), &["am3358-aes-128", "--policy", "adaptive", "--policy", "shared_queue"]);
    let over = |at: usize| ran["policies"][at]["over_bound"].as_f64().unwrap();
    assert!(over(0) < 1.05 && over(0) < over(1), "{ran}");
}

#[test]
fn programs_that_compete_and_streams_have_columns_of_their_own() {
    let place = Place::new();
    place.write(
        "hogs.toml",
        SMALL.replace("jobs = 4000", "jobs = 400").replace("programs = 0", "programs = 1"),
    );
    let ran = json(&place, &["hogs.toml", "--policy", "cpu_only"]);
    let percent = ran["policies"][0]["hog_percent"].as_f64().unwrap();
    assert!((45.0..55.0).contains(&percent), "{percent}");
    let stream = json(&place, &["am3358-stream", "--policy", "shared_queue"]);
    assert!(stream["policies"][0]["p99_ms"].as_f64().unwrap() > 0.0 && stream["lower_bound_ms"].is_null());
    let ran = place.evener().args(["sim", "run", "hogs.toml", "--policy", "cpu_only"]).run().succeeded();
    let text = ran.stdout_text();
    let line = text.lines().find(|line| line.starts_with("cpu_only")).unwrap();
    assert!(text.contains("simulated") && line.contains(&format!(" {percent:.1} ")), "{text}");
}

#[test]
fn a_wrong_scenario_stops_it_with_file_line_and_key() {
    let place = Place::new();
    place.write("bad.toml", SMALL.replace("cores = 1", "cores = 0"));
    let line = 1 + SMALL.lines().position(|line| line.starts_with("cores")).unwrap();
    let expected = format!("bad.toml:{line}: cores: 0 is not within 1 to 1024");
    let ran = place.evener().args(["sim", "run", "bad.toml"]).run().ended_with(2).saying(&expected);
    assert!(ran.stdout().is_empty());
    place.evener().args(["sim", "run", "none"]).run().ended_with(2).saying("am3358-stream");
    let policy = ["sim", "run", "am3358-aes-128", "--policy", "best"];
    place.evener().args(policy).run().ended_with(2).saying("shared_queue");
}
