//! Jobs that wait by class, for the policy that weighs costs: one queue, a lane, for each class that came.
//!
//! `submit` -> the lane of the job's class ([`Lanes::push_all`]) -> a claim by a worker that chose the lane.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use evener_core::{Class, Job};
use evener_ring::{Doorbell, Ring};

/// Lanes of a run. A run with more classes than that has the rest of them in the last lane.
pub(crate) const LANES: usize = 16;

/// No lane yet.
const NONE: u8 = 0x7F;

/// Beside the lane: no module takes the class, so that its jobs need none.
const ALONE: u8 = 0x80;

/// The queues.
pub(crate) struct Lanes<'m> {
    rings: Vec<Ring<Box<Job<'m>>>>,
    /// By class: its lane, or [`NONE`], and [`ALONE`].
    lane_of: Vec<AtomicU8>,
    /// By lane: the class that opened it.
    classes: Mutex<Vec<Class>>,
    /// Lanes in use. Written under the lock of `classes`.
    count: AtomicUsize,
    /// Whether the plan in force has anything for modules. Where it has not, their workers are left asleep: a thread
    /// that wakes for nothing costs a short burst more than its encryption.
    modules_matter: AtomicBool,
    /// Rung for the modules' workers.
    pub(crate) modules: Doorbell,
}

impl<'m> Lanes<'m> {
    /// Lanes that hold so many jobs each; rounded up to a power of two.
    pub(crate) fn new(jobs: usize) -> Self {
        Self {
            rings: (0..LANES).map(|_| Ring::with_capacity(jobs)).collect(),
            lane_of: (0..Class::COUNT).map(|_| AtomicU8::new(NONE)).collect(),
            classes: Mutex::default(),
            count: AtomicUsize::new(0),
            modules_matter: AtomicBool::new(false),
            modules: Doorbell::new(),
        }
    }

    /// Says whether the plan has anything for modules, and wakes their workers where that is new: also to a sleep in
    /// which no barrier waits for them.
    pub(crate) fn let_modules(&self, matter: bool) {
        // Release pairs with the Acquire in `modules_matter`: who sees it finds the table.
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
        let word = &self.lane_of[class.index()];
        match is_alone {
            true => word.fetch_or(ALONE, Ordering::Relaxed),
            false => word.fetch_and(!ALONE, Ordering::Relaxed),
        };
    }

    /// Whether no module takes jobs of this class.
    pub(crate) fn is_alone(&self, class: Class) -> bool {
        self.lane_of[class.index()].load(Ordering::Relaxed) & ALONE != 0
    }

    /// Moves as many jobs of each class as there is room for, those first that came first; returns how many.
    pub(crate) fn push_all(&self, jobs: &mut Vec<Box<Job<'m>>>) -> usize {
        let Some(class) = jobs.first().map(|job| job.class()) else { return 0 };
        if jobs.iter().all(|job| job.class() == class) {
            return self.rings[self.lane_of(class)].push_all(jobs);
        }
        let mut by_lane: [Vec<Box<Job<'m>>>; LANES] = Default::default();
        jobs.drain(..).for_each(|job| by_lane[self.lane_of(job.class())].push(job));
        let mut moved = 0;
        for (ring, alike) in self.rings.iter().zip(&mut by_lane).filter(|(_, alike)| !alike.is_empty()) {
            moved += ring.push_all(alike);
            jobs.append(alike);
        }
        moved
    }

    /// The queue of a lane.
    pub(crate) fn ring(&self, lane: usize) -> &Ring<Box<Job<'m>>> {
        &self.rings[lane]
    }

    /// Jobs that wait in a lane.
    pub(crate) fn waiting(&self, lane: usize) -> u32 {
        u32::try_from(self.rings[lane].len()).unwrap_or(u32::MAX)
    }

    /// Lanes in use: numbers below this.
    pub(crate) fn count(&self) -> usize {
        // Acquire pairs with the Release in `open`: the class of each lane is known.
        self.count.load(Ordering::Acquire)
    }

