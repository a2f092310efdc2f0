//! Waiting for the host: asleep, and only for a host that answers sooner than a sleeper wakes, awake.
//!
//! A core that looks again and again does nothing else, so it does so for at most the time of a wake-up, and only where
//! what was learned says that this will do. Now and then it looks awake to learn: a sleeper cannot tell a fast host from its own slow
//! waking.

use std::mem::MaybeUninit;
use std::time::{Duration, Instant};
use std::{hint, io, thread};

use evener_fd::{CheckedFd, not_in_children, note_call};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;

use crate::connection::error::ConnectionError;

/// What a sleep costs at least: 55 to 65 us between two cores, of which 21 us are core time (measured on a 2-core AMD EPYC virtual
/// machine).
const WAKE_UP: Duration = Duration::from_micros(50);

/// One in so many waits is awake, to learn. Assumed, not measured: 64, because that is
/// below 1 us a wait.
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
    /// One that never looks.
    #[cfg(any(test, target_arch = "x86_64"))]
    pub(crate) const fn never() -> Self {
        Self { service: None, waits: 0, has_cores: false }
    }

    pub(crate) fn new() -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Self { service: None, waits: 0, has_cores: cores > 1 }
    }

    /// Whether the next wait looks, and so wants to know since when.
    pub(crate) fn learns(&self) -> bool {
        self.has_cores && (self.pays() || self.waits % PROBE_EVERY == 0)
    }

    fn pays(&self) -> bool {
        self.service.is_some_and(|service| service < WAKE_UP)
    }

    /// How long the next wait may look before it sleeps; none: not at all.
    pub(crate) fn next(&mut self) -> Option<Duration> {
        let looks = self.learns();
        self.waits = self.waits.wrapping_add(1);
        looks.then_some(WAKE_UP)
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
pub(crate) fn spin_until(
    limit: Duration,
    mut is_there: impl FnMut() -> Result<bool, ConnectionError>,
) -> Result<bool, ConnectionError> {
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
pub(crate) fn event() -> Result<CheckedFd, ConnectionError> {
    let made = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(io::Error::from);
    made.and_then(not_in_children).map_err(|error| ConnectionError::system("an event", error))
}

/// Rings an event.
pub(crate) fn ring(event: &CheckedFd) -> Result<(), ConnectionError> {
    let event = event.checked().map_err(|error| ConnectionError::system("a kick", error))?;
    note_call();
    match rustix::io::retry_on_intr(|| rustix::io::write(event, &1_u64.to_ne_bytes())) {
        // An event that is full was rung.
        Ok(_) | Err(Errno::AGAIN) => Ok(()),
        Err(errno) => Err(ConnectionError::system("a kick", errno.into())),
    }
}

/// Where one sleeps until the other side calls, or goes away. One call wakes one sleeper.
#[derive(Debug)]
pub(crate) struct Waiter {
    epoll: CheckedFd,
    call: CheckedFd,
}

/// What is watched, as an event says it.
const CALL: u64 = 0;
const END: u64 = 1;

impl Waiter {
    /// `call` is rung when something came back; on `end` nothing happens but that the other side goes away, or answers there.
    pub(crate) fn new(call: CheckedFd, end: Option<&CheckedFd>) -> Result<Self, ConnectionError> {
        Self::watching(call, end).map_err(|error| ConnectionError::system("a place to wait", error))
    }

    fn watching(call: CheckedFd, end: Option<&CheckedFd>) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let watch = |file: &CheckedFd, what, flags| {
            io::Result::Ok(epoll::add(&epoll, file.checked()?, EventData::new_u64(what), flags)?)
        };
        // By its edges: who is told of a ring need not read it, which would be a call more for each.
        watch(&call, CALL, EventFlags::IN | EventFlags::ET)?;
        if let Some(end) = end {
            watch(end, END, EventFlags::IN | EventFlags::RDHUP)?;
        }
        Ok(Self { epoll: not_in_children(epoll)?, call })
    }

    /// Wakes one sleeper as the other side does.
    pub(crate) fn wake(&self) -> Result<(), ConnectionError> {
        ring(&self.call)
    }

    /// Sleeps until there was a call that was not reported, for `timeout` at most. May return for no reason. An end is told to all, as long
    /// as it is not read away.
    pub(crate) fn sleep(&self, timeout: Duration) -> Result<(), ConnectionError> {
        let timeout = Timespec {
            tv_sec: timeout.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        let epoll = self.epoll.checked().map_err(|error| ConnectionError::system("a wait", error))?;
        let mut space = [MaybeUninit::uninit(); 2];
        note_call();
        match epoll::wait(epoll, &mut space, Some(&timeout)) {
            Ok((events, _)) if events.iter().any(|event| event.data.u64() == END) => {
                Err(ConnectionError::Gone)
            }
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(ConnectionError::system("a wait", errno.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

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

    const LONG: Duration = Duration::from_secs(10);

    fn waiter(end: Option<&CheckedFd>) -> Waiter {
        Waiter::new(event().unwrap(), end).unwrap()
    }

    /// How long a sleep was that may be long.
    fn slept(waiter: &Waiter) -> Duration {
        let began = Instant::now();
        waiter.sleep(LONG).unwrap();
        began.elapsed()
    }

    #[test]
    fn a_ring_before_the_sleep_is_not_lost_and_counts_once() {
        let waiter = waiter(None);
        waiter.wake().unwrap();
        assert!(slept(&waiter) < LONG / 2);
        let (began, short) = (Instant::now(), Duration::from_millis(50));
        waiter.sleep(short).unwrap();
        assert!(began.elapsed() >= short, "nobody rang again");
        // One that was never read rings as well as one that was.
        waiter.wake().unwrap();
        assert!(slept(&waiter) < LONG / 2);
    }

    #[test]
    fn a_ring_wakes_one_sleeper() {
        let (waiter, awake) = (waiter(None), AtomicU32::new(0));
        let is_soon = |count| {
            let began = Instant::now();
            while awake.load(SeqCst) < count && began.elapsed() < LONG / 2 {
                thread::sleep(Duration::from_millis(1));
            }
            // One more would be awake by now, too, or is not seen this time.
            thread::sleep(Duration::from_millis(50));
            awake.load(SeqCst) == count
        };
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    slept(&waiter);
                    awake.fetch_add(1, SeqCst);
                });
            }
            for count in 1..=3 {
                waiter.wake().unwrap();
                assert!(is_soon(count), "{} of 3 after {count} rings", awake.load(SeqCst));
            }
        });
    }

    #[test]
    fn the_end_is_told_to_each_sleeper() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let ours = CheckedFd::new(ours.into()).unwrap();
        let waiter = waiter(Some(&ours));
        thread::scope(|scope| {
            let sleepers = [(); 2].map(|()| scope.spawn(|| waiter.sleep(LONG)));
            drop(theirs);
            assert!(
                sleepers.map(|sleeper| sleeper.join().unwrap())
                    == [Err(ConnectionError::Gone), Err(ConnectionError::Gone)]
            );
        });
        assert_eq!(waiter.sleep(LONG), Err(ConnectionError::Gone), "and to who comes later");
    }

    #[test]
    fn on_one_core_nobody_looks() {
        let mut spin = spin(false);
        spin.came(Duration::from_micros(1));
        assert!((0..200).all(|_| spin.next().is_none()));
    }
}
