//! Waiting for the host: asleep, and only for a host that answers sooner than a sleeper wakes, awake.
//!
//! A core that looks again and again does nothing else, so it does so for at most the time of a wake-up, and only where
//! what was learned says that this will do. Now and then it looks awake to learn: a sleeper cannot tell a fast host from its own slow
//! waking.

use std::hint;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::control::Trouble;

/// What a sleep costs at least: 55 to 65 us between two cores, of which 21 us are core time (measured on a 2-core AMD EPYC virtual
/// machine).
const WAKE_UP: Duration = Duration::from_micros(50);

/// One in so many waits is awake, to learn. A guess: below 1 us a wait.
const PROBE_EVERY: u32 = 64;

/// Weight of a new sample, 1/8: five samples to half.
const WEIGHT: u32 = 8;

/// What is known of the host's time, and what follows for the next wait.
#[derive(Debug)]
pub(crate) struct Spin {
    /// Time from showing a batch until what is waited for was there; none where never seen.
    service: Option<Duration>,
    waits: u32,
    /// On one core the host needs it.
    has_cores: bool,
}

impl Spin {
    pub(crate) fn new() -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Self { service: None, waits: 0, has_cores: cores > 1 }
    }

    /// How long the next wait may look before it sleeps; none: not at all.
    pub(crate) fn next(&mut self) -> Option<Duration> {
        let is_probe = self.waits % PROBE_EVERY == 0;
        self.waits = self.waits.wrapping_add(1);
        let pays = self.service.is_some_and(|service| service < WAKE_UP);
        (self.has_cores && (pays || is_probe)).then_some(WAKE_UP)
    }

    /// Learns from a wait that ended awake, so long after the batch was shown.
    pub(crate) fn came(&mut self, service: Duration) {
        let mean = |old: Duration| (old * (WEIGHT - 1) + service) / WEIGHT;
        self.service = Some(self.service.map_or(service, mean));
    }

    /// Learns that looking was in vain.
    pub(crate) fn missed(&mut self) {
        self.came(WAKE_UP * 2);
    }
}

/// Looks until `is_there` or `limit` has passed; says whether it was there.
pub(crate) fn look_awake(
    limit: Duration,
    mut is_there: impl FnMut() -> Result<bool, Trouble>,
) -> Result<bool, Trouble> {
    let began = Instant::now();
    loop {
        if is_there()? {
            return Ok(true);
        }
        if began.elapsed() >= limit {
            return Ok(false);
        }
        (0..32).for_each(|_| hint::spin_loop());
    }
}

/// An event that two processes share; sleeping on it is the kernel's.
pub(crate) fn event() -> Result<OwnedFd, Trouble> {
    eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
        .map_err(|errno| Trouble::system("an event", &errno.into()))
}

/// Rings an event.
pub(crate) fn ring(event: &OwnedFd) -> Result<(), Trouble> {
    match rustix::io::retry_on_intr(|| rustix::io::write(event, &1_u64.to_ne_bytes())) {
        // An event that is full was rung.
        Ok(_) | Err(rustix::io::Errno::AGAIN) => Ok(()),
        Err(errno) => Err(Trouble::system("a kick", &errno.into())),
    }
}

/// Sleeps until `event` is rung, `until`, or the end of the host, whose socket says it at once.
pub(crate) fn sleep(event: &OwnedFd, socket: BorrowedFd<'_>, until: Instant) -> Result<(), Trouble> {
    let left = until.saturating_duration_since(Instant::now());
    let left = Timespec {
        tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: left.subsec_nanos().into(),
    };
    // The host sends nothing unasked: whatever happens on the socket is its end.
    let mut watched = [
        PollFd::new(event, PollFlags::IN),
        PollFd::from_borrowed_fd(socket, PollFlags::IN | PollFlags::RDHUP),
    ];
    match poll(&mut watched, Some(&left)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(errno) => return Err(Trouble::system("a wait", &io::Error::from(errno))),
    }
    if !watched[0].revents().is_empty() {
        // It is non-blocking: a ring that was taken already is no error.
        match rustix::io::read(event.as_fd(), &mut [0; 8]) {
            Ok(_) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(Trouble::system("a call", &io::Error::from(errno))),
        }
    }
    if watched[1].revents().is_empty() { Ok(()) } else { Err(Trouble::Gone) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spin(has_cores: bool) -> Spin {
        Spin { has_cores, ..Spin::new() }
    }

    #[test]
    fn only_a_host_that_answers_sooner_than_a_sleeper_wakes_is_waited_for_awake() {
        let mut fast = spin(true);
        assert!(fast.next().is_some(), "the first wait learns");
        assert_eq!(fast.next(), None, "nothing is known yet");
        fast.came(Duration::from_micros(12));
        assert!((0..200).all(|_| fast.next().is_some()));
        let mut slow = spin(true);
        slow.next();
        slow.missed();
        let awake = (0..640).filter(|_| slow.next().is_some()).count();
        assert_eq!(awake, 10, "one in 64");
    }

    #[test]
    fn a_host_that_slows_down_is_left_and_one_that_hurries_is_found_again() {
        let mut host = spin(true);
        host.came(Duration::from_micros(10));
        host.next();
        let in_vain = (0..20).take_while(|_| host.next().inspect(|_| host.missed()).is_some()).count();
        assert!((1..=8).contains(&in_vain), "{in_vain}");
        let mut probes = 0;
        while host.service >= Some(WAKE_UP) {
            host.came(Duration::ZERO);
            probes += 1;
        }
        assert!(probes < 8, "{probes}");
    }

    #[test]
    fn on_one_core_nobody_looks() {
        let mut spin = spin(false);
        spin.came(Duration::from_micros(1));
        assert!((0..200).all(|_| spin.next().is_none()));
    }
}
