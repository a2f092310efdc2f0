//! A module in virtual time, of which the tests say what clocks show and what they do not.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use evener_core::{Algorithm, Direction, Profile, Refusal, SessionId};

use super::idle_time::idle;
use super::*;
use crate::queue::test_support::session;

#[test]
fn idle_time_is_all_that_no_program_used() {
    let stat = "cpu  100 0 50 700 30 1 2 20 0 0\ncpu0 50 0 25 350 15 1 1 10 0 0\ncpu1 0 0 0 0\nintr 7\n";
    assert_eq!(idle(stat, 100), Some((Nanos::from_millis(7_500), 2)));
    assert_eq!(idle("intr 7\n", 100), None);
    assert_eq!(idle("cpu  1 2\n", 100), None);
}

/// Time as a module makes it pass: of each request 60 us on the caller's clock, `HIDDEN` on no clock, and then 20 us in
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

impl CpuLoss for Counted<'_> {
    fn during(&mut self, _clock: &dyn Clock, burst: &mut dyn FnMut()) -> Option<Nanos> {
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

    fn poll(&mut self, done: &mut Vec<Box<Job<'m>>>, _timeout: Nanos) -> usize {
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

    fn evict(&mut self, _is_gone: &dyn Fn(SessionId) -> bool) {
        self.has_key = false;
    }
}

fn driver<'m>(world: &World) -> OneByOne<'_, 'm> {
    let profile = Profile { name: String::new(), detail: String::new(), width: 1, emulated: true };
    OneByOne { world, profile, held: None, has_key: false }
}

fn one_job(space: &mut [u8]) -> Vec<Box<Job<'_>>> {
    let bytes = space.len();
    let mut job = Job::in_place(space);
    job.arm(session(), &[0; 16], bytes);
    vec![job]
}

#[test]
fn what_clocks_do_not_show_is_known_at_each_size_and_what_was_measured_at_one_is_no_multiple() {
    let (world, mut space) = (World::default(), vec![0; 16_384]);
    let found = overhead(&mut driver(&world), one_job(&mut space), &world, &mut Counted(&world));
    assert_eq!(found, Some(HIDDEN));
    // Clocks show as much of each: a factor found at 4 KiB would make 154 us of all of them.
    let all = |bytes| (SEEN_NS + HIDDEN.at(bytes).0) / 1_000;
    assert_eq!([16, 4_096, 16_384].map(all), [140, 154, 197]);
}

#[test]
fn of_a_module_that_is_kept_busy_only_what_is_between_filling_and_draining_it_counts() {
    let (world, mut space) = (World::default(), vec![0; 16_384]);
    let mut jobs = one_job(&mut space);
    let window = Window { lead: 3, requests: 5 };
    let busy = keep_busy(&mut driver(&world), &mut jobs, 1_024, &world, window, &mut |begun| begun < 9);
    let each = SEEN_NS + HIDDEN.at(1_024).0 + FREE_NS;
    assert_eq!((busy.requests, busy.core, busy.wall), (Some(5), Nanos(5 * SEEN_NS), Nanos(5 * each)));
    // Its key was among the first ones.
    assert_eq!(world.now(), Nanos(KEY_NS + 9 * each));
}

#[test]
fn the_cost_of_a_first_request_is_that_of_the_ones_behind_it_and_fits_into_the_time_that_passed() {
    let mut space = vec![0; 16_384];
    let mut costs = |overhead: Line, cores: usize| {
        let world = World::default();
        let mut jobs = one_job(&mut space);
        let query = CostQuery { bytes: 16_384, overhead, cores };
        let (sample, _) = costs(&mut driver(&world), &mut jobs, &query, &world, &mut || ()).unwrap();
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
    let (world, mut space) = (World::default(), vec![0; 16_384]);
    // A job of the core takes 300 us; from the second pass on all takes three times as long, but in the last one only the core.
    let began = Cell::new(0);
    let mut core = || {
        let pass = began.replace(began.get() + 1) / PASS_JOBS;
        let slow = if pass == 0 { 1 } else { 3 };
        world.slow.store(if pass == 5 { 1 } else { slow }, Ordering::Relaxed);
        world.now_ns.fetch_add(slow * 300_000, Ordering::Relaxed);
    };
    let query = CostQuery { bytes: 16_384, overhead: HIDDEN, cores: 1 };
    let mut jobs = one_job(&mut space);
    let (sample, c) = costs(&mut driver(&world), &mut jobs, &query, &world, &mut core).unwrap();
    // The least time of the module, held against the core of that pass, would say 0.24.
    let each = (sample.d + sample.h).0 / sample.jobs;
    assert_eq!(each * 1_000 / c.0, 217_344 * 1_000 / 300_000);
}
