//! What tests of shards share: the program and what it is asked, trees, and a judge of other hands.
#![allow(dead_code, unused_imports, unused_macros, reason = "each test uses its part")]
#![allow(clippy::unwrap_used, reason = "support of tests")]

pub(crate) mod faults;
pub(crate) mod google;
pub(crate) mod odd;
pub(crate) mod server;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::SystemTime;

use evener_files::age_keys::generate_identity;
use evener_shards::{Ask, Direction, Existing, Keys, Plan, Planning, ShardRun, Wanted};
use evener_testing::{Folder, Random, noise};

/// The same tests for servers of several kinds, as far as there are such.
macro_rules! of_each {
    ($($store:ident: $kind:ident),+; $tests:tt) => {
        $(of_each!(@ $store $kind $tests);)+
    };
    (@ $store:ident $kind:ident { $($test:ident)+ }) => {
        mod $store {
            $(#[test]
            fn $test() {
                if let Some(server) = super::Server::start(super::Kind::$kind) {
                    super::$test(&server);
                }
            })+
        }
    };
}
pub(crate) use of_each;

/// Objects by their names.
pub(crate) type Tree = BTreeMap<String, Vec<u8>>;

/// The program with what it is asked.
pub(crate) fn program(ask: &Ask) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evener-objects"));
    command.arg(serde_json::to_string(ask).unwrap());
    command
}

/// What came of a command, with the status that it is to have.
#[track_caller]
pub(crate) fn ended_with(status: i32, mut command: Command) -> Output {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{said}");
    output
}

/// A plan to be made, of encryption.
pub(crate) fn planning(source: &str, destination: &str, wanted: Wanted, output: &Path) -> Planning {
    Planning {
        direction: Direction::Encrypt,
        source: source.to_owned(),
        destination: destination.to_owned(),
        suffix: String::new(),
        wanted,
        no_ranges: false,
        output: output.to_owned(),
        force: false,
        quiet: true,
    }
}

/// A shard to be done.
pub(crate) fn shard(plan: &Path, number: u32, keys: Keys) -> ShardRun {
    ShardRun {
        plan: plan.to_owned(),
        number,
        keys,
        existing: Existing::Keep,
        transfers: None,
        memory_bytes: 256 << 20,
        timeout_s: 60,
        json: Some("-".into()),
        quiet: true,
        with_parent: false,
    }
}

pub(crate) fn plan_of(path: &Path) -> Plan {
    Plan::read(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Lines of a report: those of objects by name, and the last one.
pub(crate) fn report(output: &Output) -> (BTreeMap<String, serde_json::Value>, serde_json::Value) {
    let text = std::str::from_utf8(&output.stdout).unwrap();
    let mut lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let totals = lines.pop().unwrap();
    let count = lines.len();
    let objects: BTreeMap<_, _> =
        lines.into_iter().map(|line| (line["object"].as_str().unwrap().to_owned(), line)).collect();
    assert_eq!(objects.len(), count, "an object is in the report once");
    (objects, totals)
}

/// An identity in a file, its recipient, and the same for the crate `age`.
pub(crate) struct Person {
    pub(crate) recipient: String,
    pub(crate) identity: age::x25519::Identity,
    pub(crate) text: String,
}

impl Person {
    pub(crate) fn new() -> Self {
        let made = generate_identity(SystemTime::now(), false).unwrap();
        let secret = made.file.lines().find(|line| line.starts_with("AGE-SECRET-KEY-1")).unwrap();
        Self {
            recipient: made.recipient.clone(),
            identity: secret.parse().unwrap(),
            text: made.file.to_string(),
        }
    }

    pub(crate) fn as_recipient(&self) -> Keys {
        Keys { recipients: vec![self.recipient.clone()], ..Keys::default() }
    }

    /// What the crate `age` makes of a file of age's.
    pub(crate) fn opens(&self, file: &[u8]) -> Vec<u8> {
        let mut plain = Vec::new();
        let keys = std::iter::once(&self.identity as &dyn age::Identity);
        age::Decryptor::new(file).unwrap().decrypt(keys).unwrap().read_to_end(&mut plain).unwrap();
        plain
    }
}

/// Small objects in folders, an empty one, one that is just not large, and some that are.
pub(crate) fn some_tree(count: usize, seed: u64) -> Tree {
    let mut random = Random::new(seed);
    let small = (0..count).map(|number| {
        let name = format!("year={}/part-{number:04}.bin", 2000 + number % 7);
        (name, noise(seed + number as u64, random.below(200_000)))
    });
    let special = [
        ("a", 0),
        ("a!b", 1),
        ("large/edge", 8 << 20),
        ("large/one", (8 << 20) + 1),
        ("large/two", 20_000_000),
    ];
    let special = special.map(|(name, bytes)| (name.to_owned(), noise(seed + 77, bytes)));
    small.chain(special).collect()
}

/// Writes a tree below a directory.
pub(crate) fn write(tree: &Tree, folder: &Path) {
    for (name, bytes) in tree {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

/// All files below a directory.
pub(crate) fn read(folder: &Path) -> Tree {
    let mut tree = Tree::new();
    let mut folders = if folder.is_dir() { vec![folder.to_owned()] } else { Vec::new() };
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap().map(|entry| entry.unwrap()) {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                let path = entry.path();
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                tree.insert(name, fs::read(path).unwrap());
            }
        }
    }
    tree
}

/// A folder for a test.
pub(crate) fn folder() -> Folder {
    Folder::new_in(Path::new(env!("CARGO_TARGET_TMPDIR")))
}

/// Starts a command and kills it when it has reported some more outputs, if it has not ended by then.
pub(crate) fn kill_at_work(mut command: Command, more: usize) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    lines.filter(|line| line.contains(r#""outcome":"done""#)).take(more).for_each(drop);
    child.kill().unwrap();
    child.wait().unwrap();
}
