//! Which process it is: its number may have been another's before, and be another's in another namespace.

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use evener_core::counts::{Header, NAME_BYTES};
use evener_fd::CheckedFd;
use rustix::fs::{Mode, OFlags};
use rustix::process::getpid;

use super::names;

/// A process, distinct from any other that had or will have its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) pid: u32,
    /// In clock ticks since the machine started; 0 where the system does not say.
    pub(super) start: u64,
    /// Of this run of the machine; 0 where the system does not say.
    pub(super) boot: u32,
    /// In which its number is its own; 0 where the system does not say.
    pub(super) namespace: u32,
}

impl Identity {
    pub(super) fn from_header(words: &[u32]) -> Self {
        let word = |field: Header| words.get(field as usize).copied().unwrap_or(0);
        let start = u64::from(word(Header::StartHigh)) << 32 | u64::from(word(Header::StartLow));
        Self { pid: word(Header::Pid), start, boot: word(Header::Boot), namespace: word(Header::Namespace) }
    }

    /// A process of which no more than its number is known.
    pub(super) const fn numbered(pid: u32) -> Self {
        Self { pid, start: 0, boot: 0, namespace: 0 }
    }

    /// Whether its number means this process to the system here, as far as is known.
    pub(super) fn is_of_here(&self) -> bool {
        self.namespace == 0 || self.namespace == own_namespace()
    }

    /// Whether it still runs. Where the system does not say enough, it does.
    pub(super) fn runs(&self) -> bool {
        let boot = if self.boot == 0 { 0 } else { this_boot() };
        if boot != 0 && self.boot != boot {
            return false;
        }
        if !self.is_of_here() || !are_shown() {
            return true;
        }
        match start(self.pid) {
            Ok(start) => self.start == 0 || self.start == start,
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }
}

/// This process, and its name as the kernel keeps it, cut after 15 bytes and filled with zeros.
pub(super) fn this() -> (Identity, [u8; NAME_BYTES]) {
    let pid = getpid().as_raw_nonzero().get().unsigned_abs();
    // Not by its number, which `/proc` may not know it by.
    let stat = read_start("/proc/self/stat").ok().and_then(|stat| parse(&stat));
    let (name, _, start) = stat.unwrap_or_default();
    (Identity { pid, start, boot: this_boot(), namespace: own_namespace() }, name)
}

/// Whether the system says of the processes of this namespace which there are: without `/proc` none seems to be there, and in that of another
/// namespace the numbers are others'.
fn are_shown() -> bool {
    let own = fs::read_link("/proc/self").ok();
    own.and_then(|own| own.to_str()?.parse().ok()) == Some(getpid().as_raw_nonzero().get())
}

/// When process `pid` began; `NotFound` where there is none, or one that has ended and waits to be reaped.
fn start(pid: u32) -> io::Result<u64> {
    let (_, state, start) = look(&format!("/proc/{pid}"))?;
    if has_ended(state) && !has_thread_left(pid)? {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(start)
}

/// Whether a thread goes on although the first one has ended, which then stands for the process as one that waits to be reaped: `pthread_exit` in `main`.
fn has_thread_left(pid: u32) -> io::Result<bool> {
    let tasks = format!("/proc/{pid}/task");
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = CheckedFd::new(rustix::fs::open(Path::new(&tasks), flags, Mode::empty())?)?;
    let mut is_left = false;
    names::each(directory.checked()?, &mut |name| {
        let task = name.to_str().ok().filter(|name| !name.starts_with('.'));
        let state = task.and_then(|task| look(&format!("{tasks}/{task}")).ok());
        is_left = state.is_some_and(|(_, state, _)| !has_ended(state));
        !is_left
    })?;
    Ok(is_left)
}

const fn has_ended(state: u8) -> bool {
    matches!(state, b'Z' | b'X')
}

/// Name, state and start time of the process or thread in this directory.
fn look(directory: &str) -> io::Result<([u8; NAME_BYTES], u8, u64)> {
    let stat = read_start(&format!("{directory}/stat"))?;
    Ok(parse(&stat).ok_or(io::ErrorKind::InvalidData)?)
}

/// Number of this process's namespace of process numbers; 0 where the system does not say.
fn own_namespace() -> u32 {
    fs::metadata("/proc/self/ns/pid").map_or(0, |about| u32::try_from(about.ino()).unwrap_or_default())
}

/// This run of the machine; 0 where the system does not say.
fn this_boot() -> u32 {
    read_start("/proc/sys/kernel/random/boot_id").map_or(0, |text| boot(&text))
}

/// Name, state and start time out of a line of `stat`: the name stands in brackets and may hold any byte, brackets too.
fn parse(stat: &[u8]) -> Option<([u8; NAME_BYTES], u8, u64)> {
    let open = stat.iter().position(|byte| *byte == b'(')?;
    let close = stat.iter().rposition(|byte| *byte == b')')?;
    let mut name = [0; NAME_BYTES];
    let shown = stat.get(open + 1..close)?;
    let shown = &shown[..shown.len().min(NAME_BYTES - 1)];
    name[..shown.len()].copy_from_slice(shown);
    let mut fields = std::str::from_utf8(&stat[close + 1..]).ok()?.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    // Field 22 of the line (proc_pid_stat(5)); the state is field 3.
    let start = fields.nth(22 - 4)?.parse().ok()?;
    Some((name, state, start))
}

/// The first eight hexadecimal digits of the id, never 0 for a valid one.
fn boot(id: &[u8]) -> u32 {
    let digits = id.get(..8).and_then(|digits| std::str::from_utf8(digits).ok());
    digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).map_or(0, |word| word.max(1))
}

fn read_start(path: &str) -> io::Result<Vec<u8>> {
    let file = fs::File::open(path)?;
    let mut text = Vec::with_capacity(512);
    file.take(4_096).read_to_end(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_brackets_and_blanks() {
        let stat = b"12 (a) R (b) S 1 1 1 0 -1 4194304 1 1 1 1 1 1 1 1 20 0 1 0 987654 1 1 1";
        let (name, state, start) = parse(stat).unwrap();
        assert_eq!((&name[..8], state, start), (b"a) R (b\0".as_slice(), b'S', 987_654));
        for wrong in [&b""[..], b"12 (a", b"12 (a) S 1", b"12 )a( S 1 1 1 0 -1 4 1 1 1 1 1 1 1 1 20 0 1 0 9"]
        {
            assert!(parse(wrong).is_none());
        }
    }

    #[test]
    fn this_process_runs_and_one_that_began_at_another_time_does_not() {
        let (own, _) = this();
        assert!(own.runs() && own.start > 0 && own.boot > 0 && own.namespace > 0);
        assert!(!Identity { start: own.start + 1, ..own }.runs());
        assert!(!Identity { boot: own.boot ^ 1, ..own }.runs());
        assert!(!Identity { pid: u32::MAX, ..own }.runs());
        assert!(Identity { start: 0, boot: 0, namespace: 0, ..own }.runs());
    }

    #[test]
    fn of_another_namespace_it_is_known_only_that_the_machine_was_started_anew() {
        let (own, _) = this();
        let elsewhere = Identity { pid: u32::MAX, namespace: own.namespace ^ 1, ..own };
        assert!(elsewhere.runs());
        assert!(!Identity { boot: own.boot ^ 1, ..elsewhere }.runs());
    }
}
