//! `evener bench programs`: what is left out is said in one line each, what it keeps fits its schema. Times are never judged.
#![allow(clippy::unwrap_used, reason = "a test")]

use crate::common::{Place, misfits};
use evener_testbed::write_program;
use serde_json::Value;

#[test]
fn programs_that_are_not_installed_are_a_line_each_and_no_failure() {
    let place = Place::new();
    std::fs::write(place.join("evener.so"), "").unwrap();
    let empty = place.join("empty");
    std::fs::create_dir(&empty).unwrap();
    let ran = place
        .evener()
        .args(["bench", "programs", "--module", "evener.so", "php-8m", "php-256m"])
        .env("PATH", &empty)
        .run()
        .succeeded();
    let said = ran.stderr();
    let lines: Vec<_> = said.lines().filter(|line| line.contains("skipped")).collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert!(lines[0].ends_with("skipped: php-8m needs php-cli"), "{said}");
}

#[test]
fn a_name_that_is_no_programs_is_refused_and_the_list_names_all() {
    let place = Place::new();
    let listed = place.evener().args(["bench", "programs", "--list"]).run().succeeded();
    let listed = listed.stdout_text();
    for name in ["python-16k", "php-8m", "nginx", "haproxy", "sftp"] {
        assert!(listed.lines().any(|line| line.starts_with(&format!("{name}: "))), "{listed}");
    }
    place
        .evener()
        .args(["bench", "programs", "no-such"])
        .run()
        .ended_with(2)
        .saying("no-such is none of the programs");
}

#[test]
fn what_is_missing_is_installed_where_that_is_asked_for_and_not_otherwise() {
    let place = Place::new();
    std::fs::write(place.join("evener.so"), "").unwrap();
    let bin = place.join("bin");
    std::fs::create_dir(&bin).unwrap();
    let told = place.join("told");
    let script = format!(
        "#!/bin/sh\n{{ read -r a; read -r b; read -r c; echo \"$a\"; echo \"$b\"; echo \"$c\"; }} < policy-rc.d > {0}\necho \"$@\" >> {0}\n",
        told.display()
    );
    write_program(&bin.join("apt-get"), script.as_bytes()).unwrap();
    // What packages' scripts ask, in this place and not in the system.
    let words = ["bench", "programs", "--module", "evener.so", "--policy", "policy-rc.d", "php-8m"];
    place.evener().args(words).env("PATH", &bin).run().succeeded();
    assert!(!told.exists());
    place.evener().args(words).args(["--install"]).env("PATH", &bin).run().succeeded();
    let told = std::fs::read_to_string(told).unwrap();
    let (guard, words) = told.rsplit_once("exit 0\n").unwrap();
    assert!(guard.contains("exit 101") && words.ends_with(" install php-cli\n"), "{told}");
    assert!(!place.join("policy-rc.d").exists());
}

#[test]
fn a_signal_ends_all_and_not_the_program_alone_that_it_hits() {
    let place = Place::new();
    std::fs::write(place.join("evener.so"), "").unwrap();
    let bin = place.join("bin");
    std::fs::create_dir(&bin).unwrap();
    // As at a terminal, where both have it.
    write_program(&bin.join("php"), b"#!/bin/sh\nkill -INT $PPID\nexit 1\n").unwrap();
    let ran = place
        .evener_at_a_prompt()
        .args(["bench", "programs", "--module", "evener.so", "php-8m", "php-256m"])
        .env("PATH", format!("{}:/usr/bin", bin.display()))
        .run();
    assert_eq!(ran.signal(), Some(2), "{}", ran.stderr());
    let said = ran.stderr();
    assert!(said.contains("php-8m: ") && !said.contains("php-256m: ") && said.contains("stopped"), "{said}");
}

#[test]
fn a_page_is_made_of_a_kept_table_only() {
    let place = Place::new();
    place.evener().args(["bench", "programs", "--list", "--page", "page.md"]).run().ended_with(2);
}

#[test]
fn the_kept_page_is_drawn_again_from_the_kept_table_and_nothing_is_measured() {
    let place = Place::new();
    let kept = |name: &str| format!("{}/../../docs/results/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::copy(kept("programs.json"), place.join("programs.json")).unwrap();
    let words = ["bench", "programs", "--again", "--json", "programs.json", "--page", "page.md"];
    place.evener().args(words).env("PATH", place.join("empty")).run().succeeded();
    let [made, page] = [place.join("page.md").display().to_string(), kept("programs.md")]
        .map(|path| std::fs::read_to_string(path).unwrap());
    assert!(made.contains("\n## python-16k\n"), "{made}");
    let missing: Vec<&str> = made.lines().filter(|line| !page.lines().any(|kept| kept == *line)).collect();
    assert_eq!(missing, [""; 0], "not in docs/results/programs.md");
    let nothing = ["bench", "programs", "--again", "--json", "none.json", "--page", "none.md"];
    place.evener().args(nothing).run().ended_with(2).saying("holds no program");
}

#[test]
fn the_kept_table_fits_its_schema() {
    let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results/programs.json");
    let table: Value = serde_json::from_slice(&std::fs::read(kept).unwrap()).unwrap();
    assert_eq!(misfits("bench-programs.schema.json", &table), [""; 0]);
    assert!(!table["programs"].as_array().unwrap().is_empty());
}
