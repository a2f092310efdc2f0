//! Counts of what programs do, where times stray by more than what is asked: instructions by valgrind's callgrind, system
//! calls by strace.
//!
//! Steps of one count: [`Counter::words`] stand before a command -> the tool leaves files in the counter's folder, callgrind
//! one per process -> [`Counter::read`] adds them up, part by part, when all processes have ended -> a [`Tally`].
//!
//! A process that was forked and runs no other program begins, for callgrind, with its parent's count. A reader that subtracts two
//! runs with the same number of processes does not see it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tempfile::TempDir;

use super::openssl_conf::Providers;
use crate::error::BenchError;
use crate::medians::Spread;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// Instructions outside the kernel, by callgrind; parts are the files that they lie in.
    Instructions,
    /// System calls, by strace; parts are their names.
    SystemCalls,
}

impl Tool {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::Instructions, Self::SystemCalls];

    /// What is counted, in words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::SystemCalls => "system calls",
        }
    }
}

/// Counts one run of a program with all its processes.
pub struct Counter {
    tool: Tool,
    folder: TempDir,
}

impl Counter {
    /// A counter that has counted nothing.
    ///
    /// # Errors
    ///
    /// [`BenchError::File`] where there is no folder to be had.
    pub fn new(tool: Tool) -> Result<Self, BenchError> {
        let folder = TempDir::with_prefix("evener-counted-").map_err(told(Path::new("/tmp")))?;
        // Workers of servers write as another user.
        let open = fs::Permissions::from_mode(0o777);
        fs::set_permissions(folder.path(), open).map_err(told(folder.path()))?;
        Ok(Self { tool, folder })
    }

    /// What it counts.
    #[must_use]
    pub const fn tool(&self) -> Tool {
        self.tool
    }

    /// The words that stand before a program and its own.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let file = |name| self.folder.path().join(name).display().to_string();
        let (words, last) = match self.tool {
            Tool::Instructions => (CALLGRIND, format!("--callgrind-out-file={}", file("%p"))),
            Tool::SystemCalls => (STRACE, file("0")),
        };
        words.split(' ').map(str::to_owned).chain([last]).collect()
    }

    /// What each process did; strace tells it of all together, as process 0.
    ///
    /// # Errors
    ///
    /// [`BenchError::Command`] where a file is not understood, or none was left.
    pub fn read(&self) -> Result<BTreeMap<u32, Tally>, BenchError> {
        let mut all = BTreeMap::new();
        for file in fs::read_dir(self.folder.path()).map_err(told(self.folder.path()))?.flatten() {
            let text = fs::read_to_string(file.path()).map_err(told(&file.path()))?;
            let tally = match self.tool {
                Tool::Instructions => instructions(&text),
                Tool::SystemCalls => system_calls(&text),
            };
            let process = file.file_name().to_str().and_then(|name| name.parse().ok());
            let (Some(process), Some(tally)) = (process, tally) else {
                return Err(self.unclear(&file.path().display().to_string()));
            };
            all.insert(process, tally);
        }
        if all.is_empty() { Err(self.unclear("it left nothing")) } else { Ok(all) }
    }

    fn unclear(&self, reason: &str) -> BenchError {
        BenchError::Command { command: self.words().join(" "), reason: format!("not understood: {reason}") }
    }
}

/// How many of each part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally(BTreeMap<String, f64>);

impl Tally {
    /// All together.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.0.values().sum()
    }

    /// Those of the parts whose names end so.
    #[must_use]
    pub fn of(&self, end: &str) -> f64 {
        self.0.iter().filter(|(name, _)| name.ends_with(end)).map(|(_, count)| count).sum()
    }

    /// Those of one part.
    #[must_use]
    pub fn of_part(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or(0.0)
    }

    /// The names of the parts.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Several together.
    pub fn sum<'a>(all: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut sum = Self::default();
        for (name, count) in all.into_iter().flat_map(|tally| &tally.0) {
            *sum.0.entry(name.clone()).or_default() += count;
        }
        sum
    }

    /// What each of `count` more requests took, if `self` had so many more than `less`.
    #[must_use]
    pub fn each_beyond(&self, less: &Self, count: u32) -> Self {
        let negative = Self(less.0.iter().map(|(name, count)| (name.clone(), -count)).collect());
        let mut each = Self::sum([self, &negative]);
        each.0.values_mut().for_each(|value| *value /= f64::from(count));
        each
    }
}

