//! A stream carries standard input or output: bytes come and go in order, and all workers encrypt or decrypt in between.
//!
//! `read -> arm -> StreamSender ~ workers ~ StreamReceiver -> check -> write`; slots go round in a circle, so that memory is
//! bounded and a slow writer holds the reader back. Formats whose segments are chained go one by one.

mod ends;
mod output;
mod range;
mod segment_reader;

pub use ends::is_source;
pub(crate) use ends::{is_stream, place_of};

use std::io::{IoSlice, Read, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Instant;

use evener::{
    Caller, Cancel, DriverFactory, Report, Runtime, Setup, StreamReceiver, StreamSender, Submitted,
};
use evener_core::{BLOCK_BYTES, Direction, Job};
use zeroize::Zeroizing;

use crate::error::FileError;
use crate::format::Body;
use crate::input::source_file::SourceFile;
use crate::report::{Progress, Summary};
use crate::request::{Request, RequestError, Source, Target};
use crate::segments::KeyTrial;
use crate::segments::job::Block;
use crate::segments::slots::plan_slots;

pub(crate) use output::{Output, Sink};
use segment_reader::SegmentReader;

/// What a run through standard input or output is made of.
struct Pipe<'a> {
    progress: &'a Progress,
    cancel: &'a Cancel,
    is_full: &'a Cancel,
}

/// Runs one input to one output.
pub(crate) fn run(run: &Run<'_>) -> Result<Summary, RequestError> {
    let (path, input) = run.open_input()?;
    let output = Output::open(run.request)?;
    Ok(run.through(input, output)?.summary(path, run.progress))
}

/// Encrypts or decrypts all of `input` into `output`, as `request` says; its sources and its target are not looked at.
///
/// What `output` was given before a failure is authentic, and not all; only [`Summary::failed`] says whether it is. It is flushed at the
/// end, and nothing else is done to make it last.
///
/// # Errors
///
/// A [`RequestError`] where nothing could be begun.
pub fn through(
    request: &Request,
    input: impl Read + Send,
    output: &mut dyn Write,
    driver_factory: &dyn DriverFactory,
    progress: &Progress,
    cancel: &Cancel,
) -> Result<Summary, RequestError> {
    let start = Instant::now();
    let mut sink = Passage { output };
    let output = Output::given(&mut sink, request);
    let run = Run::new(request, driver_factory, progress, cancel);
    let ended = run.through(Box::new(input), output)?;
    let summary = ended.summary("-".into(), progress);
    Ok(Summary { cancelled: cancel.is_cancelled(), elapsed: start.elapsed(), ..summary })
}

/// An output of others' making.
struct Passage<'w> {
    output: &'w mut dyn Write,
}

impl Sink for Passage<'_> {
    fn write(&mut self, part: &[u8]) -> Result<(), FileError> {
        self.output.write_all(part).map_err(FileError::io("write the output"))
    }

    fn finish(&mut self) -> Result<(), FileError> {
        self.output.flush().map_err(FileError::io("write the output"))
    }
}

/// A run from one end to another.
pub(crate) struct Run<'a> {
    pub(crate) request: &'a Request,
    pub(crate) driver_factory: &'a dyn DriverFactory,
    pub(crate) progress: &'a Progress,
    pub(crate) cancel: &'a Cancel,
    /// That the output takes no more, so that no thread waits for the input.
    is_full: Cancel,
}

/// How it ended.
pub(crate) struct Ended {
    pub(crate) result: Result<(), FileError>,
    pub(crate) report: Report,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
}

impl<'a> Run<'a> {
    pub(crate) fn new(
        request: &'a Request,
        driver_factory: &'a dyn DriverFactory,
        progress: &'a Progress,
        cancel: &'a Cancel,
    ) -> Self {
        Self { request, driver_factory, progress, cancel, is_full: Cancel::default() }
    }

    /// Opens the input of the request, with its name.
    pub(crate) fn open_input(&self) -> Result<(PathBuf, Box<dyn Read + Send>), RequestError> {
        segment_reader::open_input(self.request, &[self.cancel, &self.is_full])
    }

