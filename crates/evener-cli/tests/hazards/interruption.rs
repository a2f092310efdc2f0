//! Runs that end before their time: killed, stopped, or out of space. What stands under a final name afterwards
//! is whole, and the same command again does the rest.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use std::fs;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::{self, Place, files, noise, skipped, tree};
use rustix::process::{Pid, Signal, kill_process};

const ENCRYPT: [&str; 7] = ["encrypt", "--key", "k.json", "-q", "-o", "sealed", "in"];
const DECRYPT: [&str; 7] = ["decrypt", "--key", "k.json", "-q", "-o", "back", "sealed"];

/// Some hundred small files and a large one.
fn work(place: &Place) {
    place.keyset("k.json");
    for number in 0..300_u32 {
        place
            .write(format!("in/{}/{number}", number % 7), noise(number.into(), 2_000 + 37 * number as usize));
    }
    place.write("in/large", noise(1, 24 << 20));
}

fn start(place: &Place, arguments: &[&str]) -> Child {
    let mut run = place.evener_at_a_prompt().args(arguments);
    run.command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    run.command.spawn().unwrap()
}

/// Decrypts what there is under final names and compares it with its source.
fn everything_there_is_whole(place: &Place) {
    place.evener().args(DECRYPT).run().succeeded();
    for name in files(&place.join("back")) {
        let [plain, back] = ["in", "back"].map(|root| fs::read(place.join(root).join(&name)).unwrap());
        assert!(plain == back, "{name:?}");
    }
    fs::remove_dir_all(place.join("back")).unwrap();
}

/// Runs the command to its end and compares both trees; nothing else may have been left behind.
fn the_rest_is_done_by_the_same_command(place: &Place) {
    place.evener().args(ENCRYPT).run().succeeded();
    place.evener().args(DECRYPT).run().succeeded();
    assert!(tree(&place.join("in")) == tree(&place.join("back")));
    assert_eq!(files(&place.join("sealed")), files(&place.join("in")));
}

/// Moments between the start and the end of a whole run, measured on this machine just now.
fn moments(place: &Place, count: u32) -> Vec<Duration> {
    let began = Instant::now();
    place.evener().args(ENCRYPT).run().succeeded();
    let whole = began.elapsed();
    fs::remove_dir_all(place.join("sealed")).unwrap();
    (1..=count).map(|number| whole * number / (count + 1)).collect()
}

#[test]
fn a_killed_run_leaves_whole_files_only_and_is_carried_on() {
    let place = Place::new();
    work(&place);
    for moment in moments(&place, 6) {
        let mut child = start(&place, &ENCRYPT);
        sleep(moment);
        child.kill().unwrap();
        child.wait().unwrap();
        if place.join("sealed").exists() {
            everything_there_is_whole(&place);
        }
    }
    the_rest_is_done_by_the_same_command(&place);
}

