//! `evener status`: what a process counts is shown while it runs, in text and JSON; what cannot be read is named.
#![allow(clippy::unwrap_used, clippy::float_cmp, reason = "a test; counts below 2^53 are exact")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{self, Stdio};
use std::thread;

use crate::common::activity::{Guarded, write_statistics};
use crate::common::{Place, Run, misfits, skipped};
use evener::core::Direction::{Decrypt, Encrypt};
use evener::core::counts::{Count, Kind, Row};
use evener::core::{Algorithm, Class, Nanos};
use evener::counts_file::{Directories, Statistics};
use evener_arbiter::{Costs, Mean, Work};
use evener_testing::allow;
use evener_testing::arbiters::ArbiterFolder;
use evener_testing::waiting::soon;
use serde_json::Value;

fn status(place: &Place) -> Run {
    place.evener().env("EVENER_STATISTICS_DIR", place.join("stats")).arg("status")
}

/// A place in which this process counts.
fn counting() -> (Place, Statistics) {
    let place = Place::new();
    let statistics = Statistics::new(Directories::only(place.join("stats"))).unwrap();
    let cbc = Kind::named("AES-128-CBC");
    (0..2).for_each(|_| statistics.request(cbc, Encrypt, 16_384, Count::Direct));
    statistics.request(cbc, Encrypt, 16_384, Count::Kernel);
    statistics.request(cbc, Encrypt, 1 << 20, Count::Routed);
    statistics.request(Kind::named("AES-256-GCM"), Decrypt, 2 << 20, Count::Split);
    (place, statistics)
}

fn answer(run: Run) -> Value {
    let ran = run.arg("--json").run();
    let value: Value = serde_json::from_slice(ran.stdout()).unwrap();
    assert_eq!(misfits("status.schema.json", &value), [""; 0]);
    value
}

#[test]
fn a_running_process_is_shown_with_what_it_did_so_far() {
    let (place, statistics) = counting();
    let shown = |options: &[&str]| {
        let ran = status(&place).args(options).run().succeeded();
        ran.stdout_text()
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect::<Vec<_>>()
    };
    let lines = shown(&[]);
    assert!(lines[0].starts_with(&format!("{} ", process::id())), "{lines:?}");
    assert_eq!(lines[1], "requests bytes direct kernel combined split routed");
    assert_eq!(lines[2], "AES-128-CBC encrypt 4 1.05 MiB 50.0 % 25.0 % - - 25.0 %");
    assert_eq!(lines[3], "AES-256-GCM decrypt 1 2.00 MiB - - - 100.0 % -");
    assert_eq!(lines.len(), 4);
    assert_eq!(
        shown(&["--sizes"])[2..4],
        [
            "AES-128-CBC encrypt, to 16.0 KiB 3 48.0 KiB 66.7 % 33.3 % - - -",
            "AES-128-CBC encrypt, to 1.00 MiB 1 1.00 MiB - - - - 100.0 %"
        ]
    );
    let row = Row::of(Kind::named("AES-128-CBC"), Encrypt, 1 << 20);
    for (count, number) in [(Count::TakenBack, 1), (Count::Redone, 2), (Count::Locked, 3)] {
        statistics.add(row, count, number);
    }
    let lines = shown(&["--pid", &process::id().to_string()]);
    statistics.show_wrong_lanes(1);
    statistics.show_wrong_kernels(2);
    statistics.show_wrong_modules(3);
    let lines = [lines, shown(&[])[7..].to_vec()].concat();
    for (line, words) in lines[4..].iter().zip([
        "1 part taken back",
        "2 requests that a module failed",
        "3 times a class was locked",
        "lanes are out of service: 1 result",
        "some kernels are out of service: 2 results",
        "some modules are out of service: 3 results",
        "of what these modules did before only a sample was compared",
    ]) {
        assert!(line.starts_with(words), "{lines:?}");
    }
    assert_eq!(lines.len(), 11);
}

