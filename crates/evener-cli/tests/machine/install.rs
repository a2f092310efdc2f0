//! `evener provider install` on systems as they are: who may read what it wrote, what cannot work, what uninstalling leaves.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::common::{EVENER, Place, Ran, allow, tree};

/// A place with the module and an empty configuration.
fn place() -> Place {
    let place = Place::new();
    place.module("root/modules/evener.so");
    place.write("base.cnf", "");
    place
}

const INSTALL: [&str; 8] =
    ["provider", "install", "--root", "root", "--base", "base.cnf", "--file", "/modules/evener.so"];

/// The command under a umask, its standard output in a file.
fn under(place: &Place, umask: &str, arguments: &[&str], output: &str) -> Ran {
    let script = format!("umask {umask}; exec \"$0\" \"$@\" >{output}");
    let run = place.program("sh").args(["-c", &script, EVENER]).args(arguments);
    run.env("XDG_CONFIG_HOME", "/home/me/.config").run()
}

fn install(place: &Place, whom: &[&str]) -> Ran {
    under(place, "022", &[&INSTALL[..], whom].concat(), "output")
}

fn uninstall(place: &Place, whom: &[&str]) -> Ran {
    under(place, "022", &[&["provider", "uninstall", "--root", "root"], whom].concat(), "output")
}

fn entries(place: &Place) -> Vec<PathBuf> {
    tree(&place.join("root")).into_keys().collect()
}

fn mode(path: impl AsRef<Path>) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Modes of all that lies below a folder, directories apart.
fn modes(place: &Place, folder: &str) -> (Vec<u32>, Vec<u32>) {
    let paths: Vec<PathBuf> =
        tree(&place.join(folder)).into_keys().map(|path| place.join(folder).join(path)).collect();
    let (directories, files): (Vec<_>, Vec<_>) = paths.iter().partition(|path| path.is_dir());
    (directories.into_iter().map(mode).collect(), files.into_iter().map(mode).collect())
}

#[test]
fn what_services_read_is_open_to_all_under_every_umask_and_what_is_a_user_s_own_is_not() {
    for umask in ["077", "027"] {
        for whom in [&["--unit", "a.service"][..], &["--system", "--yes-system-wide"]] {
            let place = place();
            under(&place, umask, &[&INSTALL[..], whom].concat(), "output").succeeded();
            let (directories, files) = modes(&place, "root/etc");
            assert!(directories.len() >= 3 && files.len() >= 2, "{:?}", entries(&place));
            assert!(directories.iter().all(|mode| *mode == 0o755), "{whom:?} {umask}: {directories:?}");
            assert!(files.iter().all(|mode| *mode == 0o644), "{whom:?} {umask}: {files:?}");
        }
    }
    let place = place();
    under(&place, "077", &[&INSTALL[..], &["--user"]].concat(), "output").succeeded();
    let (directories, files) = modes(&place, "root/home/me");
    assert!(directories.iter().all(|mode| *mode == 0o700) && files.iter().all(|mode| *mode == 0o600));
}

#[test]
fn what_was_shut_is_opened_where_it_is_evener_s_and_said_where_it_is_not() {
    let place = place();
    install(&place, &["--unit", "a.service"]).succeeded();
    let [cnf, directory, system] =
        ["etc/evener/a.service.cnf", "etc/evener", "etc"].map(|path| place.join("root").join(path));
    allow(&cnf, 0o600);
    allow(&directory, 0o700);
    let again = install(&place, &["--unit", "a.service"]).succeeded();
    assert_eq!((mode(&cnf), mode(&directory), again.stderr()), (0o644, 0o755, ""));
    // A mode that lets others read is the administrator's choice.
    allow(&cnf, 0o664);
    install(&place, &["--unit", "a.service"]).succeeded();
    assert_eq!(mode(&cnf), 0o664);
    uninstall(&place, &["--all"]).succeeded();
    fs::create_dir(&system).unwrap();
    allow(&system, 0o750);
    install(&place, &["--unit", "a.service"]).succeeded().saying("root/etc is shut to other users");
    assert_eq!(mode(&system), 0o750);
}

#[test]
fn directories_that_were_made_go_with_the_last_file_in_them_in_any_order() {
    let units = ["a.service", "b.service", "c.service"];
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
        let place = place();
        fs::create_dir_all(place.join("root/etc/systemd")).unwrap();
        let before = entries(&place);
        for unit in units {
            install(&place, &["--unit", unit]).succeeded();
        }
        for unit in order {
            uninstall(&place, &["--unit", units[unit]]).succeeded();
        }
        assert_eq!(entries(&place), before, "{order:?}");
    }
}

#[test]
fn an_answer_that_cannot_be_written_is_told_from_nothing_done() {
    let place = place();
    let full = |words: &[&str]| under(&place, "022", words, "/dev/full");
    let installed = [&INSTALL[..], &["--unit", "a.service"]].concat();
    full(&installed).ended_with(1).saying("the files are written").saying("standard output");
    assert!(place.join("root/etc/evener/a.service.cnf").exists());
    full(&["provider", "uninstall", "--root", "root", "--all"]).ended_with(1).saying("the files are removed");
    assert!(!place.join("root/etc").exists());
}

