//! Shards of directories: nothing of theirs needs a store of others' making, and what a process leaves that is killed is seen at once.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

mod support;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use evener_files::keyset::{Keyset, Template};
use evener_shards::{Ask, Direction, Existing, Keys, Planning, ShardRun, Wanted};
use evener_testing::Random;
use evener_testing::programs::{skipped, there_is};
use support::{
    Person, Tree, ended_with, folder, kill_at_work, plan_of, planning, program, read, report, shard,
    some_tree, write,
};

/// A planned tree: where it is, where it goes, and its plan.
struct Stage {
    folder: evener_testing::Folder,
}

impl Stage {
    fn new(tree: &Tree, wanted: Wanted) -> Self {
        let stage = Self { folder: folder() };
        write(tree, &stage.folder.join("plain"));
        ended_with(0, program(&Ask::Plan(stage.planning("plain", "sealed", wanted, "plan.json"))));
        stage
    }

    fn text(&self, name: &str) -> String {
        self.folder.join(name).to_str().unwrap().to_owned()
    }

    fn planning(&self, from: &str, to: &str, wanted: Wanted, plan: &str) -> Planning {
        planning(&self.text(from), &self.text(to), wanted, &self.folder.join(plan))
    }

    fn asked(&self, number: u32, keys: Keys) -> ShardRun {
        shard(&self.folder.join("plan.json"), number, keys)
    }

    fn all(&self, keys: &Keys) -> Vec<serde_json::Value> {
        let count = u32::try_from(plan_of(&self.folder.join("plan.json")).shards.len()).unwrap();
        let run =
            |number| report(&ended_with(0, program(&Ask::RunShard(self.asked(number, keys.clone()))))).1;
        (0..count).map(run).collect()
    }
}

#[test]
fn processes_that_are_killed_leave_nothing_half_done_and_the_rest_is_done_once() {
    let (tree, person) = (some_tree(400, 21), Person::new());
    let stage = Stage::new(&tree, Wanted::Shards(2));
    let mut random = Random::new(22);
    for round in 0..10 {
        kill_at_work(
            program(&Ask::RunShard(stage.asked(round % 2, person.as_recipient()))),
            1 + random.below(15),
        );
        // What has a name is whole.
        for (name, file) in read(&stage.folder.join("sealed")) {
            assert!(person.opens(&file) == tree[&name], "{name}");
        }
    }
    let done = read(&stage.folder.join("sealed")).len() as u64;
    let totals = stage.all(&person.as_recipient());
    let sum = |field: &str| totals.iter().map(|totals| totals[field].as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("already_done"), sum("done")), (done, tree.len() as u64 - done));
    let sealed = read(&stage.folder.join("sealed"));
    assert_eq!(sealed.keys().collect::<Vec<_>>(), tree.keys().collect::<Vec<_>>(), "no draft is left");
    assert!(sealed.iter().all(|(name, file)| person.opens(file) == tree[name]));
    let state = |name: &String| fs::metadata(stage.folder.join("sealed").join(name)).unwrap().ino();
    let before: Vec<u64> = sealed.keys().map(state).collect();
    assert!(stage.all(&person.as_recipient()).iter().all(|totals| totals["done"] == 0));
    assert_eq!(sealed.keys().map(state).collect::<Vec<u64>>(), before);
}

