//! A thread: it takes objects and parts to their end, each on its own core.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::core::Core;
use super::large::Large;
use super::order::Order;
use super::queue::{Queue, Work};
use super::round::{Doing, Round, Step};
use super::{PART_BYTES, part_memory};
use crate::outcome::{Failure, Kind};
use crate::report::Ended;
use crate::store::{Found, Making};

/// What has parts for all threads.
pub(super) struct InParts {
    large: Large,
    /// What a range goes on with, once.
    doing: Mutex<Option<Box<Doing>>>,
}

pub(super) struct Worker<'a, 'q, 'r> {
    pub(super) shard: &'a Order<'a>,
    pub(super) queue: &'a Queue<'q, Arc<InParts>>,
    pub(super) core: Core<'a, 'r>,
}

/// Tells the others where this thread panics.
struct Presence<'a, 'q>(&'a Queue<'q, Arc<InParts>>);

impl Drop for Presence<'_, '_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.break_down();
        }
    }
}

impl Worker<'_, '_, '_> {
    /// Works until there is nothing left.
    pub(super) fn run(&mut self) {
        let _presence = Presence(self.queue);
        while let Some(work) = self.queue.next() {
            match work {
                Work::Part(part) => {
                    let is_last = part.of.large.do_part(self.shard, &mut self.core, part.number);
                    self.queue.part_ended(&part);
                    if is_last {
                        self.end(&part.of);
                    }
                }
                Work::Object(found) => match self.shard.shared {
                    Some((object, number)) => {
                        let step = Round::begin(self.shard, &mut self.core, object, number);
                        self.step(&found.name, step);
                    }
                    None => {
                        let ended =
                            self.object(&found).unwrap_or_else(|failure| Some(Ended::Failed(failure)));
                        if let Some(ended) = ended {
                            self.shard.report(&found.name, ended);
                        }
                        self.queue.looked_at();
                    }
                },
            }
            if self.shard.ended.get().is_some() {
                self.queue.break_down();
            }
        }
    }

    /// All parts have ended of a large object, or of a range.
    fn end(&mut self, InParts { large, doing }: &InParts) {
        let doing = doing.lock().unwrap_or_else(PoisonError::into_inner).take();
        match doing {
            None => self.shard.report(large.name(), large.end(self.shard)),
            Some(doing) => {
                let step = doing.end(self.shard, &mut self.core, large);
                self.step(large.name(), step);
            }
        }
    }

    /// A range goes on, and counts as looked at only when it has ended: until then more parts may come.
    fn step(&self, name: &str, step: Result<Step, Failure>) {
        let ended = match step {
            Ok(Step::Parts(large, doing)) => return self.share(*large, Some(doing)),
            Ok(Step::Ended(ended)) => ended,
            Err(failure) => Ended::Failed(failure),
        };
        self.shard.report(name, ended);
        self.queue.looked_at();
    }

    /// Has all threads work on a large object, or a range.
    fn share(&self, large: Large, doing: Option<Box<Doing>>) {
        let extra_bytes = large.part_bytes().saturating_sub(part_memory(self.shard.task));
        let part_count = large.part_count();
        let of = InParts { large, doing: Mutex::new(doing) };
        self.queue.share(of.into(), part_count, extra_bytes);
    }

    /// Does an object, or shares it with all threads where it is large. Nothing is said of what is no object, or a range's elsewhere.
    fn object(&mut self, found: &Found) -> Result<Option<Ended>, Failure> {
        if self.shard.is_of_others(found) || self.shard.patiently(|| self.shard.source.is_marker(found))? {
            return Ok(None);
        }
        let making = self.shard.making(found)?;
        let Some(making) = self.shard.unless_finished(making)? else { return Ok(Some(Ended::Already)) };
        if found.bytes > PART_BYTES {
            let large = Large::open(self.shard, &mut self.core, found.clone(), making)?;
            self.share(large, None);
            return Ok(None);
        }
        self.small(found, &making).map(Some)
    }

    fn small(&mut self, found: &Found, making: &Making) -> Result<Ended, Failure> {
        let shard = self.shard;
        let input = shard.patiently(|| shard.source.read(found, 0..found.bytes))?;
        let work = self.core.begin(&input[..])?;
        let (all, place) =
            (0..work.segment_count(), |place: u64| usize::try_from(place).map_err(Failure::never));
        let own = work.input(&all);
        let output = self.core.crypt(&work, &all, &input[place(own.start)?..place(own.end)?])?;
        let done = Ended::Done { bytes_in: found.bytes, bytes_out: output.len() as u64 };
        match shard.patiently(|| shard.destination.put(making, output.clone())) {
            Ok(()) => Ok(done),
            // An answer may have been lost, or another run of the shard was quicker: what stands there tells.
            Err(failure) if matches!(failure.kind, Kind::Exists | Kind::Transient) => {
                match shard.is_finished(making) {
                    Ok(true) => Ok(done),
                    _ => Err(Failure { kind: Kind::Transient, ..failure }),
                }
            }
            Err(failure) => Err(failure),
        }
    }
}
