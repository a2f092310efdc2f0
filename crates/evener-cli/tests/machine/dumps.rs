//! What a core dump of the command has of its keys, and of a host of its clients': nothing.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, which says what it skips")]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{EVENER, Place};
use rustix::process::{Pid, Signal, kill_process};

/// Times that a text stands in a dump.
fn copies(dump: &[u8], text: &[u8]) -> usize {
    dump.windows(text.len()).filter(|window| *window == text).count()
}

/// Bytes that stand nowhere but in the memory of a run that has read them.
const PASSPHRASE: &str = "tortoise-galleon-7f31-unlikely-otherwise";

/// Waits at most a minute.
fn wait_for(is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(20));
    }
}

/// No dump of the process has the text. The same process whose dump is to have its memory does: else the search finds nothing, wherever it looks.
fn assert_hidden(place: &Place, process: &Child, text: &[u8]) {
    let pid = process.id();
    let dumped = |filter: &str| {
        let dump = place.path().join(format!("dump-{filter}"));
        let status = Command::new("gcore").arg("-o").arg(&dump).arg(pid.to_string()).output().unwrap();
        let path = format!("{}.{pid}", dump.display());
        fs::read(path).map(|dump| copies(&dump, text)).map_err(|error| (error, status))
    };
    let filter = format!("/proc/{pid}/coredump_filter");
    let (own, hidden) = (fs::read_to_string(&filter).unwrap(), dumped("own"));
    fs::write(&filter, "0x33").unwrap();
    let shown = dumped("33");
    fs::write(&filter, format!("0x{}", own.trim())).unwrap();
    match (hidden, shown) {
        (Ok(hidden), Ok(shown)) => assert!(hidden == 0 && shown > 0, "{hidden} and {shown} copies"),
        refused => println!("skipped: gcore may not look at a process here: {refused:?}"),
    }
}

#[test]
fn a_core_dump_of_the_command_has_no_copy_of_a_passphrase() {
    let Some(place) = Place::with_programs(&["gcore"]) else { return };
    fs::write(place.path().join("passphrase"), PASSPHRASE).unwrap();
    let mut command = Command::new(EVENER);
    command.current_dir(place.path()).args(["encrypt", "--passphrase-file", "passphrase", "-"]);
    // It waits for input that does not come.
    let command = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut process = command.spawn().unwrap();
    let pid = process.id();
    let is_asleep = |at: String| at.contains("pipe") || at.contains("futex");
    wait_for(|| fs::read_to_string(format!("/proc/{pid}/wchan")).is_ok_and(is_asleep));
    assert_hidden(&place, &process, PASSPHRASE.as_bytes());
    process.kill().unwrap();
    process.wait().unwrap();
}

/// The key of a client, as hexadecimal digits and as bytes.
const KEY: &str = "746f72746f6973652d67616c6c656f6e";
const KEY_BYTES: &[u8] = b"tortoise-galleon";

/// A host that may be dumped, by a shell that asks for core files, whatever the limit of this process is.
fn dumpable_host(place: &Place) -> Child {
    let words = ["host", "--socket", "socket", "--control", "control", "--module", "cpu", "--dumpable"];
    let mut run = place.program("sh");
    run.command.args(["-c", "ulimit -c unlimited; exec \"$0\" \"$@\"", EVENER]).args(words);
    run.command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut host = run.command.spawn().unwrap();
    let mut output = String::new();
    BufReader::new(host.stderr.as_mut().unwrap()).read_line(&mut output).unwrap();
    assert!(output.contains("serving at socket"), "{output}");
    host
}

/// Requests that its module was given.
fn requests(place: &Place) -> u64 {
    let mut stream = UnixStream::connect(place.join("control")).unwrap();
    writeln!(stream, "report").unwrap();
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    let report: serde_json::Value = serde_json::from_str(&answer).unwrap();
    report["module"]["submitted"].as_u64().unwrap()
}

/// OpenSSL's command, which has a session with [`KEY`] at the host and waits for more input.
fn client(place: &Place) -> Child {
    let module = std::env::current_exe().unwrap().with_file_name("libevener_provider.so");
    let config = format!(
        "openssl_conf = init\n[init]\nproviders = both\nalg_section = ours\n[both]\ndefault = default_sect\nevener = evener_sect\n\
         [default_sect]\nactivate = 1\n[evener_sect]\nidentity = evener\nactivate = 1\nmodule = {}\nguard = off\nthreshold = 16\nmodules = hosted:{}\n\
         [ours]\ndefault_properties = ?provider=evener\n",
        module.display(),
        place.join("socket").display()
    );
    fs::write(place.join("openssl.cnf"), config).unwrap();
    let mut run = place.program("openssl");
    run.command.env("OPENSSL_CONF", place.join("openssl.cnf")).env("EVENER_ARBITER", "off");
    run.command.env("EVENER_STATISTICS_DIR", place.join("counts"));
    run.command.args(["enc", "-aes-128-cbc", "-K", KEY, "-iv", "00"]);
    let mut client = run.command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    client.stdin.as_mut().unwrap().write_all(&[7; 1 << 16]).unwrap();
    client
}

#[test]
fn a_core_dump_of_a_host_that_may_be_dumped_has_no_copy_of_a_client_s_key() {
    let Some(place) = Place::with_programs(&["gcore", "openssl"]) else { return };
    let (mut host, mut client) = (dumpable_host(&place), client(&place));
    wait_for(|| requests(&place) > 0);
    assert_hidden(&place, &host, KEY_BYTES);
    // A fault of its own: the core file that the system leaves, where it leaves one here.
    let id = Pid::from_child(&host);
    kill_process(id, Signal::ABORT).unwrap();
    host.wait().unwrap();
    client.kill().unwrap();
    client.wait().unwrap();
    let files = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().path());
    let core = files.into_iter().find(|path| path.file_name().unwrap().to_string_lossy().starts_with("core"));
    let Some(core) = core else {
        return println!("skipped: the system leaves no core file beside a process");
    };
    let core = fs::read(core).unwrap();
    assert!(core.starts_with(b"\x7fELF") && copies(&core, KEY_BYTES) == 0, "{} bytes", core.len());
}
