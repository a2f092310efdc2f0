//! The driver of a core's second method: kernels of our own where they compute an algorithm, the multi-buffer library for the rest.

use std::ptr;

use evener::core::{Algorithm, Direction, HasEnded, InlineDriver, Job, Profile};
use evener_driver_lanes::Lanes;
use evener_driver_multibuffer::Multibuffer;

/// Both, by algorithm and direction.
struct Both {
    lanes: Lanes,
    library: Multibuffer,
}

/// The driver of what there is.
pub(crate) fn second_driver(
    lanes: Option<Lanes>,
    library: Option<Multibuffer>,
) -> Option<Box<dyn InlineDriver>> {
    match (lanes, library) {
        (Some(lanes), Some(library)) => Some(Box::new(Both { lanes, library })),
        (Some(lanes), None) => Some(Box::new(lanes)),
        (None, Some(library)) => Some(Box::new(library)),
        (None, None) => None,
    }
}

impl Both {
    fn of(&self, algorithm: Algorithm, direction: Direction) -> &dyn InlineDriver {
        if self.lanes.supports(algorithm, direction) { &self.lanes } else { &self.library }
    }
}

impl InlineDriver for Both {
    /// That of the wider one.
    fn profile(&self) -> &Profile {
        let (lanes, library) = (self.lanes.profile(), self.library.profile());
        if lanes.width > library.width { lanes } else { library }
    }

    fn supports(&self, algorithm: Algorithm, direction: Direction) -> bool {
        self.of(algorithm, direction).supports(algorithm, direction)
    }

    fn job_bytes_max(&self, algorithm: Algorithm, direction: Direction) -> usize {
        self.of(algorithm, direction).job_bytes_max(algorithm, direction)
    }

    fn takes_shared(&self) -> bool {
        self.lanes.takes_shared() && self.library.takes_shared()
    }

    fn checked_from(&self, algorithm: Algorithm, direction: Direction) -> u32 {
        self.of(algorithm, direction).checked_from(algorithm, direction)
    }

    fn run(&mut self, burst: &mut [Box<Job<'_>>]) {
        let lanes = &self.lanes;
        let is_for_lanes =
            |job: &Job<'_>| lanes.supports(job.session().algorithm(), job.session().direction());
        // Most bursts have one session, or few: then a job is told by its address.
        let go_together = |one: &Job<'_>, next: &Job<'_>| {
            ptr::eq(one.session(), next.session()) || is_for_lanes(one) == is_for_lanes(next)
        };
        if !burst.windows(2).all(|pair| go_together(&pair[0], &pair[1])) {
            burst.sort_by_key(|job| is_for_lanes(job));
        }
        let lanes_from = burst.partition_point(|job| !is_for_lanes(job));
        let (for_library, for_lanes) = burst.split_at_mut(lanes_from);
        if !for_library.is_empty() {
            self.library.run(for_library);
        }
        if !for_lanes.is_empty() {
            self.lanes.run(for_lanes);
        }
    }

    fn run_alike(&mut self, burst: &mut [Box<Job<'_>>]) {
        let Some((algorithm, direction)) =
            burst.first().map(|job| (job.session().algorithm(), job.session().direction()))
        else {
            return;
        };
        match self.lanes.supports(algorithm, direction) {
            true => self.lanes.run_alike(burst),
            false => self.library.run_alike(burst),
        }
    }

    fn evict(&mut self, has_ended: HasEnded<'_>) {
        self.lanes.evict(has_ended);
        self.library.evict(has_ended);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use evener::core::{Outcome, Padding, Session};
    use evener_driver_libcrypto::Libcrypto;

    use super::*;

    #[test]
    fn what_the_library_computes_is_checked_from_its_first_burst_on() {
        let (Some(lanes), Ok(library)) = (Lanes::new(), Multibuffer::load()) else {
            println!("skipped: the processor or the library is missing");
            return;
        };
        let driver = second_driver(Some(lanes), Some(library)).unwrap();
        assert_eq!(driver.checked_from(Algorithm::ChaCha20Poly1305, Direction::Decrypt), 0);
        assert!(driver.checked_from(Algorithm::Aes128Cbc, Direction::Encrypt) > 0);
    }

    #[test]
    fn a_burst_of_several_algorithms_is_done_by_both_as_by_libcrypto() {
        let (Some(lanes), Ok(library)) = (Lanes::new(), Multibuffer::load()) else {
            println!("skipped: the processor or the library is missing");
            return;
        };
        let mut driver = second_driver(Some(lanes), Some(library)).unwrap();
        let all = [Algorithm::Aes128Gcm, Algorithm::Aes128Cbc, Algorithm::Aes256Gcm, Algorithm::Aes256Cbc];
        let sessions = all.map(|algorithm| {
            let key = vec![7; algorithm.key_bytes().unwrap()];
            Arc::new(Session::new(algorithm, Direction::Encrypt, Padding::None, &key).unwrap())
        });
        let run = |driver: &mut dyn InlineDriver| {
            let mut spaces = vec![[5; 4096]; 64];
            let mut burst: Vec<_> = spaces.iter_mut().map(|space| Job::in_place(&mut space[..])).collect();
            for (number, job) in burst.iter_mut().enumerate() {
                job.arm(Arc::clone(&sessions[number % 4]), &[u8::try_from(number).unwrap(); 12], 4096);
            }
            driver.run(&mut burst);
            assert!(burst.iter().all(|job| matches!(job.outcome(), Outcome::Done { .. })));
            let mut made: Vec<_> =
                burst.iter().map(|job| (job.output().to_vec(), job.tag().to_vec())).collect();
            made.sort();
            made
        };
        assert!(run(&mut *driver) == run(&mut Libcrypto::new().unwrap()));
    }
}
