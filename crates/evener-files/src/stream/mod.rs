//! A stream carries standard input or output: bytes come and go in order, and all workers encrypt or decrypt in between.
//!
//! `read -> arm -> StreamSender ~ workers ~ StreamReceiver -> check -> write`; slots go round in a circle, so that memory is
//! bounded and a slow writer holds the reader back. Formats whose segments are chained go one by one.

mod output;
mod range;
mod segment_reader;

use std::io::IoSlice;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use evener::{Caller, Cancel, DriverFactory, Setup, StreamReceiver, StreamSender, Submitted};
use evener_core::{BLOCK_BYTES, Direction, Job};

use crate::error::FileError;
use crate::format::Body;
use crate::input::source_file::SourceFile;
use crate::report::{Progress, Summary};
use crate::request::{Request, RequestError, Source};
use crate::segments::KeyTrial;
use crate::segments::job::Block;
use crate::segments::slots::plan_slots;

use output::Output;
use segment_reader::{SegmentReader, open_input};

/// What a run through standard input or output is made of.
struct Pipe<'a> {
    progress: &'a Progress,
    cancel: &'a Cancel,
}

/// Runs one input to one output.
pub(crate) fn run(
    request: &Request,
    driver_factory: &dyn DriverFactory,
    progress: &Progress,
    cancel: &Cancel,
) -> Result<Summary, RequestError> {
    let (path, input) = open_input(request, cancel)?;
    let mut output = Output::open(request)?;
    let workers = request.options.workers.max(1);
    let plan = plan_slots(request, workers + 1)?;
    let mut memory = plan.allocate();
    let slots: Vec<_> = plan.cut(&mut memory).into_iter().flatten().collect();
    let setup = Setup {
        workers: (0..workers).map(|_| driver_factory.core_drivers()).collect(),
        modules: driver_factory.modules(),
        policy: request.options.policy,
        objective: request.options.objective,
        budget: request.options.budget.clone(),
        learned: request.options.learned.clone(),
        homes: 2,
        home_jobs: slots.len(),
        cancel: cancel.clone(),
        ..Setup::default()
    };
    let pipe = Pipe { progress, cancel };
    let (result, report) = evener::run(setup, |runtime| {
        let mut caller = runtime.caller(driver_factory.core_drivers());
        let mut slots = slots;
        let keys = &mut KeyTrial { caller: &mut caller, slots: &mut slots };
        let stream = SegmentReader::open(&request.task, input, keys)?;
        output.write(&mut [IoSlice::new(&stream.header)])?;
        if stream.direction == Direction::Encrypt && stream.body.is_chained() {
            pipe.one_by_one(stream, &mut caller, slots, &mut output)
        } else {
            let (sender, receiver) = runtime.stream();
            pipe.in_parallel(stream, sender, receiver, slots, &mut output)
        }
    });
    let mut summary = Summary { report, ..Summary::default() };
    let bytes = (result.as_ref().copied().unwrap_or(0), output.written);
    let result = result.map(|_| ()).and_then(|()| output.finish());
    if result.is_ok() {
        progress.add_file();
    }
    summary.record(path, bytes, result);
    Ok(summary)
}

/// Runs the part of one input that is wanted to one output.
pub(crate) fn run_part(
    request: &Request,
    driver_factory: &dyn DriverFactory,
    progress: &Progress,
    cancel: &Cancel,
) -> Result<Summary, RequestError> {
    let (Some(part), [Source::Path(path)]) = (request.options.part, request.sources.as_slice()) else {
        return Err(RequestError::PartOfOne);
    };
    if path.is_dir() {
        return Err(RequestError::PartOfOne);
    }
    let plan = plan_slots(request, 1)?;
    let mut memory = plan.allocate();
    let mut slots: Vec<_> = plan.cut(&mut memory).into_iter().flatten().collect();
    let setup = Setup {
        modules: driver_factory.modules(),
        policy: request.options.policy,
        objective: request.options.objective,
        budget: request.options.budget.clone(),
        learned: request.options.learned.clone(),
        homes: 2,
        home_jobs: slots.len(),
        cancel: cancel.clone(),
        ..Setup::default()
    };
    let mut summary = Summary::default();
    let mut output = Output::open(request)?;
    let (result, report) = evener::run(setup, |runtime| {
        let mut caller = runtime.caller(driver_factory.core_drivers());
        let source = SourceFile::open(None, path)?;
        range::write(&request.task, source, part, &mut caller, &mut slots, &mut output)
    });
    let bytes = (result.as_ref().copied().unwrap_or(0), output.written);
    let result = result.map(|_| ()).and_then(|()| output.finish());
    if result.is_ok() {
        progress.add_file();
    }
    summary.report = report;
    summary.record(path.clone(), bytes, result);
    Ok(summary)
}

