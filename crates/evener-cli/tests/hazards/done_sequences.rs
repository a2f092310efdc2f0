//! Done means done, whatever happens between runs to sources, outputs, the record and keys: what a run does not name as failed opens
//! under its key and is its source, what it names is as it was, and the same run once more touches nothing. Sequences are generated;
//! `DONE_SEED` makes one again.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use crate::common::{Place, Ran, allow, failed_paths, files, noise};
use evener_testing::Random;

const KEYS: [&str; 2] = ["one.json", "other.json"];
const RECORD: &str = ".sealed.evener-record";

/// A sequence of changes and runs.
struct Sequence {
    place: Place,
    random: Random,
    key: &'static str,
    /// What happened, for the message.
    story: Vec<String>,
}

impl Sequence {
    fn new(seed: u64) -> Self {
        let place = Place::new();
        for key in KEYS {
            place.keyset(key);
        }
        let mut random = Random::new(seed);
        for name in ["a", "b", "d/c", "d/d"] {
            place.write(format!("in/{name}"), noise(random.next(), random.below(9_000)));
        }
        Self { place, random, key: KEYS[0], story: vec![format!("DONE_SEED={seed}")] }
    }

    fn run(&self, direction: &str, options: &[&str], output: &str, input: &str) -> Ran {
        let run = self.place.evener().args([direction, "-q", "--key", self.key, "--json", "report.json"]);
        run.args(options).args(["-o", output, input]).run()
    }

    /// One of the files in a tree, if there is any.
    fn one_of(&mut self, tree: &str) -> Option<PathBuf> {
        let all = files(&self.place.join(tree));
        let name = all.get(self.random.below(all.len().max(1)))?;
        Some(self.place.join(tree).join(name))
    }

    /// Writes other bytes over a file and sets its time back: only the time of its inode tells.
    fn overwrite(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
        let (mut bytes, time) = (fs::read(path).unwrap(), fs::metadata(path).unwrap().modified().unwrap());
        change(&mut bytes);
        fs::write(path, bytes).unwrap();
        fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    }

    /// Puts a file of the same bytes and time in the place of one.
    fn replace(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
        let (copy, time) = (path.with_extension("copy"), fs::metadata(path).unwrap().modified().unwrap());
        let mut bytes = fs::read(path).unwrap();
        change(&mut bytes);
        fs::write(&copy, bytes).unwrap();
        fs::File::options().write(true).open(&copy).unwrap().set_modified(time).unwrap();
        fs::rename(copy, path).unwrap();
    }

    fn happens(&mut self) {
        let (event, seed) = (self.random.below(13), self.random.next());
        let flip = |bytes: &mut Vec<u8>| {
            let at = usize::try_from(seed).unwrap() % bytes.len().max(1);
            bytes.get_mut(at).into_iter().for_each(|byte| *byte ^= 1);
        };
        let side = if event < 6 { "in" } else { "sealed" };
        let Some(path) = self.one_of(side) else { return };
        let record = self.place.join(RECORD);
        match event {
            0 => fs::write(&path, noise(seed, 1 + usize::try_from(seed % 9_000).unwrap())).unwrap(),
            1 | 6 => Self::overwrite(&path, flip),
            2 | 7 => Self::replace(&path, flip),
            3 | 8 => Self::replace(&path, |_| {}),
            4 | 9 => allow(&path, 0o600 | u32::try_from(seed % 0o100).unwrap()),
            5 => fs::write(path.with_extension("new"), noise(seed, 500)).unwrap(),
            10 => fs::remove_file(&path).unwrap(),
            11 if record.exists() && seed % 2 == 0 => fs::remove_file(&record).unwrap(),
            11 if record.exists() => Self::overwrite(&record, flip),
            _ => self.key = KEYS[usize::try_from(seed % 2).unwrap()],
        }
        self.story.push(format!("event {event} at {path:?}, key {}", self.key));
    }

    /// Bytes and inodes of the outputs.
    fn outputs(&self) -> BTreeMap<PathBuf, (u64, i64, Vec<u8>)> {
        let of = |name: PathBuf| {
            let path = self.place.join("sealed").join(&name);
            let stat = fs::metadata(&path).unwrap();
            (name, (stat.ino(), stat.ctime_nsec(), fs::read(path).unwrap()))
        };
        files(&self.place.join("sealed")).into_iter().map(of).collect()
    }

    fn runs(&mut self) {
        let options: &[&str] =
            [&[][..], &[], &["--update"], &["--update", "--delete"], &["--force"]][self.random.below(5)];
        self.story.push(format!("run {options:?} with {}", self.key));
        let before = if self.place.join("sealed").exists() { self.outputs() } else { BTreeMap::new() };
        let ran = self.run("encrypt", options, "sealed", "in");
        let report = serde_json::from_slice(&fs::read(self.place.join("report.json")).unwrap()).unwrap();
        let failed: BTreeSet<PathBuf> =
            failed_paths(&report).iter().map(|path| path.strip_prefix("in").unwrap().to_owned()).collect();
        assert_eq!(ran.code(), Some(i32::from(!failed.is_empty())), "{:#?}\n{}", self.story, ran.stderr());
        assert!(options != ["--force"] || failed.is_empty(), "{:#?}", self.story);
        let after = self.outputs();
        fs::remove_dir_all(self.place.join("opened")).ok();
        self.run("decrypt", &[], "opened", "sealed");
        for name in files(&self.place.join("in")) {
            let bytes =
                |side: &BTreeMap<PathBuf, (u64, i64, Vec<u8>)>| side.get(&name).map(|it| it.2.clone());
            let opened = fs::read(self.place.join("opened").join(&name)).ok();
            if failed.contains(&name) {
                assert!(bytes(&before) == bytes(&after), "{name:?} failed and is another: {:#?}", self.story);
            } else {
                let source = fs::read(self.place.join("in").join(&name)).ok();
                assert!(opened == source, "{name:?} is not done: {:#?}", self.story);
            }
        }
        if failed.is_empty() {
            let again = self.run("encrypt", &[], "sealed", "in");
            assert_eq!((again.code(), again.stderr()), (Some(0), ""), "{:#?}", self.story);
            assert!(self.outputs() == after, "the same run once more touched something: {:#?}", self.story);
        }
    }
}

fn sequences(seeds: std::ops::Range<u64>, steps: usize) {
    let seeds = env::var("DONE_SEED").map_or(seeds, |seed| {
        let seed = seed.parse().unwrap();
        seed..seed + 1
    });
    for seed in seeds {
        let mut sequence = Sequence::new(seed);
        for _ in 0..steps {
            sequence.runs();
            for _ in 0..=sequence.random.below(2) {
                sequence.happens();
            }
        }
    }
}

#[test]
fn what_counts_as_done_is_done_whatever_happened_before() {
    sequences(0..3, 10);
}

#[test]
#[ignore = "minutes: 100 sequences of 20 runs each"]
fn what_counts_as_done_is_done_in_two_thousand_runs() {
    sequences(3..103, 20);
}
