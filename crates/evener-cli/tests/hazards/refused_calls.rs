//! System calls that refuse, in every direction and with everything that is kept: a disk that is full at the n-th write, a sync that
//! fails, an owner, mode, time, attribute or access list that may not be set, a link that may not be made. Each file is done, failed or
//! named, the counts add up, no half output has a final name, and the status says whether all is done. `strace` makes the calls refuse.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{EVENER, Place, Ran, allow, failed_paths, files, noise, skipped, there_is, tree};
use evener_testing::Random;
use serde_json::Value;

/// A call with its errors.
struct Refusal {
    call: &'static str,
    errors: &'static [&'static str],
    /// The call that is the first to refuse: the loader's own come before it.
    first: usize,
    /// Words of the message, where only one is right.
    words: &'static str,
}

const fn refusal(call: &'static str, errors: &'static [&'static str], words: &'static str) -> Refusal {
    Refusal { call, errors, first: 1, words }
}

/// What each file of the tree needs: so a run in which such a call always fails has failures.
const NEEDED: [Refusal; 9] = [
    refusal("pwritev", &["ENOSPC", "EIO", "EDQUOT"], "cannot write the output"),
    refusal("fsync", &["EIO"], ""),
    refusal("syncfs", &["EIO", "ENOSPC"], ""),
    refusal("renameat2", &["EIO", "ENOSPC", "EACCES"], ""),
    refusal("fchown", &["EPERM", "EINVAL"], "cannot keep the owner (--no-owner leaves it out)"),
    refusal("fchmod", &["EPERM", "EROFS"], "cannot set the mode"),
    refusal("utimensat", &["EPERM"], "cannot set the time"),
    refusal("fsetxattr", &["EPERM", "ENOSPC", "EOPNOTSUPP"], "cannot keep the "),
    refusal("symlinkat", &["EPERM", "ENOSPC"], "cannot make the link"),
];

/// What may fail and has another way, or is only tried.
const SPARED: [Refusal; 4] = [
    refusal("linkat", &["EPERM", "EMLINK"], ""),
    Refusal { call: "close", errors: &["EIO"], first: 60, words: "" },
    refusal("fallocate", &["EOPNOTSUPP"], ""),
    refusal("copy_file_range", &["EIO"], ""),
];

/// Files of an owner of their own, with attributes, access lists and links: so many calls have something to do.
fn sow() -> Option<Place> {
    for program in ["strace", "setfattr", "setfacl"] {
        if !there_is(program) {
            skipped(&format!("{program} is not installed"));
            return None;
        }
    }
    let place = Place::with_key();
    if fs::metadata(place.path()).unwrap().uid() != 0 {
        skipped("only root keeps owners");
        return None;
    }
    for number in 0..9_u16 {
        let file = place
            .write(format!("in/{}/{number}", number % 3), noise(number.into(), 3_000 * usize::from(number)));
        let done =
            Command::new("setfattr").args(["-n", "user.note", "-v", "kept"]).arg(&file).status().unwrap();
        let listed = Command::new("setfacl").args(["-m", "u:1234:r"]).arg(&file).status().unwrap();
        assert!(done.success() && listed.success());
        chown(&file, Some(1_000), Some(2_000)).unwrap();
    }
    place.write("in/0/large", noise(99, 2_500_000));
    symlink("nowhere", place.join("in/2/link")).unwrap();
    fs::hard_link(place.join("in/1/1"), place.join("in/2/name")).unwrap();
    allow(&place.join("in/1"), 0o555);
    Some(place)
}

/// A run from `input` to `output` with one refusal.
fn run(place: &Place, fault: &str, direction: &str, output: &str, input: &str) -> Ran {
    let call = fault.split(':').next().unwrap();
    let words =
        ["-f", "-qq", "-o", "trace", "-e", &format!("trace={call}"), "-e", &format!("inject={fault}")];
    let run = place.program("strace").args(words).args([EVENER, direction, "--key", "k.json", "-q"]);
    let run = run.args(["--workers", "2", "--json", "report.json", "-o", output, input]);
    run.env("EVENER_ARBITER", "off").run()
}

fn report(place: &Place) -> Value {
    serde_json::from_slice(&fs::read(place.join("report.json")).unwrap()).unwrap()
}

/// Whether the fault came at all.
fn was_refused(place: &Place) -> bool {
    fs::read_to_string(place.join("trace")).unwrap().contains("(INJECTED)")
}

/// Everything is under its final name or named, the counts add up, and the status says the same.
fn is_accounted_for(place: &Place, ran: &Ran, input: &str, output: &str, which: &str) {
    let report = report(place);
    let count = |name: &str| report[name].as_u64().unwrap();
    let of_list = |name: &str| report[name].as_array().unwrap().len() as u64;
    let failed = of_list("failed");
    let accounted = count("files") + count("already_done") + of_list("skipped") + failed;
    // Of a directory that could not be finished more is told than was found.
    assert!(accounted >= count("found"), "{which}: {report}");
    assert_eq!(ran.code(), Some(i32::from(failed > 0)), "{which}: {ran:?}\n{report}");
    // A full disk ends a run: those that were not begun are one line, and all in the report.
    let lines = ran.stderr().lines().count() as u64;
    assert!(lines <= failed && (lines > 0) == (failed > 0), "{which}: {}", ran.stderr());
    let named = failed_paths(&report);
    let done = names(&place.join(output));
    for name in names(&place.join(input)) {
        let is_named = Path::new(input).join(&name).ancestors().any(|path| named.contains(path));
        assert!(is_named || done.contains(&name), "{which}: {name:?} is neither done nor named: {report}");
    }
    let is_draft = |name: &PathBuf| name.to_string_lossy().contains(".evener-");
    assert!(!done.iter().any(is_draft), "{which}: a draft is left: {done:?}");
}

/// Files and links below a directory.
fn names(root: &Path) -> BTreeSet<PathBuf> {
    if !root.exists() {
        return BTreeSet::new();
    }
    let is_dir = |name: &Path| {
        let path = root.join(name);
        path.is_dir() && !path.is_symlink()
    };
    tree(root).into_keys().filter(|name| !is_dir(name)).collect()
}

/// What has a final name is whole: `sealed` opens and is the source, `back` is the source.
fn is_whole(place: &Place, output: &str, which: &str) {
    let mut plain = output;
    if output == "sealed" && place.join("sealed").exists() {
        fs::remove_dir_all(place.join("opened")).ok();
        let opened =
            place.evener().args(["decrypt", "--key", "k.json", "-q", "-o", "opened", "sealed"]).run();
        assert_eq!(opened.code(), Some(0), "{which}: {}", opened.stderr());
        plain = "opened";
    }
    for name in files(&place.join(plain)) {
        let [source, back] = ["in", plain].map(|root| fs::read(place.join(root).join(&name)).unwrap());
        assert!(source == back, "{which}: {name:?}");
    }
}

/// One refusal there and back, once and from there on; its first error alone, each way by turns, where `is_short`.
fn refused(place: &Place, refusal: &Refusal, random: &mut Random, is_needed: bool, is_short: bool) {
    let clear = |tree: &str| fs::remove_dir_all(place.join(tree)).unwrap_or_default();
    let moments = [(0, "+"), (1 + random.below(11), ""), (0, ""), (1 + random.below(5), "+")];
    let (errors, moments) =
        if is_short { (&refusal.errors[..1], &moments[..2]) } else { (refusal.errors, &moments[..]) };
    for error in errors {
        for (from, after) in moments {
            let fault = format!("{}:error={error}:when={}{after}", refusal.call, refusal.first + from);
            let there = !is_short || random.below(2) == 0;
            if there {
                clear("sealed");
                let ran = run(place, &fault, "encrypt", "sealed", "in");
                judge(place, &ran, refusal, ("in", "sealed"), &fault, is_needed);
            }
            if !there || !is_short {
                clear("sealed");
                clear("back");
                place
                    .evener()
                    .args(["encrypt", "--key", "k.json", "-q", "-o", "sealed", "in"])
                    .run()
                    .succeeded();
                let ran = run(place, &fault, "decrypt", "back", "sealed");
                judge(place, &ran, refusal, ("sealed", "back"), &fault, is_needed);
            }
        }
    }
    // The same command does the rest.
    for (direction, output, input) in [("encrypt", "sealed", "in"), ("decrypt", "back", "sealed")] {
        place.evener().args([direction, "--key", "k.json", "-q", "-o", output, input]).run().succeeded();
    }
    assert!(tree(&place.join("in")) == tree(&place.join("back")), "{}", refusal.call);
}

fn judge(place: &Place, ran: &Ran, refusal: &Refusal, trees: (&str, &str), fault: &str, is_needed: bool) {
    let which = format!("{fault} from {} to {}", trees.0, trees.1);
    is_accounted_for(place, ran, trees.0, trees.1, &which);
    is_whole(place, trees.1, &which);
    if is_needed && was_refused(place) {
        assert_eq!(ran.code(), Some(1), "{which}: refused, and nothing is said");
        assert!(ran.stderr().contains(refusal.words), "{which}: {}", ran.stderr());
    }
}

fn all_refused(is_short: bool) {
    let Some(place) = sow() else { return };
    let mut random = Random::new(30);
    for refusal in &NEEDED {
        refused(&place, refusal, &mut random, true, is_short);
    }
    for refusal in &SPARED {
        refused(&place, refusal, &mut random, false, is_short);
    }
}

#[test]
fn a_call_that_refuses_leaves_every_file_done_or_named_there_and_back() {
    all_refused(true);
}

#[test]
#[ignore = "minutes: every error at more places, each way"]
fn any_call_that_refuses_anywhere_leaves_every_file_done_or_named_there_and_back() {
    all_refused(false);
}

#[test]
fn a_refusal_while_outputs_are_updated_and_deleted_takes_nothing_away_that_is_good() {
    let Some(place) = sow() else { return };
    let encrypt =
        ["encrypt", "--key", "k.json", "-q", "--workers", "2", "--json", "report.json", "-o", "sealed", "in"];
    for (number, (call, error)) in
        [("pwritev", "ENOSPC"), ("renameat2", "EIO"), ("fsync", "EIO"), ("unlinkat", "EACCES")]
            .into_iter()
            .enumerate()
    {
        place.write("in/0/gone", "will lose its source");
        place.evener().args(encrypt).arg("--update").run().succeeded();
        let before = tree(&place.join("sealed"));
        fs::remove_file(place.join("in/0/gone")).unwrap();
        place.write("in/0/0", format!("changed {number}"));
        let fault = format!("{call}:error={error}:when=1+");
        let words =
            ["-f", "-qq", "-o", "trace", "-e", &format!("trace={call}"), "-e", &format!("inject={fault}")];
        let run =
            place.program("strace").args(words).arg(EVENER).args(encrypt).args(["--update", "--delete"]);
        let ran = run.env("EVENER_ARBITER", "off").run().ended_with(1);
        assert!(!ran.stderr().is_empty(), "{fault}: nothing is said");
        let after = tree(&place.join("sealed"));
        // Nothing is deleted behind an error, and what stood there stands there, or its successor.
        assert!(after.contains_key(Path::new("0/gone")), "{fault}: deleted behind an error");
        for name in before.keys() {
            assert!(after.contains_key(name), "{fault}: {name:?} is gone");
        }
        is_whole_or_before(&place, &before, &fault);
        place.evener().args(encrypt).args(["--update", "--delete"]).run().succeeded();
        assert!(!place.join("sealed/0/gone").exists(), "{fault}");
    }
}

/// What stands in `sealed` is what stood there, or opens as the source that there is now.
fn is_whole_or_before(
    place: &Place,
    before: &std::collections::BTreeMap<PathBuf, evener_testing::Entry>,
    fault: &str,
) {
    fs::remove_dir_all(place.join("opened")).ok();
    place.evener().args(["decrypt", "--key", "k.json", "-q", "-o", "opened", "sealed"]).run().succeeded();
    let now = tree(&place.join("sealed"));
    for name in files(&place.join("opened")) {
        let is_before =
            before.get(&name).map(|entry| &entry.bytes) == now.get(&name).map(|entry| &entry.bytes);
        let source = fs::read(place.join("in").join(&name)).ok();
        let is_now = source == fs::read(place.join("opened").join(&name)).ok();
        assert!(is_before || is_now, "{fault}: {name:?}");
    }
}