/// Counts with both providers in turn, so many times; another goes first in each run.
///
/// # Errors
///
/// Those of `count`.
pub fn in_turn<T, E>(runs: usize, count: impl Fn(Providers) -> Result<T, E>) -> Result<Vec<[T; 2]>, E> {
    let pair = |run: usize| {
        if run % 2 == 1 {
            let evener = count(Providers::Evener)?;
            return Ok([count(Providers::Default)?, evener]);
        }
        let default = count(Providers::Default)?;
        Ok([default, count(Providers::Evener)?])
    };
    (0..runs).map(pair).collect()
}

/// Medians of pairs, default first, their ratio with its extremes, and what they are made of.
///
/// # Panics
///
/// Where there is no pair.
#[must_use]
pub fn line(tool: Tool, pairs: &[[Tally; 2]]) -> String {
    let spread = |value: &dyn Fn(&[Tally; 2]) -> f64| {
        Spread::of(&pairs.iter().map(value).collect::<Vec<_>>()).expect("there is at least one pair")
    };
    let medians =
        |value: &dyn Fn(&Tally) -> f64| [0, 1].map(|which| spread(&|pair| value(&pair[which])).median);
    let [default, evener] = medians(&Tally::total);
    let ratio = spread(&|pair| pair[1].total() / pair[0].total());
    let parts = match tool {
        Tool::Instructions => {
            let [_, module] = medians(&|tally| tally.of("/evener.so"));
            format!("evener.so {module:.0}")
        }
        Tool::SystemCalls => {
            let names = Tally::sum(pairs.iter().flatten());
            let calls = names.names().map(|name| (name, medians(&|tally| tally.of_part(name))));
            let seen = calls.filter(|(_, both)| both.iter().any(|count| count.abs() >= 0.005));
            let told = seen.map(|(name, [default, evener])| format!("{name} {default:.2} {evener:.2}"));
            told.collect::<Vec<_>>().join(", ")
        }
    };
    format!(
        "{:<12}  default {default:>12.2}  evener {evener:>12.2}  ratio {:.4} [{:.4} {:.4}]  {} pairs, {parts}",
        tool.name(),
        ratio.median,
        ratio.min,
        ratio.max,
        pairs.len(),
    )
}

const CALLGRIND: &str = "valgrind --quiet --vgdb=no --tool=callgrind --trace-children=yes --compress-strings=no --compress-pos=no";
const STRACE: &str = "strace -q -f -c -o";

/// callgrind's file: `ob=FILE`, then lines `POSITION COUNT` of its own instructions, and after `calls=` one that is the called
/// function's. `None` where the sum is not that of the line `totals:`.
fn instructions(text: &str) -> Option<Tally> {
    let (mut tally, mut object, mut is_callees) = (Tally::default(), "", false);
    let mut totals = None;
    for line in text.lines() {
        if let Some(file) = line.strip_prefix("ob=") {
            object = file;
        } else if let Some(count) = line.strip_prefix("totals: ") {
            totals = count.trim().parse::<f64>().ok();
        } else if line.starts_with("calls=") {
            is_callees = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit()) && !std::mem::take(&mut is_callees) {
            let count: f64 = line.split(' ').nth(1)?.parse().ok()?;
            *tally.0.entry(object.to_owned()).or_default() += count;
        }
    }
    // Whole numbers below 2^53 on both sides.
    (totals? == tally.total()).then_some(tally)
}

