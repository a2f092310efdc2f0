//! Every call that names something below a tree names one thing in an open directory and follows no link, whatever the command does;
//! the same where openat2 is missing. `strace` tells what was called.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, lchown, symlink};
use std::path::{Component, Path, PathBuf};

use crate::common::{EVENER, Place, Ran, noise, skipped, there_is, tree};

/// A call with its arguments as strace writes them: strings in quotes, descriptors with their paths.
struct Call<'t> {
    name: &'t str,
    arguments: Vec<&'t str>,
    line: &'t str,
}

/// Arguments at which a call has a directory and a name in it; calls that begin with one pair have it at 0 and 1.
const TWO_NAMES: [&str; 3] = ["renameat", "renameat2", "linkat"];

/// Calls that never follow the last name.
const NEVER_FOLLOW: [&str; 7] =
    ["mkdirat", "mknodat", "unlinkat", "renameat", "renameat2", "readlinkat", "symlinkat"];

/// Calls that name no file of a tree.
const OTHERS: [&str; 2] = ["execve", "getcwd"];

/// The parts of a call that commas part, outside of quotes and brackets.
fn parsed(line: &str) -> Option<Call<'_>> {
    let call = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
    let (name, rest) = call.split_once('(')?;
    let (mut arguments, mut depth, mut start, mut is_quoted, mut is_escaped) =
        (Vec::new(), 0, 0, false, false);
    for (at, c) in rest.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '<' | '{' | '[' | '(' => depth += 1,
            ')' if depth == 0 => {
                arguments.push(rest[start..at].trim());
                return Some(Call { name, arguments, line });
            }
            '>' | '}' | ']' | ')' => depth -= 1,
            ',' if depth == 0 => {
                arguments.push(rest[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    arguments.push(rest[start..].trim());
    Some(Call { name, arguments, line })
}

/// A trace by whole calls: what another thread interrupted is put together.
fn whole_calls(trace: &str) -> Vec<String> {
    let mut begun: BTreeMap<&str, &str> = BTreeMap::new();
    let mut calls = Vec::new();
    for line in trace.lines() {
        let (thread, call) = line.trim_start().split_once(' ').unwrap_or((line, ""));
        if let Some(start) = call.strip_suffix(" <unfinished ...>") {
            begun.insert(thread, start);
        } else if let Some(end) = call.trim_start().strip_prefix("<... ") {
            let end = end.split_once(" resumed>").map_or("", |(_, end)| end);
            calls.push(format!("{thread} {}{end}", begun.remove(thread).unwrap_or_default().trim_start()));
        } else {
            calls.push(format!("{thread} {}", call.trim_start()));
        }
    }
    calls.extend(begun.into_iter().map(|(thread, start)| format!("{thread} {}", start.trim_start())));
    calls
}

fn text(argument: &str) -> Option<&str> {
    argument.strip_prefix('"')?.strip_suffix('"')
}

/// The path of a descriptor.
fn path_of(descriptor: &str) -> Option<&Path> {
    Some(Path::new(descriptor.split_once('<')?.1.strip_suffix('>')?))
}

/// A path without `.` and `..`, as far as names say.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut made, component| {
        match component {
            Component::ParentDir => drop(made.pop()),
            Component::CurDir => {}
            component => made.push(component),
        }
        made
    })
}

/// What is wrong with a call that names something below one of `trees`; `here` is the directory of the program.
fn fault(call: &Call<'_>, here: &Path, trees: &[PathBuf]) -> Option<&'static str> {
    if OTHERS.contains(&call.name) {
        return None;
    }
    let is_below = |path: &Path| trees.iter().any(|tree| path.starts_with(tree) && path != tree);
    let pairs: &[usize] = match call.name {
        name if TWO_NAMES.contains(&name) => &[0, 2],
        "symlinkat" => &[1],
        _ => &[0],
    };
    let is_at =
        call.arguments.first().is_some_and(|first| !first.starts_with('"')) || call.name == "symlinkat";
    if !is_at {
        // By path alone: all strings of it are paths, but for an attribute's name.
        let names = call.arguments.iter().filter_map(|argument| text(argument));
        let found = names.map(|name| plain(&here.join(name))).any(|path| is_below(&path));
        return found.then_some("by path");
    }
    for at in pairs {
        let (Some(dir), Some(name)) = (call.arguments.get(*at), call.arguments.get(at + 1)) else { continue };
        let Some(name) = text(name).filter(|name| !name.is_empty()) else { continue };
        let dir = path_of(dir).unwrap_or(here);
        if !is_below(&plain(&dir.join(name))) {
            continue;
        }
        if call.arguments[*at].starts_with("AT_FDCWD") {
            return Some("from the working directory");
        }
        if name.contains('/') || name == ".." {
            return Some("by more than one name");
        }
        // One that is made here and nowhere else is no link's target.
        let refuses = ["NOFOLLOW", "O_EXCL", "RESOLVE_BENEATH", "RESOLVE_NO_SYMLINKS"];
        let refuses = refuses.iter().any(|word| call.line.contains(word));
        let is_plain_link = call.name == "linkat" && !call.line.contains("AT_SYMLINK_FOLLOW");
        if !refuses && !is_plain_link && !NEVER_FOLLOW.contains(&call.name) {
            return Some("through a link, if one stood there");
        }
    }
    None
}

/// How the command is traced.
#[derive(Clone, Copy, Default)]
struct Way<'w> {
    /// More words for strace.
    inject: &'w [&'w str],
    /// The limit of open files, as `ulimit` takes it.
    open_files: Option<&'w str>,
}

