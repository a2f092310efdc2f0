//! `evener sum` writes what coreutils write, byte for byte, and checks as they check: `sha256sum` and its kin judge.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::symlink;
use std::process::Stdio;

use crate::common::activity::Guarded;
use crate::common::{self, Place, Ran, allow, noise};
use evener_testing::programs::new_terminal;
use evener_testing::waiting::soon;

/// Hashes by their names here, and the programs that judge them.
const HASHES: [(&str, &str); 5] = [
    ("sha1", "sha1sum"),
    ("sha224", "sha224sum"),
    ("sha256", "sha256sum"),
    ("sha384", "sha384sum"),
    ("sha512", "sha512sum"),
];

/// Instructions that are left out.
const LEFT_OUT: [&str; 5] = ["", "sha", "avx512", "sha,avx512", "lanes"];

/// Lengths around blocks, what is read at a time, and what goes alone.
const LENGTHS: [usize; 14] =
    [0, 1, 55, 56, 64, 111, 112, 128, 4_096, 65_536, 65_663, 65_664, 200_000, (1 << 20) + 5];

fn names() -> Vec<OsString> {
    let odd: [&[u8]; 9] = [
        b"plain",
        b" space",
        b"*star",
        b"back\\slash",
        b"new\nline",
        b"return\rs",
        b"\xff\xfe",
        b"(br) = ",
        b"#hash",
    ];
    odd.iter().map(|name| OsString::from_vec(name.to_vec())).collect()
}

/// A place with a file of each name and of each length.
fn place() -> Option<(Place, Vec<OsString>)> {
    let place = Place::with_programs(&["sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum"])?;
    let mut all = Vec::new();
    for (seed, name) in names().into_iter().enumerate() {
        place.write(&name, noise(seed as u64, 100 + seed));
        all.push(name);
    }
    for length in LENGTHS {
        let name = OsString::from(format!("of-{length}"));
        place.write(&name, noise(length as u64, length));
        all.push(name);
    }
    Some((place, all))
}

/// The same arguments for both programs; what each says on standard output, how many lines with which numbers on standard error, and how it ends is the same.
fn both(place: &Place, (hash, judge): (&str, &str), what: &str, arguments: &[&OsStr], input: &[u8]) {
    let right = place.program(judge).args(arguments).input(input).run();
    let mine = place.evener().args(["sum", "--algorithm", hash]).args(arguments).input(input).run();
    let shown = |ran: &Ran| String::from_utf8_lossy(ran.stdout()).into_owned();
    assert_eq!(shown(&mine), shown(&right), "{what}, {arguments:?}, {}", mine.stderr());
    assert!(mine.stdout() == right.stdout(), "{what}, {arguments:?}");
    assert_eq!(mine.code(), right.code(), "{what}, {arguments:?}: {} or {}", mine.stderr(), right.stderr());
    let numbers = |ran: &Ran| ran.stderr().lines().map(numbers).collect::<Vec<_>>();
    let (told, rightly) = (numbers(&mine), numbers(&right));
    assert_eq!(told, rightly, "{what}, {arguments:?}: {} or {}", mine.stderr(), right.stderr());
}

/// Words of a line that are numbers: of the lines that are none of a list, and how many are what.
fn numbers(line: &str) -> Vec<u64> {
    line.split([' ', ':']).filter_map(|word| word.parse().ok()).collect()
}

fn words<'w>(options: &'w [&'w str], names: &'w [OsString]) -> Vec<&'w OsStr> {
    options.iter().map(OsStr::new).chain([OsStr::new("--")]).chain(names.iter().map(|it| &**it)).collect()
}

#[test]
fn lists_are_those_of_coreutils() {
    let Some((place, names)) = place() else { return };
    for pair in HASHES {
        for options in [&[][..], &["--binary"], &["--text"], &["--tag"], &["--zero"], &["--tag", "--zero"]] {
            both(&place, pair, "files", &words(options, &names), b"");
        }
        both(&place, pair, "no file", &[], b"from standard input");
        both(&place, pair, "-", &words(&["-b"], &["-".into()]), b"from standard input");
    }
}

