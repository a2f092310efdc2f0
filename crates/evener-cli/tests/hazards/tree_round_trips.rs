//! Whatever a tree is like, it comes back: trees are generated (names of any bytes, any mode, times before 1970, links to anywhere,
//! names of one file, holes, attributes, access lists, owners, pipes and sockets), encrypted and decrypted, and judged by diff, rsync,
//! find, getfacl and getfattr. `KEPT_SEED` makes one tree again.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, lchown, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use crate::common::{Place, Run, allow, noise, skipped, there_is};
use evener_testing::Random;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};
use serde_json::Value;

const JUDGES: [&str; 7] = ["diff", "rsync", "find", "getfattr", "setfattr", "getfacl", "setfacl"];

/// Names that some program somewhere takes for something else.
const ODD_NAMES: [&[u8]; 12] = [
    b"new\nline",
    b"\xff\xfe\x80",
    b"-o",
    b"--",
    b"*?[a]{b}",
    "äöü \u{202e}".as_bytes(),
    b".hidden",
    b"quote'\"\\n",
    b"\x1b[31m",
    b" ",
    b"...",
    b"#a~",
];

const TARGETS: [&[u8]; 10] = [
    b"nowhere",
    b".",
    b"..",
    b"../../../../../../../../../../etc/hostname",
    b"/etc/shadow",
    b"/nowhere/at/all",
    b"\xff\n",
    b"../in",
    b"a//b/./c",
    b"/proc/self/root",
];

/// A tree in the making.
struct Growth {
    random: Random,
    /// Whether entries get owners, attributes of root's and modes that shut their owner out.
    is_roots: bool,
    /// Regular files so far, for further names.
    files: Vec<PathBuf>,
    links: Vec<PathBuf>,
    /// What has no contents to keep.
    specials: Vec<PathBuf>,
}

impl Growth {
    fn new(seed: u64, is_roots: bool) -> Self {
        Self {
            random: Random::new(seed),
            is_roots,
            files: Vec::new(),
            links: Vec::new(),
            specials: Vec::new(),
        }
    }

    fn once_in(&mut self, count: usize) -> bool {
        self.random.below(count) == 0
    }

    /// A name that the system takes: any bytes but two, up to 255 of them.
    fn name(&mut self) -> Vec<u8> {
        if self.once_in(3) {
            return ODD_NAMES[self.random.below(ODD_NAMES.len())].to_vec();
        }
        let length = if self.once_in(4) { 255 } else { 1 + self.random.below(20) };
        let byte = |random: &mut Random| match random.below(256) {
            0 | 0x2f => b'x',
            byte => u8::try_from(byte).unwrap(),
        };
        let name: Vec<u8> = (0..length).map(|_| byte(&mut self.random)).collect();
        if name == b"." || name == b".." { b"x".to_vec() } else { name }
    }

    fn grow(&mut self, dir: &Path, depth: usize) {
        for _ in 0..self.random.below(9) {
            let path = dir.join(OsStr::from_bytes(&self.name()));
            if path.symlink_metadata().is_ok() {
                continue;
            }
            match self.random.below(12) {
                0..=3 if depth < 4 => {
                    fs::create_dir(&path).unwrap();
                    self.grow(&path, depth + 1);
                    self.dress(&path, true);
                }
                4 => self.link(&path),
                5 if !self.files.is_empty() => {
                    let file = self.files[self.random.below(self.files.len())].clone();
                    fs::hard_link(file, &path).unwrap();
                }
                6 => self.special(&path),
                7 => self.file_with_holes(&path),
                _ => {
                    let bytes = self.random.below(12_000);
                    fs::write(&path, noise(self.random.next(), bytes)).unwrap();
                    self.dress(&path, false);
                    self.files.push(path);
                }
            }
        }
    }

    fn link(&mut self, path: &Path) {
        let target = TARGETS[self.random.below(TARGETS.len())];
        symlink(OsStr::from_bytes(target), path).unwrap();
        if self.is_roots && self.once_in(2) {
            lchown(path, Some(1_000), Some(2_000)).unwrap();
        }
        self.set_time(path);
        self.links.push(path.to_owned());
    }