/// The command under strace; nothing may be wrong with its calls.
fn traced(place: &Place, way: Way<'_>, arguments: &[&str]) -> (Ran, String) {
    let trace = place.join("trace");
    // A shell's own limit is that of what it becomes.
    let limit = way.open_files.unwrap_or("$(ulimit -n)");
    let run = place.program("sh").arg("-c").arg(format!("ulimit -n {limit}; exec strace \"$@\"")).arg("sh");
    let run = run.args(["-f", "-qq", "-y", "-s", "4096", "-e", "trace=%file"]);
    let run =
        run.args(way.inject).arg("-o").arg(&trace).args([EVENER, arguments[0], "--key", "k.json", "-q"]);
    let ran = run.args(&arguments[1..]).env("EVENER_ARBITER", "off").run();
    let trace = fs::read_to_string(trace).unwrap();
    let here = fs::canonicalize(place.path()).unwrap();
    let trees = ["in", "sealed", "back", "unpacked"].map(|tree| here.join(tree));
    let calls = whole_calls(&trace);
    let mut wrong = Vec::new();
    for call in calls.iter().filter_map(|line| parsed(line)) {
        wrong.extend(fault(&call, &here, &trees).map(|fault| format!("{fault}: {}", call.line)));
    }
    assert!(wrong.is_empty(), "{arguments:?}: {wrong:#?}");
    (ran, trace)
}

/// Small and large files, directories, links, names of one file.
fn sow(place: &Place) {
    for number in 0..8_u16 {
        place.write(format!("in/dir{number}/deep/small"), noise(number.into(), 700));
        place.write(format!("in/dir{number}/other"), noise(number.into(), 9_000));
    }
    place.write("in/dir1/large", noise(99, 3_000_000));
    symlink("nowhere", place.join("in/dir2/link")).unwrap();
    symlink("/etc", place.join("in/dir2/far")).unwrap();
    fs::hard_link(place.join("in/dir1/other"), place.join("in/dir3/name")).unwrap();
}

/// All that is done with trees, one after the other.
fn everything_is_done_by_one_name(way: Way<'_>) {
    let place = Place::with_key();
    sow(&place);
    let go = |arguments: &[&str]| {
        let (ran, trace) = traced(&place, way, arguments);
        ran.succeeded();
        trace
    };
    let encrypt = ["encrypt", "-o", "sealed", "in"];
    let with = |word: &'static str| -> Vec<&str> { [&encrypt[..], &[word]].concat() };
    go(&with("--dry-run"));
    let trace = go(&encrypt);
    // The trace tells of the walk.
    for name in ["dir7", "deep", "small", "large", "link"] {
        assert!(trace.contains(&format!(", \"{name}\"")), "{name}");
    }
    go(&encrypt);
    place.write("in/dir1/large", noise(98, 2_000_000));
    place.write("in/dir4/other", noise(98, 2_000));
    go(&with("--update"));
    for gone in ["in/dir5/other", "in/dir2/link"] {
        fs::remove_file(place.join(gone)).unwrap();
    }
    fs::remove_dir_all(place.join("in/dir6")).unwrap();
    go(&with("--delete"));
    assert!(!place.join("sealed/dir5/other").exists());
    go(&with("--force"));
    go(&["verify", "sealed"]);
    go(&["verify", "--against", "in", "sealed"]);
    go(&["decrypt", "-o", "back", "sealed"]);
    go(&["decrypt", "-o", "back", "sealed"]);
    go(&["decrypt", "--force", "-o", "back", "sealed"]);
    for kept in ["in/dir1", "in/dir3"] {
        assert!(tree(&place.join(kept)) == tree(&place.join(kept.replace("in", "back"))), "{kept}");
    }
    go(&["encrypt", "--tar", "-o", "archive", "in"]);
    go(&["decrypt", "--tar", "-o", "unpacked", "archive"]);
    go(&["decrypt", "--tar", "--force", "-o", "unpacked", "archive"]);
    assert!(tree(&place.join("in")) == tree(&place.join("unpacked/in")), "the archive comes back");
}

