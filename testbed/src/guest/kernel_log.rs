//! What the guest's kernel says, and which of it is a warning of our making.

/// Levels up to this one are warnings and worse (Linux, include/linux/kern_levels.h).
const WARNING: u32 = 4;

/// Warnings that every guest's kernel has at boot, with their causes. Matched as parts of lines.
const KNOWN: &[&str] = &[
    // Emulation on a busy host: clocks are compared while the host does something else.
    "tsc: ",
    "TSC ",
    "APIC calibration not consistent with PM-Timer",
    "hpet: Lost",
    "hrtimer: interrupt took",
    "workqueue: ",
    "clocksource: ",
    // QEMU's 32-bit ARM machine does not say how fast its CPU is.
    "missing clock-frequency property",
    // The machine `pc` is older than extended configuration space.
    "fail to add MMCONFIG information",
];

/// The kernel's log, each line with its level: `<6>[    2.104310] text`.
#[derive(Clone, Debug, Default)]
pub struct KernelLog(pub String);

impl KernelLog {
    /// Lines that are warnings or worse and come not with every boot.
    #[must_use]
    pub fn warnings(&self) -> Vec<&str> {
        self.0
            .lines()
            .filter(|line| is_warning(line) && !KNOWN.iter().any(|known| line.contains(known)))
            .collect()
    }
}

fn is_warning(line: &str) -> bool {
    // Eight levels; what stands above is the facility.
    let level = line.strip_prefix('<').and_then(|rest| rest.split_once('>')?.0.parse::<u32>().ok());
    level.is_some_and(|level| level % 8 <= WARNING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_and_worse_are_found_whatever_facility_says_them() {
        let log = "<6>[ 1.0] fine\n<4>[ 1.1] a warning\n<12>[ 1.2] one of a program\n<3>[ 1.3] an error\n<30>[ 1.4] fine\n";
        let expected = ["<4>[ 1.1] a warning", "<12>[ 1.2] one of a program", "<3>[ 1.3] an error"];
        assert_eq!(KernelLog(log.to_owned()).warnings(), expected);
    }
}