#[test]
fn where_one_may_not_look_it_is_not_said_that_nothing_is_there() {
    let Some((place, nobody)) = Place::for_nobody() else { return };
    for folder in ["root/etc/evener", "root/etc/systemd/system"] {
        place.write(format!("{folder}/mine"), "");
        allow(&place.join("root"), 0o755);
        allow(&place.join(folder), 0);
        let words = ["./evener", "provider", "uninstall", "--root", "root", "--all"];
        let run = place.program(nobody[0]).args(&nobody[1..]).args(words).run();
        run.ended_with(2).saying("cannot look at").saying(folder);
        allow(&place.join(folder), 0o755);
    }
}

#[test]
fn what_cannot_work_is_refused_by_its_name_and_nothing_is_written() {
    let place = place();
    place.module("root/modules/other.so");
    place.write("root/text/evener.so", "no module");
    fs::create_dir_all(place.join("root/plain")).unwrap();
    place.write("plain.c", "int plain;");
    let library = place.program("cc").args(["-shared", "-o", "root/plain/evener.so", "plain.c"]).run();
    library.succeeded();
    let before = entries(&place);
    let with = |option: &str, value: &str| {
        let words: Vec<&str> = match INSTALL.iter().position(|word| *word == option) {
            Some(at) => {
                INSTALL.iter().enumerate().map(|(i, word)| if i == at + 1 { value } else { word }).collect()
            }
            None => [&INSTALL[..], &[option, value]].concat(),
        };
        under(&place, "022", &[&words[..], &["--unit", "a.service"]].concat(), "output")
    };
    with("--base", "gone.cnf").ended_with(2).saying("gone.cnf");
    with("--file", "/modules/other.so").ended_with(2).saying("evener.so");
    with("--file", "/text/evener.so").ended_with(2).saying("root/text/evener.so").saying("provider");
    with("--file", "/plain/evener.so").ended_with(2).saying("root/plain/evener.so").saying("provider");
    assert_eq!(entries(&place), before);
    let config = |words: &[&str]| place.evener().args(["provider", "config"]).args(words).run();
    config(&["--file", "root/modules/evener.so", "--base", "gone.cnf"]).ended_with(2).saying("gone.cnf");
    config(&["--base", "base.cnf", "--file", "root/text/evener.so"]).ended_with(2).saying("provider");
    // Programs stand in other directories.
    let here = fs::canonicalize(place.path()).unwrap();
    for option in [["--host", "rel.sock"], ["--module", "hosted:rel.sock"]] {
        let words = ["--base", "base.cnf", "--file", "root/modules/evener.so"];
        let text = config(&[&words[..], &option].concat()).succeeded().stdout_text().to_owned();
        let line = format!("\nmodules = hosted:{}/rel.sock\n", here.display());
        assert!(text.contains(&line), "{text}");
    }
}

#[test]
fn a_name_with_escapes_is_a_unit_s_and_its_drop_in_names_the_file() {
    let place = place();
    let unit = r"dev-x\x2dy.service";
    install(&place, &["--unit", unit]).succeeded();
    let said = fs::read_to_string(place.join("output")).unwrap();
    let cnf = r"root/etc/evener/dev-x\x2dy.service.cnf";
    assert!(place.join(cnf).is_file());
    let drop_in = r"root/etc/systemd/system/dev-x\x2dy.service.d/60-evener.conf";
    let drop_in = fs::read_to_string(place.join(drop_in)).unwrap();
    // systemd.syntax(7) has escapes of C between quotes.
    assert!(
        drop_in.contains(r#"Environment="OPENSSL_CONF=/etc/evener/dev-x\\x2dy.service.cnf""#),
        "{drop_in}"
    );
    let undo = said.split("to undo it\n").nth(1).unwrap().trim();
    let undo = undo.replacen("evener", EVENER, 1);
    place.program("sh").args(["-c", &undo]).run().succeeded();
    assert!(!place.join("root/etc").exists(), "{undo}");
}

#[test]
fn what_an_administrator_edited_is_kept_beside_and_said_when_it_is_written_again_or_taken_back() {
    let place = place();
    let unit = ["--unit", "a.service"];
    let fresh = install(&place, &unit).succeeded();
    assert_eq!(fresh.stderr(), "");
    let again = install(&place, &unit).succeeded();
    assert_eq!(again.stderr(), "", "nothing was edited");
    let cnf = place.join("root/etc/evener/a.service.cnf");
    let first = fs::read_to_string(&cnf).unwrap() + "# for the new card\n";
    fs::write(&cnf, &first).unwrap();
    install(&place, &unit).succeeded().saying("a.service.cnf was edited: as it was, it is kept as");
    assert!(fs::read_to_string(&cnf).unwrap() != first, "written anew");
    // In no encoding, and without the sum.
    let second = [fs::read(&cnf).unwrap(), b"# f\xfcr den anderen\n".to_vec()].concat();
    let second = second.split_inclusive(|byte| *byte == b'\n').filter(|line| !line.starts_with(b"# Sum"));
    let second = second.collect::<Vec<_>>().concat();
    fs::write(&cnf, &second).unwrap();
    uninstall(&place, &["--all"]).succeeded().saying("a.service.cnf.edited2");
    // Nor does the next one take them for files that were installed.
    uninstall(&place, &["--all"]).succeeded();
    let kept = ["a.service.cnf.edited", "a.service.cnf.edited2"];
    let kept = kept.map(|name| fs::read(place.join("root/etc/evener").join(name)).unwrap());
    assert_eq!(kept, [first.into_bytes(), second]);
}
