//! Trees come back as they were: names, modes, times, links, holes, extended attributes, access lists and owners, judged by
//! rsync, getfattr and getfacl; and limits of descriptors and paths are none of the tree's.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use crate::common::{self, Place, Ran, allow, skipped, there_is};

fn run(place: &Place, direction: &str, output: &str, input: &str, more: &[&str]) -> Ran {
    place.evener().args([direction, "--key", "k.json", "-q", "-o", output, input]).args(more).run()
}

/// There and back.
fn back(place: &Place, input: &str) {
    run(place, "encrypt", "sealed", input, &[]).succeeded();
    run(place, "decrypt", "back", "sealed", &[]).succeeded();
}

/// What a program says of a tree; the tree is its current directory.
fn said(tree: &Path, program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).current_dir(tree).output().unwrap();
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut lines: Vec<_> = text.split("\n\n").collect();
    lines.sort_unstable();
    lines.join("\n\n")
}

/// What rsync would have to do to make one tree like the other, contents included: nothing.
#[track_caller]
fn is_the_same(place: &Place, one: &str, other: &str) {
    let (one, other) = (format!("{one}/"), format!("{other}/"));
    let flags = ["-aHAXni", "--checksum", "--delete", "--numeric-ids", &one, &other];
    assert_eq!(said(place.path(), "rsync", &flags), "", "{one} and {other} differ");
}

/// Numbers that look like chance and are the same every time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u32) -> u32 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        u32::try_from((mixed ^ (mixed >> 31)) % u64::from(end)).unwrap()
    }

    fn one_of<T: Copy, const N: usize>(&mut self, all: [T; N]) -> T {
        all[self.below(u32::try_from(N).unwrap()) as usize]
    }
}

const NAMES: [&[u8]; 10] = [
    b"plain",
    b"with space",
    b"new\nline",
    b"\xff\xfe not utf-8",
    b"-o",
    b"*?[a]",
    "äöü \u{202e}".as_bytes(),
    b".hidden",
    b"quote'\"\\",
    b"k",
];

/// Makes a tree of some thirty entries below `dir`; what is possible to root only, as root.
fn grow(chance: &mut Chance, dir: &Path, depth: u64, attributes: bool) {
    for name in NAMES {
        let path = dir.join(std::ffi::OsStr::from_bytes(name));
        match chance.below(8) {
            0 if depth < 3 => {
                fs::create_dir(&path).unwrap();
                grow(chance, &path, depth + 1, attributes);
                fs::set_permissions(
                    &path,
                    fs::Permissions::from_mode(chance.one_of([0o755, 0o1777, 0o2750, 0o700])),
                )
                .unwrap();
            }
            1 => {
                let target = chance.one_of(["plain", "../k", "/etc/hostname", "nowhere", ".", ".."]);
                symlink(target, &path).unwrap();
                continue;
            }
            2 => {
                let other = dir.join("plain");
                if other.is_file() && !other.is_symlink() && !path.exists() {
                    fs::hard_link(other, &path).unwrap();
                }
                continue;
            }
            3 => {
                let file = fs::File::create(&path).unwrap();
                std::os::unix::fs::FileExt::write_at(
                    &file,
                    b"end",
                    100_000 + u64::from(chance.below(300_000)),
                )
                .unwrap();
            }
            _ => {
                let bytes = common::noise(1, chance.below(9_000) as usize);
                fs::write(&path, bytes).unwrap();
                let mode = chance.one_of([0o644, 0o600, 0o4755, 0o2711, 0o444, 0o6]);
                fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            }
        }
        if !path.exists() {
            continue;
        }
        if attributes {
            dress(chance, &path);
        }
        let time = std::time::UNIX_EPOCH
            + std::time::Duration::new(u64::from(chance.below(2_000_000_000)), 123_456_789);
        fs::File::open(&path).or_else(|_| fs::File::open(dir)).unwrap().set_modified(time).unwrap();
    }
}

