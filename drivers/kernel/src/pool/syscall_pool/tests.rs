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

/// A device whose keys hang when they are closed, until that is over.
#[derive(Default)]
struct Hanging(Arc<(Mutex<bool>, Condvar)>);

struct HangingKey(Arc<(Mutex<bool>, Condvar)>);

impl Drop for HangingKey {
    fn drop(&mut self) {
        let (is_over, told) = &*self.0;
        drop(told.wait_while(is_over.lock().unwrap(), |is_over| !*is_over));
    }
}

impl Device for Hanging {
    type Key = HangingKey;

    fn takes(&self, _: Algorithm, _: usize, _: usize) -> bool {
        true
    }

    fn open_key(&self, _: Spec, _: &[u8]) -> Result<HangingKey, Failure> {
        Ok(HangingKey(Arc::clone(&self.0)))
    }

    fn run(&self, _: &HangingKey, _: &mut Task) -> Result<(), Failure> {
        Ok(())
    }
}

/// A pool of such a device with so many keys that are to be closed, for which a runner was told to come, and how many are stuck.
fn hanging_with(keys: u8) -> (Arc<Hanging>, Served<SyscallPool<Hanging>>, Arc<AtomicUsize>) {
    let (device, stuck) = (Arc::<Hanging>::default(), Arc::<AtomicUsize>::default());
    let pool = Served::new(SyscallPool::new(Arc::clone(&device), Arc::clone(&stuck), 1));
    for key in 0..keys {
        let session = Session::new(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None, &[key; 16]);
        let entry = pool.key(&session.unwrap());
        assert!(pool.keys.opened(&entry, || device.open_key(entry.spec, &entry.bytes)).is_ok());
    }
    pool.release_keys(pool.keys.evict(&|_| true));
    (device, pool, stuck)
}

impl Hanging {
    fn end(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }
}

/// Ends what hangs where a test fails, too.
struct EndOnDrop(Arc<Hanging>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end();
    }
}

#[test]
fn a_pool_is_not_over_while_a_key_waits_that_a_runner_will_close() {
    let (device, pool, stuck) = hanging_with(1);
    let _end = EndOnDrop(Arc::clone(&device));
    // A runner that was woken and did not come yet.
    pool.state().living += 1;
    assert!(!pool.close(Duration::from_millis(20)), "it may hang there");
    device.end();
    pool.state().living -= 1;
    SyscallPool::start_runner(&pool).unwrap();
    wait_until(&pool, |state| state.living == 0 && state.over.is_empty());
    assert_eq!(stuck.load(Ordering::Relaxed), 0);
    assert!(pool.close(Duration::from_secs(60)));
}

#[test]
fn who_closes_a_key_of_a_pool_that_was_left_is_stuck_for_as_long_and_no_longer() {
    let (device, pool, stuck) = hanging_with(2);
    let _end = EndOnDrop(Arc::clone(&device));
    SyscallPool::start_runner(&pool).unwrap();
    wait_until(&pool, |state| state.running == 1);
    assert!(!pool.close(Duration::from_millis(20)));
    assert_eq!(stuck.load(Ordering::Relaxed), 1);
    device.end();
    wait_until(&pool, |state| state.living == 0);
    assert_eq!(stuck.load(Ordering::Relaxed), 0, "two were closed by one runner");
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
fn wait_until<D: Device>(pool: &SyscallPool<D>, is_so: impl Fn(&State<D::Key>) -> bool) {
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
