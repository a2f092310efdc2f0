//! Jobs that wait by class, for the policy that weighs costs: one queue for each class that came.
//!
//! `submit` -> the queue of the job's class ([`ClassQueues::push_all`]) -> a claim by a worker that chose the queue.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use evener_core::{Class, Job};
use evener_ring::{Doorbell, Ring};

/// Most queues of a run. A run with more classes than that has the rest of them in the last queue.
pub(crate) const CLASS_QUEUES_MAX: usize = 16;

/// No queue yet.
const NONE: u8 = 0x7F;

/// Beside the queue: no module takes the class, so that its jobs need none.
const ALONE: u8 = 0x80;

/// The queues.
pub(crate) struct ClassQueues<'m> {
    rings: Vec<Ring<Box<Job<'m>>>>,
    /// By class: its queue, or [`NONE`], and [`ALONE`].
    queue_of: Vec<AtomicU8>,
    /// By queue: the class that opened it.
    classes: Mutex<Vec<Class>>,
    /// Queues in use. Written under the lock of `classes`.
    count: AtomicUsize,
    /// Whether the plan in force has anything for modules. Where it has not, their workers are left asleep: a thread
    /// that wakes for nothing costs a short burst more than its encryption.
    modules_matter: AtomicBool,
    /// Rung for the modules' workers.
    pub(crate) modules: Doorbell,
}

impl<'m> ClassQueues<'m> {
    /// Queues that hold so many jobs each; rounded up to a power of two.
    pub(crate) fn new(jobs: usize) -> Self {
        Self {
            rings: (0..CLASS_QUEUES_MAX).map(|_| Ring::with_capacity(jobs)).collect(),
            queue_of: (0..Class::COUNT).map(|_| AtomicU8::new(NONE)).collect(),
            classes: Mutex::default(),
            count: AtomicUsize::new(0),
            modules_matter: AtomicBool::new(false),
            modules: Doorbell::new(),
        }
    }

    /// Says whether the plan has anything for modules, and wakes their workers where that is new: also to a sleep in
    /// which no barrier waits for them.
    pub(crate) fn let_modules(&self, matter: bool) {
        // Release pairs with the Acquire in `modules_matter`: a thread that sees it finds the table.
        if self.modules_matter.swap(matter, Ordering::Release) != matter {
            self.modules.ring_all();
        }
    }

    pub(crate) fn modules_matter(&self) -> bool {
        self.modules_matter.load(Ordering::Acquire)
    }

    /// Says whether jobs of a class are to go the way of `cpu_only`.
    pub(crate) fn leave_alone(&self, class: Class, is_alone: bool) {
        // Relaxed: a job that goes the other way is found there as well.
        let word = &self.queue_of[class.index()];
        match is_alone {
            true => word.fetch_or(ALONE, Ordering::Relaxed),
            false => word.fetch_and(!ALONE, Ordering::Relaxed),
        };
    }

    /// Whether no module takes jobs of this class.
    pub(crate) fn is_alone(&self, class: Class) -> bool {
        self.queue_of[class.index()].load(Ordering::Relaxed) & ALONE != 0
    }

    /// Moves as many jobs of each class as there is space for, those first that came first; returns how many.
    pub(crate) fn push_all(&self, jobs: &mut Vec<Box<Job<'m>>>) -> usize {
        let Some(class) = jobs.first().map(|job| job.class()) else { return 0 };
        if jobs.iter().all(|job| job.class() == class) {
            return self.rings[self.queue_of(class)].push_all(jobs);
        }
        let mut by_queue: [Vec<Box<Job<'m>>>; CLASS_QUEUES_MAX] = Default::default();
        jobs.drain(..).for_each(|job| by_queue[self.queue_of(job.class())].push(job));
        let mut moved = 0;
        for (ring, alike) in self.rings.iter().zip(&mut by_queue).filter(|(_, alike)| !alike.is_empty()) {
            moved += ring.push_all(alike);
            jobs.append(alike);
        }
        moved
    }

    /// The same, but ends at the first for whose class there is no space, so that those that stay are the end of what came. A claim for each
    /// run of jobs of one class, where the other way has one for each class.
    pub(crate) fn push_front(&self, jobs: &mut Vec<Box<Job<'m>>>) -> usize {
        let Some(first) = jobs.first().map(|job| job.class()) else { return 0 };
        if jobs.iter().all(|job| job.class() == first) {
            return self.rings[self.queue_of(first)].push_all(jobs);
        }
        let (all, mut run) = (jobs.len(), Vec::new());
        let mut left = std::mem::take(jobs).into_iter().peekable();
        while let Some(class) = left.peek().map(|job| job.class()) {
            while let Some(job) = left.next_if(|job| job.class() == class) {
                run.push(job);
            }
            self.rings[self.queue_of(class)].push_all(&mut run);
            if !run.is_empty() {
                break;
            }
        }
        run.extend(left);
        *jobs = run;
        all - jobs.len()
    }

    /// All rings.
    pub(crate) fn rings(&self) -> &[Ring<Box<Job<'m>>>] {
        &self.rings
    }

    /// The ring of a queue.
    pub(crate) fn ring(&self, queue: usize) -> &Ring<Box<Job<'m>>> {
        &self.rings[queue]
    }

