//! What a program does at its borders, with and without Evener: it frees after libcrypto's end, or may not write files.

use std::process::{Command, Output};

use evener_conformance_openssl::program::Program;
use evener_conformance_openssl::{Setup, bounded, openssl_build};

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
