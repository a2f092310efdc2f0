//! Programs in C against the header and the shared library: the examples and the tests below `c/`, by a strict compiler, by themselves,
//! under valgrind, and with the compiler's sanitizers; and what of the interface compiled programs depend on, against what was released.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test that cannot go on fails")]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::{env, fs};

use evener_testing::Folder;

/// The crate.
fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder with the shared library, linked once of what was built with this test.
fn library() -> &'static Path {
    static LINKED: OnceLock<PathBuf> = OnceLock::new();
    LINKED.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libevener");
        fs::create_dir_all(&folder).unwrap();
        let mut link = Command::new(env!("CARGO"));
        link.current_dir(here()).args(["xtask", "libevener"]).arg(archive()).arg(&folder);
        succeeded(link);
        folder
    })
}

/// The static library that was built with this test: the newest, where builds with other features left some.
fn archive() -> PathBuf {
    let deps = env::current_exe().unwrap().parent().unwrap().to_owned();
    let files = fs::read_dir(deps).unwrap().map(|entry| entry.unwrap().path());
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with("libevener_c") && name.ends_with(".a")
    };
    files.filter(is_ours).max_by_key(|path| path.metadata().unwrap().modified().unwrap()).unwrap()
}

fn succeeded(mut command: Command) -> Output {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}\n{}{}", text(&output.stdout), text(&output.stderr));
    output
}

