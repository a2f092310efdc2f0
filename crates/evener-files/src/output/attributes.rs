//! Mode and time, which an output gets from its source.

use rustix::fs::{Mode, Stat, Timespec, Timestamps, UTIME_OMIT};

/// What of a source its output gets.
#[derive(Clone, Copy)]
pub(crate) struct Attributes {
    pub(crate) mode: Mode,
    time: Timespec,
}

impl Attributes {
    pub(crate) fn of(source: &Stat) -> Self {
        Self { mode: mode_of(source), time: mtime_of(source) }
    }

    pub(super) fn times(&self) -> Timestamps {
        let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
        Timestamps { last_access, last_modification: self.time }
    }
}

/// The permission bits of a file.
pub(crate) fn mode_of(stat: &Stat) -> Mode {
    Mode::from_raw_mode(stat.st_mode & 0o777)
}

/// The time of a file's last change.
fn mtime_of(stat: &Stat) -> Timespec {
    Timespec { tv_sec: stat.st_mtime, tv_nsec: i64::try_from(stat.st_mtime_nsec).unwrap_or(0) }
}

/// Bits that the process takes away from the mode of new files; read once, without changing it.
pub(super) fn umask() -> Mode {
    use std::sync::OnceLock;
    static UMASK: OnceLock<Mode> = OnceLock::new();
    *UMASK.get_or_init(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
        let bits = line.and_then(|octal| u32::from_str_radix(octal.trim(), 8).ok());
        // Unknown: set the mode always.
        Mode::from_raw_mode(bits.unwrap_or(0o777))
    })
}