    /// Changes what is not contents, of one in two.
    fn dress_anew(&mut self, root: &Path) {
        for file in self.files.clone() {
            if self.once_in(2) {
                // Of what is not there nothing is to be taken away.
                Command::new("setfattr").args(["-x", "user.empty", "--"]).arg(&file).output().unwrap();
                program("setfacl", &["-b"], &file);
                self.dress(&file, false);
            }
        }
        for link in self.links.clone() {
            if self.is_roots && self.once_in(2) {
                lchown(&link, Some(3_000), Some(0)).unwrap();
            }
            self.set_time(&link);
        }
        self.dress(root, true);
    }

    fn special(&mut self, path: &Path) {
        // A socket's path is short.
        let made = if path.as_os_str().len() < 100 && self.once_in(2) {
            UnixListener::bind(path).is_ok()
        } else {
            Command::new("mkfifo").arg("--").arg(path).status().unwrap().success()
        };
        assert!(made, "{path:?}");
        self.specials.push(path.to_owned());
    }

    /// Some islands in a sea of nothing; one in two ends in it.
    fn file_with_holes(&mut self, path: &Path) {
        let file = fs::File::create(path).unwrap();
        for _ in 0..self.random.below(4) {
            let text = noise(self.random.next(), 1 + self.random.below(5_000));
            file.write_all_at(&text, self.random.below(1 << 20) as u64).unwrap();
        }
        if self.once_in(2) {
            file.set_len((1 << 20) + self.random.below(1 << 20) as u64).unwrap();
        }
        self.dress(path, false);
        self.files.push(path.to_owned());
    }

    /// Owner, attributes, access lists, mode and time, in an order in which none takes another away.
    fn dress(&mut self, path: &Path, is_dir: bool) {
        if self.is_roots && self.once_in(2) {
            lchown(path, Some(1_000), Some(2_000 + u32::try_from(self.random.below(3)).unwrap())).unwrap();
        }
        // What its owner cannot read, nor a directory's owner enter, is a failure and not kept; root reads everything.
        let least = if self.is_roots { 0 } else { 0o400 | if is_dir { 0o100 } else { 0 } };
        allow(path, u32::try_from(self.random.below(0o10000)).unwrap() | least);
        if self.once_in(3) {
            let hex = |bytes: Vec<u8>| -> String {
                bytes.iter().fold("0x".to_owned(), |hex, byte| format!("{hex}{byte:02x}"))
            };
            let value = hex(noise(self.random.next(), self.random.below(300)));
            program("setfattr", &["-n", "user.some note", "-v", &value], path);
            program("setfattr", &["-n", "user.empty"], path);
        }
        if self.is_roots && self.once_in(4) {
            program("setfattr", &["-n", "trusted.mark", "-v", "kept"], path);
        }
        match self.random.below(4) {
            0 => program("setfacl", &["-m", "u:1234:r,g:99:rw,m::rwx"], path),
            1 if is_dir => program("setfacl", &["-m", "d:u:1234:rwx,u:77:rx"], path),
            _ => {}
        }
        if !is_dir && self.is_roots && self.once_in(6) {
            // cap_net_raw, of the second version of the structure.
            let value = "0x0100000200200000000000000000000000000000";
            program("setfattr", &["-n", "security.capability", "-v", value], path);
        }
        self.set_time(path);
    }

    /// From 1902 to 2242, which ext4 can keep, by nanoseconds.
    fn set_time(&mut self, path: &Path) {
        let seconds = i64::try_from(self.random.next() % (1 << 33)).unwrap() + i64::from(i32::MIN);
        let last_modification =
            Timespec { tv_sec: seconds, tv_nsec: i64::try_from(self.random.below(1_000_000_000)).unwrap() };
        let times = Timestamps { last_access: last_modification, last_modification };
        utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
    }
}

