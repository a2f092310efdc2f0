//! What happened between two readings: counts that grew, CPU time that passed, and the rates that follow.

use std::time::Duration;

use evener::core::counts::Count;
use evener_arbiter::ModuleView;

use super::host::Host;
use super::process::Process;

/// What was added to counts in some time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Change {
    /// In which it was added.
    time: Duration,
    counts: [u64; Count::ALL.len()],
    /// CPU time of the whole process; none where the system does not tell.
    cpu: Option<Duration>,
}

impl Change {
    /// What `now` has that `before` had not. None where the two are not the same process, or its counts began anew.
    pub(crate) fn of_process(before: &Process, now: &Process, time: Duration) -> Option<Self> {
        if (before.pid, before.start_ticks) != (now.pid, now.start_ticks) {
            return None;
        }
        let (old, new) = (before.totals(), now.totals());
        let mut counts = [0; Count::ALL.len()];
        for count in Count::ALL {
            counts[count as usize] = new.of(count).checked_sub(old.of(count))?;
        }
        let cpu = now.cpu_time().zip(before.cpu_time()).and_then(|(now, before)| now.checked_sub(before));
        Some(Self { time, counts, cpu })
    }

    /// Requests and bytes that a host's module did in that time, in this order; both may be told in one second by [`per_second`](Self::per_second).
    pub(crate) fn of_host(before: &Host, now: &Host) -> Option<(u64, u64)> {
        let (old, new) = (before.answer.as_ref().ok()?.totals, now.answer.as_ref().ok()?.totals);
        let is_same = before.socket == now.socket;
        let requests = new.requests.checked_sub(old.requests).filter(|_| is_same)?;
        Some((requests, new.bytes.checked_sub(old.bytes)?))
    }

    /// Requests and bytes that all processes had done at a module in that time, as of a host. None where it is another one, or its counts began anew.
    pub(crate) fn of_module(before: &ModuleView, now: &ModuleView) -> Option<(u64, u64)> {
        let requests = now.work.requests.checked_sub(before.work.requests);
        let requests = requests.filter(|_| before.name == now.name)?;
        Some((requests, now.work.bytes.checked_sub(before.work.bytes)?))
    }

    /// Both together; they are of the same time.
    pub(crate) fn and(self, other: Self) -> Self {
        let mut counts = self.counts;
        for (sum, part) in counts.iter_mut().zip(other.counts) {
            *sum = sum.saturating_add(part);
        }
        let cpu = self.cpu.unwrap_or_default().saturating_add(other.cpu.unwrap_or_default());
        Self { time: other.time, counts, cpu: self.cpu.or(other.cpu).map(|_| cpu) }
    }

    /// How much of one count was added.
    pub(crate) const fn of(&self, count: Count) -> u64 {
        self.counts[count as usize]
    }

    /// Requests, whichever way they went.
    pub(crate) fn requests(&self) -> u64 {
        Count::WAYS.iter().fold(0, |sum, way| sum.saturating_add(self.of(*way)))
    }

    /// What part of the requests went this way, in per cent; none where there was no request.
    pub(crate) fn share(&self, way: Count) -> Option<f64> {
        let whole = self.requests();
        (whole > 0).then(|| 100.0 * float(self.of(way)) / float(whole))
    }

    /// A number of something in one second of this time.
    pub(crate) fn per_second(&self, number: u64) -> f64 {
        float(number) / self.time.as_secs_f64().max(1e-9)
    }

    /// CPU time of the process, in per cent of one core.
    pub(crate) fn cpu_percent(&self) -> Option<f64> {
        self.cpu.map(|cpu| 100.0 * cpu.as_secs_f64() / self.time.as_secs_f64().max(1e-9))
    }

    /// CPU time of the process for each byte that it gave to the provider, in nanoseconds: of all that the process did, so an
    /// upper bound of what cryptography took.
    pub(crate) fn cpu_ns_per_byte(&self) -> Option<f64> {
        let bytes = self.of(Count::Bytes);
        self.cpu.filter(|_| bytes > 0).map(|cpu| cpu.as_secs_f64() * 1e9 / float(bytes))
    }
}

