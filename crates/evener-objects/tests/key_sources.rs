//! Where keys come from: commands that do not end, and identities of every kind, by which one seals too. The program `age` opens what was sealed.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

mod support;

use std::fs;
use std::process::Command;

use evener_shards::{Ask, Keys, ShardRun, Wanted};
use evener_testing::Folder;
use evener_testing::programs::{skipped, there_is};
use support::{Person, ended_with, folder, planning, program, shard, write};

/// A planned tree of one object, `a`.
fn planned() -> Folder {
    let place = folder();
    write(&[("a".to_owned(), b"text".to_vec())].into(), &place.join("plain"));
    let [plain, sealed] = ["plain", "sealed"].map(|name| place.join(name).to_str().unwrap().to_owned());
    ended_with(
        0,
        program(&Ask::Plan(planning(&plain, &sealed, Wanted::Shards(1), &place.join("plan.json")))),
    );
    place
}

#[test]
fn a_command_for_a_key_whose_output_never_ends_is_given_up_and_worth_another_try() {
    let place = planned();
    // What it leaves behind keeps its output, until the test has its end.
    let command = format!(
        "(while [ -e '{0}' ]; do sleep 0.1; done) 2>/dev/null & cat '{0}/id'",
        place.path().display()
    );
    fs::write(place.join("id"), Person::new().text).unwrap();
    for command in
        [command, format!("exec >&-; while [ -e '{}' ]; do sleep 0.1; done", place.path().display())]
    {
        let keys = Keys { key_command: Some(command), ..Keys::default() };
        let run = ShardRun { timeout_s: 1, ..shard(&place.join("plan.json"), 0, keys) };
        let output = ended_with(1, program(&Ask::RunShard(run)));
        assert!(String::from_utf8_lossy(&output.stderr).contains("did not end within"), "{output:?}");
    }
}

#[test]
fn one_seals_for_an_identity_of_ssh_s_too_and_a_wrong_one_is_named_as_an_identity() {
    if !(there_is("ssh-keygen") && there_is("age")) {
        return skipped("ssh-keygen and age are not installed");
    }
    let place = planned();
    let key = place.join("id_ed25519");
    let mut keygen = Command::new("ssh-keygen");
    keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key);
    assert!(keygen.status().unwrap().success());
    let keys = |file| Keys { identities: vec![file], ..Keys::default() };
    ended_with(0, program(&Ask::RunShard(shard(&place.join("plan.json"), 0, keys(key.clone())))));
    let opened =
        Command::new("age").arg("-d").arg("-i").args([&key, &place.join("sealed/a")]).output().unwrap();
    assert_eq!(opened.stdout, b"text", "{opened:?}");
    fs::write(place.join("plugin"), "AGE-PLUGIN-NONE-1QQQPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L").unwrap();
    let output = ended_with(
        2,
        program(&Ask::RunShard(shard(&place.join("plan.json"), 0, keys(place.join("plugin"))))),
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("recipient"), "{said}");
}