    /// Encrypts or decrypts all of `input` into `output`, which is finished where that went well.
    pub(crate) fn through(
        &self,
        input: Box<dyn Read + Send + '_>,
        mut output: Output<'_>,
    ) -> Result<Ended, RequestError> {
        let Self { request, driver_factory, progress, cancel, ref is_full } = *self;
        let workers = request.options.workers.max(1);
        let (plan, mut memory) = plan_slots(request, workers + 1)?;
        let slots: Vec<_> = plan.cut(&mut memory).into_iter().flatten().collect();
        let workers = (0..workers).map(|_| driver_factory.core_drivers()).collect();
        let setup = Setup { workers, ..setup(request, driver_factory, slots.len(), cancel) };
        let pipe = Pipe { progress, cancel, is_full };
        let (result, report) = evener::try_run(setup, |runtime| {
            let mut caller = runtime.caller(driver_factory.core_drivers());
            let mut slots = slots;
            let keys = &mut KeyTrial { caller: &mut caller, slots: &mut slots };
            let stream = SegmentReader::open(&request.task, input, keys)?;
            if matches!(request.target, Target::Nowhere(_)) && stream.body.cut().tag_bytes() == 0 {
                return Err(FileError::unverifiable());
            }
            output.write(&mut [IoSlice::new(&stream.header)])?;
            if stream.body.as_serial().is_some() {
                pipe.serial(stream, &mut output)
            } else if stream.is_chained() || runtime.workers() == 0 {
                pipe.one_by_one(stream, &mut caller, slots, &mut output)
            } else {
                pipe.in_parallel(stream, runtime, &mut caller, slots, &mut output)
            }
        })
        .map_err(RequestError::NoThread)?;
        Ok(Ended::new(output, result, report))
    }
}

/// Runs the part of one input that is wanted to one output.
pub(crate) fn run_part(run: &Run<'_>) -> Result<Summary, RequestError> {
    let Run { request, driver_factory, progress, cancel, .. } = *run;
    let (Some(part), [Source::Path(path)]) = (request.options.part, request.sources.as_slice()) else {
        return Err(RequestError::PartOfOne);
    };
    if path.is_dir() {
        return Err(RequestError::PartOfOne);
    }
    let (plan, mut memory) = plan_slots(request, 1)?;
    let slots: Vec<_> = plan.cut(&mut memory).into_iter().flatten().collect();
    let setup = setup(request, driver_factory, slots.len(), cancel);
    let mut output = Output::open(request)?;
    let (result, report) = evener::try_run(setup, |runtime| {
        let mut caller = runtime.caller(driver_factory.core_drivers());
        let source = SourceFile::open_named(path)?;
        range::write(request, source, part, &mut caller, slots, &mut output)
    })
    .map_err(RequestError::NoThread)?;
    Ok(Ended::new(output, result, report).summary(path.clone(), progress))
}

/// A run of one file, with one or two threads of Evener's and jobs in the slots of both.
fn setup<'m>(
    request: &Request,
    driver_factory: &dyn DriverFactory,
    home_jobs: usize,
    cancel: &Cancel,
) -> Setup<'m> {
    Setup {
        modules: driver_factory.modules(),
        policy: request.options.policy,
        objective: request.options.objective,
        budget: request.options.budget.clone(),
        learned: request.options.learned.clone(),
        homes: 2,
        home_jobs,
        cancel: cancel.clone(),
        ..Setup::default()
    }
}

impl Ended {
    /// Finishes the output, once so many bytes were read.
    fn new(output: Output<'_>, read: Result<u64, FileError>, report: Report) -> Self {
        let (bytes_in, bytes_out) = (read.as_ref().copied().unwrap_or(0), output.written);
        let result = read.and_then(|_| output.finish());
        Self { result, report, bytes_in, bytes_out }
    }

    /// Of one file, at `path`.
    fn summary(self, path: PathBuf, progress: &Progress) -> Summary {
        let mut summary = Summary { found: 1, report: self.report, ..Summary::default() };
        if self.result.is_ok() {
            progress.add_file();
        }
        summary.record(path, (self.bytes_in, self.bytes_out), self.result);
        summary
    }
}

