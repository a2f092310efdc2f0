//! What `evener plan` and `evener run-shard` hand over: the program that knows stores lies beside the command, gets all options, and its exit
//! status is theirs. Here a script stands in its place and shows what it got.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;

use crate::common::{EVENER, Place, Run};
use evener_testbed::write_program;

/// A place with the command beside a script that prints its argument and ends with 1.
fn place() -> Place {
    let place = Place::new();
    fs::create_dir(place.join("bin")).unwrap();
    fs::hard_link(EVENER, place.join("bin/evener"))
        .or_else(|_| fs::copy(EVENER, place.join("bin/evener")).map(drop))
        .unwrap();
    let script = b"#!/bin/sh\nprintf '%s' \"$1\"\nexit 1\n";
    write_program(&place.join("bin/evener-objects"), script).unwrap();
    place
}

fn evener(place: &Place) -> Run {
    let mut run = place.program(place.join("bin/evener").to_str().unwrap());
    run.command.env_remove("JOB_COMPLETION_INDEX");
    run
}

/// What the program got.
fn asked(run: Run) -> serde_json::Value {
    // The status is the program's own.
    serde_json::from_str(run.run().ended_with(1).stdout_text()).unwrap()
}

#[test]
fn a_plan_is_asked_for_with_all_that_was_said() {
    let place = place();
    let run = evener(&place).args(["plan", "s3://b/plain", "/sealed", "--shards", "64", "-o", "plan.json"]);
    let expected = serde_json::json!({"plan": {
        "direction": "encrypt", "source": "s3://b/plain", "destination": "/sealed", "suffix": "",
        "wanted": {"shards": 64}, "no_ranges": false, "output": "plan.json", "force": false, "quiet": false,
    }});
    assert_eq!(asked(run), expected);
    let run = evener(&place).args([
        "plan",
        "a",
        "b",
        "--shard-bytes",
        "50G",
        "--no-ranges",
        "--decrypt",
        "--suffix",
        ".age",
        "--output",
        "-",
        "--force",
        "--quiet",
    ]);
    let expected = serde_json::json!({"plan": {
        "direction": "decrypt", "source": "a", "destination": "b", "suffix": ".age",
        "wanted": {"bytes": 50_u64 << 30}, "no_ranges": true, "output": "-", "force": true, "quiet": true,
    }});
    assert_eq!(asked(run), expected);
}

#[test]
fn a_shard_is_asked_for_with_all_that_was_said() {
    let place = place();
    let run =
        evener(&place).args(["run-shard", "plan.json", "17", "--key", "k.json", "--associated-data", "ab"]);
    let none: [&str; 0] = [];
    let keys = |key: Option<&str>| {
        serde_json::json!({
            "key": key, "identities": none, "recipients": none, "recipients_files": none, "key_env": null,
            "key_command": null, "associated_data": if key.is_some() { vec![97, 98] } else { vec![] },
        })
    };
    let expected = serde_json::json!({"run-shard": {
        "plan": "plan.json", "number": 17, "keys": keys(Some("k.json")), "existing": "keep", "transfers": null,
        "memory_bytes": 256 << 20, "timeout_s": 120, "json": null, "quiet": false, "with_parent": false,
    }});
    assert_eq!(asked(run), expected);
    let mut run = evener(&place)
        .args(["run-shard", "plan.json", "--identity", "a", "-i", "b", "--recipient", "age1x"])
        .args([
            "-r",
            "age1y",
            "--recipients-file",
            "c",
            "-R",
            "d",
            "--key-env",
            "KEY",
            "--key-command",
            "kms",
            "--update",
            "--transfers",
            "3",
            "--memory",
            "1G",
            "--timeout",
            "5",
            "--json",
            "-",
            "--quiet",
            "--with-parent",
        ]);
    run.command.env("JOB_COMPLETION_INDEX", "5");
    let mut all = keys(None);
    for (field, value) in
        [("identities", ["a", "b"]), ("recipients", ["age1x", "age1y"]), ("recipients_files", ["c", "d"])]
    {
        all[field] = serde_json::json!(value);
    }
    (all["key_env"], all["key_command"]) = ("KEY".into(), "kms".into());
    let expected = serde_json::json!({"run-shard": {
        "plan": "plan.json", "number": 5, "keys": all, "existing": "update", "transfers": 3,
        "memory_bytes": 1 << 30, "timeout_s": 5, "json": "-", "quiet": true, "with_parent": true,
    }});
    assert_eq!(asked(run), expected);
    let run = evener(&place).args(["run-shard", "plan.json", "0", "--key", "k.json", "--force"]);
    assert_eq!(asked(run)["run-shard"]["existing"], "replace");
}

#[test]
fn what_cannot_be_asked_is_refused_for_good() {
    let place = place();
    for (number, arguments) in [
        (None, vec!["plan.json", "--key", "k.json"]),
        (Some("five"), vec!["plan.json", "--key", "k.json"]),
        (Some("5"), vec!["plan.json"]),
        (None, vec!["plan.json", "5", "--key", "k.json", "--update", "--force"]),
    ] {
        let mut run = evener(&place).arg("run-shard").args(&arguments);
        if let Some(number) = number {
            run.command.env("JOB_COMPLETION_INDEX", number);
        }
        run.run().ended_with(2);
    }
    evener(&place).args(["plan", "a", "b", "-o", "p"]).run().ended_with(2).saying("--shards");
    fs::remove_file(place.join("bin/evener-objects")).unwrap();
    let run = evener(&place).args(["plan", "a", "b", "--shards", "2", "-o", "p"]);
    run.run().ended_with(2).saying("evener-objects");
    fs::create_dir_all(place.join("lib/evener")).unwrap();
    write_program(&place.join("lib/evener/evener-objects"), b"#!/bin/sh\nexit 0\n").unwrap();
    evener(&place).args(["plan", "a", "b", "--shards", "2", "-o", "p"]).run().succeeded();
}
