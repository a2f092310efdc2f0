//! Measures what threads' clocks do not see of a module's path: the kernel's own threads, interrupts, softirq.
//!
//! `rest -> burst`: while this program rests, the machine's idle time says what others use; while it keeps the module busy,
//! what is missing of it beyond that was lost to the module's path. Over what the clocks of the threads on the path show,
//! that is the module's core factor (`evener_core::Estimator::core_factor`).

use std::time::Duration;

use evener_core::driver::Clock;
use evener_core::estimate::CORE_FACTORS;
use evener_core::{Job, Nanos, Outcome, QueuedDriver};

/// How long a look at others takes, and how long the module is kept busy: idle time is told in hundredths of a second.
const REST: Nanos = Nanos::from_millis(200);
const BURST: Nanos = Nanos::from_millis(500);

/// Part of a core that others may use at most; beyond it their ups and downs are larger than what is looked for. A guess.
const OTHERS_MAX: f64 = 0.1;

/// Silence after which the module is given up.
const PATIENCE: Nanos = Nanos::from_millis(1_000);

/// What the machine tells of its cores.
pub trait Cores {
    /// Time that all cores together were idle since some moment, and how many they are; `None` where the system does not
    /// tell.
    fn idle(&self) -> Option<(Nanos, u32)>;

    /// Lets the calling thread rest.
    fn rest(&self, time: Nanos);
}

/// Linux's `/proc/stat`.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemCores;

impl Cores for SystemCores {
    fn idle(&self) -> Option<(Nanos, u32)> {
        idle(&std::fs::read_to_string("/proc/stat").ok()?, rustix::param::clock_ticks_per_second())
    }

    fn rest(&self, time: Nanos) {
        std::thread::sleep(Duration::from(time));
    }
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

/// The core factor of a module, by keeping it busy with `jobs`, which are armed; `None` where others use the cores, the
/// system does not tell, or the module fails one.
pub fn core_factor<'m>(
    driver: &mut (dyn QueuedDriver<'m> + 'm),
    jobs: Vec<Box<Job<'m>>>,
    clock: &dyn Clock,
    machine: &dyn Cores,
) -> Option<f64> {
    let others = lost(clock, machine, || machine.rest(REST))?;
    if others.per_wall() > OTHERS_MAX {
        return None;
    }
    let (mut core, mut is_sound) = (Nanos::ZERO, true);
    let burst = lost(clock, machine, || {
        let before = clock.thread_time() + driver.core_time();
        is_sound = keep_busy(driver, jobs, clock);
        core = clock.thread_time() + driver.core_time() - before;
    })?;
    let path = burst.core.as_secs_f64() - others.per_wall() * burst.wall.as_secs_f64();
    let factor = path / core.as_secs_f64().max(1e-9);
    is_sound.then_some(factor.clamp(*CORE_FACTORS.start(), *CORE_FACTORS.end()))
}

/// Core time that all together used while something was done.
struct Lost {
    core: Nanos,
    wall: Nanos,
}

impl Lost {
    fn per_wall(&self) -> f64 {
        self.core.as_secs_f64() / self.wall.as_secs_f64().max(1e-9)
    }
}

fn lost(clock: &dyn Clock, machine: &dyn Cores, work: impl FnOnce()) -> Option<Lost> {
    let (start, (idle, _)) = (clock.now(), machine.idle()?);
    work();
    let ((now_idle, cores), wall) = (machine.idle()?, clock.now() - start);
    Some(Lost { core: Nanos(wall.0 * u64::from(cores)) - (now_idle - idle), wall })
}

/// Hands the jobs over again and again; false where one fails or the module is silent.
fn keep_busy<'m>(
    driver: &mut (dyn QueuedDriver<'m> + 'm),
    mut ready: Vec<Box<Job<'m>>>,
    clock: &dyn Clock,
) -> bool {
    let until = clock.now() + BURST;
    let mut done = Vec::new();
    while clock.now() < until || driver.in_flight() > 0 {
        while clock.now() < until {
            let Some(mut job) = ready.pop() else { break };
            let (session, iv, bytes) = (job.session_ref(), *job.iv(), job.input_bytes());
            job.arm(session, &iv, bytes);
            if let Err((job, _)) = driver.submit(job) {
                ready.push(job);
                break;
            }
        }
        if driver.in_flight() == 0 {
            // It takes nothing though it holds nothing.
            return false;
        }
        let came = driver.poll(&mut done, PATIENCE);
        let is_sound = done.iter().all(|job| matches!(job.outcome(), Outcome::Done { .. }));
        if came == 0 || !is_sound {
            driver.abandon(&mut done);
            return false;
        }
        ready.append(&mut done);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_all_that_no_program_used() {
        let stat = "cpu  100 0 50 700 30 1 2 20 0 0\ncpu0 50 0 25 350 15 1 1 10 0 0\ncpu1 0 0 0 0\nintr 7\n";
        assert_eq!(idle(stat, 100), Some((Nanos::from_millis(7_500), 2)));
        assert_eq!(idle("intr 7\n", 100), None);
        assert_eq!(idle("cpu  1 2\n", 100), None);
    }
}
