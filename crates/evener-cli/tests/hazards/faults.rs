//! System calls that fail, and signals that come, at counted places: each file is done, failed or named, what stands under a final name is whole, and the
//! same command again does the rest. `strace` makes the faults; the contents judge what is whole.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use std::fs;
use std::path::PathBuf;

use crate::common::{self, EVENER, Place, Ran, failed_paths, files, noise, skipped, there_is, tree};
use evener_testing::Random;
use serde_json::Value;

const ENCRYPT: [&str; 9] = ["encrypt", "--key", "k.json", "-q", "--workers", "2", "-o", "sealed", "in"];

/// Files of one segment and of many, in directories of which one may not be written to.
fn place() -> Place {
    let place = Place::with_key();
    for number in 0..12_u16 {
        place.write(format!("in/{}/{number}", number % 3), noise(number.into(), 3_000 * usize::from(number)));
    }
    place.write("in/0/large", noise(99, 3_000_000));
    common::allow(&place.join("in/1"), 0o555);
    place
}

/// The run with one fault; nothing where faults cannot be made here.
fn with_fault(place: &Place, fault: &str) -> Option<Ran> {
    if !there_is("strace") {
        skipped("strace is not installed");
        return None;
    }
    fs::remove_dir_all(place.join("sealed")).ok();
    let calls = fault.split(':').next().unwrap();
    let words = [
        "-f",
        "-q",
        "-o",
        "trace",
        "-e",
        &format!("trace={calls}"),
        "-e",
        &format!("inject={fault}"),
        EVENER,
    ];
    let mut run = place
        .program("env")
        .args(["--default-signal", "strace"])
        .args(words)
        .args(ENCRYPT)
        .args(["--json", "report.json"]);
    run.command.env("EVENER_ARBITER", "off");
    Some(run.run())
}

/// Every file of the input is under its final name, or named; and the counts say the same.
fn everything_is_done_or_named(place: &Place, fault: &str) {
    let report: Value = serde_json::from_slice(&fs::read(place.join("report.json")).unwrap()).unwrap();
    let count = |name: &str| report[name].as_u64().unwrap();
    let named = failed_paths(&report);
    let of_list = |name: &str| report[name].as_array().unwrap().len() as u64;
    let accounted = count("files") + count("already_done") + of_list("skipped") + of_list("failed");
    assert!(accounted >= count("found"), "{fault}: {report}");
    let done = files(&place.join("sealed"));
    for name in files(&place.join("in")) {
        let is_named = PathBuf::from("in").join(&name).ancestors().any(|path| named.contains(path));
        assert!(is_named || done.contains(&name), "{fault}: {name:?} is neither done nor named: {report}");
    }
    assert!(!done.iter().any(|name| name.to_string_lossy().contains(".evener-")), "{fault}: a draft is left");
}

/// What stands under a final name is the source, encrypted.
fn everything_there_is_whole(place: &Place, fault: &str) {
    if !place.join("sealed").exists() {
        return;
    }
    fs::remove_dir_all(place.join("back")).ok();
    place.evener().args(["decrypt", "--key", "k.json", "-q", "-o", "back", "sealed"]).run().succeeded();
    for name in files(&place.join("back")) {
        let [plain, back] = ["in", "back"].map(|root| fs::read(place.join(root).join(&name)).unwrap());
        assert!(plain == back, "{fault}: {name:?}");
    }
}

fn the_same_command_does_the_rest(place: &Place, fault: &str) {
    place.evener().args(ENCRYPT).run().succeeded();
    fs::remove_dir_all(place.join("back")).ok();
    place.evener().args(["decrypt", "--key", "k.json", "-q", "-o", "back", "sealed"]).run().succeeded();
    assert!(tree(&place.join("in")) == tree(&place.join("back")), "{fault}");
}

/// Calls by which outputs come to be, with errors that each is known to give.
const FAULTS: [(&str, &[&str]); 9] = [
    ("pwritev", &["ENOSPC", "EIO", "EDQUOT"]),
    ("pwritev2", &["ENOSPC"]),
    ("mkdirat", &["ENOSPC", "EACCES"]),
    ("fsync", &["EIO"]),
    ("syncfs", &["EIO", "ENOSPC"]),
    ("renameat2", &["EIO", "ENOSPC"]),
    ("utimensat", &["EPERM"]),
    ("fchmod", &["EPERM"]),
    ("preadv", &["EIO"]),
];

