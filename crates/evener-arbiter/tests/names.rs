//! Names of modules in a segment: found again, given up for others, and looked at without a place.
#![allow(clippy::unwrap_used, reason = "a test")]

mod support;

use evener_arbiter::{Arbiter, Costs, Mean, Shape};
use evener_core::{Algorithm, Class, Direction};

use support::{AGES, FOREVER, Ground, LONG};

const COSTS: Costs = Costs {
    c: Mean { ns: 900, deviation_ns: 9 },
    d: Mean { ns: 100, deviation_ns: 9 },
    h: Mean { ns: 400, deviation_ns: 9 },
    bytes: 16_000,
    samples: 9,
};

fn class() -> Class {
    Class::of(Algorithm::Aes128Cbc, Direction::Encrypt, 16_384, false)
}

/// Names of all modules of the segment.
fn names(arbiter: &Arbiter) -> Vec<String> {
    arbiter.snapshot().modules.into_iter().map(|module| module.name).collect()
}

#[test]
fn where_all_places_are_named_the_module_that_was_looked_up_longest_ago_and_is_unused_gives_way() {
    let ground = Ground::new();
    let arbiter = ground.attach();
    let modules: Vec<_> =
        (0..Shape::USUAL.modules()).map(|number| arbiter.module(&format!("module {number}"), 1)).collect();
    // The first two are held; of the others the third is the one of longest ago.
    let held = [modules[0].try_acquire(AGES), modules[1].try_acquire(AGES)].map(Result::unwrap);
    modules[2].publish(class(), &COSTS);
    for module in &modules[3..] {
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(module.try_acquire(LONG).is_ok());
    }
    let newcomer = arbiter.module("newcomer", 5);
    assert_eq!(newcomer.capacity(), Some(5));
    assert!(newcomer.try_acquire(LONG).is_ok());
    let now = names(&arbiter);
    assert!(now.contains(&"newcomer".into()) && !now.contains(&"module 2".into()), "{now:?}");
    assert_eq!(now.len(), Shape::USUAL.modules());
    // What was learned of the one that gave way is not the newcomer's, and does not come back.
    assert_eq!(newcomer.costs(class()), None);
    assert!(modules[2].try_acquire(LONG).is_ok());
    assert_eq!([modules[2].costs(class()), modules[2].capacity().map(|_| COSTS)], [None, Some(COSTS)]);
    assert!(names(&arbiter).contains(&"module 2".into()));
    drop(held);
}

#[test]
fn where_all_modules_are_in_use_one_more_has_none_and_the_others_go_on() {
    let ground = Ground::new();
    let arbiters = [ground.attach(), ground.attach()];
    let modules: Vec<_> = (0..Shape::USUAL.modules())
        .map(|number| arbiters[0].module(&format!("module {number}"), 1))
        .collect();
    let held: Vec<_> = modules.iter().map(|module| module.try_acquire(AGES).unwrap()).collect();
    let newcomer = arbiters[1].module("newcomer", 1);
    assert_eq!(newcomer.capacity(), None);
    assert!(newcomer.acquire(LONG, FOREVER).is_err());
    drop(held);
    // Not even now, for to look takes a lock of all processes.
    assert_eq!(newcomer.capacity(), None);
    assert_eq!(arbiters[1].module("module 3", 1).capacity(), Some(1));
    assert!(modules[3].try_acquire(LONG).is_ok());
}

#[test]
fn who_looks_makes_nothing_takes_no_place_and_sees_what_all_have() {
    let ground = Ground::new();
    assert_eq!(Arbiter::look(&ground.options()).unwrap(), None);
    assert!(ground.path().read_dir().unwrap().next().is_none());
    let arbiter = ground.attach();
    let module = arbiter.module("seen", 2);
    let permit = module.try_acquire(AGES).unwrap();
    module.publish(class(), &COSTS);
    let seen = Arbiter::look(&ground.options()).unwrap().unwrap();
    assert_eq!(seen.processes.len(), 1);
    let view = &seen.modules[0];
    assert_eq!((&*view.name, view.capacity, view.holders.len()), ("seen", 2, 1));
    assert_eq!(view.costs, [(class(), COSTS)]);
    drop(permit);
    assert!(Arbiter::look(&ground.options()).unwrap().unwrap().modules[0].holders.is_empty());
}

#[test]
fn a_segment_that_was_taken_away_stays_with_those_who_have_it_and_the_next_makes_a_new_one() {
    let ground = Ground::new();
    assert!(!Arbiter::remove(&ground.options()).unwrap());
    let old = ground.attach();
    let held = old.module("old", 1).try_acquire(AGES).unwrap();
    assert!(Arbiter::remove(&ground.options()).unwrap());
    assert!(ground.path().read_dir().unwrap().next().is_none());
    let new = ground.attach();
    assert!(names(&new).is_empty() && names(&old) == ["old"]);
    drop(held);
    assert!(old.module("old", 1).try_acquire(LONG).is_ok());
}
