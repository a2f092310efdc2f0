//! Measures what a module's path takes, by keeping the module busy where nothing else is going on.
//!
//! `burst of each size -> what the cores lost by it -> line` ([`unseen`]): what of that the clocks of the threads on the path do
//! not show (the kernel's own threads, interrupts, softirq) is told apart from what they do, for each request and by size
//! (`evener_core::Estimator::unseen`). On several cores what is lost is idle time ([`IdleTime`]). On one core it is work
//! ([`Beside`]): the short whiles in which it waits for the module look idle, and work that uses them pays for going to and
//! fro with colder caches; measured in docs/kernel.md.
//!
//! `short bursts -> the least disturbed one` ([`costs`]): what a request of a size takes, before any run has tried one.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use evener_core::cost::Line;
use evener_core::driver::Clock;
use evener_core::estimate::ModuleSample;
use evener_core::plan::adaptive::all_of_turn;
use evener_core::{Job, Nanos, Outcome, QueuedDriver};

/// Sizes of requests that are measured, in bytes.
pub const SIZES: [usize; 5] = [16, 1_024, 4_096, 8_192, 16_384];

/// Sizes whose costs are measured, in bytes. Between two of them costs are taken to lie on a line, so they are closer together where
/// a core and a module behind the kernel change places.
pub const COST_SIZES: [usize; 7] = [16, 256, 512, 1_024, 4_096, 8_192, 16_384];

/// How long a look at what is there without the module takes, and how long the module is kept busy with each size: idle time is told in hundredths of
/// a second.
const REST: Nanos = Nanos::from_millis(200);
const BURST: Nanos = Nanos::from_millis(200);

/// Short bursts, the first of which warms up (a key is opened, memory is touched), and requests of each between those that fill the
/// module and those that drain it, at least twice as many as it holds. A guess: what disturbs a virtual machine lasts longer than one of them.
const PASSES: usize = 6;
const PASS_REQUESTS: u64 = 16;

/// Jobs of the core beside each of them.
const PASS_JOBS: u64 = 8;

/// The same on one core where module and core are within a factor of [`FAR`], so that some per cent decide: more and longer passes, of
/// which the first requests are left out ([`LEAD`]).
const PASSES_WHERE_NEAR: usize = 12;
const PASS_REQUESTS_WHERE_NEAR: u64 = 32;
const FAR: u64 = 2;

/// Results after a rest that say nothing of a module that is kept busy: threads and cores that serve it have gone to sleep, deeper
/// than between two requests. In the guest of docs/testbed.md the first dozen took 355 us each where 1000 in a row take 280. That the
/// next dozen is over it is a guess.
pub(crate) const LEAD: u32 = 12;

/// Part of a core that others may use at most; beyond it their ups and downs are larger than what is looked for. A guess.
const OTHERS_MAX: f64 = 0.1;

/// Silence after which the module is given up.
const PATIENCE: Nanos = Nanos::from_millis(1_000);

/// How core time that goes to a module's path is found out.
pub trait Lost {
    /// Core time that was lost while `burst` ran; `None` where the system does not tell.
    fn by(&mut self, clock: &dyn Clock, burst: &mut dyn FnMut()) -> Option<Nanos>;
}

/// By the machine's idle time, which Linux tells in `/proc/stat`: what of it is missing.
#[derive(Clone, Copy, Debug)]
pub struct IdleTime {
    /// Core time that other programs use, per time that passes.
    others: f64,
}

impl IdleTime {
    /// Looks what others use, asleep; `None` where that is much, or the system does not tell.
    #[must_use]
    pub fn new(clock: &dyn Clock) -> Option<Self> {
        let rest = || thread::sleep(Duration::from(REST));
        let (core, wall) = Self::missing(clock, rest)?;
        let others = core / wall;
        (others <= OTHERS_MAX).then_some(Self { others })
    }