#[test]
fn lists_are_the_same_by_all_instructions_and_any_number_of_workers() {
    let Some((place, names)) = place() else { return };
    File::create(place.join("long")).unwrap().set_len((64 << 20) + 77).unwrap();
    let long = [names, vec!["long".into()]].concat();
    for (hash, judge) in HASHES {
        let right = place.program(judge).args(words(&[], &long)).run().succeeded();
        for left_out in LEFT_OUT {
            for workers in ["1", "2", "5"] {
                let mine = place.evener().env("EVENER_DISABLE", left_out);
                let mine = mine
                    .args(["sum", "--workers", workers, "--algorithm", hash])
                    .args(words(&[], &long))
                    .run();
                assert!(mine.stdout() == right.stdout(), "{hash} without {left_out:?} by {workers}");
            }
        }
    }
}

#[test]
fn more_files_than_wait_for_one_before_them_come_in_order() {
    let Some(place) = Place::with_programs(&["sha256sum"]) else { return };
    File::create(place.join("a")).unwrap().set_len(96 << 20).unwrap();
    let mut names = vec![OsString::from("a")];
    names.extend((0..9_000).map(|_| OsString::from("b")));
    place.write("b", "short");
    for workers in ["1", "3"] {
        let right = place.program("sha256sum").args(&names).run().succeeded();
        let mine = place.evener().args(["sum", "--workers", workers]).args(&names).run().succeeded();
        assert!(mine.stdout() == right.stdout());
    }
}

#[test]
fn a_tree_is_its_files_in_the_order_of_their_paths() {
    let Some(place) = Place::with_programs(&["sha256sum", "find", "sort", "xargs"]) else { return };
    for name in ["t/a/x", "t/a-b", "t/a.c", "t/B", "t/a/y/z", "t/\u{e4}/q", "t/new\nline", "t/.hidden"] {
        place.write(name, name);
    }
    fs::create_dir(place.join("t/empty")).unwrap();
    symlink("a-b", place.join("t/link")).unwrap();
    symlink("a", place.join("t/link-to-directory")).unwrap();
    for root in ["t", "t/", "./t", ".", "t/../t//a"] {
        let mine = place.evener().args(["sum", root]).run().succeeded();
        let find = format!("find {root} -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum --");
        let right = place.program("sh").args(["-c", &find]).run().succeeded();
        // What find writes for a slash too many is its own.
        if !root.ends_with('/') && !root.contains("//") {
            assert_eq!(mine.stdout_text(), right.stdout_text(), "{root}");
        }
        place.program("sha256sum").arg("-c").input(mine.stdout()).run().succeeded();
    }
}

