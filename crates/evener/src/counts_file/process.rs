//! Which process it is: its number may have been another's before.

use std::fs;
use std::io::{self, Read as _};

use evener_core::counts::{Header, NAME_BYTES};

/// A process, distinct from any other that had or will have its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) pid: u32,
    /// In clock ticks since the machine started; 0 where the system does not say.
    pub(super) start: u64,
    /// Of this run of the machine; 0 where the system does not say.
    pub(super) boot: u32,
}

/// What the kernel says of a process.
pub(super) struct ProcessInfo {
    pub(super) identity: Identity,
    /// As the kernel keeps it, cut after 15 bytes and filled with zeros.
    pub(super) name: [u8; NAME_BYTES],
}

impl Identity {
    pub(super) fn from_header(words: &[u32]) -> Self {
        let word = |field: Header| words.get(field as usize).copied().unwrap_or(0);
        let start = u64::from(word(Header::StartHigh)) << 32 | u64::from(word(Header::StartLow));
        Self { pid: word(Header::Pid), start, boot: word(Header::Boot) }
    }

    /// Whether it still runs. Where the system does not say enough, it does.
    pub(super) fn runs(&self) -> bool {
        match look(self.pid) {
            Ok(found) => {
                let same_start = self.start == 0 || self.start == found.identity.start;
                same_start && (self.boot == 0 || found.identity.boot == 0 || self.boot == found.identity.boot)
            }
            Err(error) => error.kind() != io::ErrorKind::NotFound || !are_shown(),
        }
    }
}

/// Whether the system says anything of processes here: where it does not, none seems to be there.
fn are_shown() -> bool {
    fs::exists("/proc/self/stat").unwrap_or(false)
}

/// Whether there is no process `pid`. Where the system does not say, there is one.
pub(super) fn is_gone(pid: u32) -> bool {
    look(pid).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) && are_shown()
}

/// Looks at process `pid`; `NotFound` where there is none, or one that has ended and waits to be reaped.
pub(super) fn look(pid: u32) -> io::Result<ProcessInfo> {
    let stat = read_start(&format!("/proc/{pid}/stat"))?;
    let (name, state, start) = parse(&stat).ok_or(io::ErrorKind::InvalidData)?;
    if matches!(state, b'Z' | b'X') {
        return Err(io::ErrorKind::NotFound.into());
    }
    let boot = read_start("/proc/sys/kernel/random/boot_id").map_or(0, |text| boot(&text));
    Ok(ProcessInfo { identity: Identity { pid, start, boot }, name })
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
        let own = look(std::process::id()).unwrap().identity;
        assert!(own.runs() && own.start > 0 && own.boot > 0);
        assert!(!Identity { start: own.start + 1, ..own }.runs());
        assert!(!Identity { boot: own.boot ^ 1, ..own }.runs());
        assert!(!Identity { pid: u32::MAX, ..own }.runs());
        assert!(Identity { start: 0, boot: 0, ..own }.runs());
    }
}
