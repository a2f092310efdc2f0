//! Root's run against a user who owns a part of its input or of its output, and puts links in the place of files, directories and
//! drafts as fast as the system lets him: nothing that he may not read comes out, and nothing outside the trees is touched. The user
//! is a thread with credentials of its own; the time of the inodes outside is the judge, and the secret itself.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::{io, thread};

use crate::common::{self, Place, allow, skipped};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

/// Who swaps: the user `nobody`, to whom belongs what is swapped and nothing else.
const RIVAL: u32 = 65_534;

/// What only root may read.
const SECRET: &str = "only root may read this";

/// What stands under a name of his, and what he puts there by turns.
struct Attack {
    /// What is run against him.
    command: &'static [&'static str],
    /// Where he is at work.
    name: &'static str,
    /// Where his link leads; drafts of the directory `name` are what he swaps where `is_hunt`.
    target: &'static str,
    is_hunt: bool,
}

const fn swap(command: &'static [&'static str], name: &'static str, target: &'static str) -> Attack {
    Attack { command, name, target, is_hunt: false }
}

const fn hunt(command: &'static [&'static str], name: &'static str, target: &'static str) -> Attack {
    Attack { command, name, target, is_hunt: true }
}

const ENCRYPT: &[&str] = &["encrypt", "-o", "out", "in"];
const AGAIN: &[&str] = &["encrypt", "--force", "-o", "out", "in"];
const UPDATE: &[&str] = &["encrypt", "--update", "-o", "out", "in"];
const DELETE: &[&str] = &["encrypt", "--update", "--delete", "-o", "out", "in"];
const DECRYPT: &[&str] = &["decrypt", "-o", "back", "out"];
const BACK: &[&str] = &["decrypt", "--force", "-o", "back", "out"];
const VERIFY: &[&str] = &["verify", "--against", "in", "out"];

/// Every place where a name is opened, made or given: of inputs, of outputs, of both sides of a comparison, of drafts.
const ATTACKS: [Attack; 20] = [
    swap(ENCRYPT, "in/home/sub/f3", "secret/f3"),
    swap(ENCRYPT, "in/home/sub", "secret"),
    swap(ENCRYPT, "in/home/sub/deep", "secret/deep"),
    swap(AGAIN, "in/home/sub/f3", "secret/f3"),
    swap(AGAIN, "in/home/sub", "secret"),
    swap(AGAIN, "out/home/sub/f3", "vault/f3"),
    swap(AGAIN, "out/home/sub", "vault"),
    swap(AGAIN, "out/home/sub/deep", "vault/deep"),
    hunt(AGAIN, "out/home/sub", "vault/f3"),
    swap(UPDATE, "in/home/sub", "secret"),
    swap(UPDATE, "out/home/sub", "vault"),
    swap(DELETE, "out/home/sub", "vault"),
    swap(DELETE, "out/home/sub/deep", "vault/deep"),
    swap(DECRYPT, "out/home/sub/f3", "sealed/f3"),
    swap(DECRYPT, "out/home/sub", "sealed"),
    swap(BACK, "out/home/sub", "sealed"),
    swap(BACK, "back/home/sub", "vault"),
    swap(BACK, "back/home/sub/f3", "vault/f3"),
    hunt(BACK, "back/home/sub", "vault/f3"),
    swap(VERIFY, "in/home/sub", "secret"),
];

/// Makes this thread the rival's.
fn become_rival() {
    let (user, group) = (Uid::from_raw(RIVAL), Gid::from_raw(RIVAL));
    set_thread_groups(&[]).unwrap();
    set_thread_res_gid(group, group, group).unwrap();
    set_thread_res_uid(user, user, user).unwrap();
}

/// Swaps until `stop`; counts how often it was done.
fn at_work(attack: &Attack, place: &Path, stop: &AtomicBool, swaps: &AtomicU64) {
    become_rival();
    assert!(fs::read(place.join("secret/f3")).is_err(), "the rival reads what he may not");
    let (name, target) = (place.join(attack.name), place.join(attack.target));
    let beside = name.with_file_name("beside");
    if !attack.is_hunt {
        symlink(&target, &beside).unwrap();
    }
    while !stop.load(Ordering::Relaxed) {
        let done = if attack.is_hunt { swap_drafts(&name, &target) } else { exchange(&name, &beside) };
        swaps.fetch_add(done, Ordering::Relaxed);
    }
}

fn exchange(name: &Path, beside: &Path) -> u64 {
    u64::from(renameat_with(CWD, name, CWD, beside, RenameFlags::EXCHANGE).is_ok())
}

/// Puts links in the place of drafts.
fn swap_drafts(dir: &Path, target: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else { return 0 };
    let drafts = entries.filter_map(Result::ok).map(|entry| entry.path());
    let drafts = drafts.filter(|path| path.to_string_lossy().contains(".evener-"));
    let replace = |draft: PathBuf| -> io::Result<()> {
        fs::rename(&draft, dir.join("taken"))?;
        symlink(target, draft)
    };
    drafts.map(|draft| u64::from(replace(draft).is_ok())).sum()
}