/// Lists that are right and wrong in all ways.
fn lists(place: &Place, (_, judge): (&str, &str), names: &[OsString]) -> Vec<(&'static str, Vec<u8>)> {
    let of = |options: &[&str]| place.program(judge).args(words(options, names)).run().stdout().to_vec();
    let (plain, tagged) = (of(&[]), of(&["--tag"]));
    let with = |from: &str, to: &str| String::from_utf8_lossy(&of(&[])).replacen(from, to, 1).into_bytes();
    let line = |text: &str| [text.as_bytes(), &plain[..]].concat();
    let digits = plain.iter().position(|byte| *byte == b' ').unwrap();
    let own = std::str::from_utf8(&plain[..digits]).unwrap();
    vec![
        (
            "CRLF",
            plain
                .iter()
                .flat_map(|byte| if *byte == b'\n' { vec![b'\r', b'\n'] } else { vec![*byte] })
                .collect(),
        ),
        (
            "upper case",
            plain.split(|byte| *byte == b'\n').next().unwrap()[..digits]
                .to_ascii_uppercase()
                .into_iter()
                .chain(*b"  plain\n")
                .collect(),
        ),
        ("missing", line(&format!("{own}  missing\n"))),
        ("changed", with(own, &own.chars().rev().collect::<String>())),
        ("a comment, an empty line", line("# a comment\n\n")),
        ("malformed", line("nonsense\n")),
        ("malformed only", b"nonsense\nmore of it\n".to_vec()),
        ("too short", line(&format!("{}  plain\n", &own[1..]))),
        ("too long", line(&format!("{own}0  plain\n"))),
        ("no hexadecimal digits", line(&format!("{}  plain\n", "g".repeat(digits)))),
        ("a tab", format!("{own}\t plain\n").into_bytes()),
        ("one blank", format!("{own} plain\n").into_bytes()),
        ("one blank behind two", format!("{own}  plain\n{own} plain\n").into_bytes()),
        ("two behind one", format!("{own} plain\n{own}  plain\n").into_bytes()),
        ("one blank and a letter", format!("{own} p\n").into_bytes()),
        ("no name", format!("{own}  \n{own}  plain\n").into_bytes()),
        ("blanks before", format!("  \t{own}  plain\n").into_bytes()),
        ("a bad escape", line(&format!("\\{own}  pl\\ain\n"))),
        ("an escape that ends", line(&format!("\\{own}  plain\\\n"))),
        ("NUL", [format!("{own}  plain\0more\n").as_bytes(), &plain].concat()),
        ("a directory", line(&format!("{own}  .\n"))),
        ("standard input", line(&format!("{own}  -\n"))),
        ("tagged with blanks", String::from_utf8_lossy(&tagged).replace(" = ", "  =\t ").into_bytes()),
        ("another tag", line("MD5 (plain) = d41d8cd98f00b204e9800998ecf8427e\n")),
        (
            "tag without its end",
            [&b"SHA1 (plain = 00\nSHA256 (plain = 00\nSHA512 plain) = 00\n"[..], &tagged].concat(),
        ),
        ("no newline at the end", plain[..plain.len() - 1].to_vec()),
        ("empty", Vec::new()),
        ("plain", plain),
        ("tagged", tagged),
        ("binary", of(&["-b"])),
    ]
}

#[test]
fn checks_are_those_of_coreutils() {
    let Some((place, names)) = place() else { return };
    for pair in [HASHES[2], HASHES[0]] {
        for (what, list) in lists(&place, pair, &names) {
            place.write("list", &list);
            for options in [
                &["-c"][..],
                &["--check", "--quiet"],
                &["-c", "--status"],
                &["-c", "--warn"],
                &["-c", "--strict"],
                &["-c", "--ignore-missing"],
                &["-c", "--ignore-missing", "--quiet", "--strict"],
                &["-c", "--status", "--warn"],
                &["-c", "--quiet", "--status"],
            ] {
                both(&place, pair, what, &words(options, &["list".into()]), b"text");
            }
            both(&place, pair, what, &words(&["-c"], &[]), &list);
        }
    }
}

#[test]
fn either_checks_what_the_other_wrote() {
    let Some((place, names)) = place() else { return };
    for (hash, judge) in HASHES {
        for options in [&[][..], &["--tag"], &["-b"]] {
            let mine =
                place.evener().args(["sum", "-a", hash]).args(words(options, &names)).run().succeeded();
            place.program(judge).args(["-c", "--strict"]).input(mine.stdout()).run().succeeded();
            let other = place.program(judge).args(words(options, &names)).run().succeeded();
            place
                .evener()
                .args(["sum", "-a", hash, "-c", "--strict"])
                .input(other.stdout())
                .run()
                .succeeded();
        }
    }
}

#[test]
fn what_cannot_be_read_is_named_and_the_others_are_done() {
    let Some(place) = Place::with_programs(&["sha256sum", "mkfifo"]) else { return };
    place.write("one", "1");
    place.write("two", "2");
    let ran = place.evener().args(["sum", "one", "missing\n", "two"]).run().ended_with(1);
    let right = place.program("sha256sum").args(["one", "two"]).run().succeeded();
    assert_eq!(ran.stdout_text(), right.stdout_text());
    assert_eq!(ran.stderr().lines().count(), 1);
    ran.saying("missing\\n: cannot read: No such file or directory");
    // Files that say that they are empty, and such as have no length.
    for named in ["/proc/version", "/proc/cmdline", "/dev/null"] {
        let right = place.program("sha256sum").arg(named).run().succeeded();
        assert_eq!(place.evener().args(["sum", named]).run().succeeded().stdout(), right.stdout());
    }
    let piped = place.evener().args(["sum", "/dev/stdin"]).input(noise(1, 300_000)).run().succeeded();
    let right = place.program("sha256sum").arg("/dev/stdin").input(noise(1, 300_000)).run().succeeded();
    assert_eq!(piped.stdout(), right.stdout());
}

