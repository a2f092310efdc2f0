//! A module in a process that was stopped: its results are there, and who waits for them finds its time over first.

use std::thread;
use std::time::Duration;

use evener_core::{
    Algorithm, Direction, HasEnded, InlineDriver as _, Job, Nanos, Profile, QueuedDriver, Refusal,
};

use super::libcrypto;

/// Of those who wait for it the first so many wait longer than they wanted to and get nothing; the next gets all. Who only looks gets nothing, and does not count.
pub struct Stopped<'m> {
    profile: Profile,
    held: Vec<Box<Job<'m>>>,
    late: u32,
}

impl Stopped<'_> {
    /// One that has so many wait in vain.
    #[must_use]
    pub fn new(late: u32) -> Self {
        let profile = Profile { name: "stopped".into(), detail: String::new(), width: 4, emulated: true };
        Self { profile, held: Vec::new(), late }
    }
}

impl<'m> QueuedDriver<'m> for Stopped<'m> {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn supports(&self, _: Algorithm, _: Direction) -> bool {
        true
    }

    fn submit(&mut self, job: Box<Job<'m>>) -> Result<(), (Box<Job<'m>>, Refusal)> {
        self.held.push(job);
        Ok(())
    }

    fn poll(&mut self, done: &mut Vec<Box<Job<'m>>>, timeout: Nanos) -> usize {
        if timeout == Nanos::ZERO || self.held.is_empty() {
            return 0;
        }
        if self.late > 0 {
            self.late -= 1;
            thread::sleep(Duration::from(timeout) + Duration::from_millis(5));
            return 0;
        }
        libcrypto().run(&mut self.held);
        let count = self.held.len();
        done.append(&mut self.held);
        count
    }

    fn in_flight(&self) -> usize {
        self.held.len()
    }

    fn abandon(&mut self, given_back: &mut Vec<Box<Job<'m>>>) {
        given_back.append(&mut self.held);
    }

    fn evict(&mut self, _: HasEnded<'_>) {}
}
