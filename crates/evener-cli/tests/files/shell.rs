//! Ways of a shell: filters, pipes, devices and descriptors as inputs and outputs, signals, and what is said and what is not. Other programs do all of
//! it alike, so a shell script relies on it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::common::{EVENER, Place, Ran, files, noise};
use evener_testing::waiting::soon;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{LocalModes, tcgetattr};

const SIGPIPE: i32 = 13;

/// A shell's line, in which `$E` is the command.
fn shell(place: &Place, line: &str) -> Ran {
    let mut run = place.program("sh").args(["-c", line]).env("E", EVENER);
    run.command.env("EVENER_ARBITER", "off");
    run.run()
}

/// A place with a keyset, an identity, its recipient in `R`, and inputs.
fn place() -> Place {
    let place = Place::with_key();
    place.evener().args(["keygen", "--age", "id"]).run().succeeded();
    place.write("f", "some text\n");
    place.write("large", noise(3, 3_000_000));
    place.evener().args(["encrypt", "--key", "k.json", "-q", "-o", "f.sealed", "f"]).run().succeeded();
    place
        .evener()
        .args(["encrypt", "--key", "k.json", "-q", "-o", "large.sealed", "large"])
        .run()
        .succeeded();
    place
}

fn is_dead_by(status: ExitStatus, signal: i32) -> bool {
    (status.code(), status.signal()) == (None, Some(signal))
}

// -- filters -------------------------------------------------------------------------------------------------------------

#[test]
fn without_input_and_output_it_is_a_filter_that_says_nothing() {
    let place = place();
    let text = fs::read(place.join("large")).unwrap();
    for way in [["--key", "k.json"], ["-i", "id"]] {
        let sealed = place.evener().arg("encrypt").args(way).input(text.clone()).run().succeeded();
        assert_eq!(sealed.stderr(), "");
        let back = place.evener().arg("decrypt").args(way).input(sealed.stdout()).run().succeeded();
        assert_eq!((back.stdout() == text, back.stderr()), (true, ""));
    }
    let back = place.evener().args(["decrypt", "--key", "k.json", "-o", "-", "f.sealed"]).run().succeeded();
    assert_eq!((back.stdout(), back.stderr()), (&b"some text\n"[..], ""));
    let several = ["decrypt", "--key", "k.json", "-o", "-", "f.sealed", "large.sealed"];
    let several = place.evener().args(several).run();
    several.ended_with(2).saying("exactly one input");
}

#[test]
fn ciphertext_is_not_shown_on_a_terminal() {
    let place = place();
    let (ran, shown) = place.at_a_terminal(
        "sh",
        &[
            "-c",
            &format!(
                "{EVENER} encrypt --key k.json -o - f >/dev/tty; {EVENER} encrypt --key k.json -o /dev/tty f"
            ),
        ],
        &[],
    );
    ran.ended_with(2);
    assert!(!shown.contains("some text") && shown.is_ascii() && shown.len() < 400, "{shown:?}");
}

// -- devices, pipes, descriptors -------------------------------------------------------------------------------------------

#[test]
fn devices_pipes_and_descriptors_are_written_to_as_they_stand_there() {
    let place = place();
    let decrypt = "\"$E\" decrypt -q --key k.json";
    let lines = [
        format!("{decrypt} -o /dev/null f.sealed && test -c /dev/null && cat f"),
        format!("{decrypt} --force -o /dev/null f.sealed && test -c /dev/null && cat f"),
        format!("{decrypt} -o /dev/stdout f.sealed"),
        format!("{decrypt} -o /dev/fd/1 f.sealed"),
        format!("{decrypt} -o /proc/self/fd/1 f.sealed"),
        format!("{decrypt} -o /dev/fd/3 f.sealed 3>&1"),
        format!("{decrypt} -o /dev/stdout f.sealed | cat"),
        format!("mkfifo p1 && {{ cat p1 & {decrypt} -o p1 f.sealed && wait; }}"),
        // What stands before in a file that is appended to stays there.
        format!(
            "printf 'some ' >app && echo text | \"$E\" encrypt -q --key k.json -o t.sealed && {decrypt} -o /dev/stdout t.sealed >>app && cat app"
        ),
        format!("exec 3>three && {decrypt} -o /dev/fd/3 f.sealed && cat three"),
        // No word of Evener's stands behind it, though nothing asks it to be quiet.
        "\"$E\" decrypt --key k.json -o /dev/stderr f.sealed 2>&1".to_owned(),
    ];
    for line in lines {
        let ran = shell(&place, &line).succeeded();
        assert_eq!((ran.stdout_text(), ran.stderr()), ("some text\n", ""), "{line}");
    }
}

