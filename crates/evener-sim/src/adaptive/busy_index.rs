//! The busy index: which jobs the workers of a path hold, as the policy knows it from its own answers and from what ended.
//! The worker that is free first is found without a search through all of them.

use std::collections::{BTreeSet, VecDeque};

use evener_core::Nanos;

/// A job that a worker has taken and not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InFlight {
    pub(super) class: usize,
    pub(super) since: Nanos,
    /// When it should have ended, by what was known when it was taken.
    until: Nanos,
}

/// The workers of one path.
#[derive(Clone, Debug, Default)]
pub(super) struct BusyIndex {
    /// By worker, oldest first.
    held: Vec<VecDeque<InFlight>>,
    /// All workers that are there, by the time at which each has done its oldest job; 0: it holds none.
    free: BTreeSet<(Nanos, usize)>,
}

impl BusyIndex {
    pub(super) fn new(workers: usize) -> Self {
        let free = (0..workers).map(|index| (Nanos::ZERO, index)).collect();
        Self { held: vec![VecDeque::new(); workers], free }
    }

    pub(super) fn count(&self) -> usize {
        self.held.len()
    }

    /// Worker `index` takes so many jobs of a class, all of which should take `time` together.
    pub(super) fn start(&mut self, index: usize, class: usize, jobs: u32, now: Nanos, time: Nanos) {
        let held = InFlight { class, since: now, until: now + time };
        self.change(index, |jobs_held| jobs_held.extend((0..jobs).map(|_| held)));
    }

    /// Worker `index` has ended its oldest job.
    pub(super) fn finish(&mut self, index: usize) {
        self.change(index, |jobs| _ = jobs.pop_front());
    }

    /// Worker `index` takes nothing any more.
    pub(super) fn remove_worker(&mut self, index: usize) {
        self.free.remove(&(self.until(index), index));
        self.held[index].clear();
    }

    /// The oldest job of worker `index`.
    pub(super) fn oldest(&self, index: usize) -> Option<InFlight> {
        self.held[index].front().copied()
    }

    /// Time until a worker has done its oldest job: nothing where one holds none, or there is no worker.
    pub(super) fn least_busy(&self, now: Nanos) -> Nanos {
        self.free.first().map_or(Nanos::ZERO, |&(until, _)| until - now)
    }

    /// A worker that holds nothing.
    pub(super) fn idle(&self) -> Option<usize> {
        self.free.first().filter(|(until, _)| *until == Nanos::ZERO).map(|&(_, index)| index)
    }

    fn until(&self, index: usize) -> Nanos {
        self.held[index].front().map_or(Nanos::ZERO, |held| held.until.max(Nanos(1)))
    }

    fn change(&mut self, index: usize, by: impl FnOnce(&mut VecDeque<InFlight>)) {
        let is_there = self.free.remove(&(self.until(index), index));
        by(&mut self.held[index]);
        if is_there {
            self.free.insert((self.until(index), index));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn the_first_free_worker_is_the_one_that_a_search_of_all_finds() {
        let mut random = Random::new(7);
        let mut index_of_busy = BusyIndex::new(5);
        let mut plain: Vec<Vec<u64>> = vec![Vec::new(); 5]; // by worker: when each job should end
        let mut is_lost = [false; 5];
        for now in 1..5_000 {
            let index = usize::try_from(random.below(5)).unwrap();
            match random.below(400) {
                0 if is_lost.iter().filter(|is_lost| **is_lost).count() < 3 => {
                    index_of_busy.remove_worker(index);
                    (plain[index], is_lost[index]) = (Vec::new(), true);
                }
                1..=150 if !plain[index].is_empty() => {
                    index_of_busy.finish(index);
                    plain[index].remove(0);
                }
                151..=399 if plain[index].len() < 3 && !is_lost[index] => {
                    let time = random.below(40);
                    index_of_busy.start(index, 0, 1, Nanos(now), Nanos(time));
                    plain[index].push(now + time);
                }
                _ => {}
            }
            let busy = |index: usize| plain[index].first().map_or(0, |until| until.saturating_sub(now));
            let least = (0..5).filter(|&index| !is_lost[index]).map(busy).min().unwrap();
            assert_eq!(index_of_busy.least_busy(Nanos(now)), Nanos(least));
            assert_eq!(
                index_of_busy.idle(),
                (0..5).find(|&index| !is_lost[index] && plain[index].is_empty())
            );
        }
    }
}
