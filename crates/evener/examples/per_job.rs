//! What the path through the queue costs per job: jobs that no driver works on, from the barrier until the last is home.
//!
//! `cargo run --release -p evener --example per_job [JOBS] [WORKERS] [ROUNDS]` prints the least and the median of the
//! rounds: core time of a worker per job (wall time from the barrier to the last job back, times workers, by jobs).
//! Beside it the same jobs without queue: on another thread, which has to fetch what this one wrote, and on the thread
//! that armed them.
#![allow(clippy::print_stdout, reason = "a program that reports")]
#![allow(clippy::vec_box, reason = "a job travels as a box of eight bytes through every queue")]

use std::sync::Arc;
use std::thread;

use evener::{CoreDrivers, Setup, Submitted, SystemClock, run};
use evener_core::driver::Clock as _;
use evener_core::{Algorithm, Direction, Job, Nanos, Padding, Session};
use evener_testing::drivers::{Around, libcrypto};

/// In place of libcrypto's work one that says done.
fn core_drivers() -> CoreDrivers {
    let idle = Around::new(libcrypto(), |_, burst: &mut [Box<Job<'_>>]| {
        for job in burst {
            let bytes = job.input_bytes();
            job.done(bytes);
        }
    });
    CoreDrivers::new(Box::new(idle), None)
}

fn arm(session: &Arc<Session>, jobs: &mut [Box<Job<'_>>]) {
    jobs.iter_mut().for_each(|job| job.arm(Arc::clone(session), &[0; 16], 64));
}

fn main() {
    let mut numbers = std::env::args().skip(1).map(|number| number.parse().expect("a number"));
    let (job_count, worker_count) = (numbers.next().unwrap_or(4_000), numbers.next().unwrap_or(2));
    let rounds = numbers.next().unwrap_or(300);
    let session = Session::new(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None, &[7; 16]);
    let session = Arc::new(session.expect("the key fits"));
    let mut memory = vec![[0u8; 64]; job_count];
    let mut jobs: Vec<_> = memory.iter_mut().map(|space| Job::in_place(space)).collect();
    let workers = (0..worker_count).map(|_| core_drivers()).collect();
    let setup = Setup { workers, backlog_jobs: job_count, home_jobs: job_count, ..Setup::default() };
    let (queued, _) = run(setup, |runtime| {
        let (mut sender, mut receiver) = runtime.stream();
        let mut round = || {
            arm(&session, &mut jobs);
            runtime.hold();
            assert_eq!(sender.submit_all(&mut jobs), Submitted::Yes);
            let start = runtime.release();
            receiver.wait_for_all();
            jobs.extend((0..job_count).map_while(|_| receiver.next()));
            runtime.last_done() - start
        };
        (0..rounds).map(|_| round()).collect::<Vec<_>>()
    });
    report("queued", queued, worker_count, job_count);
    let mut core_drivers = core_drivers();
    let mut elsewhere = |jobs: &mut Vec<_>| {
        arm(&session, jobs);
        thread::scope(|scope| {
            scope.spawn(|| run_all(&mut core_drivers, jobs)).join().expect("it does not panic")
        })
    };
    let spans = (0..rounds).map(|_| elsewhere(&mut jobs)).collect();
    report("another thread", spans, 1, job_count);
    let mut here = |jobs: &mut Vec<_>| {
        arm(&session, jobs);
        run_all(&mut core_drivers, jobs)
    };
    report("this thread", (0..rounds).map(|_| here(&mut jobs)).collect(), 1, job_count);
}

fn run_all(core_drivers: &mut CoreDrivers, jobs: &mut [Box<Job<'_>>]) -> Nanos {
    let start = SystemClock.now();
    jobs.chunks_mut(128).for_each(|burst| core_drivers.run(burst, &SystemClock));
    SystemClock.now() - start
}

/// Prints the least and the median of `spans`, per job.
fn report(name: &str, mut spans: Vec<Nanos>, worker_count: usize, job_count: usize) {
    spans.sort_unstable();
    let per_job = |span: Nanos| span.0 as f64 * worker_count as f64 / job_count as f64;
    println!("{name}: least {:.1} ns, median {:.1} ns", per_job(spans[0]), per_job(spans[spans.len() / 2]));
}