#[test]
fn pipes_and_descriptors_are_read_as_any_file() {
    let place = place();
    let decrypt = "\"$E\" decrypt --key k.json";
    let lines = [
        format!("{decrypt} /dev/stdin <f.sealed"),
        format!("{decrypt} - <f.sealed"),
        format!("cat f.sealed | {decrypt} /dev/fd/0"),
        format!("{decrypt} /dev/fd/4 4<f.sealed"),
        format!("mkfifo p2 && {{ cat f.sealed >p2 & {decrypt} p2; }}"),
        // A pipe has a name, so it goes into a directory like a file.
        format!("mkfifo p3 && mkdir d && {{ cat f.sealed >p3 & {decrypt} -q -o d p3; }} && cat d/p3"),
    ];
    for line in lines {
        let ran = shell(&place, &line).succeeded();
        assert_eq!((ran.stdout_text(), ran.stderr()), ("some text\n", ""), "{line}");
    }
    shell(&place, &format!("{decrypt} -q -o d - <f.sealed")).ended_with(2).saying("no name");
}

// -- standard descriptors that are closed, full, or left by their reader ------------------------------------------------------

/// What writes an answer or data to standard output.
const ANSWERS: [&str; 9] = [
    "encrypt --key k.json -o - large",
    "decrypt --key k.json -o - large.sealed",
    "encrypt -q --key k.json -o /dev/stdout large",
    "encrypt -q --key k.json --json - -o out --force f",
    "keygen --age",
    "man",
    "completions bash",
    "status --json",
    "--help",
];

#[test]
fn an_answer_that_nobody_can_get_is_a_failure_that_is_named() {
    let place = place();
    for answer in ANSWERS {
        for (where_to, words) in [(">&-", "closed"), (">/dev/full", "space")] {
            let ran = shell(&place, &format!("\"$E\" {answer} {where_to}"));
            let said = ran.stderr();
            let lines = said.lines().filter(|line| line.starts_with("evener: ")).count();
            assert!(matches!(ran.code(), Some(1 | 2)), "{answer} {where_to}: {ran:?}");
            assert!(lines == 1 && said.contains(words), "{answer} {where_to}: {said}");
            assert!(!said.contains("Public key"), "{answer}: a key that is lost");
        }
    }
}

#[test]
fn a_reader_that_has_seen_enough_ends_it_quietly_by_sigpipe() {
    let place = place();
    for answer in ANSWERS {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        drop(reader);
        let mut run = place.evener_at_a_prompt().args(answer.split(' '));
        run.command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped());
        let output = run.command.output().unwrap();
        assert!(is_dead_by(output.status, SIGPIPE), "{answer}: {output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{answer}");
    }
    assert_eq!(drafts(&place), 0);
    let ran = shell(
        &place,
        "trap '' PIPE; { \"$E\" decrypt --key k.json -o - large.sealed; echo $? >code; } | true; cat code",
    );
    assert_eq!(ran.stdout_text(), "1\n", "where the signal is ignored it is an error");
    assert!(ran.stderr().contains("reader"), "{}", ran.stderr());
}

#[test]
fn a_pipe_whose_reader_has_gone_ends_though_its_input_is_silent() {
    let place = place();
    place.evener().args(["encrypt", "-q", "-i", "id", "-o", "large.age", "large"]).run().succeeded();
    for (direction, input) in [("encrypt", "large"), ("decrypt", "large.age")] {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let mut run = place.evener_at_a_prompt().args([direction, "-q", "-i", "id", "-o", "-", "-"]);
        run.command.stdin(Stdio::piped()).stdout(writer).stderr(Stdio::piped());
        let mut child = run.command.spawn().unwrap();
        run.command.stdout(Stdio::null());
        if direction == "encrypt" {
            // The header comes before anything is read; the reader takes no more than that.
            rustix::io::read(&reader, &mut [0]).unwrap();
        }
        drop(reader);
        // Two segments of age's, of which the first goes to the output, and a part of one for which a read waits.
        let mut silent = child.stdin.take().unwrap();
        silent.write_all(&fs::read(place.join(input)).unwrap()[..160 << 10]).ok();
        assert!(soon(|| child.try_wait().unwrap().is_some()), "{direction}: it waits for its input");
        let ended = child.wait_with_output().unwrap();
        assert!(is_dead_by(ended.status, SIGPIPE), "{direction}: {ended:?}");
    }
}