#[test]
fn a_directory_that_may_not_be_read_is_named_and_the_others_are_done() {
    let Some((place, nobody)) = Place::for_nobody() else { return };
    place.write("t/closed/f", "1");
    place.write("t/open/f", "2");
    for (path, mode) in [("t", 0o755), ("t/open", 0o755), ("t/open/f", 0o644), ("t/closed", 0)] {
        allow(&place.join(path), mode);
    }
    let mut words = nobody.iter().map(OsStr::new).chain(["./evener", "sum", "t"].map(OsStr::new));
    let ran = place.program(words.next().unwrap().to_str().unwrap()).args(words).run().ended_with(1);
    allow(&place.join("t/closed"), 0o755);
    assert!(ran.stdout_text().ends_with("  t/open/f\n"), "{}", ran.stdout_text());
    assert_eq!(ran.stdout_text().lines().count(), 1);
    ran.saying("t/closed: cannot read: Permission denied");
}

#[test]
fn what_makes_no_sense_together_is_refused() {
    let place = Place::new();
    for options in [
        &["--quiet"][..],
        &["--status"],
        &["--warn"],
        &["--strict"],
        &["--ignore-missing"],
        &["-c", "--tag"],
        &["-c", "-z"],
        &["-c", "-b"],
        &["-c", "-t"],
        &["--tag", "-t"],
        &["--algorithm", "crc"],
    ] {
        let ran = place.evener().arg("sum").args(options).input("").run().ended_with(2);
        assert_eq!(ran.stderr().lines().count(), 1, "{options:?}: {}", ran.stderr());
    }
}

#[test]
fn a_signal_ends_it_at_once() {
    let Some(place) = Place::with_programs(&["mkfifo", "timeout"]) else { return };
    place.program("mkfifo").arg("pipe").run().succeeded();
    // The pipe never ends by itself; a command that TERM does not end is killed, and the status is 137.
    let evener = common::EVENER;
    let waits = format!("sleep 100 >pipe & timeout -s TERM -k 5 1 {evener} sum pipe; echo $?; kill $!");
    let ran = place.program("sh").args(["-c", &waits]).run();
    assert_eq!(ran.stdout_text(), "124\n");
}

#[test]
fn a_stream_that_is_named_twice_is_read_by_one_after_the_other() {
    let Some(place) = Place::with_programs(&["sha256sum"]) else { return };
    place.write("f", "short");
    let input = noise(1, 3 << 20);
    for names in [
        &["-", "-"][..],
        &["-", "/dev/stdin"],
        &["/dev/stdin", "-"],
        &["/dev/stdin", "f", "/dev/stdin", "f", "-"],
    ] {
        let right = place.program("sha256sum").args(names).input(&*input).run().succeeded();
        let mine = place.evener().args(["sum", "--workers", "4"]).args(names).input(&*input);
        assert_eq!(mine.run().succeeded().stdout_text(), right.stdout_text(), "{names:?}");
        place.write("list", right.stdout());
        let checks = ["sum", "-c", "--workers", "4", "list"];
        place.evener().args(checks).input(&*input).run().succeeded();
    }
    // A file with one offset for all that read it.
    place.write("input", &input);
    for names in ["- -", "- f -"] {
        let by = |sum: &str| {
            let ran = place.program("sh").args(["-c", &format!("exec {sum} {names} <input")]).run();
            ran.succeeded().stdout_text().to_owned()
        };
        assert_eq!(by(&format!("{} sum --workers 4", common::EVENER)), by("sha256sum"), "{names}");
    }
}

