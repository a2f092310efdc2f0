//! What no output and no report takes the place of: inputs, keys, and other outputs.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::os::unix::fs::symlink;

use crate::common::{EVENER, Place, files};

/// A place with an identity, its recipient, a file, a tree and ciphertexts of the file.
fn place() -> (Place, String) {
    let place = Place::new();
    place.evener().args(["keygen", "--age", "id"]).run().succeeded();
    let recipient =
        place.evener().args(["keygen", "-y", "id"]).run().succeeded().stdout_text().trim().to_owned();
    place.write("rec", format!("{recipient}\n"));
    place.write("f", "some text");
    place.write("tree/a", "a");
    place.write_secret("keys/id", fs::read(place.join("id")).unwrap());
    place.write("src/id", "not a key");
    place.evener().args(["encrypt", "-q", "-r", &recipient, "-o", "f.sealed", "f"]).run().succeeded();
    symlink("f", place.join("link")).unwrap();
    symlink("out/a", place.join("dangling")).unwrap();
    (place, recipient)
}

/// Runs a command that is refused with this status, and sees that nothing has changed.
fn is_refused(place: &Place, code: i32, says: &str, command: &str) {
    let texts = || -> Vec<_> {
        let names = files(place.path()).into_iter().filter(|name| !name.starts_with("state"));
        names.map(|name| (fs::read(place.join(&name)).unwrap(), name)).collect()
    };
    let before = texts();
    place.evener().args(command.split(' ')).run().ended_with(code).saying(says);
    let after = texts();
    let changed: Vec<_> = before.iter().filter(|file| !after.contains(file)).map(|(_, name)| name).collect();
    assert!(changed.is_empty(), "{command}: {changed:?}");
}

#[test]
fn a_report_takes_the_place_of_nothing_that_the_run_reads_or_makes() {
    let (place, recipient) = place();
    let sealing = format!("encrypt -q -r {recipient}");
    for command in [
        format!("{sealing} --json f -o out f"),
        format!("{sealing} --json link -o out f"),
        format!("{sealing} --json out -o out f"),
        format!("{sealing} --json ./f.age f"),
        format!("{sealing} --json tree/a -o out tree"),
        format!("{sealing} --json tree/new -o out tree"),
        format!("{sealing} --json out/a -o out tree"),
        format!("{sealing} --json dangling -o out tree"),
        "decrypt -q -i id --json unpacked/report --tar -o unpacked packed.age".to_owned(),
        format!("{sealing} --json into/f.age -o into/ --suffix .age f"),
        "encrypt -q -i id --json id -o out f".to_owned(),
        "encrypt -q -R rec --json rec -o out f".to_owned(),
        "decrypt -q -i id --json f.sealed -o out f.sealed".to_owned(),
        "verify -q -i id --json f.sealed f.sealed".to_owned(),
        "verify -q -i id --json f --against f f.sealed".to_owned(),
    ] {
        is_refused(&place, 2, "the report", &command);
    }
    place.evener().args(format!("{sealing} --json report -o out tree").split(' ')).run().succeeded();
    is_refused(&place, 2, "would lie among", &format!("{sealing} --json out/a -o out tree"));
    // What takes no place is no matter.
    for command in [
        format!("{sealing} --json /dev/null -o out2 f"),
        format!("{sealing} --json out/report -o out tree"),
        format!("{sealing} --json tree/left-out --exclude left-out -o out3 tree"),
        "decrypt -q -i id --json back/report -o back/ f.sealed".to_owned(),
    ] {
        place.evener().args(command.split(' ')).run().succeeded();
    }
    for (command, from) in
        [("encrypt -q -i id --json f -o out4", "f"), ("encrypt -q -i - --json id -o out4 f", "id")]
    {
        let before = fs::read(place.join(from)).unwrap();
        let script = format!("exec \"$0\" {command} < {from}");
        place.program("sh").args(["-c", &script, EVENER]).run().ended_with(2).saying("the report");
        assert!(fs::read(place.join(from)).unwrap() == before, "{command}");
    }
    assert!(fs::read(place.join("report")).unwrap().starts_with(b"{"));
}

#[test]
fn no_output_takes_the_place_of_a_key_whatever_is_forced() {
    let (place, _) = place();
    for command in [
        "encrypt -q --force -i id -o id f",
        "encrypt -q --force -R rec -o rec f",
        "encrypt -q --force -i keys/id -o keys src",
        "decrypt -q --force -i id -o id f.sealed",
        "encrypt -q --force -i keys/id --tar -o keys/id src",
    ] {
        is_refused(&place, if command.contains("--tar") { 2 } else { 1 }, "with a key of this run", command);
        // A rehearsal says so, too.
        if !command.contains("--tar") {
            let rehearsal = command.replace("--force", "--force --dry-run");
            is_refused(&place, 1, "with a key of this run", &rehearsal);
        }
    }
    // One that lies elsewhere is replaced as before.
    place.evener().args("encrypt -q --force -i id -o keys src".split(' ')).run().succeeded();
    assert!(fs::read(place.join("keys/id")).unwrap().starts_with(b"age-encryption"));
}
