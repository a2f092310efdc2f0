//! A terminal of a test's own: a program prompts there without echo, and the test answers.

use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};

use super::{Ran, Run};

/// Runs `program` with a terminal of its own, and types the next line of `answers` whenever it has prompted and turned
/// the echo off. `run` starts another program in the place that is meant. Returns what came of it and all that stood on the terminal.
pub fn at_a_terminal(
    run: impl FnOnce(&str) -> Run,
    program: &str,
    arguments: &[&str],
    answers: &[&str],
) -> (Ran, String) {
    let (file, programs_end) = new_terminal();
    // setsid makes standard input the terminal that /dev/tty means; timeout lets nothing wait for ever.
    let mut run = run("setsid");
    run.command.args(["-c", "-w", "timeout", "--foreground", "300", program]).args(arguments);
    run.command.stdin(programs_end).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = run.command.spawn().unwrap();
    // The command holds the terminal open too.
    run.command.stdin(Stdio::null());
    let mut terminal = Terminal { file, shown: String::new(), child };
    answers.iter().for_each(|answer| terminal.answer(answer));
    while terminal.is_in_use() {
        sleep(PAUSE);
    }
    (Ran::of(&run.command, terminal.child), terminal.shown)
}

/// Both ends of a new terminal: that of who sits there, at which nothing waits, and the program's.
#[must_use]
pub fn new_terminal() -> (File, File) {
    let our_end = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&our_end).unwrap();
    unlockpt(&our_end).unwrap();
    fcntl_setfl(&our_end, OFlags::NONBLOCK).unwrap();
    let name = ptsname(&our_end, Vec::new()).unwrap();
    let flags = i32::try_from(OFlags::NOCTTY.bits()).unwrap();
    let path = std::path::Path::new(std::ffi::OsStr::from_bytes(name.to_bytes()));
    let programs_end = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path).unwrap();
    (File::from(our_end), programs_end)
}

struct Terminal {
    file: File,
    shown: String,
    child: Child,
}

const PAUSE: Duration = Duration::from_millis(5);

impl Terminal {
    /// Types a line once there is a new question, whose answer is not to be seen.
    fn answer(&mut self, line: &str) {
        use std::io::Write as _;
        let before = self.shown.len();
        while self.is_in_use() {
            let hides =
                tcgetattr(&self.file).is_ok_and(|modes| !modes.local_modes.contains(LocalModes::ECHO));
            if hides && self.shown[before..].trim_end().ends_with(':') {
                self.file.write_all(format!("{line}\n").as_bytes()).unwrap();
                return;
            }
            sleep(PAUSE);
        }
    }

    /// Reads what was written there; false once the program has ended.
    fn is_in_use(&mut self) -> bool {
        let ended = self.child.try_wait().unwrap().is_some();
        let mut bytes = [0; 4_096];
        while let Ok(count @ 1..) = self.file.read(&mut bytes) {
            self.shown.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        !ended
    }
}