#[test]
fn a_keyset_comes_from_a_file_the_environment_or_a_command_and_is_in_no_plan_and_no_report() {
    let tree = some_tree(20, 31);
    let stage = Stage::new(&tree, Wanted::Shards(1));
    let keyset = Keyset::generate("AES256_GCM_HKDF_4KB".parse::<Template>().unwrap()).unwrap().to_json();
    let keyset = std::str::from_utf8(&keyset).unwrap();
    let file = stage.folder.join("key.json");
    fs::write(&file, keyset).unwrap();
    let by_file = Keys { key: Some(file.clone()), associated_data: b"bound".to_vec(), ..Keys::default() };
    let first = ended_with(0, program(&Ask::RunShard(stage.asked(0, by_file.clone()))));
    // The same key from elsewhere knows its outputs again.
    let by_env = Keys { key: None, key_env: Some("A_KEY".to_owned()), ..by_file.clone() };
    let mut command = program(&Ask::RunShard(stage.asked(0, by_env)));
    command.env("A_KEY", keyset);
    assert_eq!(report(&ended_with(0, command)).1["already_done"], tree.len() as u64);
    let cat = format!("cat '{}'", file.display());
    let by_command = Keys { key: None, key_command: Some(cat), ..by_file.clone() };
    let again = ended_with(0, program(&Ask::RunShard(stage.asked(0, by_command.clone()))));
    assert_eq!(report(&again).1["already_done"], tree.len() as u64);
    // And opens them.
    let back = Planning {
        direction: Direction::Decrypt,
        force: true,
        ..stage.planning("sealed", "opened", Wanted::Shards(2), "plan.json")
    };
    ended_with(0, program(&Ask::Plan(back)));
    stage.all(&by_command);
    assert!(read(&stage.folder.join("opened")) == tree);
    let document: serde_json::Value = serde_json::from_str(keyset).unwrap();
    let secret = document["key"][0]["keyData"]["value"].as_str().unwrap();
    let plan = fs::read(stage.folder.join("plan.json")).unwrap();
    for text in [&plan, &first.stdout, &first.stderr, &again.stdout, &again.stderr] {
        assert!(!String::from_utf8_lossy(text).contains(secret));
    }
}

#[test]
fn another_key_is_told_by_the_exit_status_and_so_is_damage() {
    let (tree, person) = (some_tree(5, 41), Person::new());
    let stage = Stage::new(&tree, Wanted::Shards(1));
    stage.all(&person.as_recipient());
    let (objects, _) =
        report(&ended_with(2, program(&Ask::RunShard(stage.asked(0, Person::new().as_recipient())))));
    assert!(
        objects.values().all(|line| line["error"].as_str().unwrap().contains("for another key")),
        "{objects:?}"
    );
    let back = Planning {
        direction: Direction::Decrypt,
        force: true,
        ..stage.planning("sealed", "opened", Wanted::Shards(1), "plan.json")
    };
    ended_with(0, program(&Ask::Plan(back)));
    for name in ["a!b", "large/two"] {
        let path = stage.folder.join("sealed").join(name);
        let mut file = fs::read(&path).unwrap();
        *file.last_mut().unwrap() ^= 1;
        fs::write(&path, file).unwrap();
    }
    fs::write(stage.folder.join("identity"), &person.text).unwrap();
    let keys = Keys { identities: vec![stage.folder.join("identity")], ..Keys::default() };
    let (objects, totals) = report(&ended_with(2, program(&Ask::RunShard(stage.asked(0, keys)))));
    assert_eq!((&totals["failed"], &totals["try_again"]), (&2.into(), &0.into()), "{objects:?}");
    let mut expected = tree;
    expected.retain(|name, _| !["a!b", "large/two"].contains(&name.as_str()));
    assert!(read(&stage.folder.join("opened")) == expected, "nothing of a damaged object is there");
}

#[test]
fn an_output_that_was_written_to_after_it_was_made_is_no_finished_one_and_is_made_again_where_that_is_wished()
{
    let (tree, person) = (some_tree(3, 42), Person::new());
    let stage = Stage::new(&tree, Wanted::Shards(1));
    stage.all(&person.as_recipient());
    let sealed = |name: &str| fs::OpenOptions::new().write(true).open(stage.folder.join("sealed").join(name));
    // One is cut off, one gets another byte in its place; what a backup put there has its mark and its time.
    sealed("a!b").unwrap().set_len(100).unwrap();
    sealed("large/two").unwrap().write_at(b"?", 1_000_000).unwrap();
    let one = stage.folder.join("sealed/large/one");
    let backup = stage.folder.join("sealed/backup");
    assert!(Command::new("cp").arg("-a").args([&one, &backup]).status().unwrap().success());
    fs::rename(backup, one).unwrap();
    let asked = stage.asked(0, person.as_recipient());
    let (objects, totals) = report(&ended_with(2, program(&Ask::RunShard(asked.clone()))));
    for name in ["a!b", "large/two"] {
        assert!(objects[name]["error"].as_str().unwrap().contains("written to"), "{objects:?}");
    }
    assert_eq!((&totals["failed"], &totals["try_again"]), (&2.into(), &0.into()));
    let update = ShardRun { existing: Existing::Update, ..asked };
    let (_, totals) = report(&ended_with(0, program(&Ask::RunShard(update))));
    assert_eq!((&totals["done"], &totals["failed"]), (&2.into(), &0.into()));
    assert!(read(&stage.folder.join("sealed")).iter().all(|(name, file)| person.opens(file) == tree[name]));
}

