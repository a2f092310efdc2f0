//! Queues of the process's runtime. Each is a thread's while that works on a burst, and idle else.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use evener_c::Failure;
use evener_c::queue::Queue;
use evener_c::runtime::Runtime;

/// Queues that there are at most: half of a runtime's places, for beside a module each takes two.
const QUEUES_MAX: usize = 512;

/// Queues in use up to which a helper gets one: threads that bring bursts of their own find the others.
const HELPED_MAX: usize = 384;

/// Jobs that a queue has under way at most; a burst waits for all of its.
const DEPTH: usize = 1;

struct Queues {
    idle: Vec<Queue>,
    /// How many are in use.
    in_use: usize,
}

static QUEUES: Mutex<Queues> = Mutex::new(Queues { idle: Vec::new(), in_use: 0 });
static GIVEN_BACK: Condvar = Condvar::new();

/// A queue that a thread has.
pub(super) struct Borrowed {
    pub(super) queue: Queue,
    // Dropped behind the queue, in the order of the fields.
    _place: Place,
}

/// One of [`QUEUES_MAX`].
struct Place;

impl Drop for Place {
    fn drop(&mut self) {
        locked(&QUEUES).in_use -= 1;
        GIVEN_BACK.notify_one();
    }
}

impl Borrowed {
    /// Ends the use of a queue whose jobs have ended.
    pub(super) fn give_back(self) {
        let Self { mut queue, _place } = self;
        let mut queues = locked(&QUEUES);
        wipe(&mut queue);
        queues.idle.push(queue);
    }
}

/// A queue for who brings a burst; waits where all are in use.
///
/// # Errors
///
/// Where the runtime has none.
pub(super) fn borrow(runtime: &Arc<Runtime>) -> Result<Borrowed, Failure> {
    let queues = GIVEN_BACK.wait_while(locked(&QUEUES), |queues| queues.in_use >= QUEUES_MAX);
    taken(runtime, queues.unwrap_or_else(PoisonError::into_inner))
}

/// A queue for a thread that helps, where one is to be had.
pub(super) fn borrow_to_help(runtime: &Arc<Runtime>) -> Option<Borrowed> {
    let queues = locked(&QUEUES);
    if queues.in_use >= HELPED_MAX { None } else { taken(runtime, queues).ok() }
}

fn taken(runtime: &Arc<Runtime>, mut queues: MutexGuard<'_, Queues>) -> Result<Borrowed, Failure> {
    queues.in_use += 1;
    let (idle, place) = (queues.idle.pop(), Place);
    drop(queues);
    let queue = idle.map_or_else(|| Queue::open(runtime, DEPTH), Ok)?;
    Ok(Borrowed { queue, _place: place })
}

/// Has idle queues wipe what they made of the keys of sessions that have ended. The others do so when they are given back.
pub(super) fn wipe_ended() {
    locked(&QUEUES).idle.iter_mut().for_each(wipe);
}

fn wipe(queue: &mut Queue) {
    // It has no jobs: what is left of a call for them is this.
    queue.reap(&mut [], 0, None).ok();
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