#[test]
fn json_holds_every_class_and_fits_its_schema() {
    let (place, statistics) = counting();
    let value = answer(status(&place));
    let classes = value["processes"][0]["classes"].as_array().unwrap();
    let of = |index: usize, name: &str| classes[index][name].clone();
    assert_eq!(classes.len(), 3);
    assert_eq!(
        (of(0, "requests"), of(0, "bytes"), of(0, "bytes_max")),
        (3.into(), 49_152.into(), 16_384.into())
    );
    assert_eq!((of(0, "direct"), of(0, "kernel")), (2.into(), 1.into()));
    assert_eq!(
        (of(2, "algorithm"), of(2, "split"), of(2, "bytes_max")),
        ("AES-256-GCM".into(), 1.into(), Value::Null)
    );
    statistics.request(Kind::OTHER, Encrypt, 0, Count::Direct);
    assert_eq!(answer(status(&place))["processes"][0]["classes"].as_array().unwrap().len(), 4);
}

#[test]
fn a_process_that_has_ended_is_shown_once_more_and_then_removed() {
    let (place, _statistics) = counting();
    let mut child = process::Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    let path = counted_by(&place, child.id());
    let ended = |pid: u32, value: &Value| {
        let processes = value["processes"].as_array().unwrap();
        processes.iter().find(|one| one["pid"] == pid).map(|one| one["ended"].as_bool().unwrap())
    };
    let value = answer(status(&place));
    assert_eq!((ended(child.id(), &value), ended(process::id(), &value)), (Some(true), Some(false)));
    assert!(!path.exists());
    assert_eq!(answer(status(&place))["processes"].as_array().unwrap().len(), 1);
}

/// Writes what this process has counted as that of another one.
fn counted_by(place: &Place, pid: u32) -> PathBuf {
    let mut bytes = fs::read(place.join(format!("stats/{}.stats", process::id()))).unwrap();
    bytes[12..16].copy_from_slice(&pid.to_ne_bytes());
    // When it began is not known.
    bytes[16..24].fill(0);
    place.write(format!("stats/{pid}.stats"), bytes)
}

#[test]
fn a_process_that_ends_while_a_host_is_asked_is_shown_as_ended_the_next_time() {
    let (place, _statistics) = counting();
    let mut child = process::Command::new("sleep").arg("600").spawn().unwrap();
    let (pid, path) = (child.id(), counted_by(&place, child.id()));
    let ended = |value: &Value| {
        let processes = value["processes"].as_array().unwrap();
        processes.iter().find(|one| one["pid"] == pid).map(|one| one["ended"].as_bool().unwrap())
    };
    let listener = UnixListener::bind(place.join("silent.control")).unwrap();
    let first = thread::scope(|scope| {
        scope.spawn(|| {
            let (_asked, _) = listener.accept().unwrap();
            child.kill().unwrap();
            child.wait().unwrap();
        });
        let run = status(&place).args(["--json", "--host", "silent.control"]).run();
        serde_json::from_slice::<Value>(run.stdout()).unwrap()
    });
    assert_eq!((ended(&first), path.exists()), (Some(false), true));
    assert_eq!((ended(&answer(status(&place))), path.exists()), (Some(true), false));
}

#[test]
fn in_another_namespace_of_process_numbers_nobodys_counts_are_removed() {
    let (place, _statistics) = counting();
    let path = place.join(format!("stats/{}.stats", process::id()));
    let apart = ["--pid", "--fork", "--mount-proc"];
    if !process::Command::new("unshare").args(apart).arg("true").status().is_ok_and(|end| end.success()) {
        return skipped("this user may make no namespaces");
    }
    let evener = place.evener();
    let mut run = place.program("unshare").args(apart).arg(evener.command.get_program());
    run = run.env("EVENER_STATISTICS_DIR", place.join("stats")).args(["status", "--json"]);
    let value: Value = serde_json::from_slice(run.run().succeeded().stdout()).unwrap();
    assert_eq!((&value["processes"][0]["ended"], path.exists()), (&false.into(), true), "{value}");
    assert_eq!(value["processes"][0]["process_cpu_seconds"], Value::Null);
}