/// Gives some entries extended attributes, access lists and owners.
fn dress(chance: &mut Chance, path: &Path) {
    let program = |name: &str, arguments: &[&str]| {
        let done = Command::new(name).args(arguments).arg("--").arg(path).output().unwrap();
        assert!(done.status.success(), "{name}: {}", String::from_utf8_lossy(&done.stderr));
    };
    let owner = (chance.below(2) == 0).then_some((1_000 + chance.below(9), 2_000));
    if let Some((user, group)) = owner {
        let mode = fs::metadata(path).unwrap().permissions();
        std::os::unix::fs::chown(path, Some(user), Some(group)).unwrap();
        fs::set_permissions(path, mode).unwrap();
    }
    if chance.below(3) == 0 {
        program("setfattr", &["-n", "user.note", "-v", "\"kept\""]);
    }
    match chance.below(4) {
        0 => program("setfacl", &["-m", "u:1234:r,g:99:rw"]),
        1 if path.is_dir() => program("setfacl", &["-m", "d:u:1234:rwx,u:77:rx"]),
        _ => {}
    }
}

#[test]
fn generated_trees_come_back_as_they_were() {
    if let Some(absent) =
        ["rsync", "getfattr", "getfacl", "setfattr", "setfacl"].iter().find(|name| !there_is(name))
    {
        return skipped(&format!("{absent} is not installed"));
    }
    for seed in 0..6 {
        let place = Place::with_key();
        let attributes = place.is_of_root();
        fs::create_dir(place.join("in")).unwrap();
        grow(&mut Chance(seed), &place.join("in"), 0, attributes);
        back(&place, "in");
        is_the_same(&place, "in", "back");
        for tree in ["sealed", "back"] {
            let about = |tree: &str| {
                let acls = said(&place.join(tree), "getfacl", &["-Rpn", "."]);
                let xattrs = said(
                    &place.join(tree),
                    "getfattr",
                    &["-Rhd", "-m", "^(user|trusted|security.capability)", "."],
                );
                (acls, xattrs)
            };
            assert_eq!(about(tree), about("in"), "{tree}, seed {seed}");
        }
        // Again: everything stands there, links and all.
        run(&place, "encrypt", "sealed", "in", &[]).succeeded();
        run(&place, "decrypt", "back", "sealed", &[]).succeeded();
        is_the_same(&place, "in", "back");
    }
}

#[test]
fn what_is_left_out_by_an_option_is_not_there_and_no_failure() {
    let place = Place::with_key();
    place.write("in/f", "text");
    symlink("f", place.join("in/link")).unwrap();
    fs::hard_link(place.join("in/f"), place.join("in/other")).unwrap();
    assert!(Command::new("mkfifo").arg(place.join("in/pipe")).status().unwrap().success());
    run(&place, "encrypt", "one", "in", &[]).ended_with(1).saying("in/pipe: a device, socket or pipe");
    assert_eq!(fs::read_link(place.join("one/link")).unwrap(), Path::new("f"));
    let inode = |name: &str| fs::symlink_metadata(place.join(name)).unwrap().ino();
    assert_eq!(inode("one/f"), inode("one/other"));
    let without =
        ["--skip-links", "--skip-specials", "--no-hard-links", "--no-owner", "--no-acls", "--no-xattrs"];
    run(&place, "encrypt", "two", "in", &without).succeeded();
    assert!(!place.join("two/link").is_symlink() && !place.join("two/pipe").exists());
    assert_ne!(inode("two/f"), inode("two/other"));
    let blocks = |name: &str| fs::metadata(place.join(name)).unwrap().blocks();
    fs::File::create(place.join("hole")).unwrap().set_len(10 << 20).unwrap();
    run(&place, "encrypt", "c", "hole", &[]).succeeded();
    run(&place, "decrypt", "p", "c", &[]).succeeded();
    run(&place, "decrypt", "q", "c", &["--no-sparse"]).succeeded();
    assert!(blocks("p") < 100 && blocks("q") > 10_000, "{} and {} blocks", blocks("p"), blocks("q"));
}