    /// Core time that was not idle while something was done, and the time that passed, in seconds.
    fn missing(clock: &dyn Clock, work: impl FnOnce()) -> Option<(f64, f64)> {
        let (start, (idle, _)) = (clock.now(), idle_time()?);
        work();
        let ((now_idle, cores), wall) = (idle_time()?, clock.now() - start);
        let core = Nanos(wall.0 * u64::from(cores)) - (now_idle - idle);
        Some((core.as_secs_f64(), wall.as_secs_f64().max(1e-9)))
    }
}

impl Lost for IdleTime {
    fn by(&mut self, clock: &dyn Clock, burst: &mut dyn FnMut()) -> Option<Nanos> {
        let (core, wall) = Self::missing(clock, burst)?;
        Some(Duration::from_secs_f64((core - self.others * wall).max(0.0)).into())
    }
}

/// By work that the only core does beside the module's path, at the least priority: what of it is missing.
pub struct Beside<W> {
    work: W,
    /// Time of a piece of work where nothing is beside it, in seconds.
    each: f64,
}

impl<W: FnMut() + Send> Beside<W> {
    /// Takes the time of `work`, a piece of some ten microseconds or more; `None` where others use much of the core.
    #[must_use]
    pub fn new(mut work: W, clock: &dyn Clock) -> Option<Self> {
        // Memory is touched for the first time.
        work();
        let (start, core, mut pieces) = (clock.now(), clock.thread_time(), 0);
        while clock.now() - start < REST {
            work();
            pieces += 1;
        }
        let (wall, core) = (clock.now() - start, clock.thread_time() - core);
        let is_alone = core.as_secs_f64() >= (1.0 - OTHERS_MAX) * wall.as_secs_f64();
        is_alone.then(|| Self { work, each: wall.as_secs_f64() / count(pieces) })
    }
}

impl<W: FnMut() + Send> Lost for Beside<W> {
    fn by(&mut self, clock: &dyn Clock, burst: &mut dyn FnMut()) -> Option<Nanos> {
        let (pieces, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
        let work = &mut self.work;
        let start = clock.now();
        let wall = thread::scope(|scope| {
            scope.spawn(|| {
                // One that may not is in the path's way a little more.
                rustix::process::nice(19).ok();
                // Relaxed: a flag and a count, which nothing hangs on.
                while !is_over.load(Ordering::Relaxed) {
                    work();
                    pieces.fetch_add(1, Ordering::Relaxed);
                }
            });
            let _over = Over(&is_over);
            burst();
            clock.now() - start
        });
        let done = self.each * count(pieces.into_inner());
        Some(Duration::from_secs_f64((wall.as_secs_f64() - done).max(0.0)).into())
    }
}

/// Ends the work beside a burst also where the burst panics.
struct Over<'o>(&'o AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Time that all cores together were idle since some moment, and how many they are; `None` where the system does not tell.
#[must_use]
pub fn idle_time() -> Option<(Nanos, u32)> {
    idle(&std::fs::read_to_string("/proc/stat").ok()?, rustix::param::clock_ticks_per_second())
}

/// Idle time, waiting for disks and what a hypervisor took included, none of which a module's path used.
fn idle(stat: &str, ticks_per_second: u64) -> Option<(Nanos, u32)> {
    let mut lines = stat.lines();
    let all: Vec<u64> =
        lines.next()?.strip_prefix("cpu ")?.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let ticks = all.get(3)? + all.get(4)? + all.get(7).unwrap_or(&0);
    let cores = lines.take_while(|line| line.starts_with("cpu")).count();
    let tick_ns = 1_000_000_000 / ticks_per_second.max(1);
    Some((Nanos(ticks * tick_ns), u32::try_from(cores).ok()?))
}

/// What threads' clocks do not see of a module's path, of one request, by keeping it busy with `jobs`, which are armed and
/// have room for each of [`SIZES`]; `None` where `lost` cannot tell or the module fails one.
pub fn unseen<'m>(
    driver: &mut (dyn QueuedDriver<'m> + 'm),
    mut jobs: Vec<Box<Job<'m>>>,
    clock: &dyn Clock,
    lost: &mut dyn Lost,
) -> Option<Line> {
    // A key is opened.
    keep_busy(driver, &mut jobs, SIZES[0], clock, ALL, &mut |begun| begun < PASS_REQUESTS);
    let mut points = Vec::new();
    for bytes in SIZES {
        let mut burst = Busy::default();
        let path = lost.by(clock, &mut || {
            let until = clock.now() + BURST;
            burst = keep_busy(driver, &mut jobs, bytes, clock, ALL, &mut |_| clock.now() < until);
        })?;
        points.push((bytes as u64, (path - burst.core).0 / burst.requests?));
    }
    Some(Line::fit(&points))
}

