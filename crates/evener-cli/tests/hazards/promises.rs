//! Runs for recipients that are killed at each call by which outputs get their names: nothing opens what stands there, so the record alone tells of
//! it. The same command does the rest, and so does `--update` once sources have changed or gone; the identity judges what is there.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;

use crate::common::{EVENER, Place, files, noise, skipped, there_is, tree};

/// Calls from the first draft to the last row, each with the turns at which it is the one that does not come back.
const CALLS: [(&str, &[u32]); 7] = [
    ("syncfs", &[1, 2]),
    ("fsync", &[1, 2, 3]),
    ("fdatasync", &[1, 2]),
    ("renameat2", &[1, 2, 9]),
    ("renameat", &[1, 9]),
    ("linkat", &[1, 2]),
    ("write", &[3, 4, 5]),
];

/// A tree with names of one file, and the recipient.
fn place() -> (Place, String) {
    let place = Place::new();
    place.evener().args(["keygen", "--age", "id"]).run().succeeded();
    let text = fs::read_to_string(place.join("id")).unwrap();
    let recipient = text.lines().find_map(|line| line.strip_prefix("# public key: ")).unwrap().to_owned();
    sow(&place, 0);
    fs::hard_link(place.join("in/1/1"), place.join("in/2/name")).unwrap();
    (place, recipient)
}

fn sow(place: &Place, seed: u64) {
    for number in 0..12_u16 {
        place.write(
            format!("in/{}/{number}", number % 3),
            noise(seed + u64::from(number), 900 * usize::from(number)),
        );
    }
}

fn command<'c>(recipient: &'c str, more: &[&'c str]) -> Vec<&'c str> {
    [&["encrypt", "-q", "--workers", "1", "-r", recipient], more, &["-o", "sealed", "in"]].concat()
}

/// The run, killed at a call; whether it came to that.
fn is_killed(place: &Place, fault: &str, command: &[&str]) -> bool {
    let calls = fault.split(':').next().unwrap();
    let words =
        ["-f", "-qq", "-o", "trace", "-e", &format!("trace={calls}"), "-e", &format!("inject={fault}")];
    let run = place.program("strace").args(words).arg(EVENER).args(command).env("EVENER_ARBITER", "off");
    run.run().signal().is_some()
}

fn everything_is_there(place: &Place, which: &str) {
    fs::remove_dir_all(place.join("back")).ok();
    place.evener().args(["decrypt", "-q", "-i", "id", "-o", "back", "sealed"]).run().succeeded();
    assert!(tree(&place.join("in")) == tree(&place.join("back")), "{which}");
    let left = files(&place.join("sealed"));
    assert!(!left.iter().any(|name| name.to_string_lossy().contains(".evener-")), "{which}: {left:?}");
}

#[test]
fn the_same_command_ends_well_wherever_the_one_before_it_was_killed() {
    if !there_is("strace") {
        return skipped("strace is not installed");
    }
    let (place, recipient) = place();
    let (first, update) = (command(&recipient, &[]), command(&recipient, &["--update", "--delete"]));
    let mut kills = 0;
    for (call, turns) in CALLS {
        for turn in turns {
            let fault = format!("{call}:signal=KILL:when={turn}");
            fs::remove_dir_all(place.join("sealed")).ok();
            fs::remove_file(place.join(".sealed.evener-record")).ok();
            kills += u32::from(is_killed(&place, &fault, &first));
            place.evener().args(&first).run().succeeded();
            everything_is_there(&place, &fault);
            // Now with outputs that are to be replaced.
            sow(&place, 1_000 * u64::from(*turn));
            kills += u32::from(is_killed(&place, &fault, &update));
            place.evener().args(&update).run().succeeded();
            everything_is_there(&place, &fault);
            // And with sources that changed once more, or went, since the kill.
            sow(&place, 2_000 * u64::from(*turn));
            kills += u32::from(is_killed(&place, &fault, &update));
            sow(&place, 3_000 * u64::from(*turn));
            place.evener().args(&update).run().succeeded();
            fs::remove_file(place.join("in/0/3")).unwrap();
            place.evener().args(&update).run().succeeded();
            everything_is_there(&place, &fault);
        }
    }
    assert!(kills > 20, "{kills} runs were killed");
}

#[test]
fn a_promise_tells_of_no_other_file_and_of_no_other_recipient() {
    if !there_is("strace") {
        return skipped("strace is not installed");
    }
    let (place, recipient) = place();
    place.evener().args(["keygen", "--age", "other"]).run().succeeded();
    let text = fs::read_to_string(place.join("other")).unwrap();
    let other = text.lines().find_map(|line| line.strip_prefix("# public key: ")).unwrap();
    assert!(is_killed(&place, "syncfs:signal=KILL:when=2", &command(&recipient, &[])), "names were given");
    // Of as many bytes, with as old a time.
    let named =
        files(&place.join("sealed")).into_iter().find(|name| !name.to_string_lossy().contains(".evener-"));
    let name = named.unwrap();
    let output = place.join("sealed").join(&name);
    let mut bytes = fs::read(&output).unwrap();
    let time = fs::metadata(&output).unwrap().modified().unwrap();
    bytes[30] ^= 1;
    fs::write(&output, bytes).unwrap();
    fs::File::open(&output).unwrap().set_modified(time).unwrap();
    for options in [&[][..], &["--update"], &["--ignore-ctime", "--ignore-inode"]] {
        let ran = place.evener().args(command(&recipient, options)).run().ended_with(1);
        assert_eq!(ran.stderr().lines().count(), 1, "{options:?}: {}", ran.stderr());
        let said = format!("in/{}: output exists", name.display());
        assert!(ran.stderr().contains(&said), "{options:?}: {}", ran.stderr());
    }
    place.evener().args(command(other, &[])).run().ended_with(1);
    place.evener().args(command(other, &["--update"])).run();
    fs::remove_file(&output).unwrap();
    place.evener().args(command(&recipient, &[])).run().ended_with(1);
}
