//! File systems that tell only at the close that what was written is not there, as network file systems and quotas do: it is an error, and no
//! output has its final name by then. `strace` makes the close of one file refuse.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::HashMap;
use std::fs;

use crate::common::{EVENER, Place, Ran, files, noise, skipped, there_is};

const QUOTA: &str = "Disk quota exceeded";

/// A command whose standard output is the file `answer`.
fn traced(place: &Place, words: &[&str], command: &[&str]) -> Ran {
    let line =
        format!("exec strace -f -qq -o trace -e trace=close {} \"$0\" \"$@\" >answer", words.join(" "));
    let run = place.program("sh").args(["-c", &line]).arg(EVENER).args(command);
    // Costs of its own, which no other test's program renews meanwhile.
    run.env("EVENER_ARBITER", "off").env("EVENER_CACHE_DIR", place.join("cache")).run()
}

/// The turn, among all that its thread closes, of the first file with such a path.
fn turn_of(place: &Place, path: &str) -> usize {
    let (mut turns, mut found) = (HashMap::new(), None);
    let trace = fs::read_to_string(place.join("trace")).unwrap();
    for (thread, call) in trace.lines().filter_map(|line| line.split_once(' ')) {
        if !call.contains("close(") {
            continue;
        }
        let turn = turns.entry(thread.to_owned()).or_insert(0);
        *turn += 1;
        found = found.or_else(|| call.contains(path).then_some(*turn));
    }
    found.unwrap()
}

/// The command with a close of that file that refuses; `undo` takes back what it does.
fn refused(place: &Place, path: &str, command: &[&str]) -> Ran {
    let undo = || {
        for name in ["sealed", "answer", "report.json"].map(|name| place.join(name)) {
            fs::remove_dir_all(&name).or_else(|_| fs::remove_file(&name)).ok();
        }
    };
    // The first one may measure costs, and keep them.
    for _ in 0..2 {
        undo();
        traced(place, &["-y"], command).succeeded();
    }
    let fault = format!("inject=close:error=EDQUOT:when={}", turn_of(place, path));
    undo();
    traced(place, &["-e", &fault], command)
}

#[test]
fn what_only_a_close_tells_is_an_error_and_no_output_has_its_name_by_then() {
    if !there_is("strace") {
        return skipped("strace is not installed");
    }
    let place = Place::with_key();
    for number in 0..20_u64 {
        place.write(format!("in/{number}"), noise(number, 2_000));
    }
    place.write("large", noise(9, 3_000_000));
    let encrypt = ["encrypt", "--key", "k.json", "-q", "--workers", "1"];
    for (what, path, rest) in [
        ("one of many", ".draft", &["-o", "sealed", "in"][..]),
        ("one by itself", ".draft", &["-o", "sealed", "in/3"]),
        ("a large one", ".draft", &["-o", "sealed", "large"]),
    ] {
        let ran = refused(&place, path, &[&encrypt[..], rest].concat()).ended_with(1);
        let first = ran.stderr().lines().next().unwrap();
        assert!(first.contains("cannot write the output") && first.contains(QUOTA), "{what}: {first}");
        let named = first.strip_prefix("evener: ").and_then(|line| line.split_once(": ")).unwrap().0;
        let output = match named.strip_prefix("in/") {
            Some(name) if rest.contains(&"in") => place.join("sealed").join(name),
            _ => place.join("sealed"),
        };
        assert!(place.join(named).is_file() && !output.exists(), "{what}: {named}");
        assert!(!files(&place.join("sealed")).iter().any(|name| name.to_string_lossy().contains(".draft")));
    }
}

#[test]
fn what_only_a_close_tells_of_answers_lists_and_reports_is_an_error() {
    if !there_is("strace") {
        return skipped("strace is not installed");
    }
    let place = Place::with_key();
    place.write("f", noise(1, 2_000));
    let to_report = ["encrypt", "--key", "k.json", "-q", "--json", "report.json", "-o", "sealed", "f"];
    for (path, command) in [
        ("/answer>", &["encrypt", "--key", "k.json", "-o", "-", "f"][..]),
        ("/answer>", &["sum", "f"]),
        ("/answer>", &["inspect", "--json", "sealed.tink"]),
        ("/report.json>", &to_report),
    ] {
        if command[0] == "inspect" {
            let seal = ["encrypt", "--key", "k.json", "-q", "--force", "-o", "sealed.tink", "f"];
            place.evener().args(seal).run().succeeded();
        }
        let ran = refused(&place, path, command);
        assert!(ran.code() != Some(0) && ran.stderr().contains(QUOTA), "{command:?}: {ran:?}");
    }
}