#[test]
fn an_output_gets_its_name_where_there_are_no_hard_links_or_fails_for_good() {
    if !there_is("strace") {
        return skipped("strace is not installed");
    }
    let (tree, person) = (some_tree(3, 43), Person::new());
    let stage = Stage::new(&tree, Wanted::Shards(1));
    let ran = |status: i32, asked: &ShardRun, refused: &[&str]| {
        let asked = program(&Ask::RunShard(asked.clone()));
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-o", "/dev/null"]);
        for call in refused {
            strace.arg(format!("--inject={call}"));
        }
        strace.arg(asked.get_program()).args(asked.get_args());
        report(&ended_with(status, strace)).1
    };
    let asked = stage.asked(0, person.as_recipient());
    let sealed = stage.folder.join("sealed");
    for errno in ["EPERM", "EOPNOTSUPP", "ENOSYS"] {
        let link = format!("linkat:error={errno}");
        // Neither: no request is tried again for what stays as it is.
        let totals = ran(2, &asked, &[&link, "renameat2:error=EINVAL"]);
        assert_eq!(
            (&totals["done"], &totals["try_again"], &totals["retries"]),
            (&0.into(), &0.into(), &0.into())
        );
        assert!(read(&sealed).is_empty(), "no draft is left");
        assert_eq!(ran(0, &asked, &[&link])["done"], tree.len() as u64);
        let files = read(&sealed);
        assert_eq!(files.keys().collect::<Vec<_>>(), tree.keys().collect::<Vec<_>>(), "no draft is left");
        assert!(files.iter().all(|(name, file)| person.opens(file) == tree[name]));
        assert_eq!(ran(0, &asked, &[])["already_done"], tree.len() as u64);
        // What stands there is replaced where that is wished, and never else.
        fs::write(sealed.join("a"), "of others").unwrap();
        fs::remove_file(sealed.join("large/two")).unwrap();
        assert_eq!(ran(2, &asked, &[&link])["failed"], 1);
        assert_eq!(read(&sealed)["a"], b"of others");
        let force = ShardRun { existing: Existing::Replace, ..asked.clone() };
        assert_eq!(ran(0, &force, &[&link])["done"], 1);
        fs::remove_dir_all(&sealed).unwrap();
        fs::create_dir(&sealed).unwrap();
    }
}

/// A number in packaging/kubernetes/shards.yaml, by what stands before it.
fn in_manifest(name: &str) -> usize {
    let (_, after) = include_str!("../../../packaging/kubernetes/shards.yaml").split_once(name).unwrap();
    after.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
}

#[test]
fn a_pod_may_read_its_key_as_its_group() {
    // The secret is root's and of the group that the pod names; its mode is octal.
    assert_eq!(in_manifest("defaultMode: "), 440);
    assert_eq!(in_manifest("fsGroup: "), in_manifest("runAsUser: "));
}

/// What an Indexed Job does with an index by the rules of packaging/kubernetes/shards.yaml, where `pod` starts a pod of so many failures before it:
/// how each ended, and whether the index was done.
fn indexed_job(pod: impl Fn(usize) -> Option<i32>) -> (Vec<Option<i32>>, bool) {
    let (failures_max, fail_index) = (in_manifest("backoffLimitPerIndex: "), in_manifest("values: ["));
    let mut ended = Vec::new();
    while ended.len() <= failures_max {
        ended.push(pod(ended.len()));
        match ended.last() {
            Some(Some(0)) => return (ended, true),
            Some(Some(status)) if usize::try_from(*status) == Ok(fail_index) => break,
            _ => {}
        }
    }
    (ended, false)
}

