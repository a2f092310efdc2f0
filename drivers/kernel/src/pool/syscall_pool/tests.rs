//! A pool of a device that works when it is let.

use super::*;
use crate::pool::device::{Failure, Spec, takes_everything_without_keys};
use evener_core::{Algorithm, Direction, Padding};
use zeroize::Zeroizing;

/// A device that works on a request for each leave that it is given.
#[derive(Default)]
struct OneByOne {
    leaves: Mutex<usize>,
    given: Condvar,
}

impl Device for OneByOne {
    takes_everything_without_keys!();

    fn run(&self, (): &(), _: &mut Task) -> Result<(), Failure> {
        let leaves = self.given.wait_while(self.leaves.lock().unwrap(), |leaves| *leaves == 0);
        *leaves.unwrap() -= 1;
        Ok(())
    }
}

/// A pool of such a device, and so many requests at it.
fn desk_with(requests: usize) -> (Arc<OneByOne>, Served<SyscallPool<OneByOne>>) {
    let device: Arc<OneByOne> = Arc::default();
    let pool = Served::new(SyscallPool::new(Arc::clone(&device), Arc::default(), 3));
    (0..requests as u64).for_each(|number| give(&pool, number));
    (device, pool)
}

fn give(pool: &SyscallPool<OneByOne>, number: u64) {
    let session = Session::new(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None, &[9; 16]).unwrap();
    let spec = Spec { algorithm: session.algorithm(), direction: session.direction() };
    let task = Task::over(number, spec, [0; 16], Zeroizing::default(), 0);
    pool.submit(task, pool.key(&session));
}

/// Waits until the pool looks like that.
fn wait_until(pool: &SyscallPool<OneByOne>, is_so: impl Fn(&State<()>) -> bool) {
    while !is_so(&pool.state()) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn who_takes_results_is_woken_for_some_together_and_for_the_last_ones_at_once() {
    const REQUESTS: usize = 5;
    let (device, pool) = desk_with(REQUESTS);
    SyscallPool::start_runner(&pool).unwrap();
    let taken: Vec<usize> = std::thread::scope(|scope| {
        let taker = scope.spawn(|| {
            let (mut taken, mut all) = (Vec::new(), 0);
            while all < REQUESTS {
                taken.push(pool.take(Duration::from_secs(60)).len());
                all += taken[taken.len() - 1];
            }
            taken
        });
        for ended in 1..=REQUESTS {
            wait_until(&pool, |state| state.is_awaited);
            *device.leaves.lock().unwrap() += 1;
            device.given.notify_one();
            wait_until(&pool, |state| state.waiting.len() + state.running == REQUESTS - ended);
            // Who was woken has the time to take what there is.
            std::thread::sleep(Duration::from_millis(20));
        }
        taker.join().unwrap()
    });
    assert_eq!(taken, [3, 2]);
    assert!(pool.close(Duration::from_secs(60)));
    pool.wait_for_runners();
}

#[test]
fn runners_that_sleep_are_woken_for_all_that_was_given_when_who_gave_it_asks_for_results() {
    let (device, pool) = desk_with(0);
    (0..2).for_each(|_| SyscallPool::start_runner(&pool).unwrap());
    wait_until(&pool, |state| state.idle == 2);
    (0..3).for_each(|number| give(&pool, number));
    // Who was woken has the time to begin.
    std::thread::sleep(Duration::from_millis(20));
    let running = pool.state().running;
    assert_eq!(running, 0);
    assert!(pool.take(Duration::ZERO).is_empty());
    wait_until(&pool, |state| (state.waiting.len(), state.running) == (1, 2));
    *device.leaves.lock().unwrap() += 3;
    device.given.notify_all();
    wait_until(&pool, |state| state.finished.len() == 3);
    assert!(pool.close(Duration::from_secs(60)));
    pool.wait_for_runners();
}