    /// The classes by lane.
    pub(crate) fn classes(&self) -> Vec<Class> {
        self.classes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The class of a lane; `None` where it is not in use.
    pub(crate) fn class_of(&self, lane: usize) -> Option<Class> {
        self.classes.lock().unwrap_or_else(PoisonError::into_inner).get(lane).copied()
    }

    /// A lane in which jobs wait.
    pub(crate) fn first_waiting(&self) -> Option<usize> {
        (0..self.count()).find(|&lane| self.waiting(lane) > 0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rings.iter().all(Ring::is_empty)
    }

    /// Whether some lane takes no more.
    pub(crate) fn is_full(&self) -> bool {
        self.rings.iter().any(|ring| ring.len() == ring.capacity())
    }

    /// The lane of a class; opened where it is the first of its class.
    pub(crate) fn lane_of(&self, class: Class) -> usize {
        // Relaxed: the word is all that there is to know; the class behind it is read under the lock.
        match self.lane_of[class.index()].load(Ordering::Relaxed) & !ALONE {
            NONE => self.open(class),
            lane => usize::from(lane),
        }
    }

    #[cold]
    fn open(&self, class: Class) -> usize {
        let mut classes = self.classes.lock().unwrap_or_else(PoisonError::into_inner);
        let word = &self.lane_of[class.index()];
        let opened = word.load(Ordering::Relaxed) & !ALONE;
        if opened != NONE {
            return usize::from(opened);
        }
        let lane = classes.len().min(LANES - 1);
        if classes.len() < LANES {
            classes.push(class);
        }
        // Whether it is left alone stays: so much may have been known from the beginning.
        let alone = word.load(Ordering::Relaxed) & ALONE;
        word.store(u8::try_from(lane).expect("lanes are few") | alone, Ordering::Relaxed);
        self.count.store(classes.len(), Ordering::Release);
        lane
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use evener_core::{Algorithm, Direction, Padding, Session};

    pub(crate) fn job(session: &'static Session, bytes: usize) -> Box<Job<'static>> {
        let mut job = Job::in_place(vec![0; bytes].leak());
        job.arm(session, &[0; 16], bytes);
        job
    }

    pub(crate) fn session() -> &'static Session {
        let session = Session::new(Algorithm::Aes128Ctr, Direction::Encrypt, Padding::None, &[0; 16]);
        Box::leak(Box::new(session.unwrap()))
    }

    #[test]
    fn each_class_has_a_lane_and_its_jobs_keep_their_order() {
        let (session, lanes) = (session(), Lanes::new(8));
        let mut jobs: Vec<_> = [100, 2_000, 101, 102, 2_001].map(|bytes| job(session, bytes)).into();
        assert_eq!(lanes.push_all(&mut jobs), 5);
        assert_eq!((lanes.count(), lanes.waiting(0), lanes.waiting(1)), (2, 3, 2));
        lanes.ring(0).pop_many(&mut jobs, 8);
        lanes.ring(1).pop_many(&mut jobs, 8);
        assert_eq!(
            jobs.iter().map(|job| job.input_bytes()).collect::<Vec<_>>(),
            [100, 101, 102, 2_000, 2_001]
        );
        assert!(lanes.is_empty());
    }

    #[test]
    fn what_does_not_fit_stays_with_the_submitter_in_the_order_of_its_class() {
        let (session, lanes) = (session(), Lanes::new(2));
        let mut jobs: Vec<_> = [100, 101, 102, 5_000, 103].map(|bytes| job(session, bytes)).into();
        assert_eq!(lanes.push_all(&mut jobs), 3);
        assert!(lanes.is_full());
        assert_eq!(jobs.iter().map(|job| job.input_bytes()).collect::<Vec<_>>(), [102, 103]);
        assert_eq!(lanes.push_all(&mut jobs), 0);
    }

    #[test]
    fn more_classes_than_lanes_share_the_last_one() {
        let lanes = Lanes::new(2);
        let classes = (0..LANES + 3).map(|index| Class::from_index(index * 2).unwrap());
        let opened: Vec<usize> = classes.map(|class| lanes.lane_of(class)).collect();
        assert_eq!(opened[..LANES], (0..LANES).collect::<Vec<_>>());
        assert!(opened[LANES..].iter().all(|&lane| lane == LANES - 1));
        assert_eq!(lanes.count(), LANES);
    }
}