#[test]
fn an_indexed_job_tries_again_what_may_come_and_gives_an_index_up_for_what_never_will() {
    let (tree, person) = (some_tree(40, 71), Person::new());
    let stage = Stage::new(&tree, Wanted::Shards(1));
    stage.all(&person.as_recipient());
    let back = Planning {
        direction: Direction::Decrypt,
        force: true,
        ..stage.planning("sealed", "opened", Wanted::Shards(4), "plan.json")
    };
    ended_with(0, program(&Ask::Plan(back)));
    let shards = plan_of(&stage.folder.join("plan.json")).shards;
    assert_eq!(shards.len(), 4);
    // The first object of the third shard is damaged.
    let damaged = tree.keys().find(|name| name.as_str() > shards[2].after.as_str()).unwrap();
    let path = stage.folder.join("sealed").join(damaged);
    let mut file = fs::read(&path).unwrap();
    *file.last_mut().unwrap() ^= 1;
    fs::write(&path, file).unwrap();
    let identity = stage.folder.join("identity");
    fs::write(&identity, &person.text).unwrap();
    let with = |number: u32, key_command: String| {
        let keys = Keys { key_command: Some(key_command), ..Keys::default() };
        program(&Ask::RunShard(stage.asked(number, keys)))
    };
    let key = format!("cat '{}'", identity.display());
    let ran =
        |number, key_command: &str| with(number, key_command.to_owned()).output().unwrap().status.code();
    // A server of keys that is busy at first, a pod that is killed at work, damage, a server of keys that never answers.
    let busy_at_first = indexed_job(|failures| ran(0, if failures < 2 { "exit 1" } else { &key }));
    assert_eq!(busy_at_first, (vec![Some(1), Some(1), Some(0)], true));
    let killed = indexed_job(|failures| {
        if failures == 0 {
            kill_at_work(with(1, key.clone()), 1);
            return None;
        }
        ran(1, &key)
    });
    assert_eq!(killed, (vec![None, Some(0)], true));
    assert_eq!(indexed_job(|_| ran(2, &key)), (vec![Some(2)], false));
    assert_eq!(indexed_job(|_| ran(3, "exit 1")), (vec![Some(1); 6], false));
    // All was done that could be.
    let mut expected = tree.clone();
    expected.retain(|name, _| name != damaged && name.as_str() <= shards[3].after.as_str());
    assert!(read(&stage.folder.join("opened")) == expected);
}

#[test]
fn links_and_names_that_are_no_text_are_named_and_links_not_followed_on_either_side() {
    let person = Person::new();
    let tree: Tree =
        [("one", 10), ("two/three", 20)].map(|(name, bytes)| (name.to_owned(), vec![7; bytes])).into();
    let stage = Stage::new(&tree, Wanted::Shards(1));
    fs::write(stage.folder.join("secret"), b"of others").unwrap();
    symlink("../secret", stage.folder.join("plain/link")).unwrap();
    symlink("..", stage.folder.join("plain/up")).unwrap();
    let no_text = OsStr::from_bytes(b"z\xff");
    for folder in ["plain", "plain/two"] {
        fs::write(stage.folder.join(folder).join(no_text), b"no text").unwrap();
    }
    fs::create_dir_all(stage.folder.join("sealed")).unwrap();
    fs::create_dir_all(stage.folder.join("elsewhere")).unwrap();
    symlink("../elsewhere", stage.folder.join("sealed/two")).unwrap();
    let (objects, _) = report(&ended_with(2, program(&Ask::RunShard(stage.asked(0, person.as_recipient())))));
    let failed: Vec<_> = objects
        .iter()
        .filter(|(_, line)| line["outcome"] == "failed")
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(failed, ["link", "two/three", "two/z\\xff", "up", "z\\xff"]);
    assert_eq!(fs::read_dir(stage.folder.join("elsewhere")).unwrap().count(), 0);
}

#[test]
fn a_tree_with_nothing_but_what_is_no_object_is_no_plan_of_no_shards() {
    let stage = Stage { folder: folder() };
    fs::create_dir(stage.folder.join("plain")).unwrap();
    fs::write(stage.folder.join("plain").join(OsStr::from_bytes(b"\xff")), b"no text").unwrap();
    let planning = stage.planning("plain", "sealed", Wanted::Shards(1), "plan.json");
    let output = ended_with(2, program(&Ask::Plan(planning)));
    assert!(String::from_utf8_lossy(&output.stderr).contains(r"\xff: its name is no text"));
    assert!(!stage.folder.join("plan.json").exists());
}