fn program(name: &str, arguments: &[&str], path: &Path) {
    let done = Command::new(name).args(arguments).arg("--").arg(path).output().unwrap();
    assert!(done.status.success(), "{name} {path:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// What a program says of a tree from within, in an order of its own.
fn said(tree: &Path, program: &str, arguments: &[&str], end: &str) -> Vec<String> {
    let output = Command::new(program).args(arguments).current_dir(tree).output().unwrap();
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    let text: String = output.stdout.iter().map(|byte| char::from(*byte)).collect();
    let mut entries: Vec<String> = text.split(end).map(str::to_owned).collect();
    entries.sort_unstable();
    entries
}

/// Everything but contents, which an encrypted tree has in common with its source, too.
fn is_dressed_alike(one: &Path, other: &Path, seed: u64) {
    let kind = r"%P\0%y %m %U %G %T@ %n %l\0\0";
    for (judge, arguments, end) in [
        ("find", &[".", "-printf", kind][..], "\0\0"),
        ("getfacl", &["-Rpn", "."], "\n\n"),
        ("getfattr", &["-Rhd", "-m", "-", "-e", "hex", "."], "\n\n"),
    ] {
        let [one_said, other_said] = [one, other].map(|tree| said(tree, judge, arguments, end));
        let only = |these: &[String], those: &[String]| {
            these.iter().filter(|entry| !those.contains(entry)).cloned().collect::<Vec<_>>()
        };
        let (first, second) = (only(&one_said, &other_said), only(&other_said, &one_said));
        assert!(one_said == other_said, "seed {seed}, {judge}:\n{one:?} {first:#?}\n{other:?} {second:#?}");
    }
}

/// No difference at all, by programs that compare trees.
fn is_the_same(place: &Place, seed: u64) {
    for (judge, arguments) in [
        ("diff", &["-r", "--no-dereference", "in", "back"][..]),
        (
            "rsync",
            &["-aHAXni", "--checksum", "--modify-window=-1", "--delete", "--numeric-ids", "in/", "back/"],
        ),
    ] {
        let output = Command::new(judge).args(arguments).current_dir(place.path()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && text.is_empty(), "seed {seed}, {judge}: {text}{errors}");
    }
}

/// Long zeros take no space in what comes back.
fn holes_are_holes(growth: &Growth, place: &Place, seed: u64) {
    for file in &growth.files {
        let source = fs::metadata(file).unwrap();
        let back = place.join("back").join(file.strip_prefix(place.join("in")).unwrap());
        let (had, has) = (source.blocks(), fs::metadata(back).unwrap().blocks());
        // The writer's blocks are where it put them; a run writes whole blocks of 4 KiB that hold anything.
        assert!(has <= had + 64, "seed {seed}: {file:?} had {had} blocks, has {has}");
    }
}

/// Takes the specials away, and the traces of it.
fn without_specials(growth: &Growth) {
    let dirs: BTreeSet<&Path> = growth.specials.iter().map(|path| path.parent().unwrap()).collect();
    let times: Vec<_> = dirs.iter().map(|dir| (*dir, fs::metadata(dir).unwrap())).collect();
    growth.specials.iter().for_each(|path| fs::remove_file(path).unwrap());
    for (dir, before) in times {
        let last_modification = Timespec { tv_sec: before.mtime(), tv_nsec: before.mtime_nsec() };
        utimensat(
            CWD,
            dir,
            &Timestamps { last_access: last_modification, last_modification },
            AtFlags::empty(),
        )
        .unwrap();
    }
}

/// One tree, there and back, by the user as whom `run` starts it.
fn goes_there_and_back(place: &Place, seed: u64, is_roots: bool, run: &dyn Fn() -> Run) {
    for tree in ["in", "sealed", "back"] {
        fs::remove_dir_all(place.join(tree)).ok();
    }
    let root = place.join("in");
    fs::create_dir(&root).unwrap();
    let mut growth = Growth::new(seed, is_roots);
    growth.grow(&root, 0);
    if !is_roots && fs::metadata(place.path()).unwrap().uid() == 0 {
        hand_over(&root);
    }
    let go = |direction: &str, output: &str, input: &str, more: &[&str]| {
        run()
            .args([direction, "--key", "k.json", "-q", "--foreign-links", "-o", output, input])
            .args(more)
            .run()
    };
    let expected = i32::from(!growth.specials.is_empty());
    let first = go("encrypt", "sealed", "in", &["--json", "report.json"]);
    assert_eq!(first.code(), Some(expected), "seed {seed}: {}", first.stderr());
    let report: Value = serde_json::from_slice(&fs::read(place.join("report.json")).unwrap()).unwrap();
    let failed = report["failed"].as_array().unwrap().len();
    assert_eq!(failed, growth.specials.len(), "seed {seed}: {}", first.stderr());
    let second = go("encrypt", "sealed", "in", &["--skip-specials"]);
    assert_eq!(second.code(), Some(0), "seed {seed}: {}", second.stderr());
    let third = go("decrypt", "back", "sealed", &[]);
    assert_eq!(third.code(), Some(0), "seed {seed}: {}", third.stderr());
    without_specials(&growth);
    is_dressed_alike(&root, &place.join("sealed"), seed);
    is_dressed_alike(&root, &place.join("back"), seed);
    is_the_same(place, seed);
    holes_are_holes(&growth, place, seed);
    // Everything counts as finished, links and read-only directories too, and nothing is touched.
    for (direction, output, input) in [("encrypt", "sealed", "in"), ("decrypt", "back", "sealed")] {
        let again = go(direction, output, input, &[]);
        assert_eq!((again.code(), again.stderr()), (Some(0), ""), "seed {seed}, {direction} again");
    }
    is_dressed_alike(&root, &place.join("sealed"), seed);
    is_dressed_alike(&root, &place.join("back"), seed);
    // What changed beside the contents comes to outputs that are finished.
    growth.dress_anew(&root);
    for (direction, output, input) in [("encrypt", "sealed", "in"), ("decrypt", "back", "sealed")] {
        for _ in 0..2 {
            let anew = go(direction, output, input, &[]);
            assert_eq!((anew.code(), anew.stderr()), (Some(0), ""), "seed {seed}, {direction} anew");
        }
        is_dressed_alike(&root, &place.join(output), seed);
    }
    is_the_same(place, seed);
}

/// Gives a tree to the user `nobody`, with the modes that it has.
fn hand_over(path: &Path) {
    let metadata = path.symlink_metadata().unwrap();
    lchown(path, Some(65_534), Some(65_534)).unwrap();
    if metadata.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| hand_over(&entry.unwrap().path()));
    }
    if !metadata.is_symlink() {
        fs::set_permissions(path, fs::Permissions::from_mode(metadata.mode() & 0o7777)).unwrap();
    }
}