#[test]
fn what_is_no_statistics_is_named_in_one_line_and_the_others_are_shown() {
    let (place, _statistics) = counting();
    let own = fs::read(place.join(format!("stats/{}.stats", process::id()))).unwrap();
    // Process 1 runs, so its file is not removed.
    for (bytes, words) in [
        (&own[..9_999], "process 1: cut off after 2499 words"),
        (&own[..], "process 1: this is no statistics file"),
        (b"hello", "process 1: this is no statistics file"),
        (b"", "process 1: this is no statistics file"),
    ] {
        place.write("stats/1.stats", bytes);
        let ran = status(&place).run().ended_with(1).saying(words);
        assert!(ran.stdout_text().contains("AES-256-GCM"));
        assert_eq!(answer(status(&place))["unreadable"][0]["pid"], 1);
    }
}

#[test]
fn nothing_to_show_is_said() {
    let place = Place::new();
    assert!(status(&place).run().succeeded().stdout_text().starts_with("no program of this user counts"));
    status(&place).args(["--pid", "1"]).run().ended_with(2).saying("process 1 has no statistics");
    fs::create_dir(place.join("stats")).unwrap();
    fs::set_permissions(place.join("stats"), fs::Permissions::from_mode(0o777)).unwrap();
    place.write("stats/1.stats", "planted by somebody");
    status(&place).run().ended_with(1).saying("0700");
}

#[test]
fn a_directory_that_the_provider_refuses_is_one_fault_and_what_lies_elsewhere_is_shown() {
    let (place, shared) = (Place::new(), ArbiterFolder::new());
    let _host = host(&place, "core.control");
    let arbiter = shared.attach();
    let module = arbiter.module("afalg:some_driver", 2);
    let _held = module.try_acquire(Nanos::from_millis(4_000)).unwrap();
    place.write("file", "");
    fs::create_dir(place.join("open")).unwrap();
    fs::set_permissions(place.join("open"), fs::Permissions::from_mode(0o755)).unwrap();
    let full = |name: &str| place.join(name).display().to_string();
    for (directory, why) in [
        ("stats".to_owned(), "no absolute path"),
        (full("open"), "0700"),
        (full("file"), "0700"),
        (full("gone/stats"), "is not there"),
    ] {
        let run = || place.evener().env("EVENER_STATISTICS_DIR", &directory).arg("status");
        let elsewhere = || run().env("EVENER_ARBITER_DIR", shared.path()).args(["--host", "core.control"]);
        for run in [run(), elsewhere(), elsewhere().arg("--json"), elsewhere().arg("--prometheus")] {
            run.run().ended_with(1).saying("EVENER_STATISTICS_DIR").saying(&directory).saying(why);
            let top = place.evener().env("EVENER_STATISTICS_DIR", &directory);
            let top = top.args(["top", "--once", "--interval", "0.1"]).run().ended_with(1).saying(why);
            assert!(top.stdout_text().contains("where no program counts"), "{}", top.stdout_text());
        }
        // Nothing is read in its place.
        assert_eq!(run().run().stdout_text(), "");
        let told = elsewhere().run().stdout_text().to_owned();
        assert!(told.starts_with("host core.control: "), "{told}");
        assert!(told.contains("\nmodule afalg:some_driver: 1 of 2 permits held"), "{told}");
        let value = answer(elsewhere());
        assert_eq!(
            (&value["hosts"][0]["error"], &value["processes"]),
            (&Value::Null, &serde_json::json!([]))
        );
        assert_eq!(value["shared_modules"][0]["name"], "afalg:some_driver");
    }
}

/// A host that serves a core, with its control socket at `control`.
fn host(place: &Place, control: &str) -> Guarded {
    let mut run =
        place.evener().args(["host", "--module", "cpu", "--socket", "socket", "--control", control]);
    run.command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut host = run.command.spawn().unwrap();
    let mut told = String::new();
    BufReader::new(host.stderr.take().unwrap()).read_line(&mut told).unwrap();
    assert!(told.contains("serving at"), "{told}");
    Guarded(host)
}