#[test]
fn an_output_gets_no_access_list_from_its_directory() {
    if !there_is("setfacl") {
        return skipped("setfacl is not installed");
    }
    let place = Place::with_key();
    place.write("in/f", "text");
    fs::create_dir(place.join("out")).unwrap();
    let given = Command::new("setfacl").args(["-m", "d:u:1234:rwx"]).arg(place.join("out")).status().unwrap();
    assert!(given.success());
    run(&place, "encrypt", "out/deep", "in", &[]).succeeded();
    run(&place, "encrypt", "out/f", "in/f", &[]).succeeded();
    for output in ["out/deep", "out/deep/f", "out/f"] {
        let acl = said(place.path(), "getfacl", &["-cn", output]);
        assert!(!acl.contains("1234"), "{output}: {acl}");
    }
}

#[test]
fn directories_without_number_and_as_deep_as_no_path_is_long_take_few_descriptors() {
    let place = Place::with_key();
    for number in 0..400 {
        place.write(format!("in/wide/{number}/f"), "text");
    }
    // Made one in the other, for no path is so long.
    let script = "import os\nos.chdir('in')\nfor n in range(40):\n os.mkdir('d'*200); os.chdir('d'*200)\n \
                  open('f','w').write('deep')\n os.symlink('f','link')";
    assert!(
        Command::new("python3").args(["-c", script]).current_dir(place.path()).status().unwrap().success()
    );
    let limited = |direction: &str, output: &str, input: &str| {
        let shell = place.program("sh").args(["-c", "ulimit -n 64; exec \"$@\"", "sh", common::EVENER]);
        let shell = shell.args([direction, "--key", "k.json", "-q", "--workers", "2", "-o", output, input]);
        shell.env("EVENER_ARBITER", "off").run().succeeded();
    };
    limited("encrypt", "sealed", "in");
    limited("decrypt", "back", "sealed");
    limited("decrypt", "back", "sealed");
    let count =
        |tree: &str| said(&place.join(tree), "find", &[".", "-printf", "%d %m %y %f\\n"]).lines().count();
    assert_eq!(count("back"), count("in"));
    for tree in ["in", "sealed", "back"] {
        assert!(Command::new("rm").args(["-rf"]).arg(place.join(tree)).status().unwrap().success());
    }
}

#[test]
fn set_user_id_goes_with_its_owner_only() {
    let Some(place) = Place::of_root("give files away") else { return };
    place.write("in/f", "text");
    std::os::unix::fs::chown(place.join("in/f"), Some(1_234), Some(1_234)).unwrap();
    allow(&place.join("in/f"), 0o6755);
    let look = |name: &str| {
        let metadata = fs::metadata(place.join(name)).unwrap();
        (metadata.uid(), metadata.gid(), metadata.mode() & 0o7777)
    };
    run(&place, "encrypt", "kept", "in", &[]).succeeded();
    run(&place, "encrypt", "mine", "in", &["--no-owner"]).succeeded();
    assert_eq!((look("kept/f"), look("mine/f")), ((1_234, 1_234, 0o6755), (0, 0, 0o755)));
}

#[test]
fn a_stranger_s_link_that_leads_out_of_the_tree_is_kept_only_where_that_is_wanted() {
    let Some(place) = Place::of_root("make a link another user's") else { return };
    place.write("in/d/f", "text");
    for (target, name) in
        [("/etc/hostname", "far"), ("../../f", "up"), ("../d/f", "near"), ("/etc/hostname", "own")]
    {
        symlink(target, place.join("in/d").join(name)).unwrap();
        if name != "own" {
            std::os::unix::fs::lchown(place.join("in/d").join(name), Some(65_534), None).unwrap();
        }
    }
    let ran = run(&place, "encrypt", "sealed", "in", &[]).ended_with(1);
    assert!(ran.stderr().contains("in/d/far: ") && ran.stderr().contains("in/d/up: "), "{}", ran.stderr());
    assert_eq!(ran.stderr().matches("--foreign-links").count(), 2);
    let dry = run(&place, "encrypt", "sealed", "in", &["--dry-run"]).ended_with(1);
    assert_eq!(dry.stderr().matches("--foreign-links").count(), 2);
    let there = |name: &str| place.join("sealed/d").join(name).is_symlink();
    assert_eq!(["far", "up", "near", "own"].map(there), [false, false, true, true]);
    run(&place, "encrypt", "sealed", "in", &["--foreign-links"]).succeeded();
    assert_eq!(["far", "up", "near", "own"].map(there), [true; 4]);
    assert_eq!(fs::symlink_metadata(place.join("sealed/d/far")).unwrap().uid(), 65_534);
}

