//! Standard input or output: bytes come and go in order, segments are worked on by all workers in between.
//!
//! `read -> arm -> Inlet ~ workers ~ Outlet -> check -> write`; slots go round in a circle, so that memory is
//! bounded and a slow writer holds the reader back. Formats whose segments are chained go one by one.

use std::fs::File;
use std::io::{self, BufReader, Cursor, IoSlice, Read, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use evener::{Caller, Cancel, Inlet, Machinery, Outlet, Setup, Submitted};
use evener_core::{BLOCK_BYTES, Direction, Job};
use rustix::fs::{FileType, Mode};

use crate::armor;
use crate::error::FileError;
use crate::error::FormatError;
use crate::format::{Body, Opened, Opener};
use crate::input::interruptible::{Patient, read_error};
use crate::output::write_at;
use crate::output::{Draft, Origin, OutDir, Settlement};
use crate::report::{Progress, Summary};
use crate::request::{Request, RequestError, Source, Target, Task};
use crate::segments::job::{self, Block};
use crate::segments::slots::plan_slots;
use crate::segments::{START_BYTES, fits};

/// What a run through standard input or output is made of.
struct Pipe<'a> {
    task: &'a Task,
    progress: &'a Progress,
    cancel: &'a Cancel,
}

/// The input after its header was read (or made), in either direction.
struct Stream {
    body: Body,
    direction: Direction,
    /// What is written first.
    header: Vec<u8>,
    input: Box<dyn Read + Send>,
}

