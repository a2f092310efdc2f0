//! Scenario files: what the presets hold, and the errors of a wrong file.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use evener_core::Nanos;
use evener_core::plan::Policy;
use evener_sim::lab::{Arrivals, Workload};
use evener_sim::papers::am3358::{Means, Series, compare, equal_jobs};
use evener_sim::scenario::{PRESETS, Scenario};

fn base() -> &'static str {
    PRESETS.iter().find(|(name, _)| *name == "am3358-aes-128").unwrap().1
}

/// The error of the file after one replacement.
#[track_caller]
fn error(from: &str, to: &str) -> String {
    assert!(base().contains(from), "{from}");
    Scenario::parse("my.toml", &base().replacen(from, to, 1)).unwrap_err().to_string()
}

fn line_of(what: &str) -> usize {
    1 + base().lines().position(|line| line.contains(what)).unwrap()
}

#[test]
fn the_presets_of_the_am3358_are_the_fit() {
    let names = ["am3358-aes-128", "am3358-aes-192", "am3358-aes-256", "am3358-paper-000"];
    for (series, name) in Series::ALL.into_iter().zip(names) {
        let scenario = Scenario::preset(name).unwrap();
        for (bytes, cost) in series.fit().costs {
            assert_eq!(scenario.cost(bytes), cost, "{name}, {bytes} bytes");
        }
    }
}

#[test]
fn every_preset_runs_and_loses_no_job() {
    for (name, _) in PRESETS {
        let scenario = Scenario::preset(name).unwrap();
        for &policy in &scenario.policies {
            for report in scenario.run(policy).unwrap() {
                assert_eq!(report.lost(), 0, "{name} {policy}");
            }
        }
    }
    assert_eq!(Scenario::preset("am3358-aes-512"), None);
}

#[test]
fn a_preset_runs_as_policies_are_compared() {
    let costs = Series::Aes128.fit().costs;
    let ours = Scenario::preset("am3358-aes-128").unwrap().run(Policy::SharedQueue).unwrap();
    let theirs =
        compare(&costs, &equal_jobs(6), |_| (), || evener_sim::lab::Planned::new(Policy::SharedQueue, 1, 1));
    assert_eq!(Means::of(&ours), Means::of(&theirs.unwrap()));
}

#[test]
fn other_work_takes_its_costs_from_between_the_rows() {
    let mut scenario = Scenario::preset("am3358-aes-128").unwrap();
    scenario.set_workload(&[6144], Workload::new([0; 10], Arrivals::AtOnce, 0));
    let [low, high] = [4096, 8192].map(|bytes| scenario.cost(bytes).c.0);
    assert_eq!(scenario.setup.classes[0].c, Nanos(low + (high - low) / 2));
    assert_eq!(scenario.run(Policy::CpuOnly).unwrap()[0].cpu_jobs(), 10);
}

#[test]
fn weights_say_how_often_a_size_is_drawn() {
    let text = base()
        .replace("{ bytes = 8192, weight = 1 }", "{ bytes = 64, weight = 3 }, { bytes = 8192, weight = 1 }");
    let scenario = Scenario::parse("mix", &text).unwrap();
    let small = scenario.workload.jobs().iter().filter(|job| job.class == 0).count();
    assert!((2_850..3_150).contains(&small), "{small}");
    assert_eq!(scenario.setup.classes.iter().map(|class| class.bytes).collect::<Vec<_>>(), [64, 8192]);
}

#[test]
fn every_option_reaches_the_machine() {
    let text = base()
        .replace("cores = 1", "cores = 3")
        .replace("competing_programs = 0", "competing_programs = 2")
        .replace(
            "nice = 0",
            "nice = 5\ncap = { share_permille = 700, holds_module_path = true, counts_interrupts = true }",
        )
        .replace("depth = 1", "depth = 2\nlost_at_ms = 40\nslow = { at_ms = 20, factor = 3 }")
        .replace("units = 1", "units = 4\nhand_over_ns = 300\ncheck_every = 32")
        .replace("workers = 1\n", "workers = 1\nhand_over_ns = 200\n")
        .replace(
            "priority = 0",
            "priority = 1\ncosts = [{ bytes = 0, d_ns = 5, h_ns = 7 }, { bytes = 9000, d_ns = 5, h_ns = 7 }]",
        )
        .replace("path = \"interrupt\"", "path = \"direct\"")
        .replace("jobs = 4000\nsizes = [{ bytes = 8192, weight = 1 }]", "list = \"tls\"");
    let setup = Scenario::parse("all", &text).unwrap().setup;
    let (cap, module) = (setup.cpu.cap.unwrap(), &setup.modules[0]);
    assert_eq!((setup.cores, setup.hogs, setup.cpu.nice, cap.share), (3, 2, 5, 0.7));
    assert_eq!((module.spec.units, module.depth, module.priority), (4, 2, 1));
    assert_eq!(module.spec.faults.lost_at, Some(Nanos::from_millis(40)));
    assert_eq!(module.spec.faults.slow.map(|slow| (slow.at, slow.factor)), Some((Nanos::from_millis(20), 3)));
    assert_eq!((module.hand_over, module.check_every), (Nanos(300), 32));
    assert_eq!(setup.cpu.hand_over, Nanos(200));
    assert_eq!(module.path, evener_sim::lab::ModulePath::DIRECT);
    assert!(module.costs.iter().all(|cost| (cost.d, cost.h) == (Nanos(5), Nanos(7))));
    assert_eq!(setup.classes.len(), 5);
}

