//! Files whose segments must be encrypted one after the other (CBC): several files in step, the next segment
//! of each in one burst, so that multi-buffer has something to do side by side.

use std::io::IoSlice;

use evener_core::BLOCK_BYTES;

use super::worker::Worker;
use crate::error::FileError;
use crate::output::{CompleteDraft, Draft, Origin, write_at};
use crate::segments::job::{self, Block};
use crate::segments::{FileWork, span};
use crate::walk::Item;

/// A file in the middle of its chain.
struct ChainedFile {
    item: Item,
    work: FileWork,
    draft: Draft,
    /// Next segment.
    next: u64,
    /// Last block of ciphertext so far.
    before: Block,
}

/// Encrypts files in step, as many at a time as the caller's core runs side by side.
pub(super) fn run(worker: &mut Worker<'_, '_, '_>, files: Vec<(Item, FileWork)>) {
    let side_by_side = (worker.caller.width() as usize).clamp(1, worker.slots.len());
    let mut files = files.into_iter();
    let mut chains = Vec::new();
    loop {
        while chains.len() < side_by_side {
            let Some((item, work)) = files.next() else { break };
            if worker.run.is_stopped() {
                worker.failed(item.source(), FileError::Stopped);
                continue;
            }
            chains.extend(begin(worker, item, work));
        }
        if chains.is_empty() {
            return;
        }
        step(worker, &mut chains);
        worker.settle_if_due();
    }
}

fn begin(worker: &mut Worker<'_, '_, '_>, item: Item, work: FileWork) -> Option<ChainedFile> {
    work.source.announce();
    let draft = work.draft(&item).and_then(|draft| {
        write_at(&draft.file, &mut [IoSlice::new(&work.header)], 0)?;
        Ok(draft)
    });
    match draft {
        Ok(draft) => Some(ChainedFile { item, work, draft, next: 0, before: Block::default() }),
        Err(error) => {
            worker.failed(item.source(), error);
            None
        }
    }
}

/// One segment of every file; files that end, or fail, leave.
fn step(worker: &mut Worker<'_, '_, '_>, chains: &mut Vec<ChainedFile>) {
    let mut going = Vec::with_capacity(chains.len());
    let mut burst = Vec::with_capacity(chains.len());
    for chain in chains.drain(..) {
        let mut job = worker.slots.pop().expect("there are as many slots as chains");
        match chain.read(&mut job) {
            Ok(bytes) => {
                worker.run.progress.add_bytes(bytes);
                burst.push(job);
                going.push(chain);
            }
            Err(error) => {
                worker.slots.push(job);
                worker.failed(chain.item.source(), error);
            }
        }
    }
    worker.caller.crypt(&mut burst);
    for (mut chain, job) in going.into_iter().zip(&mut burst) {
        match chain.write(job) {
            Ok(false) if worker.run.is_stopped() => worker.failed(chain.item.source(), FileError::Stopped),
            Ok(false) => chains.push(chain),
            Ok(true) => {
                let item = chain.item.clone();
                let finished = chain.complete();
                worker.finished(item, finished);
            }
            Err(error) => worker.failed(chain.item.source(), error),
        }
    }
    worker.slots.append(&mut burst);
}

impl ChainedFile {
    fn read(&self, job: &mut Box<evener_core::Job<'_>>) -> Result<u64, FileError> {
        let segment = self.work.layout.segment(self.next);
        let bytes = span::read(&self.work, std::slice::from_ref(&segment), std::slice::from_mut(job))?;
        let (body, direction) = (&self.work.body, self.work.direction);
        let (_, input_bytes) = self.work.input(&segment);
        job::arm(body, direction, job, segment.index, segment.last, input_bytes, self.before)?;
        Ok(bytes)
    }

    /// Writes a finished segment; returns whether it was the last.
    fn write(&mut self, job: &mut evener_core::Job<'_>) -> Result<bool, FileError> {
        let segment = self.work.layout.segment(self.next);
        let mut parts = Vec::with_capacity(1);
        job::emit(&self.work.body, self.work.direction, job, self.next, &mut parts)?;
        write_at(&self.draft.file, &mut parts, self.work.output_offset(&segment))?;
        if let Some(block) = job.output().last_chunk::<BLOCK_BYTES>() {
            self.before = *block;
        }
        self.next += 1;
        Ok(segment.last)
    }

    fn complete(self) -> Result<(CompleteDraft, Origin), FileError> {
        Ok((self.work.complete(self.draft, &self.item)?, self.work.origin()))
    }
}