/// Runs one input to one output.
pub(crate) fn run(
    request: &Request,
    machinery: &dyn Machinery,
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
        workers: (0..workers).map(|_| machinery.kit()).collect(),
        modules: machinery.modules(),
        policy: request.options.policy,
        objective: request.options.objective,
        budget: request.options.budget.clone(),
        learned: request.options.learned.clone(),
        homes: 2,
        home_jobs: slots.len(),
        cancel: cancel.clone(),
        ..Setup::default()
    };
    let pipe = Pipe { task: &request.task, progress, cancel };
    let (result, report) = evener::run(setup, |runtime| {
        let mut caller = runtime.caller(machinery.kit());
        let mut slots = slots;
        let stream = pipe.open(input, &mut caller, &mut slots)?;
        output.write(&mut [IoSlice::new(&stream.header)])?;
        if stream.direction == Direction::Encrypt && stream.body.is_chained() {
            pipe.one_by_one(stream, &mut caller, slots, &mut output)
        } else {
            let (inlet, outlet) = runtime.stream();
            pipe.in_parallel(stream, inlet, outlet, slots, &mut output)
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

/// The binary bytes of an input that may be armored.
fn without_armor(mut input: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
    let mut start = Vec::new();
    input.by_ref().take(armor::ARMOR_START_BYTES as u64).read_to_end(&mut start)?;
    let is_armored = armor::is_armored(&start);
    let input = Cursor::new(start).chain(input);
    if is_armored { Ok(Box::new(armor::dearmored(BufReader::new(input))?)) } else { Ok(Box::new(input)) }
}

fn open_input(request: &Request, cancel: &Cancel) -> Result<(PathBuf, Box<dyn Read + Send>), RequestError> {
    let cannot_read = |error| RequestError::Stdio { doing: "read the input", error };
    match request.sources.as_slice() {
        [Source::Stdin] => Ok(("-".into(), Box::new(Patient::new(io::stdin(), cancel)))),
        [Source::Path(path)] => {
            let file = File::open(path).map_err(cannot_read)?;
            let stat = rustix::fs::fstat(&file).map_err(|errno| cannot_read(errno.into()))?;
            if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                return Err(RequestError::OneInput("output"));
            }
            Ok((path.clone(), Box::new(Patient::new(file, cancel))))
        }
        sources => {
            let has_stdin = sources.contains(&Source::Stdin);
            Err(RequestError::OneInput(if has_stdin { "input" } else { "output" }))
        }
    }
}

impl Pipe<'_> {
    /// Makes or reads the header.
    fn open<'m>(
        &self,
        mut input: Box<dyn Read + Send>,
        caller: &mut Caller<'_, 'm>,
        slots: &mut Vec<Box<Job<'m>>>,
    ) -> Result<Stream, FileError> {
        match self.task {
            Task::Encrypt(sealer) => {
                let sealing = sealer.seal()?;
                let (body, header) = (sealing.body, sealing.header);
                Ok(Stream { body, direction: Direction::Encrypt, header, input })
            }
            Task::Decrypt(opener) => {
                if matches!(opener, Opener::Age(_)) {
                    input = without_armor(input).map_err(read_error)?;
                }
                let (mut start, bodies) = open_start(opener, &mut input)?;
                let header_bytes = bodies.first().map_or(0, |body| body.cut().header_bytes());
                let header_bytes = usize::try_from(header_bytes).expect("a header is short");
                let mut rest = start.split_off(header_bytes.min(start.len()));
                let body = choose(bodies, &mut rest, &mut input, caller, slots)?;
                let input = Box::new(Cursor::new(rest).chain(input));
                Ok(Stream { body, direction: Direction::Decrypt, header: Vec::new(), input })
            }
        }
    }

    /// Reads in this thread's company, works on all workers, writes here. Returns the bytes read.
    fn in_parallel<'m>(
        &self,
        stream: Stream,
        mut inlet: Inlet<'_, 'm>,
        mut outlet: Outlet<'_, 'm>,
        slots: Vec<Box<Job<'m>>>,
        output: &mut Output,
    ) -> Result<u64, FileError> {
        let (give_back, free) = circle(slots);
        let (body, direction) = (stream.body.clone(), stream.direction);
        thread::scope(|scope| {
            let reader =
                scope.spawn(move || self.read_all(stream, &free, |job| inlet.submit(job) == Submitted::Yes));
            let written = self.write_all(&body, direction, &mut outlet, &give_back, output);
            // Both ends of both circles are dropped, so that a reader that still reads comes to its end.
            drop((outlet, give_back));
            let read = reader.join().expect("the reader does not panic");
            written.and(read)
        })
    }

    /// Reads segments, arms them and hands them to `submit` until the input ends or `submit` says stop.
    fn read_all<'m>(
        &self,
        mut stream: Stream,
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
        outlet: &mut Outlet<'_, 'm>,
        give_back: &Sender<Box<Job<'m>>>,
        output: &mut Output,
    ) -> Result<(), FileError> {
        let mut index = 0;
        while let Some(job) = outlet.next() {
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
        stream: Stream,
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

/// A segment that has been read.
struct Piece<'m> {
    job: Box<Job<'m>>,
    /// Length of its input.
    bytes: usize,
    /// Last block of it.
    block: Block,
}

impl Stream {
    /// Input that segment `index` has if another follows.
    fn full_bytes(&self, index: u64) -> usize {
        let bytes = match self.direction {
            Direction::Encrypt => self.body.cut().full_plain_bytes(index),
            Direction::Decrypt => self.body.cut().full_cipher_bytes(index),
        };
        usize::try_from(bytes).expect("a segment fits a slot")
    }

    /// Reads a segment into a free slot; waits for one. `None` where no slot will come any more.
    fn read<'m>(
        &mut self,
        free: &Receiver<Box<Job<'m>>>,
        index: u64,
    ) -> Result<Option<Piece<'m>>, FileError> {
        let Ok(mut job) = free.recv() else { return Ok(None) };
        let full = self.full_bytes(index);
        let room = &mut job.room_mut()[..full];
        let bytes = read_full(&mut self.input, room)?;
        let block = room[..bytes].last_chunk().copied().unwrap_or_default();
        Ok(Some(Piece { job, bytes, block }))
    }

    /// Whether a segment is the last, given whether it is full and what came after it. Padding always stands
    /// in a segment that is not full.
    fn is_last(&self, is_full: bool, next_bytes: usize) -> bool {
        let pads = self.direction == Direction::Encrypt && self.body.cut().tag_bytes() == 0;
        !is_full || (next_bytes == 0 && !pads)
    }

    fn arm(&self, piece: &mut Piece<'_>, index: u64, last: bool, before: Block) -> Result<(), FileError> {
        if last && self.direction == Direction::Decrypt {
            self.body.cut().last_plain_bytes(index, piece.bytes as u64)?;
        }
        job::arm(&self.body, self.direction, &mut piece.job, index, last, piece.bytes, before)
    }
}