#[test]
fn a_host_is_found_beside_the_statistics_or_by_its_name_and_a_dead_one_only_by_its_name() {
    let (place, _statistics) = counting();
    let host = host(&place, "stats/core.control");
    let value = answer(status(&place));
    let told = &value["hosts"][0];
    // Whether the core has multi-buffer lanes is the machine's affair.
    let module = told["report"]["module"].as_str().unwrap();
    assert!(["libcrypto", "multibuffer"].contains(&module), "{value}");
    assert_eq!((&told["report"]["requests"], &told["error"]), (&0.into(), &Value::Null));
    let ran = status(&place).run().succeeded();
    assert!(
        ran.stdout_text().contains(&format!("core.control: {module}\n  0 clients, 0 requests, 0 B")),
        "{}",
        ran.stdout_text()
    );
    let top = || {
        place.evener().env("EVENER_STATISTICS_DIR", place.join("stats")).args([
            "top",
            "--once",
            "--interval",
            "0.1",
        ])
    };
    assert!(
        top()
            .run()
            .succeeded()
            .stdout_text()
            .contains(&format!("host core.control: {module}  0 clients  0 in flight  0 requests/s"))
    );
    drop(host);
    assert!(place.join("stats/core.control").exists());
    assert_eq!(answer(status(&place))["hosts"].as_array().unwrap().len(), 0);
    let name = "stats/core.control";
    status(&place).args(["--host", name]).run().ended_with(1).saying("host stats/core.control: ");
    top().args(["--host", name]).run().ended_with(1).saying("host stats/core.control: ");
    assert!(answer(status(&place).args(["--host", name]))["hosts"][0]["error"].is_string());
}

/// A Python that has Prometheus's own client.
fn prometheus() -> Option<String> {
    let pythons = [std::env::var("EVENER_TINK_PYTHON").unwrap_or_default(), "python3".to_owned()];
    pythons.into_iter().find(|python| {
        let run = process::Command::new(python)
            .args(["-c", "import prometheus_client"])
            .stderr(Stdio::null())
            .status();
        run.is_ok_and(|status| status.success())
    })
}

#[test]
fn the_parser_of_prometheus_reads_what_was_counted_and_the_names_as_they_are() {
    let Some(python) = prometheus() else {
        return skipped("no Python here has prometheus_client (conformance/interop/requirements.txt)");
    };
    let place = Place::new();
    let other = Guarded::sleeper();
    let cbc = |bytes| Row::of(Kind::named("AES-128-CBC"), Encrypt, bytes);
    let counts = [
        (cbc(64), Count::Direct, 3),
        (cbc(64), Count::Kernel, 4),
        (cbc(64), Count::Bytes, 99),
        (cbc(9_999), Count::Routed, 2),
        (cbc(64), Count::Redone, 1),
    ];
    write_statistics(&place, process::id(), b"a\"b\\c\\n}d", &counts);
    write_statistics(&place, other.id(), "日本 x".as_bytes(), &counts);
    let judge = "import sys, json\nfrom prometheus_client.parser import text_string_to_metric_families as read\n\
        print(json.dumps([[m.name, m.type, m.documentation, s.name, s.labels, s.value] for m in read(sys.stdin.read()) for s in m.samples]))";
    let ran = status(&place).args(["--prometheus", "--host", "no \"host\"\n\\here"]).run().ended_with(1);
    let judged = place.program(&python).args(["-c", judge]).input(ran.stdout()).run().succeeded();
    let samples: Vec<Value> = serde_json::from_slice(judged.stdout()).unwrap();
    let value = |name: &str, labels: &[(&str, &str)]| {
        let fits = |sample: &&Value| {
            sample[3] == name && labels.iter().all(|(key, value)| sample[4][key] == **value)
        };
        let found: Vec<f64> = samples.iter().filter(fits).map(|sample| sample[5].as_f64().unwrap()).collect();
        assert_eq!(found.len(), 1, "{name} {labels:?} in {samples:?}");
        found[0]
    };
    for name in ["a\"b\\c\\n}d", "日本 x"] {
        let of = [("process", name), ("algorithm", "AES-128-CBC"), ("direction", "encrypt")];
        let way = |way| value("evener_requests_total", &[&of[..], &[("way", way)]].concat());
        assert_eq!(["direct", "kernel", "combined", "split", "routed"].map(way), [3.0, 4.0, 0.0, 0.0, 2.0]);
        assert_eq!((value("evener_bytes_total", &of), value("evener_redone_total", &of)), (99.0, 1.0));
        assert_eq!(value("evener_process_ended", &of[..1]), 0.0);
        assert!(value("evener_process_cpu_seconds_total", &of[..1]) >= 0.0);
    }
    assert_eq!(value("evener_host_up", &[("host", "no \"host\"\n\\here")]), 0.0);
    for sample in &samples {
        let is_counter = sample[1] == "counter";
        assert!(is_counter == sample[3].as_str().unwrap().ends_with("_total"), "{sample}");
        assert!(is_counter || sample[1] == "gauge", "{sample}");
        assert_ne!(sample[2], "", "{sample}");
    }
}

