//! Stores that answer as servers of tests do not: markers beside objects, no entity tags, no look at conditions, no order. Nothing is sealed but what
//! was listed, in one state. The crate `age` opens what was sealed.
#![allow(clippy::unwrap_used, reason = "a test")]

mod support;

use std::collections::BTreeMap;
use std::path::PathBuf;

use evener_shards::{Ask, Existing, ShardRun, Wanted};
use evener_testing::{Folder, noise};
use support::odd::{Object, Odd, to};
use support::{Person, Tree, ended_with, folder, plan_of, planning, program, read, report, shard};

/// A tree of such a store, which is sealed to a directory.
struct Case {
    port: u16,
    place: Folder,
    plan: PathBuf,
    person: Person,
}

impl Case {
    /// Plans it.
    fn new(odd: Odd) -> Self {
        let (port, place, person) = (odd.start(), folder(), Person::new());
        let (plan, sealed) = (place.join("plan.json"), place.join("sealed"));
        let planned = planning("s3://bucket/plain", sealed.to_str().unwrap(), Wanted::Shards(1), &plan);
        ended_with(0, to(port, program(&Ask::Plan(planned))));
        Self { port, place, plan, person }
    }

    /// Does it: what came of each object.
    #[track_caller]
    fn run(&self, status: i32, existing: Existing) -> BTreeMap<String, serde_json::Value> {
        let run = ShardRun { existing, timeout_s: 1, ..shard(&self.plan, 0, self.person.as_recipient()) };
        report(&ended_with(status, to(self.port, program(&Ask::RunShard(run))))).0
    }

    /// What the crate `age` makes of what is there.
    fn opened(&self) -> Tree {
        let sealed = read(&self.place.join("sealed"));
        sealed.into_iter().map(|(name, file)| (name, self.person.opens(&file))).collect()
    }
}

fn object(key: &'static str, bytes: usize, tag: &'static str) -> Object {
    Object::new(key, noise(bytes as u64, bytes), Some(tag), 1)
}

#[test]
fn an_object_beside_a_marker_of_its_name_is_sealed_as_it_is() {
    let objects =
        [("plain/a", 1000, "1"), ("plain/a!b", 10, "2"), ("plain/a/", 0, "3"), ("plain/a/c", 20, "4")];
    // To a directory no file goes that has the name of a folder, so only one of them is there.
    let objects: Vec<_> = objects[..3].iter().map(|(key, bytes, tag)| object(key, *bytes, tag)).collect();
    let case = Case::new(Odd::of(objects));
    assert!(plan_of(&case.plan).is_ordered);
    let expected: Tree = [("a".to_owned(), noise(1000, 1000)), ("a!b".to_owned(), noise(10, 10))].into();
    for existing in [Existing::Keep, Existing::Update, Existing::Keep] {
        assert_eq!(case.run(0, existing).keys().collect::<Vec<_>>(), ["a", "a!b"]);
        assert!(case.opened() == expected);
    }
}

#[test]
fn an_empty_object_that_has_changed_since_it_was_listed_is_not_sealed_as_empty() {
    let listed = vec![object("plain/a", 0, "1"), object("plain/b", 5, "2")];
    // One that has gone since is no object, and no marker was listed below it.
    let read = vec![object("plain/a", 7, "3"), object("plain/b", 5, "2")];
    let case = Case::new(Odd { listed: vec![listed], read: vec![read] });
    let objects = case.run(1, Existing::Keep);
    assert!(objects["a"]["error"].as_str().unwrap().contains("changed"), "{objects:?}");
    assert_eq!(case.opened().keys().collect::<Vec<_>>(), ["b"]);
}

#[test]
fn an_object_is_of_one_state_though_the_store_has_no_entity_tags_or_looks_at_none() {
    const BYTES: usize = 20_000_000;
    for (old, new) in [(None, None), (Some("1"), Some("2"))] {
        let state = |seed, tag, second| vec![Object::new("plain/a", noise(seed, BYTES), tag, second)];
        // It changes between two reads.
        let changing = Odd { listed: vec![state(1, old, 1)], read: vec![state(1, old, 1), state(2, new, 2)] };
        let case = Case::new(changing);
        let objects = case.run(1, Existing::Keep);
        assert!(objects["a"]["error"].as_str().unwrap().contains("changed"), "{objects:?}");
        assert!(case.opened().is_empty());
        // One that stays as it is is sealed.
        let case = Case::new(Odd::of(state(1, old, 1)));
        case.run(0, Existing::Keep);
        assert!(case.opened()["a"] == noise(1, BYTES));
        assert_eq!(case.run(0, Existing::Keep)["a"]["outcome"], "already-done");
    }
}

#[test]
fn a_name_that_comes_late_in_a_listing_that_was_in_order_is_a_failure() {
    let objects = |keys: [&'static str; 3]| keys.map(|key| object(key, 10, "1")).to_vec();
    let (planned, now) =
        (objects(["plain/a", "plain/b", "plain/c"]), objects(["plain/b", "plain/a", "plain/c"]));
    let case = Case::new(Odd { listed: vec![planned, now.clone()], read: vec![now] });
    let found = case.run(2, Existing::Keep);
    assert!(found["a"]["error"].as_str().unwrap().contains("plan again"), "{found:?}");
    assert_eq!(case.opened().keys().collect::<Vec<_>>(), ["b", "c"], "all that can be done is done");
}

#[test]
fn an_object_with_bytes_whose_name_ends_in_a_slash_is_refused_for_good() {
    let case = Case::new(Odd::of(vec![object("plain/a/", 10, "1"), object("plain/b", 10, "2")]));
    let objects = case.run(2, Existing::Keep);
    assert!(objects["a"]["error"].as_str().unwrap().contains("ends in a slash"), "{objects:?}");
    assert_eq!(case.opened().keys().collect::<Vec<_>>(), ["b"]);
}