/// Compiles a program with these options besides; where it is.
fn compiled(source: &Path, options: &[&str], folder: &Path) -> PathBuf {
    let program = folder.join(source.file_stem().unwrap());
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-g", "-O1"]);
    compiler.args(["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]).args(options);
    compiler.arg("-I").arg(here().join("include")).arg(source).arg("-o").arg(&program);
    compiler.arg("-L").arg(library()).args(["-levener", "-lpthread"]);
    succeeded(compiler);
    program
}

fn run(program: &Path, under: &[&str]) -> String {
    let mut words = under.iter().map(OsStr::new).chain([program.as_os_str()]);
    let mut command = Command::new(words.next().unwrap());
    // What jobs cost here is not kept for other programs.
    let cache = program.with_extension("cache");
    command.args(words).env("LD_LIBRARY_PATH", library()).env("XDG_CACHE_HOME", cache);
    String::from_utf8(succeeded(command).stdout).unwrap()
}

/// Each source of a folder.
fn sources(folder: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(here().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|it| it == "c")).collect();
    files.sort();
    files
}

/// What each example prints.
const EXAMPLES: [(&str, &str); 4] = [
    ("aead", "sealed, opened, and refused after a change: not authentic\n"),
    ("burst", "64 messages of 4096 bytes there and back\n"),
    ("hashes", "97 digests, and three jobs that cannot be: an argument or a job that cannot be\n"),
    ("poll", "1000 jobs came back once each, told by poll\n"),
];

fn check_examples(options: &[&str], under: &[&str]) {
    let folder = Folder::temporary();
    let sources = sources("examples");
    assert_eq!(sources.len(), EXAMPLES.len());
    for (source, (name, printed)) in sources.iter().zip(EXAMPLES) {
        assert_eq!(source.file_stem().unwrap(), name);
        assert_eq!(run(&compiled(source, options, folder.path()), under), printed, "{name}");
    }
}

#[test]
fn the_examples_print_what_they_say() {
    check_examples(&[], &[]);
}

#[test]
fn the_examples_are_clean_under_the_compilers_sanitizers() {
    check_examples(&SANITIZERS, &[]);
}

/// What they find ends the program.
const SANITIZERS: [&str; 2] = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

const VALGRIND: [&str; 6] = [
    "valgrind",
    "--quiet",
    "--error-exitcode=9",
    "--leak-check=full",
    "--errors-for-leak-kinds=definite,indirect",
    "--fair-sched=yes",
];

/// Whether it is there; says so where not.
fn has_valgrind() -> bool {
    let is_there = Command::new("valgrind").arg("--version").output().is_ok_and(|it| it.status.success());
    if !is_there {
        println!("skipped: no valgrind");
    }
    is_there
}

#[test]
fn the_examples_are_clean_under_valgrind() {
    if has_valgrind() {
        check_examples(&[], &VALGRIND);
    }
}

#[test]
fn threads_forks_and_what_cannot_be_are_answered_as_the_header_says() {
    let folder = Folder::temporary();
    let has_valgrind = has_valgrind();
    for name in ["alone", "cancel", "cancelled", "fork", "misuse", "threads"] {
        let source = here().join("tests/c").join(name).with_extension("c");
        run(&compiled(&source, &[], folder.path()), &[]);
        // They take the stack of a thread that is cancelled for one that it has not left.
        if name != "cancelled" {
            run(&compiled(&source, &SANITIZERS, folder.path()), &[]);
        }
        if has_valgrind {
            // What the parent's threads have is lost to a child, which has none of them.
            let leaks = if name == "fork" { "--leak-check=no" } else { "--leak-check=full" };
            run(&compiled(&source, &[], folder.path()), &[&VALGRIND[..], &[leaks]].concat());
        }
    }
}

#[test]
fn what_jobs_cost_is_kept_for_later_programs_unless_a_program_forbids_it() {
    let folder = Folder::temporary();
    let keeps = |source: &str| {
        let program = compiled(&here().join(source), &[], folder.path());
        run(&program, &[]);
        let files = evener_testing::files(folder.path());
        let cache = program.with_extension("cache").file_name().unwrap().to_string_lossy().into_owned();
        files.iter().any(|file| file.to_string_lossy().contains(&cache))
    };
    assert!(keeps("examples/burst.c") && !keeps("tests/c/misuse.c"));
}

#[test]
fn the_header_is_one_for_older_c_and_for_cpp() {
    let header = here().join("include/evener.h");
    for words in [["cc", "-xc", "-std=c99"], ["c++", "-xc++", "-std=c++11"]] {
        let mut compiler = Command::new(words[0]);
        compiler.args(&words[1..]).args(["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]);
        match compiler.arg(&header).output() {
            Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
            Err(absent) => println!("skipped: {}: {absent}", words[0]),
        }
    }
}

#[test]
fn what_compiled_programs_depend_on_is_as_it_was_released() {
    let folder = Folder::temporary();
    let mut now = run(&compiled(&here().join("tests/c/layout.c"), &[], folder.path()), &[]);
    let mut symbols = Command::new("nm");
    symbols.args(["--dynamic", "--defined-only", "--format=posix", "--with-symbol-versions"]);
    symbols.arg(library().join("libevener.so.0"));
    let symbols = String::from_utf8(succeeded(symbols).stdout).unwrap();
    let mut symbols: Vec<&str> = symbols.lines().map(|line| line.split(' ').next().unwrap()).collect();
    symbols.sort_unstable();
    now.extend(symbols.iter().map(|symbol| format!("{symbol}\n")));
    let kept = here().join("tests/released.txt");
    let released = fs::read_to_string(&kept).unwrap_or_default();
    assert!(
        now == released,
        "it is another interface than {} has. Where programs that were compiled before go on with it, write there:\n{now}",
        kept.display()
    );
}

#[test]
fn the_structs_in_rust_lie_as_those_in_c() {
    use evener_c::abi::{Job, Options, Statistics};
    let folder = Folder::temporary();
    let layout = run(&compiled(&here().join("tests/c/layout.c"), &[], folder.path()), &[]);
    let mut ours = Vec::new();
    macro_rules! lay {
        ($name:literal $type:ty: $($field:ident),*) => {
            ours.push(format!("sizeof {} {}", $name, size_of::<$type>()));
            $(ours.push(format!("{}.{} {}", $name, stringify!($field), std::mem::offset_of!($type, $field)));)*
        };
    }
    lay!("evener_job" Job: session, src, src_len, dst, dst_space, aad, aad_len, iv, tag, user_data, written, status, reserved0, reserved);
    lay!("evener_options" Options: size, threads, flags, modules, policy);
    lay!("evener_statistics" Statistics: size, jobs, bytes, failed, lane_jobs, lane_bytes, module_jobs, module_bytes, redone, checked, lost_modules);
    let of_structs = layout.lines().filter(|line| line.contains('.') || line.starts_with("sizeof"));
    let theirs: Vec<&str> = of_structs.map(|line| line.split('+').next().unwrap()).collect();
    assert_eq!(theirs, ours);
}
