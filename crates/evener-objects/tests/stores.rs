//! Shards against servers that are not ours, behind a proxy that errs, with processes that are killed: the tree is what was put in, each object
//! once; and a run that finds all of it done changes nothing. The crate `age` opens what was sealed.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

mod support;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::thread;

use evener_shards::{Ask, Direction, Existing, Keys, Planning, ShardRun, Wanted};
use evener_testing::programs::skipped;
use evener_testing::{Random, noise};
use support::faults::{Faults, start, start_forbidding, start_held};
use support::of_each;
use support::server::{Kind, Server};
use support::{
    Person, Tree, ended_with, folder, kill_at_work, plan_of, planning, program, read, report, shard,
    some_tree,
};

of_each! {
    s3: S3, azure: Azure, google: Google;
    {
        a_tree_survives_kills_errors_and_cut_uploads_and_a_second_run_changes_nothing
        what_was_sealed_is_opened_again_under_its_old_names_by_shards_of_its_own
        two_runs_of_one_shard_at_once_make_each_object_once
        a_changed_object_is_made_again_where_that_is_wished_and_is_an_error_else
        what_changes_or_comes_while_it_is_worked_on_is_neither_mixed_nor_replaced
        damage_at_the_beginning_of_a_large_object_leaves_nothing_of_it_and_stops_nobody
        a_store_that_refuses_or_is_not_there_is_told_from_one_that_is_busy
        an_object_that_may_not_be_read_is_refused_for_good_whatever_its_length
        markers_of_folders_are_no_objects_and_leave_the_listing_in_order
    }
}

