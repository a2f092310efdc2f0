//! What one process counted, and the CPU time that it has used for all that it did.

use std::fs;
use std::time::Duration;

use evener::core::counts::{Count, Row};
use evener::counts_file::{Record, Totals};

/// One process.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    /// When it began: tells it from another one with its number, whose file may lie in another directory.
    pub(crate) start_ticks: u64,
    /// Without control characters.
    pub(crate) name: String,
    life: Life,
    /// Results of lanes that were wrong: lanes are out of service where there are any.
    pub(crate) wrong_lanes: u32,
    /// Results of kernels that were wrong: those of their classes are out of service where there are any.
    pub(crate) wrong_kernels: u32,
    /// Results of modules that were wrong: those modules are out of service where there are any.
    pub(crate) wrong_modules: u32,
    /// Rows in which something was counted.
    pub(crate) rows: Vec<(Row, Totals)>,
}

/// Whether a process runs.
#[derive(Clone, Copy, Debug)]
enum Life {
    /// It does; CPU time of all its threads, for whatever they did, where that can be read.
    Runs(Option<Duration>),
    Ended,
}

impl Process {
    pub(crate) fn new(record: &Record) -> Self {
        let cpu_time = || cpu_time_of(record.pid()).filter(|_| record.is_of_this_namespace());
        let life = if record.has_ended() { Life::Ended } else { Life::Runs(cpu_time()) };
        let rows = Row::all().map(|row| (row, record.row(row))).filter(|(_, totals)| !totals.is_empty());
        Self {
            pid: record.pid(),
            start_ticks: record.start_ticks(),
            name: record.name(),
            life,
            wrong_lanes: record.wrong_lanes(),
            wrong_kernels: record.wrong_kernels(),
            wrong_modules: record.wrong_modules(),
            rows: rows.collect(),
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.life, Life::Ended)
    }

    /// CPU time of all its threads while it runs.
    pub(crate) fn cpu_time(&self) -> Option<Duration> {
        match self.life {
            Life::Runs(cpu_time) => cpu_time,
            Life::Ended => None,
        }
    }

    /// The same where the kernel says so of it.
    #[cfg(test)]
    pub(super) fn at(&self, start_ticks: u64, cpu_time: Option<Duration>) -> Self {
        Self { start_ticks, life: Life::Runs(cpu_time), ..self.clone() }
    }

    /// One that counted nothing.
    #[cfg(test)]
    pub(crate) fn idle(pid: u32, name: &str, has_ended: bool) -> Self {
        let life = if has_ended { Life::Ended } else { Life::Runs(None) };
        Self {
            pid,
            start_ticks: 0,
            name: name.to_owned(),
            life,
            wrong_lanes: 0,
            wrong_kernels: 0,
            wrong_modules: 0,
            rows: vec![],
        }
    }

    /// All its rows together.
    pub(crate) fn totals(&self) -> Totals {
        let mut sum = Totals::default();
        self.rows.iter().for_each(|(_, totals)| sum += *totals);
        sum
    }

    /// All sizes of a kind and direction together, under the row of the smallest size.
    pub(crate) fn by_kind(&self) -> Vec<(Row, Totals)> {
        let mut found: Vec<(Row, Totals)> = Vec::new();
        for (row, totals) in &self.rows {
            let first = Row::of(row.kind(), row.direction(), 0);
            match found.last_mut().filter(|(last, _)| *last == first) {
                Some((_, sum)) => *sum += *totals,
                None => found.push((first, *totals)),
            }
        }
        found
    }

    /// One count over all rows.
    pub(crate) fn count(&self, count: Count) -> u64 {
        self.totals().of(count)
    }
}

/// What the kernel says of a process; none where it does not.
fn cpu_time_of(pid: u32) -> Option<Duration> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    cpu_time_in(&text, rustix::param::clock_ticks_per_second())
}

/// Reads the line of `/proc/PID/stat` (proc(5)): what stands behind the name, which may hold anything.
fn cpu_time_in(line: &[u8], ticks_per_second: u64) -> Option<Duration> {
    let name_end = line.iter().rposition(|byte| *byte == b')')?;
    let text = std::str::from_utf8(&line[name_end + 1..]).ok()?;
    let fields: Vec<&str> = text.split_ascii_whitespace().collect();
    // The first behind the name is field 3.
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    let ticks = field(14)?.checked_add(field(15)?)?;
    let nanos = u128::from(ticks) * 1_000_000_000 / u128::from(ticks_per_second.max(1));
    Some(Duration::from_nanos(u64::try_from(nanos).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_that_of_user_mode_and_kernel_whatever_the_process_is_called() {
        let line = b"77 (a) R 9 (b\xff) S 1 77 77 0 -1 4194560 200 0 0 0 250 50 7 7 20 0 3 0 123456 9 9\n";
        assert_eq!(cpu_time_in(line, 100), Some(Duration::from_secs(3)));
        for broken in [&b""[..], b"77 (a", b"77 (a) S 1", b"77 (a) S 1 77 77 0 -1 4194560 200 0 0 0 x 50 7"] {
            assert_eq!(cpu_time_in(broken, 100), None);
        }
    }

    #[test]
    fn this_process_has_used_time_and_of_one_that_is_not_there_nothing_is_known() {
        let until = std::time::Instant::now() + Duration::from_secs(30);
        let used = || cpu_time_of(std::process::id()).unwrap();
        while used() == Duration::ZERO {
            assert!(std::time::Instant::now() < until, "no time counted");
        }
        assert_eq!(cpu_time_of(u32::MAX), None);
    }
}
