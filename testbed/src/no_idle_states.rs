//! A host whose processors do not fall asleep while a guest is measured.
//!
//! A guest's module is served by threads of QEMU on processors that have nothing else to do. Where these sleep between two
//! requests, waking them takes as long as a small request does, and how long hangs on how deep they slept: 115 us for a
//! request of the module's path became 150 to 400. Hardware beside a real core sleeps on its own terms, so that is the test
//! bed's property and no module's. Linux lets a process that may write to its latency file keep processors awake for as long as the file is
//! open (PM QoS, `Documentation/power/pm_qos_interface.rst` of its source).

use std::fs::{File, OpenOptions};
use std::io::Write as _;

const LATENCY: &str = "/dev/cpu_dma_latency";

/// Keeps all processors of this machine awake until it is dropped; the longest wake-up allowed is 0 us.
#[derive(Debug)]
pub struct Awake {
    _open: File,
}

impl Awake {
    /// `None` where this system has no such file or does not let us (root may).
    #[must_use]
    pub fn hold() -> Option<Self> {
        let mut open = OpenOptions::new().read(true).write(true).open(LATENCY).ok()?;
        open.write_all(&0_i32.to_ne_bytes()).ok()?;
        Some(Self { _open: open })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    /// The longest wake-up that all holders of the file allow, in us.
    fn allowed() -> Option<i32> {
        let mut bytes = [0; 4];
        File::open(LATENCY).ok()?.read_exact(&mut bytes).ok()?;
        Some(i32::from_ne_bytes(bytes))
    }

    #[test]
    fn processors_stay_awake_as_long_as_it_is_held() {
        let before = allowed();
        let Some(awake) = Awake::hold() else {
            println!("skipped: {LATENCY} cannot be written");
            return;
        };
        assert_eq!(allowed(), Some(0));
        drop(awake);
        // Another program that measures on this machine may hold it, too.
        if before != Some(0) {
            assert_eq!(allowed(), before);
        }
    }
}