#[test]
fn a_plan_of_no_objects_has_no_shards_and_one_of_itself_is_refused() {
    let stage = Stage { folder: folder() };
    fs::create_dir(stage.folder.join("plain")).unwrap();
    ended_with(0, program(&Ask::Plan(stage.planning("plain", "sealed", Wanted::Shards(4), "plan.json"))));
    assert!(plan_of(&stage.folder.join("plan.json")).shards.is_empty());
    ended_with(2, program(&Ask::RunShard(stage.asked(0, Person::new().as_recipient()))));
    for (from, to) in [("plain", "plain"), ("plain", "plain/sealed"), ("plain/x", "plain")] {
        ended_with(2, program(&Ask::Plan(stage.planning(from, to, Wanted::Shards(1), "p"))));
    }
    ended_with(2, program(&Ask::Plan(stage.planning("absent", "sealed", Wanted::Shards(1), "p"))));
    ended_with(
        2,
        program(&Ask::Plan(Planning {
            source: "ftp://host/x".into(),
            ..stage.planning("plain", "sealed", Wanted::Shards(1), "p")
        })),
    );
}

#[test]
fn places_that_are_one_by_other_names_are_refused_before_anything_is_read() {
    let stage = Stage::new(&some_tree(1, 53), Wanted::Shards(1));
    symlink("plain", stage.folder.join("link")).unwrap();
    let wanted = || stage.planning("plain", "sealed", Wanted::Shards(1), "other.json");
    for (source, destination, said) in [
        ("s3://bucket/run#3", "s3://bucket/sealed", "%23"),
        ("s3://bucket/plain", "gs://bucket/run?generation=3", "%3F"),
        ("s3://bucket/run", "s3a://bucket/%72un/sealed", "lie in each other"),
        (&stage.text("plain"), &stage.text("link/sealed"), "lie in each other"),
        (&stage.text("plain"), &stage.text("x/../plain"), "lie in each other"),
    ] {
        let (source, destination) = (source.to_owned(), destination.to_owned());
        let output = ended_with(2, program(&Ask::Plan(Planning { source, destination, ..wanted() })));
        assert!(String::from_utf8_lossy(&output.stderr).contains(said), "{output:?}");
        assert!(!stage.folder.join("other.json").exists());
    }
    // Nor does a shard work on them whose plan was made before the link was.
    fs::remove_dir(stage.folder.join("sealed")).unwrap();
    symlink("plain", stage.folder.join("sealed")).unwrap();
    let output = ended_with(2, program(&Ask::RunShard(stage.asked(0, Person::new().as_recipient()))));
    assert!(String::from_utf8_lossy(&output.stderr).contains("lie in each other"), "{output:?}");
}

#[test]
fn keys_that_are_none_are_refused_for_good_and_a_command_that_fails_for_the_moment() {
    let stage = Stage::new(&some_tree(1, 51), Wanted::Shards(1));
    let write = |name: &str, text: &str| {
        fs::write(stage.folder.join(name), text).unwrap();
        stage.folder.join(name)
    };
    let (empty, text) = (write("empty", ""), write("text", "no key\n"));
    let command = |text: &str| Keys { key_command: Some(text.to_owned()), ..Keys::default() };
    for (status, keys) in [
        (2, Keys::default()),
        (2, Keys { key: Some(empty), ..Keys::default() }),
        (2, Keys { key: Some(text), ..Keys::default() }),
        (2, Keys { key: Some("/absent".into()), ..Keys::default() }),
        (2, Keys { recipients: vec!["age1none".into()], ..Keys::default() }),
        (2, Keys { key_env: Some("NOT_SET_ANYWHERE".into()), ..Keys::default() }),
        (1, command("exit 3")),
        (2, command("echo no key")),
        (2, Keys { associated_data: vec![1], ..Person::new().as_recipient() }),
    ] {
        ended_with(status, program(&Ask::RunShard(stage.asked(0, keys))));
    }
    assert!(!Path::new(&stage.folder.join("sealed")).join("a").exists());
}