#[test]
fn how_names_are_marked_is_the_same_in_all_lists_of_a_check() {
    let Some(place) = Place::with_programs(&["sha256sum"]) else { return };
    place.write("f", "text");
    place.write(" f", "other");
    let digits = |name: &str| {
        let line = place.program("sha256sum").arg(name).run().succeeded().stdout_text().to_owned();
        line.split(' ').next().unwrap_or_default().to_owned()
    };
    place.write("bare", format!("{} f\n", digits("f")));
    place.write("marked", format!("{}  f\n", digits("f")));
    place.write("spaced", format!("{}  f\n", digits(" f")));
    for names in [["bare", "spaced"], ["bare", "marked"], ["marked", "bare"], ["marked", "marked"]] {
        let names = names.map(OsString::from);
        both(&place, HASHES[2], "two lists", &words(&["-c"], &names), b"");
    }
}

#[test]
fn a_list_cannot_have_a_standard_input_that_was_closed() {
    let Some(place) = Place::with_programs(&["sha256sum"]) else { return };
    let empty = place.program("sha256sum").input("").run().succeeded();
    place.write("list", empty.stdout());
    let by = |sum: &str| place.program("sh").args(["-c", &format!("exec {sum} -c list <&-")]).run();
    let (mine, right) = (by(&format!("{} sum", common::EVENER)), by("sha256sum"));
    assert_eq!(right.stdout_text(), "-: FAILED open or read\n");
    assert_eq!(mine.ended_with(1).stdout_text(), right.stdout_text());
}

#[test]
fn more_files_than_may_be_open_are_done() {
    let Some(place) = Place::with_programs(&["sha256sum", "find", "sort", "xargs"]) else { return };
    for number in 0..300 {
        place.write(format!("many/{}/{}/{number}", number % 7, number % 5), noise(number, 10));
    }
    let right = "find many -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum --";
    let right = place.program("sh").args(["-c", right]).run().succeeded();
    let few = format!("ulimit -n 40; exec {} sum --workers 4 many", common::EVENER);
    let mine = place.program("sh").args(["-c", &few]).run().succeeded();
    assert_eq!(mine.stdout_text(), right.stdout_text());
}

#[test]
fn nothing_more_is_read_once_nothing_more_can_be_said() {
    const LONG: u64 = 32 << 30;
    let Some(place) = Place::with_programs(&["grep"]) else { return };
    place.write("short", "1");
    File::create(place.join("long")).unwrap().set_len(LONG).unwrap();
    // The lines of the short ones are more than are held back, and the long one is begun before the last of them is told.
    let names = [vec!["short"; 915], vec!["long"]].concat().join(" ");
    // What a shell has read is what it and those that it waited for have read.
    let counted = "\"$@\" >/dev/full; echo $?; exec grep ^rchar: /proc/$$/io";
    let sum = format!("set -- {} sum --workers 2 {names}; {counted}", common::EVENER);
    let ran = place.program("sh").args(["-c", &sum]).run();
    assert!(ran.stderr().contains("No space left on device"), "{}", ran.stderr());
    let (status, read) = ran.stdout_text().split_once("\nrchar: ").unwrap();
    assert_eq!(status, "2");
    let read: u64 = read.trim().parse().unwrap();
    assert!(read < LONG / 2, "{read}");
}

#[test]
fn a_list_that_is_typed_is_checked_line_by_line_and_ends_once() {
    let Some(place) = Place::with_programs(&["sha256sum"]) else { return };
    let (terminal, programs_end) = new_terminal();
    let mut evener = place.evener();
    evener.command.args(["sum", "-c", "--workers", "3"]);
    evener.command.stdin(programs_end.try_clone().unwrap()).stdout(programs_end).stderr(Stdio::inherit());
    let mut child = Guarded(evener.command.spawn().unwrap());
    let mut shown = String::new();
    let mut is_shown = |words: &str| {
        let mut bytes = [0; 4_096];
        while let Ok(count @ 1..) = (&terminal).read(&mut bytes) {
            shown.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        shown.contains(words)
    };
    for name in ["one", "two"] {
        place.write(name, name);
        let line = place.program("sha256sum").arg(name).run().succeeded();
        (&terminal).write_all(line.stdout()).unwrap();
        assert!(soon(|| is_shown(&format!("{name}: OK"))), "{name}");
    }
    // The end of a file, typed once.
    (&terminal).write_all(b"\x04").unwrap();
    assert!(soon(|| child.0.try_wait().unwrap().is_some()));
    assert!(child.0.wait().unwrap().success());
}