#[test]
fn whatever_is_done_with_a_tree_each_call_below_it_names_one_thing_in_an_open_directory() {
    if !there_is("strace") {
        return skipped("strace is not installed");
    }
    everything_is_done_by_one_name(Way::default());
}

#[test]
fn with_few_descriptors_directories_are_opened_again_by_one_name_and_never_by_a_path() {
    if !there_is("strace") {
        return skipped("strace is not installed");
    }
    everything_is_done_by_one_name(Way { open_files: Some(FEW_FILES), ..Way::default() });
}

/// Fewer than twice as many directories as the trees have may be open.
const FEW_FILES: &str = "32";

const WITHOUT_OPENAT2: Way<'_> = Way { inject: &["-e", "inject=openat2:error=ENOSYS"], open_files: None };

#[test]
fn without_openat2_it_is_done_step_by_step_and_links_are_refused_all_the_same() {
    if !there_is("strace") {
        return skipped("strace is not installed");
    }
    everything_is_done_by_one_name(WITHOUT_OPENAT2);
    let place = Place::with_key();
    sow(&place);
    symlink("in", place.join("tree")).unwrap();
    let owner = |owner: u32| lchown(place.join("tree"), Some(owner), None);
    if fs::metadata(place.path()).unwrap().uid() != 0 {
        return skipped("only root can make a link another user's");
    }
    owner(65_534).unwrap();
    let (ran, _) = traced(&place, WITHOUT_OPENAT2, &["encrypt", "-o", "sealed", "tree"]);
    assert_ne!(ran.code(), Some(0));
    ran.saying("belongs to another user (uid 65534)");
    owner(0).unwrap();
    let (ran, trace) = traced(&place, WITHOUT_OPENAT2, &["encrypt", "-o", "sealed", "tree"]);
    ran.succeeded();
    assert!(trace.contains("openat2(") && trace.contains("(INJECTED)"), "openat2 was not asked for");
}

#[test]
fn the_judge_of_calls_sees_what_it_is_to_see() {
    let trees = [PathBuf::from("/p/in")];
    let judged = |line: &str| parsed(line).and_then(|call| fault(&call, Path::new("/p"), &trees));
    for (line, is_wrong) in [
        (r#"7 openat(AT_FDCWD</p>, "in/a", O_RDONLY|O_NOFOLLOW) = 3</p/in/a>"#, true),
        (r#"7 openat(3</p/in>, "a/b", O_RDONLY|O_NOFOLLOW) = 3</p/in/a/b>"#, true),
        (r#"7 openat(3</p/in/a>, "..", O_RDONLY|O_NOFOLLOW) = 3</p/in>"#, false),
        (r#"7 openat(3</p/in>, "a", O_RDONLY) = 3</p/in/a>"#, true),
        (r#"7 openat(3</p/in>, "a", O_RDONLY|O_NOFOLLOW) = 3</p/in/a>"#, false),
        (r#"7 openat(AT_FDCWD</p>, "in", O_RDONLY) = 3</p/in>"#, false),
        (r#"7 stat("/p/in/a", {st_mode=S_IFREG, ...}) = 0"#, true),
        (r#"7 rename("x", "in/../in/b") = 0"#, true),
        (r#"7 newfstatat(3</p/in>, "a", {st_mode=S_IFREG|0644, st_size=4, ...}, 0) = 0"#, true),
        (r#"7 newfstatat(3</p/in>, "a", {st_mode=S_IFREG, ...}, AT_SYMLINK_NOFOLLOW) = 0"#, false),
        (r#"7 newfstatat(3</p/in/a>, "", {st_mode=S_IFREG, ...}, AT_EMPTY_PATH) = 0"#, false),
        (r#"7 renameat2(3</p/in>, "x", 3</p/in>, "b/c", RENAME_NOREPLACE) = 0"#, true),
        (r#"7 renameat2(3</p/in>, "x", 3</p/in>, "b", RENAME_NOREPLACE) = 0"#, false),
        (r#"7 symlinkat("/p/in/x", 3</p/in>, "b") = 0"#, false),
        (r#"7 fchmodat(3</p/in>, "a", 0644) = 0"#, true),
        (r#"7 linkat(3</p/in>, "a", 3</p/in>, "b", 0) = 0"#, false),
        (r#"7 linkat(3</p/in>, "a", 3</p/in>, "b", AT_SYMLINK_FOLLOW) = 0"#, true),
    ] {
        assert_eq!(judged(line).is_some(), is_wrong, "{line}: {:?}", judged(line));
    }
    let split = "7 openat(AT_FDCWD</p>, \"in/a\",  <unfinished ...>\n8 close(3) = 0\n7 <... openat resumed>O_RDONLY) = 3";
    assert!(whole_calls(split).iter().any(|line| judged(line).is_some()));
}