/// strace's table: share, seconds, microseconds per call, calls, perhaps errors, and the name; the last line is their sum.
fn system_calls(text: &str) -> Option<Tally> {
    let mut tally = Tally::default();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (Some(name), Some(Ok(calls))) = (words.last(), words.get(3).map(|word| word.parse())) else {
            continue;
        };
        if *name == "total" {
            return (tally.total() == calls).then_some(tally);
        }
        tally.0.insert((*name).to_owned(), calls);
    }
    None
}

fn told(path: &Path) -> impl FnOnce(std::io::Error) -> BenchError {
    let path = path.display().to_string();
    move |error| BenchError::File { path, error: error.to_string() }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const LEFT_BY_CALLGRIND: &str = "\
positions: line
events: Ir
summary: 49

ob=/lib/one.so
fl=???
fn=first
0 5
7 4
cob=/lib/two.so
cfi=???
cfn=second
calls=6 30
7 35
8 1
fn=third
9 1
ob=/lib/two.so
fl=???
fn=second
30 35
ob=/lib/one.so
fl=???
fn=fourth
1 3

totals: 49
";

    #[test]
    fn an_instruction_belongs_to_the_file_it_lies_in_and_counts_once() {
        let tally = instructions(LEFT_BY_CALLGRIND).unwrap();
        assert_eq!((tally.of("/one.so"), tally.of("/two.so"), tally.total()), (14.0, 35.0, 49.0));
        let other = LEFT_BY_CALLGRIND.replace("totals: 49", "totals: 48");
        assert_eq!(instructions(&other), None, "a sum that valgrind does not confirm");
    }

    #[test]
    fn system_calls_are_counted_with_and_without_errors() {
        let text = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 60.00    0.000060           6        10           read
 40.00    0.000040           8         5         2 openat
------ ----------- ----------- --------- --------- ----------------
100.00    0.000100           6        15         2 total
";
        let tally = system_calls(text).unwrap();
        assert_eq!((tally.of("read"), tally.of("openat"), tally.total()), (10.0, 5.0, 15.0));
        assert_eq!(system_calls(&text.replace("15  ", "16  ")), None);
        assert_eq!(system_calls(""), None);
    }

    #[test]
    fn what_each_of_more_requests_took_is_a_difference() {
        let tally = |parts: &[(&str, f64)]| {
            Tally(parts.iter().map(|&(name, count)| (name.to_owned(), count)).collect())
        };
        let (once, twice) =
            (tally(&[("a", 100.0), ("b", 7.0)]), tally(&[("a", 150.0), ("b", 7.0), ("c", 10.0)]));
        assert_eq!(twice.each_beyond(&once, 10), tally(&[("a", 5.0), ("b", 0.0), ("c", 1.0)]));
    }

    /// What the tools say of programs whose work is known: a loop of the shell that turns twice as often takes twice as many
    /// instructions more, and `dd` writes each block by a call.
    #[test]
    fn tools_count_what_is_known() {
        let counted = |tool, program: &[&str]| {
            let counter = Counter::new(tool).unwrap();
            let words = counter.words();
            let ran = Command::new(&words[0]).args(&words[1..]).args(program).output();
            ran.ok().map(|_| Tally::sum(counter.read().unwrap().values()))
        };
        let turns = |count: u32| format!("i=0; while [ $i -lt {count} ]; do i=$((i+1)); done");
        let [none, once, twice] =
            [0, 500, 1000].map(|count| counted(Tool::Instructions, &["/bin/sh", "-c", &turns(count)]));
        if let (Some(none), Some(once), Some(twice)) = (none, once, twice) {
            let (once, twice) =
                (once.each_beyond(&none, 500).total(), twice.each_beyond(&none, 1000).total());
            assert!(once > 100.0 && (twice / once - 1.0).abs() < 0.01, "{once} {twice} instructions a turn");
        } else {
            println!("skipped: valgrind is not installed");
        }
        let blocks = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=100", "status=none"];
        match counted(Tool::SystemCalls, &blocks) {
            Some(tally) => assert_eq!(tally.of("write"), 100.0),
            None => println!("skipped: strace is not installed"),
        }
    }
}