impl Pipe<'_> {
    /// Reads in this thread's company, works on all workers, writes here. Returns the bytes read.
    fn in_parallel<'m>(
        &self,
        stream: SegmentReader,
        mut sender: StreamSender<'_, 'm>,
        mut receiver: StreamReceiver<'_, 'm>,
        slots: Vec<Box<Job<'m>>>,
        output: &mut Output,
    ) -> Result<u64, FileError> {
        let (give_back, free) = circle(slots);
        let (body, direction) = (stream.body.clone(), stream.direction);
        thread::scope(|scope| {
            let reader =
                scope.spawn(move || self.read_all(stream, &free, |job| sender.submit(job) == Submitted::Yes));
            let written = self.write_all(&body, direction, &mut receiver, &give_back, output);
            // Both ends of both circles are dropped, so that a reader that still reads comes to its end.
            drop((receiver, give_back));
            let read = reader.join().expect("the reader does not panic");
            written.and(read)
        })
    }

    /// Reads segments, arms them and hands them to `submit` until the input ends or `submit` says stop.
    fn read_all<'m>(
        &self,
        mut stream: SegmentReader,
        free: &Receiver<Box<Job<'m>>>,
        mut submit: impl FnMut(Box<Job<'m>>) -> bool,
    ) -> Result<u64, FileError> {
        let (mut total, mut before) = (0, Block::default());
        let Some(mut current) = stream.read(free, 0)? else { return Ok(0) };
        for index in 0.. {
            if self.cancel.is_cancelled() {
                return Err(FileError::Stopped);
            }
            let is_full = current.bytes == stream.full_bytes(index);
            let next = if is_full { stream.read(free, index + 1)? } else { None };
            let last = stream.is_last(is_full, next.as_ref().map_or(0, |next| next.bytes));
            stream.arm(&mut current, index, last, before)?;
            total += current.bytes as u64;
            self.progress.add_bytes(current.bytes as u64);
            before = current.block;
            let goes_on = submit(current.job) && !last;
            match next {
                Some(next) if goes_on => current = next,
                _ => break,
            }
        }
        Ok(total)
    }

    fn write_all<'m>(
        &self,
        body: &Body,
        direction: Direction,
        receiver: &mut StreamReceiver<'_, 'm>,
        give_back: &Sender<Box<Job<'m>>>,
        output: &mut Output,
    ) -> Result<(), FileError> {
        let mut index = 0;
        while let Some(job) = receiver.next() {
            output.write_job(body, direction, &job, index)?;
            index += 1;
            // The reader is gone when the input has ended; slots are then no longer needed.
            give_back.send(job).ok();
        }
        Ok(())
    }

    /// Encrypts a chained format: each segment needs the one before.
    fn one_by_one<'m>(
        &self,
        stream: SegmentReader,
        caller: &mut Caller<'_, 'm>,
        slots: Vec<Box<Job<'m>>>,
        output: &mut Output,
    ) -> Result<u64, FileError> {
        let (give_back, free) = circle(slots);
        let (body, direction) = (stream.body.clone(), stream.direction);
        let mut failed = None;
        let mut before = None;
        let mut index = 0;
        let read = self.read_all(stream, &free, |mut job| {
            if let Some(before) = before {
                let (session, bytes) = (job.session_ref(), job.input_bytes());
                job.arm(session, &before as &Block, bytes);
            }
            let mut burst = vec![job];
            caller.crypt(&mut burst);
            let written = output.write_job(&body, direction, &burst[0], index);
            before = burst[0].output().last_chunk::<BLOCK_BYTES>().copied();
            index += 1;
            failed = written.err();
            burst.into_iter().for_each(|job| give_back.send(job).unwrap_or(()));
            failed.is_none()
        });
        failed.map_or(read, Err)
    }
}

/// Slots that go round: written ones come back to the reader.
fn circle<'m>(slots: Vec<Box<Job<'m>>>) -> (Sender<Box<Job<'m>>>, Receiver<Box<Job<'m>>>) {
    let (give_back, free) = channel();
    for slot in slots {
        give_back.send(slot).expect("the receiver is in this function");
    }
    (give_back, free)
}