    /// Jobs that wait in a queue.
    pub(crate) fn waiting(&self, queue: usize) -> u32 {
        u32::try_from(self.rings[queue].len()).unwrap_or(u32::MAX)
    }

    /// Queues in use: numbers below this.
    pub(crate) fn count(&self) -> usize {
        // Acquire pairs with the Release in `open`: the class of each queue is known.
        self.count.load(Ordering::Acquire)
    }

    /// The classes by queue.
    pub(crate) fn classes(&self) -> Vec<Class> {
        self.classes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The class of a queue; `None` where it is not in use.
    pub(crate) fn class_of(&self, queue: usize) -> Option<Class> {
        self.classes.lock().unwrap_or_else(PoisonError::into_inner).get(queue).copied()
    }

    /// A queue in which jobs wait.
    pub(crate) fn first_waiting(&self) -> Option<usize> {
        (0..self.count()).find(|&queue| self.waiting(queue) > 0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rings.iter().all(Ring::is_empty)
    }

    /// Whether some queue takes no more.
    pub(crate) fn is_full(&self) -> bool {
        self.rings.iter().any(|ring| ring.len() == ring.capacity())
    }

    /// The queue of a class; opened where it is the first of its class.
    pub(crate) fn queue_of(&self, class: Class) -> usize {
        // Relaxed: the word is all that there is to know; the class behind it is read under the lock.
        match self.queue_of[class.index()].load(Ordering::Relaxed) & !ALONE {
            NONE => self.open(class),
            queue => usize::from(queue),
        }
    }

    #[cold]
    fn open(&self, class: Class) -> usize {
        let mut classes = self.classes.lock().unwrap_or_else(PoisonError::into_inner);
        let word = &self.queue_of[class.index()];
        let opened = word.load(Ordering::Relaxed) & !ALONE;
        if opened != NONE {
            return usize::from(opened);
        }
        let queue = classes.len().min(CLASS_QUEUES_MAX - 1);
        if classes.len() < CLASS_QUEUES_MAX {
            classes.push(class);
        }
        // Whether it is left alone stays: so much may have been known from the beginning.
        let alone = word.load(Ordering::Relaxed) & ALONE;
        word.store(u8::try_from(queue).expect("queues are few") | alone, Ordering::Relaxed);
        self.count.store(classes.len(), Ordering::Release);
        queue
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::test_support::{job, session};

    #[test]
    fn each_class_has_a_lane_and_its_jobs_keep_their_order() {
        let (session, queues) = (session(), ClassQueues::new(8));
        let mut jobs: Vec<_> = [100, 2_000, 101, 102, 2_001].map(|bytes| job(session, bytes)).into();
        assert_eq!(queues.push_all(&mut jobs), 5);
        assert_eq!((queues.count(), queues.waiting(0), queues.waiting(1)), (2, 3, 2));
        queues.ring(0).pop_many(&mut jobs, 8);
        queues.ring(1).pop_many(&mut jobs, 8);
        assert_eq!(
            jobs.iter().map(|job| job.input_bytes()).collect::<Vec<_>>(),
            [100, 101, 102, 2_000, 2_001]
        );
        assert!(queues.is_empty());
    }

    #[test]
    fn what_does_not_fit_stays_with_the_submitter_in_the_order_of_its_class() {
        let (session, queues) = (session(), ClassQueues::new(2));
        let mut jobs: Vec<_> = [100, 101, 102, 5_000, 103].map(|bytes| job(session, bytes)).into();
        assert_eq!(queues.push_all(&mut jobs), 3);
        assert!(queues.is_full());
        assert_eq!(jobs.iter().map(|job| job.input_bytes()).collect::<Vec<_>>(), [102, 103]);
        assert_eq!(queues.push_all(&mut jobs), 0);
    }

    #[test]
    fn where_order_counts_nothing_overtakes_what_does_not_fit() {
        let (session, queues) = (session(), ClassQueues::new(2));
        let lengths = |jobs: &[Box<Job<'_>>]| jobs.iter().map(|job| job.input_bytes()).collect::<Vec<_>>();
        let mut jobs: Vec<_> = [100, 5_000, 101, 102, 5_001, 103].map(|bytes| job(session, bytes)).into();
        assert_eq!(queues.push_front(&mut jobs), 3);
        assert_eq!(lengths(&jobs), [102, 5_001, 103]);
        let mut first = Vec::new();
        queues.ring(0).pop_many(&mut first, 8);
        assert_eq!(lengths(&first), [100, 101]);
        assert_eq!(queues.push_front(&mut jobs), 3);
        assert!(jobs.is_empty() && queues.waiting(0) == 2 && queues.waiting(1) == 2);
    }

    #[test]
    fn more_classes_than_lanes_share_the_last_one() {
        let queues = ClassQueues::new(2);
        let classes = (0..CLASS_QUEUES_MAX + 3).map(|index| Class::from_index(index * 2).unwrap());
        let opened: Vec<usize> = classes.map(|class| queues.queue_of(class)).collect();
        assert_eq!(opened[..CLASS_QUEUES_MAX], (0..CLASS_QUEUES_MAX).collect::<Vec<_>>());
        assert!(opened[CLASS_QUEUES_MAX..].iter().all(|&queue| queue == CLASS_QUEUES_MAX - 1));
        assert_eq!(queues.count(), CLASS_QUEUES_MAX);
    }
}