#[test]
fn a_value_out_of_range_is_told_file_line_and_key() {
    let at = |what| format!("my.toml:{}: ", line_of(what));
    let is_error = |from, to, rest: &str| assert_eq!(error(from, to), format!("{}{rest}", at(from)));
    is_error("cores = 1", "cores = 0", "cores: 0 is not within 1 to 1024");
    is_error("jobs = 4000", "jobs = 0", "jobs: 0 is not within 1 to 10000000");
    is_error("depth = 1", "depth = 0", "depth: 0 is not within 1 to 4096");
    is_error("units = 1", "units = 100000", "units: 100000 is not within 1 to 4096");
    is_error("nice = 0", "nice = 20", "nice: 20 is not within -20 to 19");
    is_error("c_ns = 20310", "c_ns = 0", "c_ns: 0 is not within 1 to 10000000000");
    is_error("weight = 1", "weight = 0", "weight: 0 is not within 1 to 1000000");
    is_error(
        "jitter_permille = 50",
        "jitter_permille = 1000",
        "jitter_permille: 1000 is not within 0 to 900",
    );
    is_error("200, 550", "200, 5500", "tick_phases_permille: 5500 is not within 0 to 1000");
    is_error("limit_s = 600", "limit_s = 0", "limit_s: 0 is not within 1 to 1000000");
    assert!(
        error("\"cpu_only\"", "\"cpu\"").starts_with(&format!("{}policies: unknown policy", at("policies")))
    );
}

#[test]
fn what_makes_no_sense_is_told_too() {
    for (from, to, line, key, what) in [
        ("sizes = [{ bytes = 8192, weight = 1 }]", "sizes = []", "sizes =", "sizes", "there is none"),
        ("jobs = 4000", "", "[workload]", "workload", "has either `list`, or `jobs` and `sizes`"),
        (
            "jobs = 4000",
            "list = \"tls\"",
            "[workload]",
            "workload",
            "has either `list`, or `jobs` and `sizes`",
        ),
        ("seeds = [1, 2, 3]", "seeds = []", "[chance]", "chance", "0 seeds and 3 tick phases make no runs"),
        ("bytes = 16\n", "bytes = 8\n", "bytes = 16", "bytes", "sizes do not rise"),
        ("\"at_once\"", "\"poisson\"", "at_once", "kind", "`at_once` has no times"),
        ("name = \"AM3358, AES-128-CBC\"", "name = \" \"", "name = ", "name", "is empty"),
    ] {
        let (error, start) = (error(from, to), format!("my.toml:{}: {key}: {what}", line_of(line)));
        assert!(error.starts_with(&start), "{error}\n{start}");
    }
    let costs = base().find("[[costs]]").unwrap();
    let one_row = format!("{}[[costs]]\nbytes = 8\nc_ns = 1\nd_ns = 1\nh_ns = 1\n", &base()[..costs]);
    assert!(Scenario::parse("my.toml", &one_row).unwrap_err().to_string().ends_with("fewer than two sizes"));
    let none = format!("policies = []\n{}", base().replacen("policies", "#", 1));
    assert_eq!(
        Scenario::parse("my.toml", &none).unwrap_err().to_string(),
        "my.toml:1: policies: there is none"
    );
}