/// The trees of these seeds; of one where that is asked for.
fn trees(seeds: std::ops::Range<u64>) -> Vec<u64> {
    env::var("KEPT_SEED").map_or_else(|_| seeds.collect(), |seed| vec![seed.parse().unwrap()])
}

/// Whether all who judge are there; who is not is named.
fn judges_are_there() -> bool {
    let absent = JUDGES.iter().find(|name| !there_is(name));
    absent.inspect(|absent| skipped(&format!("{absent} is not installed"))).is_none()
}

fn trees_of_root(seeds: std::ops::Range<u64>) {
    if !judges_are_there() {
        return;
    }
    let place = Place::with_key();
    if fs::metadata(place.path()).unwrap().uid() != 0 {
        return skipped("owners and attributes of root's are made by root only");
    }
    for seed in trees(seeds) {
        goes_there_and_back(&place, seed, true, &|| place.evener());
    }
}

fn trees_of_a_user(seeds: std::ops::Range<u64>) {
    if !judges_are_there() {
        return;
    }
    let Some((place, user)) = Place::for_nobody() else { return };
    let command = place.join("evener");
    allow(&place.join("k.json"), 0o600);
    if fs::metadata(place.path()).unwrap().uid() == 0 {
        lchown(place.join("k.json"), Some(65_534), None).unwrap();
    }
    for seed in trees(seeds) {
        goes_there_and_back(&place, seed, false, &|| {
            let run = place.program(user[0]).args(&user[1..]).arg(&command);
            run.env("EVENER_ARBITER", "off").env("EVENER_CACHE_DIR", place.join("cache"))
        });
    }
}

#[test]
fn a_tree_of_roots_comes_back_as_it_was() {
    trees_of_root(0..6);
}

#[test]
fn a_tree_of_a_user_without_rights_comes_back_as_it_was() {
    trees_of_a_user(1_006..1_010);
}

#[test]
#[ignore = "minutes: 300 trees"]
fn three_hundred_trees_of_roots_come_back_as_they_were() {
    trees_of_root(6..306);
}

#[test]
#[ignore = "minutes: 200 trees"]
fn two_hundred_trees_of_a_user_come_back_as_they_were() {
    trees_of_a_user(1_010..1_210);
}