/// The first bytes of a stream and what they open.
fn open_start(opener: &Opener, input: &mut dyn Read) -> Result<(Vec<u8>, Vec<Body>), FileError> {
    let (mut start, mut wanted) = (Vec::new(), START_BYTES);
    loop {
        let old = start.len();
        start.resize(wanted, 0);
        let came = read_full(input, &mut start[old..])?;
        start.truncate(old + came);
        match opener.open(&start, start.len() < wanted)? {
            Opened::Ready(bodies) => return Ok((start, bodies)),
            Opened::NeedMore { start_bytes } => wanted = start_bytes.max(2 * wanted),
        }
    }
}

/// The candidate under which segment 0 authenticates; `rest` holds what was read beyond the header and grows
/// as far as a candidate needs.
fn choose<'m>(
    mut candidates: Vec<Body>,
    rest: &mut Vec<u8>,
    input: &mut dyn Read,
    caller: &mut Caller<'_, 'm>,
    slots: &mut Vec<Box<Job<'m>>>,
) -> Result<Body, FileError> {
    if candidates.len() == 1 {
        return Ok(candidates.swap_remove(0));
    }
    for body in candidates {
        let full = usize::try_from(body.cut().full_cipher_bytes(0)).expect("a segment fits a slot");
        // One byte more tells whether another segment follows.
        let old = rest.len();
        rest.resize(old.max(full + 1), 0);
        let came = read_full(input, &mut rest[old..])?;
        rest.truncate(old + came);
        let last = rest.len() <= full;
        if fits(&body, &rest[..full.min(rest.len())], last, caller, slots)? {
            return Ok(body);
        }
    }
    Err(FormatError::NoKeyFits.into())
}

/// Reads until `room` is full or the input ends.
fn read_full(input: &mut dyn Read, room: &mut [u8]) -> Result<usize, FileError> {
    let mut came = 0;
    while came < room.len() {
        match input.read(&mut room[came..]) {
            Ok(0) => break,
            Ok(more) => came += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(read_error(error)),
        }
    }
    Ok(came)
}

/// Where a pipe's output goes: standard output, or a draft.
struct Output {
    draft: Option<Draft>,
    written: u64,
    target: PathBuf,
}

impl Output {
    fn open(request: &Request) -> Result<Self, RequestError> {
        let Target::Path(path) = &request.target else {
            return Ok(Self { draft: None, written: 0, target: "-".into() });
        };
        let failed = |error: FileError| RequestError::Stdio {
            doing: "write the output",
            error: io::Error::other(error.to_string()),
        };
        let parent =
            path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        let name = path.file_name().ok_or_else(|| RequestError::NoName(path.clone()))?;
        let dir = OutDir::open(parent, Mode::from_raw_mode(0o777)).map_err(failed)?;
        if !request.options.force && dir.stat(name).map_err(failed)?.is_some() {
            return Err(failed(FileError::Exists));
        }
        let mode = Mode::from_raw_mode(0o666);
        let draft = Draft::create(&dir, name, mode, request.options.force).map_err(failed)?;
        Ok(Self { draft: Some(draft), written: 0, target: path.clone() })
    }

    /// Writes a finished job; what failed is never written.
    fn write_job(
        &mut self,
        body: &Body,
        direction: Direction,
        job: &Job<'_>,
        index: u64,
    ) -> Result<(), FileError> {
        job::check(job, index)?;
        let mut parts = Vec::with_capacity(2);
        job::emit_one(body, direction, job, &mut parts);
        self.write(&mut parts)
    }

    fn write(&mut self, parts: &mut [IoSlice<'_>]) -> Result<(), FileError> {
        let bytes: u64 = parts.iter().map(|part| part.len() as u64).sum();
        match &self.draft {
            Some(draft) => write_at(&draft.file, parts, self.written)?,
            None => {
                let mut stdout = io::stdout().lock();
                let written = parts.iter().try_for_each(|part| stdout.write_all(part));
                let flushed = written.and_then(|()| stdout.flush());
                flushed.map_err(|error| FileError::Io { doing: "write to standard output", error })?;
            }
        }
        self.written += bytes;
        Ok(())
    }

    /// Makes a draft final. What came through standard input has no time or mode to be kept.
    fn finish(self) -> Result<(), FileError> {
        let Some(draft) = self.draft else { return Ok(()) };
        let mut settlement = Settlement::default();
        let origin = Origin { path: self.target, bytes_in: 0, bytes_out: self.written };
        settlement.add(draft.complete(None)?, origin);
        settlement.settle().into_iter().try_for_each(|(_, result)| result)
    }
}
