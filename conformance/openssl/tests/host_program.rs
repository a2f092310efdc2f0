//! What a program does at its borders, with and without Evener: it frees after libcrypto's end, may not write files, has no memory left,
//! cancels its threads, and looks for its keys on the stack.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output};

use evener::core::counts::{Count, Row};
use evener::counts_file::{DIRECTORY_VARIABLE, Directories, Record, of_user};
use evener_conformance_openssl::program::Program;
use evener_conformance_openssl::{Setup, bounded, openssl_build};
use evener_testing::hosts::{AT_ONCE, HostProcess, requests, serve};

const SECONDS_MAX: u32 = 60;

/// Nothing configured; statistics, threads and combining as users switch them on.
fn setups() -> [Setup; 2] {
    ["", "combine = auto\nthreads = auto"].map(|keys| Setup::evener(keys).without_legacy())
}

/// OpenSSL alone. Its module `legacy` dies of late frees, too, so it has no part in this.
fn plain() -> Setup {
    Setup::plain().without_legacy()
}

fn text_of(output: &Output) -> String {
    format!("{:?}: {}", output.status, String::from_utf8_lossy(&output.stderr))
}

#[test]
#[ignore = "the process of a host, which the tests start"]
fn host_process() {
    serve();
}

fn host() -> HostProcess {
    HostProcess::start("host_process", AT_ONCE)
}

/// Everything of at least 16 bytes goes to the module of that host.
fn hosted(host: &HostProcess) -> Setup {
    let keys = format!("guard = off\nthreshold = 16\nmodules = {}", host.module());
    Setup::evener(&keys).without_legacy()
}

#[test]
fn what_is_freed_after_libcrypto_s_end_does_not_end_the_program() {
    let program = Program::build("late_free");
    let run = |setup: &Setup, kind: &str, when: &str| {
        let mut command = setup.command(&program.path().to_string_lossy());
        command.args([kind, when]);
        if setup.module().exists() {
            command.env("LATE_FREE_MODULE", setup.module());
        }
        bounded(SECONDS_MAX, &command)
    };
    let is_fine = |output: &Output| output.status.success() && output.stdout == b"freed\n";
    let plain = plain();
    for when in ["exit", "cleanup", "unload"] {
        for kind in ["d", "D", "c", "C", "G", "M", "K", "R", "P", "S", "CDGMS"] {
            let judge = run(&plain, kind, when);
            assert!(is_fine(&judge), "plain OpenSSL, {kind} at {when}: {}", text_of(&judge));
            for setup in setups() {
                let output = run(&setup, kind, when);
                assert!(is_fine(&output), "{kind} at {when}: {}", text_of(&output));
            }
        }
    }
}

/// The length in blocks of 512 bytes as `ulimit -f` counts them (POSIX), by a shell that becomes the program: a limit of this process would be
/// one for all tests.
fn with_files_of(blocks: u32, setup: &Setup, words: &str) -> Output {
    let command = openssl_build().map_or_else(|| "openssl".into(), |build| build.join("apps/openssl"));
    let mut shell: Command = setup.command("sh");
    shell.args(["-c", &format!("ulimit -f {blocks} && exec \"$0\" {words}")]).arg(command);
    bounded(SECONDS_MAX, &shell)
}

#[test]
fn a_program_that_may_not_write_files_is_not_ended_by_one_of_ours() {
    for (blocks, words) in [
        (0, "dgst -sha256 /etc/passwd"),
        (8, "dgst -sha256 /etc/passwd"),
        (0, "enc -aes-256-cbc -K 11 -iv 22 -in /proc/self/exe"),
    ] {
        let judge = with_files_of(blocks, &plain(), words);
        assert!(judge.status.success() && !judge.stdout.is_empty(), "plain OpenSSL: {}", text_of(&judge));
        for setup in setups() {
            let output = with_files_of(blocks, &setup, words);
            assert!(output.status.success(), "{blocks} blocks, {words}: {}", text_of(&output));
            assert!(output.stdout == judge.stdout, "{words}");
        }
    }
}

