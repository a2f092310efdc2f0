//! One of the module's threads: it takes requests from the rings of its clients, lets the module do them, and gives them back.
//!
//! `run queue -> take (intake.rs) -> module -> result, status, used -> call (answers.rs) -> a piece of what is long (long_requests.rs)`, round after round; where nothing is to do it sleeps (kicks.rs). Clients wait in a run queue (`run_queue.rs`) in the order in
//! which they were seen to have something, and each gets a share in its turn. Who has nothing is asked for a kick and left alone, so that a
//! round costs the time of those who work and not of all who are connected. It is the only thread that serves these rings, so one burst holds
//! requests of many clients, and a client that is slow or hostile costs the others nothing.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::module::Quota;
use crate::service::thread_state::ServiceLoop;
use crate::service::time_slice;
use crate::state::shard::News;

impl ServiceLoop {
    /// Serves until the host stops.
    pub(crate) fn run(mut self) {
        time_slice::shorten();
        while !self.shared.is_stopping() {
            self.check_news();
            let quota = self.look();
            let taken = self.take(quota);
            self.runner.run(&mut self.jobs, &mut self.done);
            let finished = self.done.len();
            self.finish();
            self.show();
            // What is short has its answer already.
            if self.run_pieces(quota) {
                self.finish();
                self.show();
            }
            let is_idle = taken + finished == 0 && self.long.is_empty();
            self.quiet_rounds = if is_idle { self.quiet_rounds.saturating_add(1) } else { 0 };
            if is_idle && !self.runner.is_full() {
                self.sleep();
            }
        }
    }

    /// Who kicked, and what may be taken of all who have something.
    fn look(&mut self) -> Quota {
        if self.run_queue.has_parked() {
            self.wait(Duration::ZERO);
        }
        let quota = self.runner.quota(self.run_queue.queued(), self.run_queue.users());
        self.run_queue.limit_long(quota.pieces.max(1));
        quota
    }

    /// Has the module do the next pieces; returns whether there were any.
    fn run_pieces(&mut self, quota: Quota) -> bool {
        self.long.begin(quota.pieces, &mut self.jobs);
        if self.jobs.is_empty() {
            return false;
        }
        self.runner.run(&mut self.jobs, &mut self.long.pieces);
        for user in self.long.end(&mut self.done) {
            self.run_queue.release_long(user);
        }
        true
    }

    /// Who has come and gone, and what the control socket wants.
    fn check_news(&mut self) {
        for news in self.shard.take_news() {
            match news {
                News::Came(id) => {
                    self.shared
                        .client(id)
                        .into_iter()
                        .for_each(|client| self.run_queue.add(id, client.peer.uid, client));
                }
                News::Changed(id) => self.run_queue.enqueue(id),
                News::Left(id) => {
                    self.run_queue.remove(id);
                    self.in_flight.wipe(id);
                }
            }
        }
        let over = self.shard.take_ended();
        if !over.is_empty() && !cfg!(mutant = "host_key_kept") {
            self.runner.evict(&over);
        }
        let resets = self.shared.resets.load(Relaxed);
        if resets != self.resets {
            self.resets = resets;
            self.runner.reset(&mut self.done);
        }
        if self.runner.is_gone() && !self.shared.is_gone.swap(true, Relaxed) {
            self.shared.clients().iter().for_each(|client| client.end());
        }
    }
}
