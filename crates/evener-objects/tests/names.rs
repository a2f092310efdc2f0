//! Names that look like those of Evener's own files: only what is one is left out of a listing, and no output has one.
#![allow(clippy::unwrap_used, reason = "a test")]

mod support;

use std::fs;

use evener_shards::{Ask, Direction, Keys, Planning, Wanted};
use support::{Person, Tree, ended_with, folder, planning, program, read, report, shard, write};

#[test]
fn only_drafts_and_notes_of_evener_s_own_are_left_out_and_no_output_has_such_a_name() {
    let (place, person) = (folder(), Person::new());
    let digits = "0123456789abcdef0123456789abcdef";
    let draft = ".evener-draft-0123456789abcdef".to_owned();
    let note = format!(".evener/{digits}/{digits}-2-8388608-9000/0-1");
    let usual = [
        ".evener-draft-of-mine".to_owned(),
        ".evener-draft-0123456789ABCDEF".to_owned(),
        format!(".evener-draft-0123456789abcdee/{digits}"),
        format!(".evener/{digits}/mine"),
        format!("below/.evener/{digits}/mine/0"),
    ];
    let tree: Tree = usual.iter().map(|name| (name.clone(), name.as_bytes().to_vec())).collect();
    let own: Tree = [&draft, &note].map(|name| (name.clone(), vec![7])).into();
    write(&tree, &place.join("plain"));
    write(&own, &place.join("plain"));
    let text = |name: &str| place.join(name).to_str().unwrap().to_owned();
    let plan = |from: &str, to: &str| {
        planning(&text(from), &text(to), Wanted::Shards(1), &place.join(to).with_extension("json"))
    };
    ended_with(0, program(&Ask::Plan(plan("plain", "sealed"))));
    let run = shard(&place.join("sealed.json"), 0, person.as_recipient());
    ended_with(0, program(&Ask::RunShard(run)));
    let sealed = read(&place.join("sealed"));
    assert_eq!(sealed.keys().collect::<Vec<_>>(), tree.keys().collect::<Vec<_>>());
    assert!(sealed.iter().all(|(name, file)| person.opens(file) == tree[name]));
    // Names that would become such ones are failures.
    let named: Tree = [&draft, &note].map(|name| (format!("{name}.age"), sealed[&usual[0]].clone())).into();
    write(&named, &place.join("named"));
    let back =
        Planning { direction: Direction::Decrypt, suffix: ".age".to_owned(), ..plan("named", "opened") };
    ended_with(0, program(&Ask::Plan(back)));
    fs::write(place.join("identity"), &person.text).unwrap();
    let keys = Keys { identities: vec![place.join("identity")], ..Keys::default() };
    let (objects, _) =
        report(&ended_with(2, program(&Ask::RunShard(shard(&place.join("opened.json"), 0, keys)))));
    assert!(objects.len() == 2 && objects.values().all(|line| line["outcome"] == "failed"), "{objects:?}");
    assert!(read(&place.join("opened")).is_empty());
}