/// As the set-ups above, one where every request goes another way than OpenSSL's, and one where kernels of ours compute.
fn armed_setups() -> [Setup; 4] {
    let always = "guard = off\nthreshold = 1024\nthreads = 2\ncombine = auto\nsplit = 65536";
    ["", "combine = auto\nthreads = auto", always, "kernels = on"]
        .map(|keys| Setup::evener(keys).without_legacy())
}

/// A directory of counts in which so many processes that ended have left theirs.
fn counts_of(processes: u32) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    // Numbers that no process has (`pid_max` of Linux is 2^22 at most).
    let pids = (1_u32 << 23..).take(processes as usize);
    pids.for_each(|pid| drop(File::create(directory.path().join(format!("{pid}.stats"))).unwrap()));
    directory
}

#[test]
fn an_allocation_that_fails_is_an_error_and_never_the_end_of_the_program() {
    let program = Program::build("failing_malloc");
    // Their names are more than the reserve's largest block, and one process in 64 looks at them.
    let counts = counts_of(12_000);
    for setup in armed_setups() {
        for when in ["loaded", "threads"] {
            let mut command = setup.command(&program.path().to_string_lossy());
            command.env("EVENER_STATISTICS_DIR", counts.path());
            let output = bounded(SECONDS_MAX, command.args([when, "1"]));
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && said.contains(" 0 bad"), "{when}: {said}{}", text_of(&output));
        }
    }
}

#[test]
fn an_allocation_that_fails_while_the_provider_is_loaded_is_an_error() {
    let program = Program::build("failing_malloc");
    for setup in armed_setups() {
        let mut command = plain().command(&program.path().to_string_lossy());
        // Some thousand allocations, most of them the configuration's.
        let output = bounded(SECONDS_MAX, command.args(["loading", "23"]).arg(setup.path()));
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.ends_with(" bad\n"), "{said}{}", text_of(&output));
        // OpenSSL 3.0 frees a provider twice where it cannot be added to its list; that is so with its own module `legacy`, too (8 of
        // 10,476 cases), and not ours to mend.
        let theirs = |line: &&str| line.ends_with("signal 11");
        let bad: Vec<&str> = said.lines().filter(|line| line.starts_with("allocation")).collect();
        assert!(bad.iter().all(theirs) && bad.len() <= 3, "{said}");
    }
}

#[test]
fn no_key_is_left_on_the_stack() {
    let program = Program::build("key_on_the_stack");
    // Round keys go through registers, of which the narrower have fewer.
    let narrow = ["kernels = 128", "kernels = 256"].map(|keys| Setup::evener(keys).without_legacy());
    for setup in [plain()].into_iter().chain(armed_setups()).chain(narrow) {
        let output = bounded(SECONDS_MAX, &setup.command(&program.path().to_string_lossy()));
        assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stdout), text_of(&output));
    }
}

/// Pieces are shared between threads, by kernels.
fn shared() -> Setup {
    Setup::evener("threads = 2\nsplit = 65536\nguard = off\nkernels = on").without_legacy()
}

fn text_of_setup(setup: &Setup) -> String {
    fs::read_to_string(setup.path()).unwrap()
}

#[test]
fn no_key_is_left_in_a_program_that_has_freed_all() {
    let host = host();
    let setups = [plain()].into_iter().chain(armed_setups()).chain([shared(), hosted(&host)]);
    let setups: Vec<Setup> = setups.collect();
    let messages = ["16", "65536", "1000000"].map(|bytes| [[bytes, "e"], [bytes, "d"]]).concat();
    for when in ["lazy", "now"] {
        let program = Program::bound("keys_after_free", when);
        let copies = |setup: &Setup, words: &[&str]| {
            let mut command = setup.command(&program.path().to_string_lossy());
            let output = bounded(SECONDS_MAX, command.args(words));
            let said = String::from_utf8_lossy(&output.stdout);
            let place = format!("{words:?}, bound {when}, {}", text_of_setup(setup));
            assert!(said == "0 copies\n", "{said}{}: {place}", text_of(&output));
        };
        for (setup, mode) in
            setups.iter().flat_map(|setup| ["GCM", "CTR", "XTS", "CBC", "ECB"].map(|mode| (setup, mode)))
        {
            let name = format!("AES-256-{mode}");
            for [bytes, direction] in &messages {
                copies(setup, &[&name, bytes, direction]);
                copies(setup, &[&name, bytes, direction, "copy"]);
            }
        }
    }
}