#[test]
fn standard_input_that_is_closed_is_no_empty_input() {
    let place = place();
    for input in ["-", "/dev/stdin", ""] {
        let line = format!("\"$E\" encrypt -q --key k.json -o closed {input} <&-");
        shell(&place, &line).ended_with(2).saying("standard input is closed");
    }
    assert!(!place.join("closed").exists());
}

#[test]
fn without_standard_error_the_work_is_done_all_the_same() {
    let place = place();
    for where_to in ["2>&-", "2>/dev/full"] {
        let line = format!("\"$E\" encrypt --force --key k.json -o silent f {where_to}");
        shell(&place, &line).succeeded();
        shell(&place, "\"$E\" decrypt --key k.json -o - silent | cmp - f").succeeded();
    }
}

// -- signals ---------------------------------------------------------------------------------------------------------------

/// A run that waits for its input, and has its draft; `sh` runs `before` first.
fn waiting(place: &Place, before: &str) -> Child {
    let line = format!("{before} exec \"$0\" \"$@\"");
    let mut run = place.program("env").args(["--default-signal", "sh", "-c", &line, EVENER]);
    run = run.args(["encrypt", "--key", "k.json", "-q", "-o", "waiting/out", "-"]);
    run.command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = run.command.spawn().unwrap();
    while drafts(place) == 0 {
        assert!(child.try_wait().unwrap().is_none(), "it ended before");
        sleep(Duration::from_millis(5));
    }
    child
}

fn drafts(place: &Place) -> usize {
    let is_draft = |name: &&std::path::PathBuf| name.to_string_lossy().contains(".evener-");
    files(place.path()).iter().filter(is_draft).count()
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_raw(child.id().try_into().unwrap()).unwrap(), signal).unwrap();
}

#[test]
fn a_signal_that_ends_a_program_ends_it_after_it_has_cleaned_up() {
    let place = place();
    let signals = [
        Signal::HUP,
        Signal::INT,
        Signal::QUIT,
        Signal::PIPE,
        Signal::ALARM,
        Signal::TERM,
        Signal::USR1,
        Signal::USR2,
        Signal::XCPU,
        Signal::VTALARM,
        Signal::PROF,
    ];
    for signal in signals {
        let mut child = waiting(&place, "");
        // Twice, as a terminal and a shell may do; the second is no reason to leave anything behind.
        send(&child, signal);
        send(&child, signal);
        let input = child.stdin.take();
        let output = child.wait_with_output().unwrap();
        drop(input);
        assert!(is_dead_by(output.status, signal.as_raw()), "{signal:?}: {output:?}");
        assert!(files(&place.join("waiting")).is_empty(), "{signal:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{signal:?}");
    }
}

#[test]
fn a_signal_that_was_ignored_from_the_start_stays_ignored() {
    let place = place();
    for (name, signal) in
        [("HUP", Signal::HUP), ("INT", Signal::INT), ("QUIT", Signal::QUIT), ("TERM", Signal::TERM)]
    {
        let mut child = waiting(&place, &format!("trap '' {name};"));
        send(&child, signal);
        child.stdin.take().unwrap().write_all(b"text").unwrap();
        assert!(child.wait().unwrap().success(), "{name}");
        fs::remove_dir_all(place.join("waiting")).unwrap();
    }
}

#[test]
fn a_run_that_is_suspended_goes_on_where_it_was() {
    let place = place();
    let mut child = waiting(&place, "");
    send(&child, Signal::TSTP);
    let state = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        stat.rsplit(')').next().unwrap().trim_start().chars().next()
    };
    while state() != Some('T') {
        sleep(Duration::from_millis(5));
    }
    send(&child, Signal::CONT);
    child.stdin.take().unwrap().write_all(b"text").unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(files(&place.join("waiting")), [Path::new("out")]);
}

