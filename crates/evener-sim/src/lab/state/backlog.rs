//! What waits: one list that all workers take from, or a list for each where jobs are dealt out.

use std::collections::VecDeque;

use crate::lab::Class;
use crate::lab::chooser::{ClassView, Which};

/// A job by its number in the workload.
pub(crate) type JobId = usize;

#[derive(Clone)]
struct List {
    waiting: Vec<VecDeque<JobId>>,
    view: Vec<ClassView>,
}

pub(crate) struct Backlog {
    lists: Vec<List>,
    /// Lists that jobs are put into, in turn.
    open: Vec<usize>,
    turn: usize,
}

impl Backlog {
    /// `lists` empty lists.
    pub(crate) fn new(classes: &[Class], lists: usize) -> Self {
        let view = classes.iter().map(|class| ClassView { bytes: class.bytes, waiting: 0 }).collect();
        let list = List { waiting: vec![VecDeque::new(); classes.len()], view };
        Self { lists: vec![list; lists], open: (0..lists).collect(), turn: 0 }
    }

    /// Puts a new job behind the others of the list whose turn it is.
    pub(crate) fn push(&mut self, job: JobId, class: usize) {
        let list = self.next_list();
        list.waiting[class].push_back(job);
        list.view[class].waiting += 1;
    }

    /// Puts a job that was taken and not done before the others, in a list that is open.
    pub(crate) fn push_front(&mut self, job: JobId, class: usize) {
        let list = self.next_list();
        list.waiting[class].push_front(job);
        list.view[class].waiting += 1;
    }

    fn next_list(&mut self) -> &mut List {
        self.turn = (self.turn + 1) % self.open.len();
        &mut self.lists[self.open[self.turn]]
    }

    /// Deals the jobs of a list whose worker ended to the others; the last list, and one that all share, stays.
    pub(crate) fn close(&mut self, list: usize) {
        if self.open.len() < 2 || !self.open.contains(&list) {
            return;
        }
        self.open.retain(|&open| open != list);
        for class in 0..self.lists[list].waiting.len() {
            self.lists[list].view[class].waiting = 0;
            for job in std::mem::take(&mut self.lists[list].waiting[class]) {
                self.push(job, class);
            }
        }
    }

    /// The list that a worker takes from.
    pub(crate) fn list_of(&self, worker: usize) -> usize {
        worker.min(self.lists.len() - 1)
    }

    pub(crate) fn view(&self, list: usize) -> &[ClassView] {
        &self.lists[list].view
    }

    pub(crate) fn pop(&mut self, list: usize, which: Which) -> Option<JobId> {
        let list = &mut self.lists[list];
        let class = match which {
            Which::OfClass(class) => class,
            Which::Oldest => list.oldest()?,
        };
        let job = list.waiting[class].pop_front()?;
        list.view[class].waiting -= 1;
        Some(job)
    }
}

impl List {
    /// The class of the job that has waited longest.
    fn oldest(&self) -> Option<usize> {
        let heads = self.waiting.iter().enumerate();
        heads.filter_map(|(class, jobs)| Some((jobs.front()?, class))).min().map(|(_, class)| class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evener_core::Nanos;

    fn backlog(lists: usize) -> Backlog {
        let mut backlog =
            Backlog::new(&[Class { bytes: 8, c: Nanos(1) }, Class { bytes: 16, c: Nanos(2) }], lists);
        for job in 0..6 {
            backlog.push(job, job % 2);
        }
        backlog
    }

    fn rest(backlog: &mut Backlog, list: usize) -> Vec<JobId> {
        std::iter::from_fn(|| backlog.pop(list, Which::Oldest)).collect()
    }

    #[test]
    fn one_list_gives_jobs_in_order_whatever_their_class() {
        let mut backlog = backlog(1);
        assert_eq!(backlog.pop(0, Which::OfClass(1)), Some(1));
        assert_eq!(backlog.view(0).iter().map(|class| class.waiting).collect::<Vec<_>>(), [3, 2]);
        assert_eq!(rest(&mut backlog, 0), [0, 2, 3, 4, 5]);
    }

    #[test]
    fn a_job_that_comes_back_goes_first() {
        let mut backlog = backlog(1);
        assert_eq!((backlog.pop(0, Which::Oldest), backlog.pop(0, Which::Oldest)), (Some(0), Some(1)));
        backlog.push_front(1, 1);
        assert_eq!(rest(&mut backlog, 0), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn the_jobs_of_a_worker_that_is_gone_are_dealt_to_the_others() {
        let mut backlog = backlog(2);
        backlog.close(1);
        assert_eq!((rest(&mut backlog, 0).len(), rest(&mut backlog, 1).len()), (6, 0));
        backlog.close(0);
        backlog.push(6, 0);
        assert_eq!(rest(&mut backlog, 0), [6]);
    }
}