#[test]
fn holes_of_an_input_are_not_read_and_come_back_also_through_a_pipe() {
    if !there_is("strace") {
        return skipped("strace is not installed");
    }
    let place = Place::with_key();
    let (bytes, ends) = (300 << 20, b"begin and end");
    let file = fs::File::create(place.join("f")).unwrap();
    for at in [0, bytes / 2 + 77, bytes - ends.len() as u64] {
        std::os::unix::fs::FileExt::write_all_at(&file, ends, at).unwrap();
    }
    let blocks = |name: &str| fs::metadata(place.join(name)).unwrap().blocks();
    if blocks("f") > 100 {
        return skipped("no holes in this file system");
    }
    for (format, key) in [("tink", ["--key", "k.json"]), ("age", ["-i", "id"])] {
        if format == "age" {
            place.evener().args(["keygen", "--age", "id"]).run().succeeded();
        }
        let traced = place.program("strace").args([
            "-f",
            "-qq",
            "-y",
            "-e",
            "trace=read,pread64,preadv",
            "-o",
            "trace",
        ]);
        let traced = traced.arg(common::EVENER).args(["encrypt", "-q", "-o", "c", "f"]).args(key);
        traced.env("EVENER_ARBITER", "off").run().succeeded();
        let trace = fs::read_to_string(place.join("trace")).unwrap();
        let whole = place.join("f");
        let of_input = trace.lines().filter(|line| line.contains(&format!("<{}>", whole.display())));
        let read: u64 =
            of_input.filter_map(|line| line.rsplit_once("= ")?.1.trim().parse::<u64>().ok()).sum();
        assert!((1..32 << 20).contains(&read), "{format}: {read} bytes were read of {bytes}");
        let script = "\"$0\" decrypt \"$@\" -o p < c && cmp f p";
        place.program("sh").args(["-c", script, common::EVENER]).args(key).run().succeeded();
        assert!(blocks("p") < 10_000, "{format}: {} blocks", blocks("p"));
        for name in ["c", "p"] {
            fs::remove_file(place.join(name)).unwrap();
        }
    }
}

/// A tree that is generated, and an identity, in a place where tar and age are there to judge.
fn for_archives() -> Option<Place> {
    let place = Place::with_programs(&["tar", "age", "rsync", "setfattr", "setfacl"])?;
    place.evener().args(["keygen", "--age", "id"]).run().succeeded();
    fs::create_dir(place.join("in")).unwrap();
    let attributes = place.is_of_root();
    grow(&mut Chance(7), &place.join("in"), 0, attributes);
    fs::create_dir(place.join("in").join("long".repeat(30))).unwrap();
    place.write(format!("in/{}/{}", "long".repeat(30), "name".repeat(40)), "text");
    Some(place)
}

fn archive(place: &Place, words: &[&str]) -> Ran {
    place.evener().args(["encrypt", "--tar", "-q", "-i", "id"]).args(words).run()
}

fn unpack(place: &Place, words: &[&str]) -> Ran {
    place.evener().args(["decrypt", "--tar", "-q", "-i", "id"]).args(words).run()
}