#[test]
fn modules_that_processes_share_are_shown_with_who_has_them_who_waits_and_what_was_learned() {
    let (place, shared) = (Place::new(), ArbiterFolder::new());
    let run = || status(&place).env("EVENER_ARBITER_DIR", shared.path());
    assert_eq!(answer(run())["shared_modules"], serde_json::json!([]));
    let arbiter = shared.attach();
    let module = arbiter.module("afalg:some_driver", 2);
    let class = Class::of(Algorithm::Aes128Cbc, Encrypt, 16_384, false);
    let mean = |ns| Mean { ns, deviation_ns: ns / 10 };
    let costs = Costs { c: mean(12_000), d: mean(3_000), h: mean(61_000), bytes: 16_384, samples: 9 };
    module.publish(class, &costs);
    let held = [(); 2].map(|()| module.try_acquire(Nanos::from_millis(4_000)).unwrap());
    held.iter().for_each(|permit| permit.count(Work { requests: 3, bytes: 49_152 }));
    thread::scope(|scope| {
        let waits = scope.spawn(|| module.acquire(Nanos::from_millis(1), Nanos::from_millis(60_000)));
        assert!(soon(|| !arbiter.snapshot().modules[0].waiting.is_empty()));
        let told = &answer(run())["shared_modules"][0];
        assert_eq!((&told["name"], &told["permits"]), (&"afalg:some_driver".into(), &2.into()));
        assert_eq!(told["holders"].as_array().unwrap().len(), 2);
        assert_eq!(told["waiting"][0]["pid"], process::id());
        assert_eq!(told["costs"][0]["h"], serde_json::json!({ "ns": 61_000, "deviation_ns": 6_100 }));
        assert!(told["expected_wait_ns"].as_u64().unwrap() > 1_000_000_000);
        assert_eq!((&told["requests"], &told["bytes"]), (&6.into(), &98_304.into()));
        let text = run().run().succeeded().stdout_text().to_owned();
        assert!(text.contains("\n  6 requests done there, 96.0 KiB\n"), "{text}");
        assert!(
            text.contains("module afalg:some_driver: 2 of 2 permits held, 1 waiting, a request waits "),
            "{text}"
        );
        assert!(
            text.contains("core 12.000 us, beside the module 3.000 us and there 61.000 us (9 samples)"),
            "{text}"
        );
        let metrics = run().arg("--prometheus").run().succeeded().stdout_text().to_owned();
        assert!(
            metrics.contains("\nevener_module_permits_held{module=\"afalg:some_driver\"} 2\n"),
            "{metrics}"
        );
        assert!(metrics.contains("\nevener_module_waiting{module=\"afalg:some_driver\"} 1\n"), "{metrics}");
        assert!(
            metrics.contains("\nevener_module_bytes_total{module=\"afalg:some_driver\"} 98304\n"),
            "{metrics}"
        );
        drop(held);
        assert!(waits.join().unwrap().is_ok());
    });
    // A directory that others may write to is not believed, and that is said.
    allow(shared.path(), 0o777);
    assert_eq!(answer(run())["shared_modules"], serde_json::json!([]));
    allow(shared.path(), 0o700);
}

#[test]
fn the_segment_of_shared_modules_can_be_taken_away_and_its_users_go_on() {
    let (place, shared) = (Place::new(), ArbiterFolder::new());
    let remove = || {
        let run = status(&place).env("EVENER_ARBITER_DIR", shared.path()).arg("--remove-arbiter");
        run.run().succeeded().stderr().trim().to_owned()
    };
    assert_eq!(remove(), "evener: there is no arbiter's segment");
    let module = shared.attach().module("afalg:some_driver", 1);
    assert!(module.try_acquire(Nanos(1)).is_ok());
    assert_eq!(remove(), "evener: the arbiter's segment was removed");
    assert!(shared.path().read_dir().unwrap().next().is_none());
    assert!(module.try_acquire(Nanos(1)).is_ok());
}
