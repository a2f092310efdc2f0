//! No report, no plan and no output takes the place of a key, of a plan of other places or of an object, whatever is forced.
#![allow(clippy::unwrap_used, reason = "a test")]

mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use evener_shards::{Ask, Existing, Keys, Planning, ShardRun, Wanted};
use evener_testing::Folder;
use support::{Person, Tree, ended_with, folder, plan_of, planning, program, read, shard, write};

/// A tree of two objects, a key for it, and its plan.
fn stage() -> (Folder, Keys) {
    let place = folder();
    let tree: Tree = [("a", 10), ("b", 20)].map(|(name, bytes)| (name.to_owned(), vec![7; bytes])).into();
    write(&tree, &place.join("plain"));
    fs::write(place.join("id.txt"), Person::new().text).unwrap();
    fs::hard_link(place.join("id.txt"), place.join("other-name")).unwrap();
    symlink("id.txt", place.join("link")).unwrap();
    ended_with(0, program(&Ask::Plan(to_plan(&place, "plain", "plan.json"))));
    let keys = Keys { identities: vec![place.join("id.txt")], ..Keys::default() };
    (place, keys)
}

fn to_plan(place: &Folder, source: &str, output: &str) -> Planning {
    let [source, destination] = [source, "sealed"].map(|name| place.join(name).to_str().unwrap().to_owned());
    planning(&source, &destination, Wanted::Shards(1), &place.join(output))
}

/// What is there: names and contents.
fn all(place: &Folder) -> Tree {
    read(place.path())
}

#[test]
fn a_report_takes_the_place_of_no_key_no_plan_and_no_object() {
    let (place, keys) = stage();
    ended_with(0, program(&Ask::RunShard(shard(&place.join("plan.json"), 0, keys.clone()))));
    let before = all(&place);
    let run = |status: i32, json: &Path| {
        let run =
            ShardRun { json: Some(json.to_owned()), ..shard(&place.join("plan.json"), 0, keys.clone()) };
        ended_with(status, program(&Ask::RunShard(run)))
    };
    for report in [
        "id.txt",
        "other-name",
        "link",
        "plan.json",
        "plain/b",
        "plain/new",
        "sealed/a",
        "sealed/new",
        "sealed/../plain/a",
    ] {
        let output = run(2, &place.join(report));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("the report") && said.lines().count() == 1, "{report}: {said}");
        assert!(all(&place) == before, "{report}");
    }
    run(0, Path::new("/dev/null"));
    run(0, &place.join("report"));
    run(0, &place.join("report"));
    assert_eq!(fs::read_to_string(place.join("report")).unwrap().lines().count(), 3);
    // Where it cannot be written another run may, if there is space then.
    run(1, Path::new("/dev/full"));
}

#[test]
fn no_output_takes_the_place_of_a_key_or_the_plan_though_it_is_forced() {
    let (place, _) = stage();
    fs::remove_file(place.join("link")).unwrap();
    fs::create_dir_all(place.join("sealed")).unwrap();
    // Both lie in the directory of outputs, and have names of objects.
    for (from, to) in [("id.txt", "sealed/a"), ("plan.json", "sealed/b")] {
        fs::rename(place.join(from), place.join(to)).unwrap();
    }
    let before = all(&place);
    let keys = Keys { identities: vec![place.join("sealed/a")], ..Keys::default() };
    let run = shard(&place.join("sealed/b"), 0, keys);
    ended_with(2, program(&Ask::RunShard(ShardRun { existing: Existing::Replace, ..run })));
    assert!(all(&place) == before);
}

#[test]
fn a_plan_takes_the_place_of_a_plan_of_the_same_places_alone() {
    let (place, _) = stage();
    fs::write(place.join("notes"), "no plan").unwrap();
    fs::write(place.join("empty"), "").unwrap();
    let newer = fs::read_to_string(place.join("plan.json")).unwrap().replace("plan\":1", "plan\":9");
    fs::write(place.join("newer"), newer).unwrap();
    fs::create_dir(place.join("elsewhere")).unwrap();
    write(&[("a".to_owned(), vec![1])].into(), &place.join("elsewhere"));
    ended_with(0, program(&Ask::Plan(to_plan(&place, "elsewhere", "of-others"))));
    let before = all(&place);
    let planned = |status: i32, source: &str, output: &str, force: bool| {
        let asked = Planning { force, ..to_plan(&place, source, output) };
        ended_with(status, program(&Ask::Plan(asked)))
    };
    for force in [false, true] {
        for output in ["id.txt", "link", "plain/b", "plain/new", "sealed/new"] {
            planned(2, "plain", output, force);
            assert!(all(&place) == before, "{output}");
        }
    }
    for output in ["notes", "newer", "of-others"] {
        let before = all(&place);
        planned(2, "plain", output, false);
        assert!(all(&place) == before, "{output}");
        planned(0, "plain", output, true);
        assert_eq!(plan_of(&place.join(output)).shards.len(), 1);
    }
    planned(0, "plain", "empty", false);
    // By another name of the places it is of the same ones, and so are outputs known again; and a link to it stays one.
    symlink("plain", place.join("by-link")).unwrap();
    symlink("plan.json", place.join("to-plan")).unwrap();
    let salt = plan_of(&place.join("plan.json")).salt;
    for (source, output) in
        [("plain/", "plan.json"), ("by-link", "plan.json"), ("elsewhere/../plain", "to-plan")]
    {
        planned(0, source, output, false);
        assert_eq!(plan_of(&place.join("plan.json")).salt, salt, "{source}");
    }
    assert!(place.join("to-plan").is_symlink());
    let names = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(!names.into_iter().any(|name| name.to_string_lossy().contains("evener")), "no draft is left");
}