#[test]
fn a_call_that_fails_leaves_every_file_done_or_named_wherever_it_is() {
    let place = place();
    let mut random = Random::new(7);
    for (call, errors) in FAULTS {
        for error in errors {
            for from in [1, 2 + random.below(5), 8 + random.below(20)] {
                // Once, and from there on, as on a disk that is full.
                for after in ["", "+"] {
                    let fault = format!("{call}:error={error}:when={from}{after}");
                    let Some(ran) = with_fault(&place, &fault) else { return };
                    assert!(matches!(ran.code(), Some(0 | 1)), "{fault}: {ran:?}");
                    everything_is_done_or_named(&place, &fault);
                    everything_there_is_whole(&place, &fault);
                }
            }
            the_same_command_does_the_rest(&place, call);
        }
    }
}

#[test]
fn a_signal_at_any_call_leaves_no_draft_and_whole_files_only() {
    let place = place();
    let mut random = Random::new(8);
    for (call, signal, number) in [
        ("pwritev", "SIGTERM", 15),
        ("renameat2", "SIGINT", 2),
        ("syncfs", "SIGHUP", 1),
        ("mkdirat", "SIGQUIT", 3),
        ("utimensat", "SIGXCPU", 24),
        ("unlinkat", "SIGTERM", 15),
    ] {
        for from in [1, 2, 3 + random.below(12)] {
            let fault = format!("{call}:signal={signal}:when={from}");
            let Some(ran) = with_fault(&place, &fault) else { return };
            // strace ends as its program does.
            let ended = (ran.code(), ran.signal());
            assert!(matches!(ended, (Some(0), None)) || ended == (None, Some(number)), "{fault}: {ran:?}");
            let left = files(&place.join("sealed"));
            assert!(
                !left.iter().any(|name| name.to_string_lossy().contains(".evener-")),
                "{fault}: {left:?}"
            );
            everything_there_is_whole(&place, &fault);
        }
    }
    the_same_command_does_the_rest(&place, "signals");
}

#[test]
fn a_signal_while_the_identity_of_a_tree_is_written_leaves_nothing_of_it() {
    let place = Place::new();
    place.write("in/f", "text");
    place.write_secret("pass", "word\n");
    if !there_is("strace") {
        return skipped("strace is not installed");
    }
    // The signal comes when it is on the disk, and ends the run long before it would get its name.
    let words = ["-f", "-q", "-o", "trace", "-e", "trace=fsync,linkat"].into_iter();
    let faults = ["fsync:signal=INT:when=1", "linkat:delay_enter=2000000:when=1"];
    let faults = faults.map(|fault| ["-e".to_owned(), format!("inject={fault}")]);
    let words = words.map(str::to_owned).chain(faults.into_iter().flatten());
    let mut run = place.program("env").args(["--default-signal", "strace"]).args(words);
    run = run.args([
        EVENER,
        "encrypt",
        "-q",
        "--passphrase-file",
        "pass",
        "--work-factor",
        "10",
        "-o",
        "sealed",
        "in",
    ]);
    let ran = run.env("EVENER_ARBITER", "off").run();
    assert_eq!(ran.signal(), Some(rustix::process::Signal::INT.as_raw()), "{ran:?}");
    assert_eq!(files(&place.join("sealed")), Vec::<PathBuf>::new());
}

#[test]
fn of_two_first_runs_under_a_passphrase_each_opens_what_both_made_whatever_the_file_system_knows() {
    if !there_is("strace") {
        return skipped("strace is not installed");
    }
    // No hard links; nor a renaming that replaces nothing.
    for refused in [&[][..], &["linkat:error=EPERM"], &["linkat:error=EPERM", "renameat2:error=EINVAL"]] {
        let place = Place::new();
        place.write_secret("pass", "word\n");
        let runs = ["1", "2"].map(|run| {
            let names = ["f", "g"].map(|name| format!("{name}{run}"));
            names.iter().for_each(|name| drop(place.write(name, format!("text of {name}"))));
            let calls = ["-f", "-qq", "-o", &format!("trace{run}"), "-e", "trace=linkat,renameat,renameat2"];
            let faults = refused.iter().flat_map(|fault| ["-e".to_owned(), format!("inject={fault}")]);
            let mut run =
                place.program("strace").args(calls).args(faults).arg(EVENER).args(["encrypt", "-q"]);
            run = run.args(["--passphrase-file", "pass", "--work-factor", "16", "-o", "vault"]).args(names);
            run.command.env("EVENER_ARBITER", "off");
            run.command.spawn().unwrap()
        });
        for mut run in runs {
            assert!(run.wait().unwrap().success(), "{refused:?}");
        }
        let back = place.evener().args(["decrypt", "-q", "--passphrase-file", "pass", "-o", "back", "vault"]);
        back.run().succeeded();
        for name in ["f1", "g1", "f2", "g2"] {
            let text = fs::read_to_string(place.join("back").join(name)).unwrap();
            assert_eq!(text, format!("text of {name}"), "{refused:?}");
        }
        let left = files(&place.join("vault")).len();
        assert_eq!(left, 5, "{refused:?}: the outputs and the identity, and no draft");
    }
}