#[test]
fn two_runs_at_once_into_one_directory_both_end_well() {
    let place = Place::new();
    work(&place);
    for _ in 0..3 {
        let runs = [start(&place, &ENCRYPT), start(&place, &ENCRYPT)];
        for run in runs {
            let output = run.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        assert_eq!(files(&place.join("sealed")), files(&place.join("in")));
        everything_there_is_whole(&place);
        fs::remove_dir_all(place.join("sealed")).unwrap();
    }
}

#[test]
fn a_stopped_run_cleans_up_ends_by_the_signal_and_is_carried_on() {
    let place = Place::new();
    work(&place);
    let mut stopped = 0;
    for moment in moments(&place, 6).into_iter().cycle().take(30) {
        if stopped == 4 {
            break;
        }
        fs::remove_dir_all(place.join("sealed")).ok();
        let child = start(&place, &ENCRYPT);
        sleep(moment);
        interrupt(&child);
        let output = child.wait_with_output().unwrap();
        // Before the run makes anything they end the process, too; after its end there is nothing to stop.
        match (output.status.code(), output.status.signal()) {
            (None, Some(2)) => stopped += u32::from(place.join("sealed").exists()),
            (Some(0), None) => {}
            other => panic!("{other:?}: {}", String::from_utf8_lossy(&output.stderr)),
        }
        let hidden = |name: &Path| name.file_name().unwrap().to_string_lossy().starts_with('.');
        assert!(!files(&place.join("sealed")).iter().any(|name| hidden(name)), "a draft was left");
        if place.join("sealed").exists() {
            everything_there_is_whole(&place);
        }
    }
    assert!(stopped > 0, "no signal came in the middle of a run");
    the_rest_is_done_by_the_same_command(&place);
}

#[test]
fn a_run_that_waits_for_standard_input_stops_at_the_first_signal() {
    let place = Place::with_key();
    let mut run = place.evener_at_a_prompt().args(["encrypt", "--key", "k.json", "-q", "-o", "sealed", "-"]);
    run.command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = run.command.spawn().unwrap();
    while !files(place.path()).iter().any(|name| name.to_string_lossy().starts_with(".evener")) {
        sleep(Duration::from_millis(5));
    }
    // Kept open: an input that ended in the same moment would be a run that was done.
    let input = child.stdin.take();
    interrupt(&child);
    assert_eq!(child.wait().unwrap().signal(), Some(2));
    drop(input);
    assert_eq!(files(place.path()), [Path::new("k.json")]);
}

/// Starts a run that waits for its standard input, by `program` with `arguments` before it, and waits for its draft.
/// `None` where it ended before.
fn start_with_draft(place: &Place, program: &str, arguments: &[&str]) -> Option<Child> {
    let run = place.program(program).args(arguments);
    let mut run = run.args(["encrypt", "--key", "k.json", "-q", "-o", "sealed/piped", "-"]);
    run.command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = run.command.spawn().ok()?;
    while drafts(place) == 0 {
        if child.try_wait().unwrap().is_some() {
            return None;
        }
        sleep(Duration::from_millis(5));
    }
    Some(child)
}

fn drafts(place: &Place) -> usize {
    draft_names(place).len()
}

fn draft_names(place: &Place) -> Vec<PathBuf> {
    let is_draft = |name: &PathBuf| name.to_string_lossy().starts_with(".evener");
    files(&place.join("sealed")).into_iter().filter(is_draft).collect()
}

#[test]
fn the_draft_of_a_killed_run_goes_with_the_next_run_into_the_directory() {
    let place = Place::with_key();
    place.write("in/file", "text");
    let mut child = start_with_draft(&place, common::EVENER, &[]).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(drafts(&place), 1);
    place.evener().args(ENCRYPT).run().succeeded();
    assert_eq!(files(&place.join("sealed")), [Path::new("file")]);
}

#[test]
fn a_run_leaves_the_draft_alone_of_one_that_lives_in_another_container() {
    let place = Place::with_key();
    place.write("in/file", "text");
    // Process ids of its own: seen from here its own do not exist.
    let container = ["-rpf", "--mount-proc", "--kill-child", common::EVENER];
    let Some(mut child) = start_with_draft(&place, "unshare", &container) else {
        return skipped("no container can be made here");
    };
    place.evener().args(ENCRYPT).run().succeeded();
    assert_eq!(drafts(&place), 1);
    child.stdin.take().unwrap().write_all(b"piped text").unwrap();
    assert!(child.wait().unwrap().success());
    place.evener().args(DECRYPT).run().succeeded();
    assert_eq!(fs::read(place.join("back/piped")).unwrap(), b"piped text");
}

fn interrupt(child: &Child) {
    let pid = Pid::from_raw(child.id().try_into().unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
}

#[test]
fn a_full_disk_is_named_and_with_more_space_the_same_command_carries_on() {
    let place = Place::new();
    work(&place);
    // A mount of our own, visible to no other process. The large file does not fit, the small ones do.
    let script = r#"
        mkdir sealed && mount -t tmpfs -o size=12m none sealed || exit 77
        "$0" "$@"; first=$?
        find sealed -type f >within
        mount -o remount,size=100m sealed && "$0" "$@"; second=$?
        cp -rp sealed kept && umount sealed && rmdir sealed && mv kept sealed
        echo "$first $second""#;
    let run = place.program("unshare").args(["-rm", "sh", "-c", script, common::EVENER]).args(ENCRYPT);
    let ran = run.run();
    if ran.code() != Some(0) {
        return skipped("no mount is allowed here");
    }
    assert_eq!(ran.stdout_text(), "1 0\n", "{}", ran.stderr());
    let lines: Vec<&str> = ran.stderr().lines().collect();
    assert!(lines[0].starts_with("evener: in/") && lines[0].contains("No space left"), "{lines:?}");
    let within = fs::read_to_string(place.join("within")).unwrap();
    assert!(!within.contains("/.") && !within.contains("large"), "{within}");
    the_rest_is_done_by_the_same_command(&place);
}

#[test]
fn a_file_beyond_the_size_limit_is_named_and_the_others_are_done() {
    let place = Place::new();
    work(&place);
    // In blocks of 512 or 1024 bytes, by the shell: 4 or 8 MB.
    let script = r#"ulimit -f 8000 && exec "$0" "$@""#;
    let ran = place.program("sh").args(["-c", script, common::EVENER]).args(ENCRYPT).run();
    ran.ended_with(1).saying("in/large: cannot write the output");
    assert_eq!(files(&place.join("sealed")).len(), 300);
    the_rest_is_done_by_the_same_command(&place);
}

#[test]
fn a_full_disk_leaves_directories_unfinished_in_which_something_is_missing_and_no_others() {
    let place = Place::new();
    place.keyset("k.json");
    for (directory, bytes) in [("whole", 3_000), ("part", 20 << 20)] {
        place.write(format!("in/{directory}/deep/f"), noise(1, bytes));
        for path in [format!("in/{directory}/deep"), format!("in/{directory}")] {
            common::allow(&place.join(&path), 0o750);
            let time = std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
            fs::File::open(place.join(path)).unwrap().set_modified(time).unwrap();
        }
    }
    let script = r#"
        mkdir sealed && mount -t tmpfs -o size=12m none sealed || exit 77
        "$0" encrypt --key k.json -q --workers 1 -o sealed in/whole in/part; echo $?
        stat -c '%n %a %Y' sealed/whole sealed/whole/deep sealed/part sealed/part/deep"#;
    let ran = place.program("unshare").args(["-rm", "sh", "-c", script, common::EVENER]).run();
    if ran.code() != Some(0) {
        return skipped("no mount is allowed here");
    }
    let lines: Vec<&str> = ran.stdout_text().lines().collect();
    assert_eq!(lines[..3], ["1", "sealed/whole 750 1000000000", "sealed/whole/deep 750 1000000000"]);
    assert!(lines[3..].iter().all(|line| !line.ends_with(" 1000000000")), "{lines:?}");
}