#[test]
fn a_key_in_the_place_of_what_says_where_it_is_is_in_no_message() {
    let (stage, person) = (Stage::new(&some_tree(1, 52), Wanted::Shards(1)), Person::new());
    let keyset = Keyset::generate("AES256_GCM_HKDF_4KB".parse::<Template>().unwrap()).unwrap().to_json();
    let keyset = std::str::from_utf8(&keyset).unwrap().to_owned();
    let identity = person.text.lines().find(|line| line.starts_with("AGE-SECRET-KEY-1")).unwrap().to_owned();
    let public = person.recipient;
    for secret in [identity, keyset] {
        for (keys, option) in [
            (Keys { recipients: vec![secret.clone()], ..Keys::default() }, "--recipient: "),
            (
                Keys { recipients: vec![public.clone(), secret.clone()], ..Keys::default() },
                "--recipient, 2 of 2: ",
            ),
            (
                Keys { recipients_files: vec![secret.clone().into()], ..Keys::default() },
                "--recipients-file: ",
            ),
            (Keys { key: Some(secret.clone().into()), ..Keys::default() }, "--key: "),
            (Keys { identities: vec![secret.clone().into()], ..Keys::default() }, "--identity: "),
            (Keys { key_env: Some(secret.clone()), ..Keys::default() }, "--key-env "),
            (Keys { key_command: Some(secret.clone()), ..Keys::default() }, "--key-command "),
        ] {
            let output = ended_with(2, program(&Ask::RunShard(stage.asked(0, keys))));
            let said = [output.stderr, output.stdout].map(|text| String::from_utf8(text).unwrap()).concat();
            assert!(said.contains(option), "{said}");
            // No word of it: a message may have it in other lines.
            let words = secret.split(|sign: char| !sign.is_ascii_alphanumeric());
            for word in words.filter(|word| word.len() > 20) {
                assert!(!said.contains(word), "{said}");
            }
        }
    }
    // A command that only searches for one is none.
    fs::write(stage.folder.join("identities"), &*person.text).unwrap();
    let command = format!("grep AGE-SECRET-KEY- '{}'", stage.folder.join("identities").display());
    let keys = Keys { key_command: Some(command), ..Keys::default() };
    ended_with(0, program(&Ask::RunShard(stage.asked(0, keys))));
}

#[test]
fn a_run_ends_with_the_process_that_started_it_where_that_was_asked_for() {
    let stage = Stage::new(&some_tree(1, 61), Wanted::Shards(1));
    for with_parent in [true, false] {
        let (name, wait) = (stage.folder.join("name"), stage.folder.join("wait"));
        _ = (fs::remove_file(&name), fs::remove_file(&wait));
        assert!(Command::new("mkfifo").arg(&wait).status().unwrap().success());
        // It waits for its key, and says so by its number.
        let command = format!(
            "echo $PPID >'{0}.draft'; mv '{0}.draft' '{0}'; cat '{1}'",
            name.display(),
            wait.display()
        );
        let keys = Keys { key_command: Some(command), ..Keys::default() };
        let ask = Ask::RunShard(ShardRun { with_parent, ..stage.asked(0, keys) });
        let mut parent = Command::new("sh");
        parent.args(["-c", "\"$0\" \"$1\" & wait", program(&ask).get_program().to_str().unwrap()]);
        let mut parent = parent.args(program(&ask).get_args()).stderr(Stdio::null()).spawn().unwrap();
        until(|| name.exists());
        let process = Path::new("/proc").join(fs::read_to_string(&name).unwrap().trim());
        let runs = || fs::read_to_string(process.join("stat")).is_ok_and(|stat| !stat.contains(") Z "));
        assert!(runs());
        parent.kill().unwrap();
        parent.wait().unwrap();
        if with_parent {
            until(|| !runs());
        } else {
            thread::sleep(Duration::from_millis(100));
            assert!(runs());
        }
        drop(fs::OpenOptions::new().write(true).open(&wait).unwrap());
        until(|| !runs());
    }
}

/// Waits until something is so; not for ever.
#[track_caller]
fn until(mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "it never was");
        thread::sleep(Duration::from_millis(5));
    }
}