/// Each file's key takes a second, in which no thread looks for signals; all together they would take minutes.
#[test]
fn a_signal_ends_a_run_that_derives_keys_from_a_passphrase() {
    let place = place();
    place.write_secret("pass", "word\n");
    for number in 0..200 {
        place.write(format!("many/{number}"), "text");
    }
    let mut run = place.evener_at_a_prompt().args([
        "encrypt",
        "--passphrase-file",
        "pass",
        "-q",
        "-o",
        "waiting",
        "many",
    ]);
    run.command.stdin(Stdio::null()).stderr(Stdio::piped());
    let child = run.command.spawn().unwrap();
    // The tree's key is derived meanwhile, or the command begins.
    sleep(Duration::from_millis(150));
    send(&child, Signal::INT);
    let output = child.wait_with_output().unwrap();
    assert!(is_dead_by(output.status, 2), "{output:?}");
    assert_eq!(drafts(&place), 0);
    let waiting = place.join("waiting");
    assert!(!waiting.exists() || files(&waiting).len() < 100);
}

#[test]
fn a_signal_at_the_question_for_a_passphrase_gives_the_terminal_back() {
    let place = place();
    place.write("pass", "a passphrase\n");
    let made = ["keygen", "--key-passphrase-file", "pass", "closed.json"];
    place.evener().args(made).run().succeeded();
    for command in
        ["encrypt -p -q -o out f", "keygen -p out", "keygen --age -p out", "keyset list closed.json"]
    {
        for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
            gives_the_terminal_back(&place, command, signal);
        }
    }
    assert!(!place.join("out").exists());
}

fn gives_the_terminal_back(place: &Place, command: &str, signal: Signal) {
    let (mut ours, programs) = evener_testing::programs::new_terminal();
    let mut run = place.program("setsid").args(["-c", "-w", "env", "--default-signal", EVENER]);
    run = run.args(command.split(' '));
    run.command.stdin(programs).stdout(Stdio::null()).stderr(Stdio::null());
    let mut setsid = run.command.spawn().unwrap();
    run.command.stdin(Stdio::null());
    let hides = || tcgetattr(&ours).is_ok_and(|modes| !modes.local_modes.contains(LocalModes::ECHO));
    while !hides() {
        assert!(setsid.try_wait().unwrap().is_none(), "{command}: it ended before it asked");
        sleep(Duration::from_millis(5));
    }
    let asker = rustix::termios::tcgetsid(&ours).unwrap();
    // The leader of the terminal's session is who asks; setsid only waits for it, or is it.
    kill_process(asker, signal).unwrap();
    let status = setsid.wait().unwrap();
    assert!(!status.success() && !hides(), "{command}, {signal:?}: {status:?}");
    ours.read_to_end(&mut Vec::new()).ok();
}

#[test]
fn encrypted_text_may_go_to_a_terminal_and_encrypted_bytes_may_not() {
    let place = place();
    let shown = |options: &[&str]| {
        let (mut ours, programs) = evener_testing::programs::new_terminal();
        let mut run = place.evener().args(["encrypt", "-i", "id"]).args(options).arg("f");
        run.command.stdin(Stdio::null()).stdout(programs).stderr(Stdio::piped());
        let ended = run.command.output().unwrap();
        let mut shown = Vec::new();
        // The other end is still open, so it ends with nothing more to read.
        ours.read_to_end(&mut shown).ok();
        (ended.status.code(), String::from_utf8(shown).unwrap() + &String::from_utf8_lossy(&ended.stderr))
    };
    for output in ["-", "/dev/stdout"] {
        let (code, text) = shown(&["-a", "-o", output]);
        assert!(code == Some(0) && text.contains("-----BEGIN AGE ENCRYPTED FILE-----"), "{output}: {text:?}");
        let (code, refused) = shown(&["-o", output]);
        assert!(
            code == Some(2) && refused.starts_with("evener: encrypted bytes would"),
            "{output}: {refused:?}"
        );
    }
}

// -- what is said ------------------------------------------------------------------------------------------------------------

#[test]
fn one_line_says_what_was_done_and_more_only_when_asked() {
    let place = place();
    let encrypt = ["encrypt", "--force", "--key", "k.json", "-o", "said"];
    let lines =
        |more: &[&str]| place.evener().args(encrypt).args(more).run().succeeded().stderr().lines().count();
    assert_eq!(lines(&["f"]), 1);
    assert_eq!(lines(&["-q", "f"]), 0);
    let ran = place.evener().args(encrypt).args(["--verbose", "f"]).run().succeeded();
    assert!(ran.stderr().lines().count() > 1 && ran.stderr().contains("share"), "{}", ran.stderr());
}