#[expect(clippy::cast_precision_loss, reason = "for the eye: 53 bits are plenty")]
const fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use evener::core::Direction::Encrypt;
    use evener::core::counts::{Kind, Row};
    use evener::counts_file::{Directories, Statistics, of_process};

    /// Readings of this process with `counted` before each, as the files of a process hold them.
    fn readings(name: &str, counted: [&[(Count, u64)]; 2]) -> [Process; 2] {
        let folder = std::env::temp_dir().join(format!("evener-change-{}-{name}", std::process::id()));
        let places = Directories::only(folder.clone());
        let statistics = Statistics::new(places.clone()).unwrap();
        let row = Row::of(Kind::named("AES-128-CBC"), Encrypt, 16_384);
        let (uid, pid) = (rustix::process::geteuid().as_raw(), std::process::id());
        let read = counted.map(|counts| {
            counts.iter().for_each(|(count, number)| statistics.add(row, *count, *number));
            Process::new(&of_process(&places, uid, pid).unwrap().unwrap())
        });
        std::fs::remove_dir_all(folder).ok();
        read
    }

    fn at(process: &Process, start_ticks: u64, cpu_ms: u64) -> Process {
        process.at(start_ticks, Some(Duration::from_millis(cpu_ms)))
    }

    #[test]
    fn rates_and_shares_are_of_what_was_added_between_two_readings() {
        let first: &[_] = &[(Count::Direct, 1_000), (Count::Bytes, 99)];
        let then: &[_] = &[
            (Count::Direct, 20),
            (Count::Kernel, 10),
            (Count::Routed, 10),
            (Count::Bytes, 2_000_000),
            (Count::Redone, 4),
        ];
        let [before, now] = readings("rates", [first, then]);
        let (before, now) = (at(&before, 7, 100), at(&now, 7, 600));
        let change = Change::of_process(&before, &now, Duration::from_secs(2)).unwrap();
        let near = |told: f64, expected: f64| (told - expected).abs() < 1e-9;
        assert!(change.requests() == 40 && near(change.per_second(change.requests()), 20.0));
        assert!(near(change.per_second(change.of(Count::Bytes)), 1e6) && change.of(Count::Redone) == 4);
        let shares = Count::WAYS.map(|way| change.share(way).unwrap());
        assert!(
            shares.iter().zip([50.0, 25.0, 0.0, 0.0, 25.0]).all(|(told, expected)| near(*told, expected))
        );
        assert!(near(change.cpu_percent().unwrap(), 25.0));
        assert!(near(change.cpu_ns_per_byte().unwrap(), 250.0));
        let both = change.and(change);
        assert!(near(both.per_second(both.requests()), 40.0) && near(both.cpu_percent().unwrap(), 50.0));
    }

    #[test]
    fn an_idle_process_has_neither_shares_nor_a_price_per_byte() {
        let [before, now] = readings("idle", [&[(Count::Direct, 5), (Count::Bytes, 5)], &[]]);
        let change = Change::of_process(&at(&before, 7, 1), &at(&now, 7, 2), Duration::from_secs(1)).unwrap();
        assert_eq!(
            (change.requests(), change.share(Count::Direct), change.cpu_ns_per_byte()),
            (0, None, None)
        );
    }

    #[test]
    fn a_number_that_another_process_has_now_gives_no_rate() {
        let [before, now] = readings("reused", [&[(Count::Direct, 5)], &[(Count::Direct, 5)]]);
        let second = Duration::from_secs(1);
        assert_eq!(Change::of_process(&at(&before, 7, 1), &at(&now, 8, 2), second), None);
        assert_eq!(Change::of_process(&now, &before, second), None, "counts that fell are another file's");
        let ended = now.at(before.start_ticks, None);
        let other = now.at(before.start_ticks + 1, None);
        assert_eq!(Change::of_process(&before, &other, second), None, "its number was used before");
        assert_eq!(Change::of_process(&before, &ended, second).map(|change| change.cpu), Some(None));
    }
}