/// What is measured of a size: requests of `bytes`, of each of which so much is on no clock.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// Bytes of a request.
    pub bytes: usize,
    /// What clocks do not show.
    pub unseen: Line,
    /// How many cores there are: one cannot have spent more than the time that passed.
    pub cores: usize,
}

/// What requests take together, with `jobs` outstanding, and what `core` takes for one such job, of which it runs so many in a
/// pass. Core and module take turns, pass by pass. On several cores the least disturbed pass counts, for what disturbs makes it
/// longer; on one that where the ratio of module and core is the middle one, for what disturbs one of the two may be a moment in
/// which the other looks fast. `None` where the module fails one.
pub fn costs<'m>(
    driver: &mut (dyn QueuedDriver<'m> + 'm),
    jobs: &mut Vec<Box<Job<'m>>>,
    asked: &Asked,
    clock: &dyn Clock,
    core: &mut dyn FnMut(),
) -> Option<(ModuleSample, Nanos)> {
    let (held, Asked { bytes, unseen, cores }) = (jobs.len() as u64, *asked);
    let mut passes: Vec<(ModuleSample, Nanos, Nanos)> = Vec::new();
    // In millionths.
    let ratio = |(sample, c, wall): &(ModuleSample, Nanos, Nanos)| {
        wall.0.saturating_mul(1_000_000) / (c.0 * sample.jobs).max(1)
    };
    let is_near =
        |pass: &(ModuleSample, Nanos, Nanos)| (1_000_000 / FAR..1_000_000 * FAR).contains(&ratio(pass));
    loop {
        let is_near = cores == 1 && passes.last().is_some_and(is_near);
        if passes.len() >= if is_near { PASSES_WHERE_NEAR } else { PASSES } {
            break;
        }
        let start = clock.now();
        (0..PASS_JOBS).for_each(|_| core());
        let c = Nanos((clock.now() - start).0 / PASS_JOBS);
        let (lead, behind) =
            if is_near { (LEAD.into(), PASS_REQUESTS_WHERE_NEAR) } else { (held, PASS_REQUESTS) };
        let window = Window { lead, requests: behind.max(2 * held) };
        // Those that drain it, while less and less is under way, are left out.
        let most = lead + window.requests + held;
        let busy = keep_busy(driver, jobs, bytes, clock, window, &mut |begun| begun < most);
        let (wall, jobs) = (busy.wall, busy.requests?);
        let all = busy.core + Nanos(unseen.at(bytes as u64).0 * jobs);
        let d = if cores == 1 { all_of_passed(all, wall, held) } else { all };
        let h = Nanos(wall.0 * held) - if held == 1 { d } else { Nanos::ZERO };
        passes.push((ModuleSample { jobs, bytes: jobs * bytes as u64, d, h, now: clock.now() }, c, wall));
    }
    let mut passes: Vec<_> = passes.into_iter().skip(1).collect();
    let is_one = cores == 1 && !cfg!(mutant = "slow_moment_believed");
    passes.sort_by_key(|pass| if is_one { ratio(pass) } else { pass.2.0 });
    let place = if is_one { passes.len() / 2 } else { 0 };
    passes.get(place).map(|(sample, c, _)| (*sample, *c))
}