#[test]
fn an_archive_comes_back_as_it_was_and_age_and_tar_read_it_alike() {
    let Some(place) = for_archives() else { return };
    archive(&place, &["-o", "a.age", "in"]).succeeded();
    unpack(&place, &["-o", "back", "a.age"]).succeeded();
    is_the_same(&place, "in", "back/in");
    let script =
        "mkdir theirs && age -d -i id a.age | tar -x --xattrs --xattrs-include='*' --acls -p -C theirs";
    place.program("sh").args(["-c", script]).run().succeeded();
    is_the_same(&place, "in", "theirs/in");
    // Through pipes, and nothing that is there is replaced.
    let script = "\"$0\" encrypt --tar -i id in | \"$0\" decrypt --tar -q -i id -o piped";
    place.program("sh").args(["-c", script, common::EVENER]).run().succeeded();
    is_the_same(&place, "in", "piped/in");
    unpack(&place, &["-o", "piped", "a.age"]).ended_with(1);
    unpack(&place, &["--force", "-o", "piped", "a.age"]).succeeded();
    is_the_same(&place, "in", "piped/in");
    unpack(&place, &["a.age"]).ended_with(2);
    place.program("sh").args(["-c", "\"$0\" encrypt --tar -i id < id", common::EVENER]).run().ended_with(2);
}

#[test]
fn times_before_1970_come_back_and_a_compressed_archive_is_told_of() {
    let Some(place) = Place::with_programs(&["tar", "age", "touch"]) else { return };
    place.evener().args(["keygen", "--age", "id"]).run().succeeded();
    place.write("in/old", "text");
    place.program("touch").args(["-d", "1960-02-03 04:05:06 UTC", "in/old"]).run().succeeded();
    for format in ["gnu", "pax"] {
        let script = format!(
            "tar -c --format={format} in | \"$0\" encrypt -q -i id -o {format}.age - && \"$0\" decrypt --tar -q -i id -o {format} {format}.age"
        );
        place.program("sh").args(["-c", &script, common::EVENER]).run().succeeded();
        let [ours, source] = [format!("{format}/in/old"), "in/old".to_owned()]
            .map(|name| fs::metadata(place.join(name)).unwrap().modified().unwrap());
        assert_eq!(ours, source, "{format}");
    }
    let script =
        "tar -cz in | \"$0\" encrypt -q -i id -o z.age - && \"$0\" decrypt --tar -q -i id -o z z.age";
    place
        .program("sh")
        .args(["-c", script, common::EVENER])
        .run()
        .ended_with(1)
        .saying("a compressed archive");
}

#[test]
fn archives_that_tar_made_in_any_of_its_formats_are_unpacked_as_by_tar() {
    let Some(place) = for_archives() else { return };
    for format in ["gnu", "pax", "posix"] {
        let script = format!(
            "tar -c --format={format} --numeric-owner in | \"$0\" encrypt -q -i id -o a.age - && mkdir theirs && \
             age -d -i id a.age | tar -x -p -C theirs"
        );
        place.program("sh").args(["-c", &script, common::EVENER]).run().succeeded();
        unpack(&place, &["-o", "back", "a.age"]).succeeded();
        is_the_same(&place, "theirs/in", "back/in");
        for gone in ["theirs", "back"] {
            fs::remove_dir_all(place.join(gone)).unwrap();
        }
        fs::remove_file(place.join("a.age")).unwrap();
    }
}

