//! Shards against a server of S3 that is not ours, behind a proxy that errs, with processes that are killed: the tree is what was put in, each
//! object once; and a run that finds all of it done changes nothing. The crate `age` opens what was sealed.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;

use evener_shards::{Ask, Direction, Existing, Keys, Planning, ShardRun, Wanted};
use evener_testing::Random;
use support::faults::{Faults, start};
use support::server::Server;
use support::{
    Person, ended_with, folder, kill_at_work, plan_of, planning, program, read, report, shard, some_tree,
    write,
};

const PLAIN: &str = "s3://bucket/plain";
const SEALED: &str = "s3://bucket/sealed";
const OPENED: &str = "s3://bucket/opened";

fn at(environment: &[(&'static str, String)], ask: &Ask) -> Command {
    let mut command = program(ask);
    command.envs(environment.iter().cloned());
    command
}

/// What is told of each file by its directory: inode and time, which a change would change.
fn states(folder: &Path) -> BTreeMap<String, (u64, i64)> {
    use std::os::unix::fs::MetadataExt as _;
    let state = |name: String| {
        let metadata = fs::metadata(folder.join(&name)).unwrap();
        (name, (metadata.ino(), metadata.ctime_nsec() + metadata.ctime() * 1_000_000_000))
    };
    read(folder).into_keys().map(state).collect()
}

#[test]
fn a_tree_survives_kills_errors_and_cut_uploads_and_a_second_run_changes_nothing() {
    let Some(server) = Server::start() else { return };
    let (place, person) = (folder(), Person::new());
    let tree = some_tree(250, 1);
    write(&tree, &server.bucket().join("plain"));
    let (port, counts) = start(server.port, Faults { refused: 50, cut: 50 }, 2);
    let environment = server.environment(port);
    let plan = place.join("plan.json");
    ended_with(0, at(&environment, &Ask::Plan(planning(PLAIN, SEALED, Wanted::Shards(3), &plan))));
    let shards = u32::try_from(plan_of(&plan).shards.len()).unwrap();
    assert_eq!(shards, 3);
    let asked = |number: u32| Ask::RunShard(shard(&plan, number, person.as_recipient()));
    let mut random = Random::new(3);
    for round in 0..10 {
        kill_at_work(
            at(&environment, &asked(round % shards)),
            &server.bucket().join("sealed"),
            1 + random.below(15),
        );
    }
    let begun = read(&server.bucket().join("sealed")).len();
    assert!(begun < tree.len(), "the kills came too late to be of any use");
    let mut seen = 0;
    for number in 0..shards {
        let (objects, totals) = report(&ended_with(0, at(&environment, &asked(number))));
        seen += objects.len();
        assert_eq!((&totals["failed"], &totals["exit_status"]), (&0.into(), &0.into()), "{totals}");
    }
    assert_eq!(seen, tree.len(), "each object is in one shard");
    let (refused, cut) = (counts.refused.load(Ordering::Relaxed), counts.cut.load(Ordering::Relaxed));
    println!(
        "{} requests, {refused} refused, {cut} cut; {begun} objects before the last runs",
        counts.requests.load(Ordering::Relaxed)
    );
    assert!(refused > 20 && cut > 0, "the proxy has erred: {refused}, {cut}");
    let sealed = read(&server.bucket().join("sealed"));
    assert_eq!(sealed.keys().collect::<Vec<_>>(), tree.keys().collect::<Vec<_>>());
    for (name, file) in &sealed {
        assert!(person.opens(file) == tree[name], "{name}");
    }
    let before = states(&server.bucket().join("sealed"));
    for number in 0..shards {
        let (_, totals) = report(&ended_with(0, at(&environment, &asked(number))));
        assert_eq!(totals["done"], 0);
        assert_eq!(totals["already_done"], totals["objects"]);
    }
    assert_eq!(states(&server.bucket().join("sealed")), before);
}

#[test]
fn what_was_sealed_is_opened_again_under_its_old_names_by_shards_of_its_own() {
    let Some(server) = Server::start() else { return };
    let (place, person) = (folder(), Person::new());
    let environment = server.environment(server.port);
    let tree = some_tree(30, 5);
    write(&tree, &server.bucket().join("plain"));
    let (to, back) = (place.join("to.json"), place.join("back.json"));
    let there =
        Planning { suffix: ".age".to_owned(), ..planning(PLAIN, SEALED, Wanted::Bytes(10 << 20), &to) };
    let again = planning(SEALED, OPENED, Wanted::Shards(2), &back);
    let again = Planning { suffix: ".age".to_owned(), direction: Direction::Decrypt, ..again };
    fs::write(place.join("identity"), &person.text).unwrap();
    let identity = Keys { identities: vec![place.join("identity")], ..Keys::default() };
    for (planning, plan, keys) in [(there, &to, person.as_recipient()), (again, &back, identity)] {
        ended_with(0, at(&environment, &Ask::Plan(planning)));
        for number in 0..u32::try_from(plan_of(plan).shards.len()).unwrap() {
            ended_with(0, at(&environment, &Ask::RunShard(shard(plan, number, keys.clone()))));
        }
    }
    assert!(read(&server.bucket().join("sealed")).keys().all(|name| name.ends_with(".age")));
    assert!(read(&server.bucket().join("opened")) == tree);
}

#[test]
fn two_runs_of_one_shard_at_once_make_each_object_once() {
    let Some(server) = Server::start() else { return };
    let (place, person) = (folder(), Person::new());
    let environment = server.environment(server.port);
    let tree = some_tree(60, 9);
    write(&tree, &server.bucket().join("plain"));
    let plan = place.join("plan.json");
    ended_with(0, at(&environment, &Ask::Plan(planning(PLAIN, SEALED, Wanted::Shards(1), &plan))));
    let ask = Ask::RunShard(shard(&plan, 0, person.as_recipient()));
    let runs: Vec<_> =
        (0..2).map(|_| at(&environment, &ask).stdout(Stdio::null()).spawn().unwrap()).collect();
    for mut run in runs {
        assert!(run.wait().unwrap().success());
    }
    let sealed = read(&server.bucket().join("sealed"));
    assert_eq!(sealed.keys().collect::<Vec<_>>(), tree.keys().collect::<Vec<_>>());
    assert!(sealed.iter().all(|(name, file)| person.opens(file) == tree[name]));
}

#[test]
fn a_changed_object_is_made_again_where_that_is_wished_and_is_an_error_else() {
    let Some(server) = Server::start() else { return };
    let (place, person) = (folder(), Person::new());
    let environment = server.environment(server.port);
    // Written by the server, whose entity tags are then those of contents.
    let local = place.join("local");
    let mut tree = some_tree(5, 11);
    write(&tree, &local);
    let put = |name: &str, bytes: &[u8]| {
        fs::write(local.join(name), bytes).unwrap();
        server.put(&format!("plain/{name}"), &local.join(name));
    };
    tree.iter().for_each(|(name, bytes)| put(name, bytes));
    let plan = place.join("plan.json");
    ended_with(0, at(&environment, &Ask::Plan(planning(PLAIN, SEALED, Wanted::Shards(1), &plan))));
    let asked = shard(&plan, 0, person.as_recipient());
    let ran = |status: i32, asked: &ShardRun| {
        report(&ended_with(status, at(&environment, &Ask::RunShard(asked.clone()))))
    };
    ran(0, &asked);
    tree.insert("a".to_owned(), b"new".to_vec());
    put("a", b"new");
    let (objects, totals) = ran(2, &asked);
    assert!(objects["a"]["error"].as_str().unwrap().contains("--update"), "{objects:?}");
    assert_eq!(totals["failed"], 1);
    ran(0, &ShardRun { existing: Existing::Update, ..asked.clone() });
    // An output of other hands is replaced by force only.
    server.put("sealed/a!b", &local.join("a"));
    let (objects, _) = ran(2, &ShardRun { existing: Existing::Update, ..asked.clone() });
    assert!(objects["a!b"]["error"].as_str().unwrap().contains("--force"), "{objects:?}");
    let (_, totals) = ran(0, &ShardRun { existing: Existing::Replace, ..asked });
    assert_eq!((&totals["done"], &totals["failed"]), (&1.into(), &0.into()), "finished ones stay");
    let sealed = read(&server.bucket().join("sealed"));
    assert!(sealed.iter().all(|(name, file)| person.opens(file) == tree[name]));
}

#[test]
fn a_store_that_refuses_or_is_not_there_is_told_from_one_that_is_busy() {
    let Some(server) = Server::start() else { return };
    let (place, person) = (folder(), Person::new());
    write(&some_tree(3, 13), &server.bucket().join("plain"));
    let plan = place.join("plan.json");
    let good = server.environment(server.port);
    let ask = Ask::Plan(planning(PLAIN, SEALED, Wanted::Shards(1), &plan));
    ended_with(0, at(&good, &ask));
    let asked = Ask::RunShard(ShardRun { timeout_s: 0, ..shard(&plan, 0, person.as_recipient()) });
    let with = |name: &str, value: &str| {
        let mut environment = server.environment(server.port);
        environment.iter_mut().filter(|(key, _)| *key == name).for_each(|(_, old)| *old = value.to_owned());
        environment
    };
    // Another secret: never.
    let (_, totals) = report(&ended_with(2, at(&with("AWS_SECRET_ACCESS_KEY", "wrong"), &asked)));
    assert_eq!(totals["try_again"], 0);
    // No server listens there: maybe later.
    let (port, counts) = start(1, Faults { refused: 0, cut: 0 }, 0);
    let unheard = with("AWS_ENDPOINT_URL", &format!("http://127.0.0.1:{port}"));
    ended_with(1, at(&unheard, &asked));
    assert_eq!(counts.requests.load(Ordering::Relaxed), 0);
    // No such bucket: never.
    let elsewhere = Ask::Plan(planning("s3://no-such-bucket/x", SEALED, Wanted::Shards(1), &place.join("p")));
    ended_with(2, at(&good, &elsewhere));
}