/// What is the inner cipher's alone is not looked at: OpenSSL's copies of GCM leave round keys there.
#[test]
fn no_call_of_a_kernel_s_context_leaves_a_round_key_in_vector_registers() {
    let program = Program::build("keys_in_registers");
    let kernels =
        ["on", "128", "256"].map(|which| Setup::evener(&format!("kernels = {which}")).without_legacy());
    for setup in kernels.into_iter().chain([shared()]) {
        let output = bounded(SECONDS_MAX, &setup.command(&program.path().to_string_lossy()));
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}{}: {}", text_of(&output), text_of_setup(&setup));
    }
}

#[test]
fn a_call_that_is_refused_answers_and_leaves_errors_as_by_openssl_alone() {
    let program = Program::build("refusals");
    let said = |setup: &Setup| {
        let output = bounded(SECONDS_MAX, &setup.command(&program.path().to_string_lossy()));
        assert!(output.status.success(), "{}", text_of(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let expected = said(&plain());
    assert!(expected.lines().count() > 1_000);
    let others = [
        "kernels = auto\ncombine = auto",
        "kernels = 128",
        "kernels = on\nthreads = 3\nsplit = 16\nguard = off",
    ];
    let others = others.map(|keys| Setup::evener(keys).without_legacy());
    for setup in armed_setups().into_iter().chain([shared()]).chain(others) {
        let said = said(&setup);
        let differs = expected.lines().zip(said.lines()).find(|(expected, said)| expected != said);
        assert_eq!(differs, None, "{}", text_of_setup(&setup));
        assert_eq!(said.len(), expected.len());
    }
}

/// Copies of the key in memory that a core dump would have: while contexts live, and after they were freed.
fn key_copies(program: &Program, setup: &Setup) -> [u32; 2] {
    let output = bounded(SECONDS_MAX, &setup.command(&program.path().to_string_lossy()));
    let said = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<u32> = said.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    numbers.try_into().unwrap_or_else(|_| panic!("{said}{}", text_of(&output)))
}

#[test]
fn a_core_dump_has_no_more_copies_of_a_key_than_with_openssl_alone_and_none_after_the_end() {
    let program = Program::build("keys_in_dumps");
    let [plain_living, plain_freed] = key_copies(&program, &plain());
    // Contexts of OpenSSL's own, whose schedules begin with the key.
    assert!(plain_living >= 4 && plain_freed == 0, "{plain_living} and {plain_freed}");
    let host = host();
    for setup in armed_setups().into_iter().chain([hosted(&host)]) {
        let [living, freed] = key_copies(&program, &setup);
        // A GCM message that is split has two more contexts of OpenSSL's.
        assert!(living <= plain_living + 2 && freed == 0, "{living} living, {freed} freed: {}", setup.name());
    }
}

/// Whole for `test-full`: the programs' own number of times for users' hours.
#[test]
#[ignore = "takes minutes; for test-full"]
fn three_hundred_threads_that_are_cancelled_twenty_times_end_alone() {
    let program = Program::build("cancelled_threads");
    let host = host();
    for setup in [plain()].into_iter().chain(armed_setups()).chain([hosted(&host)]) {
        for run in 0..20 {
            let mut command = setup.command(&program.path().to_string_lossy());
            let output = bounded(SECONDS_MAX, command.args(["300", "65536"]));
            assert!(output.stdout == b"300 cancelled\n", "run {run}, {}: {}", setup.name(), text_of(&output));
        }
    }
}

#[test]
fn an_allocation_that_fails_beside_a_module_of_a_host_is_an_error_and_never_the_end_of_the_program() {
    let program = Program::build("failing_malloc");
    let host = host();
    let (setup, before) = (hosted(&host), requests(&host.control()));
    for when in ["loaded", "threads"] {
        let mut command = setup.command(&program.path().to_string_lossy());
        let output = bounded(SECONDS_MAX, command.args([when, "1"]));
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains(" 0 bad"), "{when}: {said}{}", text_of(&output));
    }
    assert!(requests(&host.control()) > before, "the host was asked");
}

#[test]
fn threads_that_are_cancelled_end_alone() {
    let program = Program::build("cancelled_threads");
    for setup in [plain()].into_iter().chain(armed_setups()) {
        for bytes in ["4096", "262144"] {
            let mut command = setup.command(&program.path().to_string_lossy());
            let output = bounded(SECONDS_MAX, command.args(["100", bytes]));
            assert!(output.stdout == b"100 cancelled\n", "{bytes} bytes: {}", text_of(&output));
        }
    }
}

#[test]
fn a_thread_with_the_smallest_stack_may_be_the_first_that_encrypts() {
    let program = Program::build("small_stack");
    let host = host();
    let named = Setup::evener(&format!("combine = auto\nthreads = auto\nmodules = {}", host.module()));
    let before = requests(&host.control());
    for setup in [plain(), named.without_legacy(), hosted(&host)].into_iter().chain(armed_setups()) {
        for bytes in ["4096", "262144"] {
            let mut command = setup.command(&program.path().to_string_lossy());
            let output = bounded(SECONDS_MAX, command.arg(bytes));
            assert!(output.stdout == b"done\n", "{} {bytes}: {}", setup.name(), text_of(&output));
        }
    }
    assert!(requests(&host.control()) > before, "some went to the host");
}

#[test]
fn a_process_whose_first_thread_has_ended_ends_with_its_last_one() {
    let program = Program::build("first_thread_ends");
    let host = host();
    for setup in [plain(), hosted(&host)].into_iter().chain(armed_setups()) {
        let mut command = setup.command(&program.path().to_string_lossy());
        let output = bounded(SECONDS_MAX, command.arg("524288"));
        assert!(
            output.status.success() && output.stdout == b"done\n",
            "{}: {}",
            setup.name(),
            text_of(&output)
        );
    }
}

/// Whether a program ends by itself whose first thread returns from `main` after so many microseconds while four others are inside of calls of EVP.
fn ends_by_itself(program: &Program, setup: &Setup, kind: &str, microseconds: u32) -> bool {
    let mut command = setup.command(&program.path().to_string_lossy());
    bounded(SECONDS_MAX, command.args([kind, "4", &microseconds.to_string()])).status.success()
}

#[test]
fn a_program_may_return_from_main_while_its_threads_encrypt() {
    let program = Program::build("exit_in_calls");
    let host = host();
    let before = requests(&host.control());
    for setup in [plain(), hosted(&host)].into_iter().chain(armed_setups()) {
        for (kind, run) in ["kept", "made"].into_iter().flat_map(|kind| (0..8).map(move |run| (kind, run))) {
            assert!(
                ends_by_itself(&program, &setup, kind, 5_000 + run * 3_001),
                "{} {kind} {run}",
                setup.name()
            );
        }
    }
    assert!(requests(&host.control()) > before);
}

/// Where threads look for ciphers at that moment, OpenSSL 3.0 frees its own lists beneath them and dies in some of a hundred runs (docs/guide/limits.md). With
/// Evener it may do so as often, and not more often than chance has it: four times what the difference of two such counts is usually off by.
#[test]
#[ignore = "takes minutes; for test-full"]
fn a_program_whose_threads_look_for_ciphers_at_its_end_dies_no_more_often_than_with_openssl_alone() {
    const RUNS: u32 = 300;
    let program = Program::build("exit_in_calls");
    let host = host();
    let setups: Vec<Setup> = [plain(), hosted(&host)].into_iter().chain(armed_setups()).collect();
    let mut deaths = vec![0_u32; setups.len()];
    for run in 0..RUNS {
        for (setup, deaths) in setups.iter().zip(&mut deaths) {
            *deaths += u32::from(!ends_by_itself(&program, setup, "fetched", 10_000 + run * 7_919 % 20_000));
        }
    }
    println!("deaths of {RUNS}, with OpenSSL alone first: {deaths:?}");
    let most = f64::from(deaths[0]) + 4.0 * f64::from(2 * deaths[0].max(4)).sqrt();
    assert!(deaths.iter().all(|&deaths| f64::from(deaths) <= most), "{deaths:?}");
}

#[test]
fn a_program_is_told_of_a_descriptor_or_never_has_it() {
    let program = Program::build("async_jobs");
    let host = host();
    let setup = hosted(&host);
    let late = Program::library("late_thread");
    for (arguments, preloaded) in [(&["20"][..], None), (&["20"], Some(&late)), (&["20", "blocked"], None)] {
        let before = requests(&host.control());
        let mut command = setup.command(&program.path().to_string_lossy());
        preloaded.iter().for_each(|library| _ = command.env("LD_PRELOAD", library.path()));
        let output = bounded(SECONDS_MAX, command.args(arguments));
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.ends_with(", 0 unshown\n"), "{said}{}", text_of(&output));
        assert!(requests(&host.control()) - before >= 80, "{said}");
        // Else no answer was there before the program could be told.
        assert!(preloaded.is_none() || !said.contains(" 0 finished"), "{said}");
    }
}

/// Descriptors, KiB that malloc has given out, and KiB of memory of its own that the last of so many generations has more than one before.
fn growth(program: &Program, setup: &Setup, generations: u32) -> [i64; 3] {
    let place = tempfile::tempdir().unwrap();
    let counts = place.path().join("counts");
    let mut command = setup.command(&program.path().to_string_lossy());
    command.args([&generations.to_string(), "65536"]).env(DIRECTORY_VARIABLE, &counts);
    let output = bounded(SECONDS_MAX, &command);
    assert!(output.status.success(), "{}", text_of(&output));
    let said = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<i64> = said.split_whitespace().map(|word| word.parse().unwrap()).collect();
    let [earlier, last] = [&numbers[..3], &numbers[3..6]];
    let is_split = fs::read_to_string(setup.path()).unwrap().contains("split = ");
    // Of those that have ended only a few files are kept.
    assert!(!is_split || splits(&counts) > 0, "nothing was split");
    std::array::from_fn(|index| last[index] - earlier[index])
}

/// Requests that programs of this user have split, by their counts in `directory`.
fn splits(directory: &Path) -> u64 {
    let records = of_user(&Directories::only(directory.into()), rustix::process::geteuid().as_raw());
    let of = |record: Record| Row::all().map(|row| record.count(row, Count::Split)).sum::<u64>();
    records.into_iter().filter_map(|(_, record)| record.ok()).map(of).sum()
}

/// Each message of 64 KiB is split.
const SPLIT: &str = "threads = 2\nsplit = 16384\nguard = off";

/// What the heap's layout may come to once and for all, in KiB, beside what is given out.
const LAYOUT_KIB: i64 = 64;

fn a_line_of_children_does_not_grow(generations: u32) {
    let program = Program::build("generations");
    let host = host();
    let named = Setup::evener(&format!("combine = auto\nthreads = auto\nmodules = {}", host.module()));
    let [_, plain_given, plain_own] = growth(&program, &plain(), generations);
    let before = requests(&host.control());
    let [nothing, ways] = setups();
    let all = [
        ("nothing", nothing),
        ("ways", ways),
        ("split", Setup::evener(SPLIT)),
        ("split, by kernels", Setup::evener(&format!("{SPLIT}\nkernels = on"))),
        ("host, judged", named.without_legacy()),
        ("host", hosted(&host)),
    ];
    for (name, setup) in all {
        let is_small = |[fds, given, own]: [i64; 3]| {
            fds == 0 && given <= plain_given + 8 && own <= plain_own + LAYOUT_KIB
        };
        let grown = growth(&program, &setup, generations);
        // What a policy first tries, it makes once and for all, in whatever generation that is, and the C library takes memory by 132 KiB;
        // what grows, grows more in a longer line: by what a short one has grown, the longer one may have, too.
        let again = if is_small(grown) { grown } else { growth(&program, &setup, 4 * generations) };
        let more = std::array::from_fn(|index| again[index] - grown[index]);
        assert!(
            is_small(again) || is_small(more),
            "{name}: {grown:?} and {again:?}, plain {plain_given} and {plain_own} KiB"
        );
    }
    assert!(requests(&host.control()) - before > generations.into(), "each has asked the host");
}

#[test]
fn a_hundred_generations_of_children_that_encrypt_do_not_grow() {
    a_line_of_children_does_not_grow(120);
}

#[test]
#[ignore = "takes a minute; for test-full"]
fn a_thousand_generations_of_children_that_encrypt_do_not_grow() {
    a_line_of_children_does_not_grow(1_000);
}

#[test]
fn behind_a_first_large_request_a_sandbox_may_forbid_all_that_opens_makes_or_begins() {
    let program = Program::build("sandboxed");
    let host = host();
    let named = Setup::evener(&format!("combine = auto\nthreads = auto\nmodules = {}", host.module()));
    let all = [plain(), named.without_legacy(), hosted(&host)];
    let before = requests(&host.control());
    for setup in all.into_iter().chain(armed_setups()) {
        // Small messages alone; then as many large ones as teach the guard to split, in a process and in a child.
        for arguments in [&["0", "1"][..], &["0", "1", "child"], &["1", "60"], &["1", "60", "child"]] {
            let mut command = setup.command(&program.path().to_string_lossy());
            let output = bounded(SECONDS_MAX, command.args(arguments));
            assert!(output.stdout == b"alive\n", "{arguments:?}: {}", text_of(&output));
        }
    }
    assert!(requests(&host.control()) > before + 100);
}

#[test]
fn a_filter_that_refuses_the_clocks_of_core_time_costs_no_message() {
    let program = Program::build("refused_clock");
    let host = host();
    let named = Setup::evener(&format!("combine = auto\nthreads = auto\nmodules = {}", host.module()));
    let all = [plain(), named.without_legacy(), hosted(&host)];
    for setup in all.into_iter().chain(armed_setups()) {
        for (cipher, bytes) in [("AES-256-CBC", "1048576"), ("AES-256-CBC", "16384"), ("AES-256-CTR", "5000")]
        {
            for contexts in ["again", "new"] {
                let mut command = setup.command(&program.path().to_string_lossy());
                let output = bounded(SECONDS_MAX, command.args([cipher, bytes, contexts]));
                let case = format!("{} {cipher} {bytes} {contexts}", setup.name());
                assert!(output.stdout == b"300\n", "{case}: {}", text_of(&output));
            }
        }
    }
}

/// It is entered by a child that has done nothing yet, nor has its parent where that is said, so that whatever is made for a process is refused to it, and nothing may try.
#[test]
fn in_openssh_s_filter_a_child_encrypts_what_it_likes() {
    let program = Program::build("sandboxed");
    let host = host();
    let named = Setup::evener(&format!("combine = auto\nthreads = auto\nmodules = {}", host.module()));
    let all = [plain(), named.without_legacy(), hosted(&host)];
    for setup in all.into_iter().chain(armed_setups()) {
        for parent in ["ssh", "first"] {
            let mut command = setup.command(&program.path().to_string_lossy());
            let output = bounded(SECONDS_MAX, command.args(["0", "60", parent]));
            assert!(output.stdout == b"alive\n", "{} {parent}: {}", setup.name(), text_of(&output));
        }
    }
}

#[test]
fn a_programs_malloc_maps_and_trims_as_without_evener() {
    let program = Program::build("malloc_thresholds");
    let told = |setup: &Setup| -> [u64; 2] {
        let output = bounded(SECONDS_MAX, &setup.command(&program.path().to_string_lossy()));
        assert!(output.status.success(), "{}", text_of(&output));
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let numbers: Vec<u64> = said.split_whitespace().map(|word| word.parse().unwrap()).collect();
        numbers.try_into().unwrap()
    };
    let [mapped, faults] = told(&plain());
    let (host, mut all) = (host(), Vec::from(setups()));
    all.extend(["kernels = on", "threads = auto"].map(|keys| Setup::evener(keys).without_legacy()));
    all.push(hosted(&host));
    for (at, setup) in all.iter().enumerate() {
        let [ours_mapped, ours_faults] = told(setup);
        // Where the heap ends within a page differs.
        assert!(ours_mapped.abs_diff(mapped) <= 4096, "{at}: mapped from {ours_mapped}, {mapped} without");
        assert!(ours_faults.abs_diff(faults) <= faults / 100, "{at}: {ours_faults} faults, {faults} without");
    }
    assert!(requests(&host.control()) > 0);
}
