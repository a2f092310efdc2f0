//! Requests for which the calling thread sleeps in the kernel itself, as OpenSSL's engine has it: no other thread is woken for
//! them, and nothing frees that thread from a module that never answers.
//!
//! `run_single -> key -> device`, on the caller's thread: from input to output where these lie apart, else to a buffer, so that the input is
//! there until the module is done. Several threads may be inside at once, each with a socket of its own.

use std::sync::Arc;

use evener_core::driver::{SingleDriver, Text, Unanswered};
use evener_core::{Algorithm, Direction, HasEnded, JobError, Nanos, Padding, WithIv};
use zeroize::Zeroizing;

use crate::pool::device::{Device, Failure, Spec, error_of, is_for_callers};
use crate::pool::free_list::FreeList;
use crate::pool::key_cache::KeyCache;
use crate::process::wipe::wipe;

type Space = Zeroizing<Vec<u8>>;

/// A module behind the kernel, called by the threads that wait for it. Of one process: a forked child makes its own.
pub(crate) struct BlockingDriver<D: Device> {
    device: Arc<D>,
    keys: KeyCache<D::Key>,
    spaces: FreeList<Space>,
}

impl<D: Device> BlockingDriver<D> {
    pub(crate) fn new(device: Arc<D>) -> Self {
        Self { device, keys: KeyCache::default(), spaces: FreeList::default() }
    }

    /// A space of so many bytes at least.
    fn space(&self, bytes: usize) -> Space {
        let idle_one = self.spaces.take().filter(|space| space.len() >= bytes);
        // Never grown, because what was in it would stay behind unwiped.
        idle_one.unwrap_or_else(|| Zeroizing::new(vec![0; bytes.next_power_of_two()]))
    }

    /// The result of a text whose place is the input's.
    fn in_place(
        &self,
        text: &mut dyn Text,
        spec: Spec,
        work: impl Fn(&[u8], &mut [u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let bytes = text.input().len();
        let mut space = self.space(bytes);
        let output = &mut space[..bytes];
        let done = work(text.input(), output);
        if done.is_ok() {
            text.take(output);
        }
        if done.is_err() || spec.direction == Direction::Decrypt {
            wipe(output);
        }
        self.spaces.put(space);
        done
    }
}

impl<D: Device> SingleDriver for BlockingDriver<D> {
    fn takes(&self, algorithm: Algorithm, bytes: usize) -> bool {
        is_for_callers(&*self.device, algorithm, bytes)
    }

    fn run_single(&self, keyed: WithIv<'_>, text: &mut dyn Text, _: Nanos) -> Result<(), Unanswered> {
        let WithIv { session, iv } = keyed;
        let spec = Spec { algorithm: session.algorithm(), direction: session.direction() };
        if session.padding() != Padding::None || !self.takes(spec.algorithm, text.input().len()) {
            return Err(Unanswered::Failed(JobError::ModuleFull));
        }
        let key = self.keys.entry(session, drop);
        let done = self.keys.opened(&key, || self.device.open_key(key.spec, &key.bytes)).and_then(|opened| {
            let work = |input: &[u8], output: &mut [u8]| self.device.work(opened, spec, *iv, input, output);
            match text.apart() {
                Some((input, output)) => work(input, output).map(|()| text.taken()),
                None => self.in_place(text, spec, work),
            }
        });
        done.map_err(|failure| Unanswered::Failed(error_of(failure, spec)))
    }

    fn core_time(&self) -> Nanos {
        // All is done on the callers' threads.
        Nanos::ZERO
    }

    fn evict(&self, has_ended: HasEnded<'_>) {
        drop(self.keys.evict(has_ended));
    }
}