#[test]
fn what_the_reader_of_toml_finds_is_told_with_line_and_key() {
    for (from, to, key, what) in [
        ("cores = 1", "cores = -1", "cores", "invalid value: integer `-1`"),
        ("cores = 1", "cores = 1.5", "cores", "invalid type: floating point `1.5`"),
        ("cores = 1", "cores = \"one\"", "cores", "invalid type: string \"one\""),
        ("cores = 1", "coers = 1", "coers", "unknown field `coers`"),
        ("path = \"interrupt\"", "path = \"sideways\"", "path", "unknown variant `sideways`"),
        ("nice = 0", "nice = 99999999999", "nice", "invalid value: integer `99999999999`"),
    ] {
        let (error, start) = (error(from, to), format!("my.toml:{}: {key}: {what}", line_of(from)));
        assert!(error.starts_with(&start), "{error}\n{start}");
    }
    assert!(error("[machine]", "[machine").contains(&format!("my.toml:{}: [machine", line_of("[machine]"))));
    assert!(Scenario::parse("my.toml", "").unwrap_err().to_string().contains("missing field"));
    assert!(error("cores = 1", "").contains("missing field `cores`"));
}

#[test]
fn times_at_the_ends_of_their_ranges_do_not_overflow() {
    let text = base()
        .replace("bytes = 8192, weight", "bytes = 1073741824, weight")
        .replace("jobs = 4000", "jobs = 3")
        .replace("depth = 1", "depth = 4096\nslow = { at_ms = 0, factor = 1000 }")
        .replace(
            "{ kind = \"at_once\" }",
            "{ kind = \"bursts\", mean_ns = 1000000000000000, on_ns = 1000, off_ns = 1000000000000000 }",
        );
    let scenario = Scenario::parse("far", &text).unwrap();
    assert!(scenario.run(Policy::SharedQueue).is_err(), "nothing comes before the limit");
    let heavy =
        base().replace("c_ns = 538315", "c_ns = 10000000000").replace("h_ns = 201783", "h_ns = 10000000000");
    let heavy = heavy.replace("limit_s = 600", "limit_s = 1000000");
    assert!(heavy != base());
    for policy in Policy::ALL {
        let reports = Scenario::parse("heavy", &heavy).unwrap().run(policy).unwrap();
        assert!(reports.iter().all(|report| report.lost() == 0), "{policy}");
    }
}

/// Everything that a file can say of how jobs come and what goes wrong, one replacement each.
#[test]
fn streams_and_faults_are_reached_from_a_file_and_lose_no_job() {
    let at_once = "{ kind = \"at_once\" }";
    let short = base().replace("jobs = 4000", "jobs = 500").replace("depth = 1", "depth = 2");
    for (from, to) in [
        (at_once, "{ kind = \"poisson\", mean_ns = 400000 }"),
        (at_once, "{ kind = \"bursts\", mean_ns = 200000, on_ns = 20000000, off_ns = 20000000 }"),
        ("depth = 2", "depth = 2\nslow = { at_ms = 40, factor = 10 }"),
        ("depth = 2", "depth = 2\nlost_at_ms = 40"),
    ] {
        assert!(short.contains(from), "{from}");
        let scenario = Scenario::parse("my.toml", &short.replacen(from, to, 1)).unwrap();
        let plain = Scenario::parse("my.toml", &short).unwrap();
        assert_eq!(scenario.is_stream(), from == at_once, "{to}");
        for policy in [Policy::ModuleOnly, Policy::SharedQueue, Policy::Adaptive] {
            let makespan = |scenario: &Scenario| scenario.run(policy).unwrap()[0].makespan;
            assert!(scenario.run(policy).unwrap().iter().all(|report| report.lost() == 0), "{policy}, {to}");
            assert!(makespan(&scenario) > makespan(&plain), "{policy}, {to}");
        }
    }
}

#[test]
fn no_value_below_zero_passes_and_each_is_told_with_its_line_and_key() {
    let text = base().replace(
        "depth = 1",
        "depth = 1\nhand_over_ns = 1\ncheck_every = 1\nlost_at_ms = 90000\nslow = { at_ms = 9, factor = 2 }",
    );
    let mut tried = 0;
    for (at, line) in text.lines().enumerate() {
        let Some((key, value)) = line.split_once(" = ") else { continue };
        let is_number = value.split([' ', '#']).next().is_some_and(|word| word.parse::<u64>().is_ok());
        if !is_number || key == "priority" || key == "nice" {
            continue;
        }
        let wrong: Vec<String> = text
            .lines()
            .enumerate()
            .map(|(other, line)| if other == at { format!("{key} = -1") } else { line.to_owned() })
            .collect();
        let error = Scenario::parse("my.toml", &wrong.join("\n")).unwrap_err().to_string();
        assert!(error.starts_with(&format!("my.toml:{}: {key}: ", at + 1)), "{error}");
        tried += 1;
    }
    assert!(tried > 30, "{tried}");
}