/// Core time of a path on the only core while `passed` passed, where `all` is what clocks and a calibration say: no more than that, and
/// all of it where little is left. What little is left of single requests is the chance of when clocks were read.
pub(crate) fn all_of_passed(all: Nanos, passed: Nanos, held: u64) -> Nanos {
    let (d, held) = (all.min(passed), u32::try_from(held).unwrap_or(u32::MAX));
    let h = Nanos(passed.0.saturating_mul(held.into())) - if held == 1 { d } else { Nanos::ZERO };
    all_of_turn(d, h, held)
}

/// Requests that count: behind the first `lead`, at least so many.
#[derive(Clone, Copy, Debug)]
struct Window {
    lead: u64,
    requests: u64,
}

/// All of them.
const ALL: Window = Window { lead: 0, requests: u64::MAX };

/// What came of keeping a module busy, of those requests that count.
#[derive(Default)]
struct Busy {
    /// `None` where one failed, the module was silent, or there were no more.
    requests: Option<u64>,
    /// What the threads on the path show.
    core: Nanos,
    /// From the last of the first ones to the last that counts.
    wall: Nanos,
}

/// Hands the jobs over again and again with `bytes` each, while `more` of those begun says so. What counts begins with the result of
/// the last of the first requests, before which the module is filled, and ends with that of the last in the window, behind which it is drained.
fn keep_busy<'m>(
    driver: &mut (dyn QueuedDriver<'m> + 'm),
    ready: &mut Vec<Box<Job<'m>>>,
    bytes: usize,
    clock: &dyn Clock,
    window: Window,
    more: &mut dyn FnMut(u64) -> bool,
) -> Busy {
    let look = |driver: &(dyn QueuedDriver<'m> + 'm)| (clock.thread_time() + driver.core_time(), clock.now());
    let (mut begun, mut ended, mut is_sound) = (0, 0, true);
    // Requests that ended before what counts, and core time and time then.
    let (mut mark, mut end) = ((0, look(driver)), None);
    while is_sound {
        while more(begun) {
            let Some(mut job) = ready.pop() else { break };
            let (session, iv) = (job.session_ref(), *job.iv());
            job.arm(session, &iv, bytes);
            if let Err((job, _)) = driver.submit(job) {
                ready.push(job);
                break;
            }
            begun += 1;
        }
        if driver.in_flight() == 0 {
            // It takes nothing though it holds nothing, or all is done.
            is_sound = !more(begun);
            break;
        }
        let mut done = Vec::new();
        let came = driver.poll(&mut done, PATIENCE);
        is_sound = came > 0 && done.iter().all(|job| matches!(job.outcome(), Outcome::Done { .. }));
        if !is_sound {
            driver.abandon(&mut done);
        }
        let is_lead = ended < window.lead && !cfg!(mutant = "filling_counts");
        ended += done.len() as u64;
        let is_last = ended - mark.0 >= window.requests && !cfg!(mutant = "draining_counts");
        if is_lead {
            mark = (ended, look(driver));
        } else if is_last && end.is_none() {
            end = Some((ended, look(driver)));
        }
        ready.append(&mut done);
    }
    let ((counted, (core, now)), (left_out, (core_then, then))) =
        (end.unwrap_or_else(|| (begun, look(driver))), mark);
    let requests = Some(counted - left_out).filter(|&requests| is_sound && requests > 0);
    Busy { requests, core: core - core_then, wall: now - then }
}

