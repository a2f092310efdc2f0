//! Keeps a module busy, and takes the time of requests between filling and draining it.

use evener_core::driver::Clock;
use evener_core::{Job, Nanos, Outcome, QueuedDriver};

/// Silence after which the module is given up.
const TIMEOUT: Nanos = Nanos::from_millis(1_000);

/// Requests that count: behind the first `lead`, at least so many.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) lead: u64,
    pub(super) requests: u64,
}

/// All of them.
pub(super) const ALL: Window = Window { lead: 0, requests: u64::MAX };

/// What came of keeping a module busy, of those requests that count.
#[derive(Default)]
pub(super) struct Busy {
    /// `None` where one failed, the module was silent, or there were no more.
    pub(super) requests: Option<u64>,
    /// What the threads on the path show.
    pub(super) core: Nanos,
    /// From the last of the first ones to the last that counts.
    pub(super) wall: Nanos,
}

/// Hands the jobs over again and again with `bytes` each, while `more` of those begun says so. What counts begins with the result of
/// the last of the first requests, before which the module is filled, and ends with that of the last in the window, behind which it is drained.
pub(super) fn keep_busy<'m>(
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
        let came = driver.poll(&mut done, TIMEOUT);
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
