//! One of the module's threads: it takes requests from the rings of its clients, lets the module do them, and gives them back.
//!
//! `run queue -> take (intake.rs) -> module -> result, status, used -> call (answers.rs)`, round after round; where nothing is to do it sleeps (kicks.rs). Clients wait in a run queue (`run_queue.rs`) in the order in
//! which they were seen to have something, and each gets a share in its turn. Who has nothing is asked for a kick and left alone, so that a
//! round costs the time of those who work and not of all who are connected. It is the only thread that serves these rings, so one burst holds
//! requests of many clients, and a client that is slow or hostile costs the others nothing.

use std::sync::atomic::Ordering::Relaxed;

use crate::service::thread_state::ServiceLoop;
use crate::state::shard::News;

impl ServiceLoop {
    /// Serves until the host stops.
    pub(crate) fn run(mut self) {
        while !self.shared.is_stopping() {
            self.check_news();
            let taken = self.take();
            self.shared.submitted.add(self.jobs.len() as u64);
            self.runner.run(&mut self.jobs, &mut self.done);
            let finished = self.done.len();
            self.finish();
            self.show();
            let is_idle = taken + finished == 0;
            self.quiet_rounds = if is_idle { self.quiet_rounds.saturating_add(1) } else { 0 };
            if is_idle && !self.runner.is_full() {
                self.sleep();
            }
        }
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