impl Pipe<'_> {
    /// Reads in this thread's company, works on all workers, writes here; all of it here where no thread is to be had. Returns the
    /// bytes read.
    fn in_parallel<'m>(
        &self,
        stream: SegmentReader<'_>,
        runtime: &Runtime<'_, 'm>,
        caller: &mut Caller<'_, 'm>,
        slots: Vec<Box<Job<'m>>>,
        output: &mut Output<'_>,
    ) -> Result<u64, FileError> {
        thread::scope(|scope| {
            let (hand_over, take_over) =
                channel::<(SegmentReader<'_>, Receiver<Box<Job<'m>>>, StreamSender<'_, 'm>)>();
            let read = move || {
                let (stream, free, mut sender) = take_over.recv().map_err(|_| FileError::Stopped)?;
                self.read_all(stream, &free, |job| sender.submit(job) == Submitted::Yes)
            };
            let Ok(reader) =
                thread::Builder::new().name("evener-reader".to_owned()).spawn_scoped(scope, read)
            else {
                return self.one_by_one(stream, caller, slots, output);
            };
            let (give_back, free) = circle(slots);
            let (body, direction) = (stream.body.clone(), stream.direction);
            let (sender, mut receiver) = runtime.stream();
            hand_over.send((stream, free, sender)).expect("the reader waits for it");
            let written = self.write_all(&body, direction, &mut receiver, &give_back, output);
            // Both ends of both circles are dropped, so that a reader that still reads comes to its end; one that waits for an input that
            // may be silent for hours is told.
            drop((receiver, give_back));
            if written.is_err() {
                self.is_full.cancel();
            }
            let read = reader.join().expect("the reader does not panic");
            written.and(read)
        })
    }

    /// Reads segments, arms them and hands them to `submit` until the input ends or `submit` says stop.
    fn read_all<'m>(
        &self,
        mut stream: SegmentReader<'_>,
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
        output: &mut Output<'_>,
    ) -> Result<(), FileError> {
        let mut index = 0;
        while let Some(mut job) = receiver.next() {
            output.write_job(body, direction, &mut job, index)?;
            index += 1;
            // The reader is gone when the input has ended; slots are then no longer needed.
            give_back.send(job).ok();
        }
        Ok(())
    }

    /// Takes a cipher that no driver has through all of the input.
    fn serial(&self, mut stream: SegmentReader<'_>, output: &mut Output<'_>) -> Result<u64, FileError> {
        let body = stream.body.clone();
        let mut text = body.as_serial().expect("the caller has looked").begin()?;
        let mut part = Zeroizing::new(vec![0; stream.full_bytes(0)]);
        let (mut total, mut written) = (0, Zeroizing::new(Vec::new()));
        loop {
            if self.cancel.is_cancelled() {
                return Err(FileError::Stopped);
            }
            let bytes = stream.read_part(&mut part)?;
            if bytes == 0 {
                break;
            }
            text.update(&part[..bytes], &mut written)?;
            output.write(&mut [IoSlice::new(&written)])?;
            written.clear();
            total += bytes as u64;
            self.progress.add_bytes(bytes as u64);
        }
        text.finish(&mut written)?;
        output.write(&mut [IoSlice::new(&written)])?;
        Ok(total)
    }

    /// Works on one segment after the other in this thread: of a chained format each needs the one before.
    fn one_by_one<'m>(
        &self,
        stream: SegmentReader<'_>,
        caller: &mut Caller<'_, 'm>,
        slots: Vec<Box<Job<'m>>>,
        output: &mut Output<'_>,
    ) -> Result<u64, FileError> {
        let (give_back, free) = circle(slots);
        let (body, direction, is_chained) = (stream.body.clone(), stream.direction, stream.is_chained());
        let mut failed = None;
        let mut before = None;
        let mut index = 0;
        let read = self.read_all(stream, &free, |mut job| {
            if let Some(before) = before.filter(|_| is_chained) {
                let (session, bytes) = (job.session_ref(), job.input_bytes());
                job.arm(session, &before as &Block, bytes);
            }
            let mut burst = vec![job];
            caller.crypt(&mut burst);
            let written = output.write_job(&body, direction, &mut burst[0], index);
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