/// The program with what it is asked, in an environment.
fn at(environment: &[(&'static str, String)], ask: &Ask) -> Command {
    let mut command = program(ask);
    command.envs(environment.iter().cloned());
    command
}

/// A plan from `plain` to `sealed`.
fn sealing(server: &Server, wanted: Wanted, plan: &Path) -> Planning {
    planning(&server.place("plain"), &server.place("sealed"), wanted, plan)
}

fn a_tree_survives_kills_errors_and_cut_uploads_and_a_second_run_changes_nothing(server: &Server) {
    let (place, person) = (folder(), Person::new());
    let tree = some_tree(250, 1);
    server.put("plain", &tree);
    let (port, counts) = start(server.port, Faults { refused: 50, cut: 50 }, 2);
    let environment = server.environment(port);
    let plan = place.join("plan.json");
    ended_with(0, at(&environment, &Ask::Plan(sealing(server, Wanted::Shards(3), &plan))));
    let shards = u32::try_from(plan_of(&plan).shards.len()).unwrap();
    assert_eq!(shards, 3);
    let asked = |number: u32| Ask::RunShard(shard(&plan, number, person.as_recipient()));
    let mut random = Random::new(3);
    for round in 0..10 {
        kill_at_work(at(&environment, &asked(round % shards)), 1 + random.below(15));
    }
    let begun = server.read("sealed");
    assert!(begun.len() < tree.len(), "the kills came too late to be of any use");
    // What has a name is whole.
    assert!(begun.iter().all(|(name, file)| person.opens(file) == tree[name]));
    let mut seen = 0;
    for number in 0..shards {
        let (objects, totals) = report(&ended_with(0, at(&environment, &asked(number))));
        seen += objects.len();
        assert_eq!((&totals["failed"], &totals["exit_status"]), (&0.into(), &0.into()), "{totals}");
    }
    assert_eq!(seen, tree.len(), "each object is in one shard");
    let counted = [&counts.requests, &counts.refused, &counts.uploads, &counts.cut];
    let [requests, refused, uploads, cut] = counted.map(|count| count.load(Ordering::Relaxed));
    println!(
        "{:?}: {requests} requests, {refused} refused; {uploads} uploads, {cut} cut; {} of {} objects before the last runs",
        server.kind,
        begun.len(),
        tree.len()
    );
    assert!(refused > 20 && cut > 0, "the proxy has erred: {refused}, {cut}");
    let sealed = server.read("sealed");
    assert_eq!(sealed.keys().collect::<Vec<_>>(), tree.keys().collect::<Vec<_>>());
    for (name, file) in &sealed {
        assert!(person.opens(file) == tree[name], "{name}");
    }
    let before = server.states("sealed");
    for number in 0..shards {
        let (_, totals) = report(&ended_with(0, at(&environment, &asked(number))));
        assert_eq!(totals["done"], 0);
        assert_eq!(totals["already_done"], totals["objects"]);
    }
    assert_eq!(server.states("sealed"), before);
}

fn what_was_sealed_is_opened_again_under_its_old_names_by_shards_of_its_own(server: &Server) {
    let (place, person) = (folder(), Person::new());
    let environment = server.environment(server.port);
    let tree = some_tree(30, 5);
    server.put("plain", &tree);
    let (to, back) = (place.join("to.json"), place.join("back.json"));
    let there = Planning { suffix: ".age".to_owned(), ..sealing(server, Wanted::Bytes(10 << 20), &to) };
    let again = planning(&server.place("sealed"), &server.place("opened"), Wanted::Shards(2), &back);
    let again = Planning { suffix: ".age".to_owned(), direction: Direction::Decrypt, ..again };
    fs::write(place.join("identity"), &person.text).unwrap();
    let identity = Keys { identities: vec![place.join("identity")], ..Keys::default() };
    for (planning, plan, keys) in [(there, &to, person.as_recipient()), (again, &back, identity)] {
        ended_with(0, at(&environment, &Ask::Plan(planning)));
        for number in 0..u32::try_from(plan_of(plan).shards.len()).unwrap() {
            ended_with(0, at(&environment, &Ask::RunShard(shard(plan, number, keys.clone()))));
        }
    }
    assert!(server.read("sealed").keys().all(|name| name.ends_with(".age")));
    assert!(server.read("opened") == tree);
}

fn two_runs_of_one_shard_at_once_make_each_object_once(server: &Server) {
    let (place, person) = (folder(), Person::new());
    let environment = server.environment(server.port);
    let tree = some_tree(60, 9);
    server.put("plain", &tree);
    let plan = place.join("plan.json");
    ended_with(0, at(&environment, &Ask::Plan(sealing(server, Wanted::Shards(1), &plan))));
    let ask = Ask::RunShard(shard(&plan, 0, person.as_recipient()));
    let runs: Vec<_> =
        (0..2).map(|_| at(&environment, &ask).stdout(Stdio::null()).spawn().unwrap()).collect();
    for mut run in runs {
        assert!(run.wait().unwrap().success());
    }
    let sealed = server.read("sealed");
    assert_eq!(sealed.keys().collect::<Vec<_>>(), tree.keys().collect::<Vec<_>>());
    assert!(sealed.iter().all(|(name, file)| person.opens(file) == tree[name]));
}

fn a_changed_object_is_made_again_where_that_is_wished_and_is_an_error_else(server: &Server) {
    let (place, person) = (folder(), Person::new());
    let environment = server.environment(server.port);
    let mut tree = some_tree(5, 11);
    server.put("plain", &tree);
    let plan = place.join("plan.json");
    ended_with(0, at(&environment, &Ask::Plan(sealing(server, Wanted::Shards(1), &plan))));
    let asked = shard(&plan, 0, person.as_recipient());
    let ran = |status: i32, asked: &ShardRun| {
        report(&ended_with(status, at(&environment, &Ask::RunShard(asked.clone()))))
    };
    ran(0, &asked);
    let new = Tree::from([("a".to_owned(), b"new".to_vec())]);
    server.put("plain", &new);
    tree.extend(new);
    let (objects, totals) = ran(2, &asked);
    assert!(objects["a"]["error"].as_str().unwrap().contains("--update"), "{objects:?}");
    assert_eq!(totals["failed"], 1);
    ran(0, &ShardRun { existing: Existing::Update, ..asked.clone() });
    // An output of other hands is replaced by force only.
    server.put("sealed", &[("a!b".to_owned(), b"other".to_vec())].into());
    let (objects, _) = ran(2, &ShardRun { existing: Existing::Update, ..asked.clone() });
    assert!(objects["a!b"]["error"].as_str().unwrap().contains("--force"), "{objects:?}");
    let (_, totals) = ran(0, &ShardRun { existing: Existing::Replace, ..asked });
    assert_eq!((&totals["done"], &totals["failed"]), (&1.into(), &0.into()), "finished ones stay");
    let sealed = server.read("sealed");
    assert!(sealed.iter().all(|(name, file)| person.opens(file) == tree[name]));
}

fn what_changes_or_comes_while_it_is_worked_on_is_neither_mixed_nor_replaced(server: &Server) {
    let (place, person) = (folder(), Person::new());
    for (kind, bytes) in [("small", 1000), ("large", 20_000_000)] {
        let object = |seed| Tree::from([("changing".to_owned(), noise(seed, bytes))]);
        let [from, to] = ["from", "to"].map(|side| format!("{side}-{kind}"));
        server.put(&from, &object(1));
        let plan = place.join(kind);
        let planned = planning(&server.place(&from), &server.place(&to), Wanted::Shards(1), &plan);
        ended_with(0, at(&server.environment(server.port), &Ask::Plan(planned)));
        let asked = Ask::RunShard(shard(&plan, 0, person.as_recipient()));
        // What comes of a run whose first request of a method is held while something else is put.
        let ran = |status: i32, method: &'static str, place: &str, tree: &Tree| {
            let (port, held) = start_held(server.port, method, "changing");
            let command = at(&server.environment(port), &asked);
            thread::scope(|scope| {
                let run = scope.spawn(|| report(&ended_with(status, command)));
                held.after(|| server.put(place, tree));
                run.join().unwrap().1
            })
        };
        // It changes between the listing and its first read.
        assert_eq!(ran(1, "GET ", &from, &object(2))["try_again"], 1);
        assert!(server.read(&to).is_empty(), "{kind}: nothing of another state than the one that was listed");
        // Another output comes while it is sent. A small one is put only where nothing stands, so another run will see what does.
        let (status, other) =
            (if kind == "small" { 1 } else { 2 }, Tree::from([("changing".into(), b"other".into())]));
        assert_eq!(ran(status, "PUT ", &to, &other)["done"], 0);
        assert!(server.read(&to) == other, "{kind}: it was not replaced");
        ended_with(2, at(&server.environment(server.port), &asked));
    }
}

fn damage_at_the_beginning_of_a_large_object_leaves_nothing_of_it_and_stops_nobody(server: &Server) {
    let (place, person) = (folder(), Person::new());
    let environment = server.environment(server.port);
    let tree = Tree::from([("damaged".into(), noise(5, 40_000_000)), ("whole".into(), noise(6, 20_000_000))]);
    server.put("plain", &tree);
    let (to, back) = (place.join("to.json"), place.join("back.json"));
    ended_with(0, at(&environment, &Ask::Plan(sealing(server, Wanted::Shards(1), &to))));
    ended_with(0, at(&environment, &Ask::RunShard(shard(&to, 0, person.as_recipient()))));
    let mut damaged = server.read("sealed").remove("damaged").unwrap();
    damaged[1000] ^= 1;
    server.put("sealed", &[("damaged".to_owned(), damaged)].into());
    let opening = planning(&server.place("sealed"), &server.place("opened"), Wanted::Shards(1), &back);
    ended_with(0, at(&environment, &Ask::Plan(Planning { direction: Direction::Decrypt, ..opening })));
    fs::write(place.join("identity"), &person.text).unwrap();
    let identity = Keys { identities: vec![place.join("identity")], ..Keys::default() };
    let (objects, _) = report(&ended_with(2, at(&environment, &Ask::RunShard(shard(&back, 0, identity)))));
    assert!(objects["damaged"]["error"].as_str().unwrap().contains("not authentic"), "{objects:?}");
    assert!(server.read("opened").into_iter().eq(tree.into_iter().filter(|(name, _)| name == "whole")));
}

fn a_store_that_refuses_or_is_not_there_is_told_from_one_that_is_busy(server: &Server) {
    let (place, person) = (folder(), Person::new());
    let tree =
        [("small", 1000), ("large", 9_000_000)].map(|(name, bytes)| (name.to_owned(), noise(13, bytes)));
    server.put("plain", &tree.into());
    let plan = place.join("plan.json");
    let good = server.environment(server.port);
    ended_with(0, at(&good, &Ask::Plan(sealing(server, Wanted::Shards(1), &plan))));
    let asked =
        |plan: &Path| Ask::RunShard(ShardRun { timeout_s: 0, ..shard(plan, 0, person.as_recipient()) });
    // Who has no right to it: never.
    if server.is_moto {
        skipped("moto asks for no password: versitygw does");
    } else {
        let stranger = server.environment_of_a_stranger();
        let (_, totals) = report(&ended_with(2, at(&stranger, &asked(&plan))));
        assert_eq!(totals["try_again"], 0);
        ended_with(2, at(&stranger, &Ask::Plan(sealing(server, Wanted::Shards(1), &place.join("p")))));
    }
    // Busy, or no server listens there: maybe later.
    for (behind, faults) in
        [(server.port, Faults { refused: 1000, cut: 0 }), (1, Faults { refused: 0, cut: 0 })]
    {
        let (port, _) = start(behind, faults, 0);
        ended_with(1, at(&server.environment(port), &asked(&plan)));
    }
    // No such bucket on either side: never.
    let absent = |place: String| place.replace("//bucket", "//no-such-bucket");
    let from = Planning {
        source: absent(server.place("plain")),
        ..sealing(server, Wanted::Shards(1), &place.join("p"))
    };
    ended_with(2, at(&good, &Ask::Plan(from)));
    let plan = place.join("to");
    let to =
        Planning { destination: absent(server.place("sealed")), ..sealing(server, Wanted::Shards(1), &plan) };
    ended_with(0, at(&good, &Ask::Plan(to)));
    let (_, totals) = report(&ended_with(2, at(&good, &asked(&plan))));
    assert_eq!(totals["try_again"], 0);
}

fn an_object_that_may_not_be_read_is_refused_for_good_whatever_its_length(server: &Server) {
    let (place, person) = (folder(), Person::new());
    let environment = server.environment(server.port);
    let tree: Tree = [("secretsmall", 1000), ("secretlarge", 9_000_000), ("other", 10)]
        .map(|(name, bytes)| (name.to_owned(), noise(13, bytes)))
        .into();
    server.put("plain", &tree);
    let (to, back) = (place.join("to.json"), place.join("back.json"));
    ended_with(0, at(&environment, &Ask::Plan(sealing(server, Wanted::Shards(1), &to))));
    ended_with(0, at(&environment, &Ask::RunShard(shard(&to, 0, person.as_recipient()))));
    let opening = planning(&server.place("sealed"), &server.place("opened"), Wanted::Shards(1), &back);
    ended_with(0, at(&environment, &Ask::Plan(Planning { direction: Direction::Decrypt, ..opening })));
    fs::write(place.join("identity"), &person.text).unwrap();
    let identity = Keys { identities: vec![place.join("identity")], ..Keys::default() };
    let forbidding = server.environment(start_forbidding(server.port, "GET ", "secret"));
    let run = at(&forbidding, &Ask::RunShard(shard(&back, 0, identity)));
    let (objects, totals) = report(&ended_with(2, run));
    assert_eq!((&totals["done"], &totals["failed"]), (&1.into(), &2.into()), "{objects:?}");
    assert_eq!((&totals["try_again"], &totals["retries"]), (&0.into(), &0.into()), "{objects:?}");
}

/// Consoles and file systems over stores leave objects without bytes whose names end in a slash. The client leaves the slash out.
fn markers_of_folders_are_no_objects_and_leave_the_listing_in_order(server: &Server) {
    let (place, person) = (folder(), Person::new());
    let environment = server.environment(server.port);
    let tree: Tree = [("empty", 0), ("sub-x", 10), ("sub/a", 20), ("sub/deep/b", 30)]
        .map(|(name, bytes)| (name.to_owned(), noise(13, bytes)))
        .into();
    server.put("plain", &tree);
    for marker in ["plain/", "plain/sub/", "plain/sub/deep/", "plain/void/"] {
        server.put_marker(marker);
    }
    let (plan, sealed) = (place.join("plan.json"), place.join("sealed"));
    // To a directory, where no file has the name of a folder.
    let planned = planning(&server.place("plain"), sealed.to_str().unwrap(), Wanted::Shards(1), &plan);
    ended_with(0, at(&environment, &Ask::Plan(planned)));
    assert!(plan_of(&plan).is_ordered);
    let run = at(&environment, &Ask::RunShard(shard(&plan, 0, person.as_recipient())));
    let (objects, totals) = report(&ended_with(0, run));
    assert_eq!((&totals["done"], &totals["objects"]), (&4.into(), &4.into()), "{objects:?}");
    let sealed = read(&sealed);
    assert_eq!(sealed.keys().collect::<Vec<_>>(), tree.keys().collect::<Vec<_>>());
    assert!(sealed.iter().all(|(name, file)| person.opens(file) == tree[name]));
}

/// fake-gcs-server ignores conditions and takes nothing by this interface, so outputs go to a directory.
#[test]
fn a_tree_of_another_emulator_of_googles_is_sealed_to_a_directory() {
    let Some(server) = Server::start(Kind::GoogleReadOnly) else { return };
    let (place, person) = (folder(), Person::new());
    let environment = server.environment(server.port);
    let tree = some_tree(60, 17);
    server.put("plain", &tree);
    let (plan, sealed) = (place.join("plan.json"), place.join("sealed"));
    let planned = planning(&server.place("plain"), sealed.to_str().unwrap(), Wanted::Shards(3), &plan);
    ended_with(0, at(&environment, &Ask::Plan(planned)));
    for done in [tree.len() as u64, 0] {
        let run = |number| at(&environment, &Ask::RunShard(shard(&plan, number, person.as_recipient())));
        let totals: Vec<_> = (0..3).map(|number| report(&ended_with(0, run(number))).1).collect();
        let sum = |field: &str| totals.iter().map(|totals| totals[field].as_u64().unwrap()).sum::<u64>();
        assert_eq!((sum("objects"), sum("done")), (tree.len() as u64, done));
    }
    let sealed = read(&sealed);
    assert_eq!(sealed.keys().collect::<Vec<_>>(), tree.keys().collect::<Vec<_>>());
    assert!(sealed.iter().all(|(name, file)| person.opens(file) == tree[name]));
}