#[test]
fn an_archive_of_an_enemy_makes_nothing_outside_its_directory() {
    let Some(place) = Place::with_programs(&["python3"]) else { return };
    place.evener().args(["keygen", "--age", "id"]).run().succeeded();
    place.write("victim/f", "mine");
    let script = r"
import io, sys, tarfile
out = tarfile.open(fileobj=sys.stdout.buffer, mode='w|', format=tarfile.PAX_FORMAT)
def add(name, kind=tarfile.REGTYPE, link='', data=b'evil'):
    member = tarfile.TarInfo(name); member.type = kind; member.linkname = link; member.mode = 0o777
    member.size = len(data) if kind == tarfile.REGTYPE else 0
    out.addfile(member, io.BytesIO(data))
add('../victim/f'); add('/tmp/evener-evil'); add('a/../../victim/g')
add('link', tarfile.SYMTYPE, '../victim'); add('link/f'); add('link/h')
add('dir', tarfile.DIRTYPE); add('dir', tarfile.SYMTYPE, '../victim'); add('dir/k')
add('hard', tarfile.LNKTYPE, '../victim/f'); add('hard2', tarfile.LNKTYPE, 'link/f')
add('good'); out.close()";
    fs::write(place.join("make.py"), script).unwrap();
    let words = "python3 make.py | \"$0\" encrypt -q -i id -o a.age -";
    place.program("sh").args(["-c", words, common::EVENER]).run().succeeded();
    for force in [&[][..], &["--force"]] {
        unpack(&place, &[force, &["-o", "out", "a.age"]].concat()).ended_with(1);
        assert_eq!(fs::read(place.join("out/good")).unwrap(), b"evil");
        assert_eq!(common::files(&place.join("victim")), [Path::new("f")]);
        assert_eq!(fs::read(place.join("victim/f")).unwrap(), b"mine");
        assert_eq!(fs::metadata(place.join("victim/f")).unwrap().nlink(), 1);
        assert_ne!(fs::metadata(place.join("victim")).unwrap().mode() & 0o777, 0o777);
        assert!(!Path::new("/tmp/evener-evil").exists());
    }
}

#[test]
fn an_archive_that_is_cut_or_damaged_is_an_error_and_no_half_file_has_a_name() {
    let place = Place::new();
    place.evener().args(["keygen", "--age", "id"]).run().succeeded();
    for name in ["a", "b", "c"] {
        place.write(format!("in/{name}"), common::noise(1, 200_000));
    }
    archive(&place, &["-o", "whole", "in"]).succeeded();
    let whole = fs::read(place.join("whole")).unwrap();
    let mut damaged = whole.clone();
    damaged[400_000] ^= 1;
    for bytes in [&whole[..300_000], &damaged] {
        fs::write(place.join("bad"), bytes).unwrap();
        let ran = unpack(&place, &["-o", "out", "bad"]).ended_with(1);
        assert!(ran.stderr().starts_with("evener: bad: "), "{}", ran.stderr());
        for name in common::files(&place.join("out")) {
            assert_eq!(fs::read(place.join("out").join(&name)).unwrap().len(), 200_000, "{name:?}");
        }
        fs::remove_dir_all(place.join("out")).unwrap();
    }
    // Authentic, and no archive.
    place.evener().args(["encrypt", "-q", "-i", "id", "-o", "none", "in/a"]).run().succeeded();
    unpack(&place, &["-o", "out", "none"]).ended_with(1).saying("none: not in the tar format");
}

#[test]
fn a_failure_leaves_the_directory_of_an_archive_open_for_the_next_run() {
    let Some(place) = for_archives() else { return };
    place.write("tree/shut/a", "a");
    place.write("tree/shut/b", "b");
    place.write("tree/done/c", "c");
    for dir in ["shut", "done"] {
        allow(&place.join("tree").join(dir), 0o555);
    }
    archive(&place, &["-o", "t.age", "tree"]).succeeded();
    place.write("out/tree/shut/b", "somebody else's");
    unpack(&place, &["-o", "out", "t.age"]).ended_with(1);
    let mode = |dir: &str| fs::metadata(place.join("out/tree").join(dir)).unwrap().mode() & 0o777;
    assert_eq!((mode("shut") & 0o200, mode("done")), (0o200, 0o555), "one is undone");
    unpack(&place, &["--force", "-o", "out", "t.age"]).succeeded();
    assert_eq!((mode("shut"), fs::read(place.join("out/tree/shut/b")).unwrap()), (0o555, b"b".to_vec()));
    for dir in ["tree/shut", "tree/done", "out/tree/shut", "out/tree/done"] {
        allow(&place.join(dir), 0o755);
    }
}