/// What is known of everything outside: also the time of each inode, which any change of it sets.
fn outside(place: &Path) -> String {
    let find = ["secret", "vault", "sealed", "-printf", "%p %y %m %U %G %n %s %C@ %T@ %l\n"];
    let output = Command::new("find").args(find).current_dir(place).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A place with what is the rival's and what is not.
fn sow() -> Option<Place> {
    let place = Place::open_to_all();
    if fs::metadata(place.path()).unwrap().uid() != 0 {
        skipped("only root has a user to be led astray by");
        return None;
    }
    place.keyset("k.json");
    for tree in ["secret", "vault"] {
        for name in ["f3", "f4", "deep/f3", "deep/f4"] {
            let text = if tree == "secret" { SECRET } else { "untouched" };
            allow(&place.write(format!("{tree}/{name}"), text), 0o600);
        }
    }
    place.evener().args(["encrypt", "--key", "k.json", "-q", "-o", "sealed", "secret"]).run().succeeded();
    for tree in ["secret", "vault", "sealed"] {
        allow(&place.join(tree).join("deep"), 0o700);
        allow(&place.join(tree), 0o700);
    }
    Some(place)
}

/// The trees anew, with what a command needs of them.
fn set_up(place: &Place, attack: &Attack) {
    for tree in ["in", "out", "back"] {
        fs::remove_dir_all(place.join(tree)).ok();
        fs::remove_file(place.join(format!(".{tree}.evener-record"))).ok();
    }
    for number in 0..8 {
        place.write(format!("in/home/sub/f{number}"), format!("mine {number}"));
        place.write(format!("in/home/sub/deep/f{number}"), format!("mine {number}"));
    }
    let give = |path: &Path| chown(path, Some(RIVAL), Some(RIVAL)).unwrap();
    for path in ["in/home", "in/home/sub", "in/home/sub/deep"].map(|dir| place.join(dir)) {
        give(&path);
        fs::read_dir(&path).unwrap().for_each(|entry| give(&entry.unwrap().path()));
    }
    let run = |command: &[&str]| go(place, command).succeeded();
    if attack.command != ENCRYPT {
        run(ENCRYPT);
    }
    if attack.command[0] == "decrypt" && attack.command.contains(&"--force") {
        run(DECRYPT);
    }
    if attack.command.contains(&"--update") {
        for number in [1, 3] {
            give(&place.write(format!("in/home/sub/f{number}"), "changed since"));
        }
        for gone in ["in/home/sub/f4", "in/home/sub/deep/f4"] {
            fs::remove_file(place.join(gone)).unwrap();
        }
    }
}

fn go(place: &Place, command: &[&str]) -> common::Ran {
    let run = place.evener().arg(command[0]).args(["--key", "k.json", "-q", "--workers", "2"]);
    run.args(&command[1..]).run()
}

/// Whether the secret stands anywhere in what is the rival's, sealed or not.
fn leaks(place: &Place) -> String {
    // What was encrypted meanwhile is looked into, too; what it is made of may be anything by now.
    fs::remove_dir_all(place.join("looked-into")).ok();
    go(place, &["decrypt", "-o", "looked-into", "out"]);
    let trees = ["out", "back", "looked-into"].into_iter().filter(|tree| place.join(tree).exists());
    let grep = Command::new("grep").arg("-rlI").arg(SECRET).args(trees).current_dir(place.path()).output();
    String::from_utf8_lossy(&grep.unwrap().stdout).into_owned()
}

/// So many runs, each attack by turns.
fn raced(runs: usize) {
    let Some(place) = sow() else { return };
    let before = outside(place.path());
    let mut all_swaps = 0;
    for (number, attack) in ATTACKS.iter().cycle().take(runs).enumerate() {
        set_up(&place, attack);
        let (stop, swaps) = (AtomicBool::new(false), AtomicU64::new(0));
        let ran = thread::scope(|scope| {
            scope.spawn(|| at_work(attack, place.path(), &stop, &swaps));
            let ran = go(&place, attack.command);
            stop.store(true, Ordering::Relaxed);
            ran
        });
        let which = format!(
            "run {number}: {:?} while {} is swapped for {}",
            attack.command, attack.name, attack.target
        );
        assert!(matches!(ran.code(), Some(0 | 1)) && !ran.stderr().contains("panicked"), "{which}: {ran:?}");
        assert_eq!(outside(place.path()), before, "{which}: touched outside");
        assert_eq!(leaks(&place), "", "{which}: leaked");
        all_swaps += swaps.into_inner();
    }
    assert!(all_swaps > runs as u64, "{all_swaps} swaps only");
}

#[test]
fn who_swaps_names_for_links_learns_nothing_and_changes_nothing_outside() {
    raced(ATTACKS.len());
}

#[test]
#[ignore = "minutes: 2000 runs"]
fn who_swaps_names_for_links_two_thousand_times_learns_nothing_and_changes_nothing_outside() {
    raced(2_000);
}