#[expect(clippy::cast_precision_loss, reason = "requests of half a second")]
const fn count(requests: u64) -> f64 {
    requests as f64
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use evener_core::{Algorithm, Direction, Profile, Refusal, SessionId};

    use crate::queue::class_queues::tests::session;

    #[test]
    fn idle_time_is_all_that_no_program_used() {
        let stat = "cpu  100 0 50 700 30 1 2 20 0 0\ncpu0 50 0 25 350 15 1 1 10 0 0\ncpu1 0 0 0 0\nintr 7\n";
        assert_eq!(idle(stat, 100), Some((Nanos::from_millis(7_500), 2)));
        assert_eq!(idle("intr 7\n", 100), None);
        assert_eq!(idle("cpu  1 2\n", 100), None);
    }

    /// Time as a module makes it pass: of each request 60 us on the caller's clock, `HIDDEN` on nobody's, and then 20 us in
    /// which the core is free. The first request opens a key, for a millisecond.
    #[derive(Default)]
    struct World {
        /// Times as long as usual; 0 counts as 1.
        slow: AtomicU64,
        now_ns: AtomicU64,
        thread_ns: AtomicU64,
        lost_ns: AtomicU64,
    }

    const SEEN_NS: u64 = 60_000;
    const HIDDEN: Line = Line { fixed_ns: 80_000, per_byte_ps: 3_500 };
    const FREE_NS: u64 = 20_000;
    const KEY_NS: u64 = 1_000_000;

    impl World {
        fn pass(&self, seen: u64, hidden: u64, free: u64) {
            let slow = self.slow.load(Ordering::Relaxed).max(1);
            let [seen, hidden, free] = [seen, hidden, free].map(|time| time * slow);
            self.thread_ns.fetch_add(seen, Ordering::Relaxed);
            self.lost_ns.fetch_add(seen + hidden, Ordering::Relaxed);
            self.now_ns.fetch_add(seen + hidden + free, Ordering::Relaxed);
        }
    }

    impl Clock for World {
        fn now(&self) -> Nanos {
            Nanos(self.now_ns.load(Ordering::Relaxed))
        }

        fn thread_time(&self) -> Nanos {
            Nanos(self.thread_ns.load(Ordering::Relaxed))
        }
    }

    struct Counted<'w>(&'w World);

    impl Lost for Counted<'_> {
        fn by(&mut self, _clock: &dyn Clock, burst: &mut dyn FnMut()) -> Option<Nanos> {
            let before = self.0.lost_ns.load(Ordering::Relaxed);
            burst();
            Some(Nanos(self.0.lost_ns.load(Ordering::Relaxed) - before))
        }
    }

    struct OneByOne<'w, 'm> {
        world: &'w World,
        profile: Profile,
        held: Option<Box<Job<'m>>>,
        has_key: bool,
    }

    impl<'m> QueuedDriver<'m> for OneByOne<'_, 'm> {
        fn profile(&self) -> &Profile {
            &self.profile
        }

        fn supports(&self, _algorithm: Algorithm, _direction: Direction) -> bool {
            true
        }

        fn submit(&mut self, job: Box<Job<'m>>) -> Result<(), (Box<Job<'m>>, Refusal)> {
            match self.held {
                Some(_) => Err((job, Refusal::Full)),
                None => {
                    self.held = Some(job);
                    Ok(())
                }
            }
        }

        fn poll(&mut self, done: &mut Vec<Box<Job<'m>>>, _patience: Nanos) -> usize {
            let Some(mut job) = self.held.take() else { return 0 };
            if !std::mem::replace(&mut self.has_key, true) {
                self.world.pass(KEY_NS, 0, 0);
            }
            let bytes = job.input_bytes();
            self.world.pass(SEEN_NS, HIDDEN.at(bytes as u64).0, FREE_NS);
            job.publish(&vec![0; bytes], &[]);
            done.push(job);
            1
        }

        fn in_flight(&self) -> usize {
            usize::from(self.held.is_some())
        }

        fn abandon(&mut self, given_back: &mut Vec<Box<Job<'m>>>) {
            given_back.extend(self.held.take());
        }

        fn forget(&mut self, _is_gone: &dyn Fn(SessionId) -> bool) {
            self.has_key = false;
        }
    }

    fn driver<'m>(world: &World) -> OneByOne<'_, 'm> {
        let profile = Profile { name: String::new(), detail: String::new(), width: 1, emulated: true };
        OneByOne { world, profile, held: None, has_key: false }
    }

    fn one_job(room: &mut [u8]) -> Vec<Box<Job<'_>>> {
        let bytes = room.len();
        let mut job = Job::in_place(room);
        job.arm(session(), &[0; 16], bytes);
        vec![job]
    }

    #[test]
    fn what_clocks_do_not_show_is_known_at_each_size_and_what_was_measured_at_one_is_no_multiple() {
        let (world, mut room) = (World::default(), vec![0; 16_384]);
        let found = unseen(&mut driver(&world), one_job(&mut room), &world, &mut Counted(&world));
        assert_eq!(found, Some(HIDDEN));
        // Clocks show as much of each: a factor found at 4 KiB would make 154 us of all of them.
        let all = |bytes| (SEEN_NS + HIDDEN.at(bytes).0) / 1_000;
        assert_eq!([16, 4_096, 16_384].map(all), [140, 154, 197]);
    }

    #[test]
    fn of_a_module_that_is_kept_busy_only_what_is_between_filling_and_draining_it_counts() {
        let (world, mut room) = (World::default(), vec![0; 16_384]);
        let mut jobs = one_job(&mut room);
        let window = Window { lead: 3, requests: 5 };
        let busy = keep_busy(&mut driver(&world), &mut jobs, 1_024, &world, window, &mut |begun| begun < 9);
        let each = SEEN_NS + HIDDEN.at(1_024).0 + FREE_NS;
        assert_eq!((busy.requests, busy.core, busy.wall), (Some(5), Nanos(5 * SEEN_NS), Nanos(5 * each)));
        // Its key was among the first ones.
        assert_eq!(world.now(), Nanos(KEY_NS + 9 * each));
    }

    #[test]
    fn the_cost_of_a_first_request_is_that_of_the_ones_behind_it_and_fits_into_the_time_that_passed() {
        let mut room = vec![0; 16_384];
        let mut costs = |unseen: Line, cores: usize| {
            let world = World::default();
            let mut jobs = one_job(&mut room);
            let asked = Asked { bytes: 16_384, unseen, cores };
            let (sample, _) = costs(&mut driver(&world), &mut jobs, &asked, &world, &mut || ()).unwrap();
            [sample.d.0 / sample.jobs / 1_000, sample.h.0 / sample.jobs / 1_000]
        };
        // 197 us of 217: what is left is of no use. Of the path of which only clocks are known more than half is left.
        assert_eq!((costs(HIDDEN, 1), costs(HIDDEN, 2)), ([217, 0], [197, 20]));
        assert_eq!(costs(Line::default(), 1), [60, 157]);
        let too_much = Line { fixed_ns: 900_000, per_byte_ps: 0 };
        assert_eq!((costs(too_much, 1), costs(too_much, 2)), ([217, 0], [960, 0]));
    }

    #[test]
    fn what_single_requests_seem_to_leave_of_the_only_core_is_no_part_of_what_they_take() {
        let us = Nanos::from_micros;
        let d = |all, passed, held| all_of_passed(us(all), us(passed), held);
        // Two outstanding: looks at clocks fall now before, now behind what the other one takes.
        assert_eq!([d(300, 400, 2), d(500, 400, 2), d(210, 400, 2)], [us(400); 3]);
        assert_eq!([d(190, 400, 2), d(190, 400, 1)], [us(190); 2]);
    }

    #[test]
    fn a_machine_that_is_slow_for_a_while_is_slow_for_core_and_module() {
        let (world, mut room) = (World::default(), vec![0; 16_384]);
        // A job of the core takes 300 us; from the second pass on all takes three times as long, but in the last one only the core.
        let began = Cell::new(0);
        let mut core = || {
            let pass = began.replace(began.get() + 1) / PASS_JOBS;
            let slow = if pass == 0 { 1 } else { 3 };
            world.slow.store(if pass == 5 { 1 } else { slow }, Ordering::Relaxed);
            world.now_ns.fetch_add(slow * 300_000, Ordering::Relaxed);
        };
        let asked = Asked { bytes: 16_384, unseen: HIDDEN, cores: 1 };
        let mut jobs = one_job(&mut room);
        let (sample, c) = costs(&mut driver(&world), &mut jobs, &asked, &world, &mut core).unwrap();
        // The least time of the module, held against the core of that pass, would say 0.24.
        let each = (sample.d + sample.h).0 / sample.jobs;
        assert_eq!(each * 1_000 / c.0, 217_344 * 1_000 / 300_000);
    }
}
