//! Runs for recipients that are killed at each call by which outputs get their names: nothing opens what stands there, so the record alone tells of
//! it. The same command does the rest, and so does `--update` once sources have changed or gone; the identity judges what is there.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::PathBuf;

use crate::common::{EVENER, Place, allow, files, noise, skipped, there_is, tree};

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
    // Those that were promised are made again for the other one, and that alone of which nothing tells is left as it is.
    let left = fs::read(&output).unwrap();
    let ran = place.evener().args(command(other, &["--update"])).run().ended_with(1);
    assert_eq!(ran.stderr().lines().count(), 1, "{}", ran.stderr());
    assert!(fs::read(&output).unwrap() == left, "nothing tells of it");
    fs::remove_file(&output).unwrap();
    place.evener().args(["decrypt", "-q", "-i", "other", "-o", "back", "sealed"]).run().succeeded();
    for source in files(&place.join("in")).into_iter().filter(|source| *source != name) {
        let texts = ["in", "back"].map(|root| fs::read(place.join(root).join(&source)).unwrap());
        assert!(texts[0] == texts[1], "{}", source.display());
    }
    place.evener().args(command(&recipient, &[])).run().ended_with(1);
}

/// Paths with mode and group.
fn attributes(place: &Place, root: &str) -> Vec<(PathBuf, u32, u32)> {
    let of = |path: PathBuf| {
        let metadata = fs::metadata(place.join(root).join(&path)).unwrap();
        (path, metadata.mode(), metadata.gid())
    };
    files(&place.join(root)).into_iter().map(of).collect()
}

#[test]
fn what_was_promised_and_got_another_mode_or_group_with_its_name_gets_those_of_its_source() {
    if !there_is("strace") {
        return skipped("strace is not installed");
    }
    for passphrase in [false, true] {
        let (place, recipient) = place();
        place.write_secret("pass", "word\n");
        let by_passphrase =
            ["encrypt", "-q", "--workers", "1", "--passphrase-file", "pass", "--work-factor", "10"];
        let command = match passphrase {
            true => [&by_passphrase[..], &["-o", "sealed", "in"]].concat(),
            false => command(&recipient, &[]),
        };
        // Killed between the names and the look at what they were given to.
        assert!(is_killed(&place, "syncfs:signal=KILL:when=2", &command), "names were given");
        for name in files(&place.join("in")) {
            let output = place.join("sealed").join(name);
            if output.exists() {
                allow(&output, 0o600);
                if place.is_of_root() {
                    chown(&output, None, Some(7)).unwrap();
                }
            }
        }
        place.evener().args(&command).run().succeeded();
        let mut there = attributes(&place, "sealed");
        there.retain(|(path, ..)| place.join("in").join(path).exists());
        assert_eq!(there, attributes(&place, "in"), "with a passphrase: {passphrase}");
    }
}

#[test]
fn a_record_is_no_longer_than_its_rows_once_all_that_was_promised_is_there() {
    let (place, recipient) = place();
    for number in 0..3_000 {
        place.write(format!("in/many/{number}"), "text");
    }
    let rows_bytes = 96 * 3_000;
    for _ in 0..2 {
        place.evener().args(command(&recipient, &[])).run().succeeded();
        let bytes = fs::metadata(place.join(".sealed.evener-record")).unwrap().len();
        assert!((rows_bytes..rows_bytes * 5 / 4).contains(&bytes), "{bytes} bytes");
    }
}
