//! Digests of files and of all files of trees, in the order in which they were named, by all cores.
//!
//! Path of a file: `inputs.rs` names it, in its turn -> a thread (`worker.rs`) opens it (`opened.rs`), reads it by the batch with others and has the lanes hash them side by side, or by itself (`alone.rs`)
//! what is very long or, in its turn (`streams.rs`), no regular file -> [`digest_all`] tells what came of it when all before it were told.
//!
//! Nothing is mapped: a file that is cut short while it is read is read to its end. Memory: about 2 MiB of text for each thread, and the names and digests of up to
//! [`WINDOW`](inputs::WINDOW) files that wait for one before them.

mod alone;
mod inputs;
mod opened;
mod streams;
mod worker;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

pub use evener_kernels::hashes::{Hash, Means};

use self::alone::Alone;
use self::inputs::Inputs;
use self::worker::Worker;
use crate::error::FileError;
use crate::input::descriptors::Descriptors;

/// What is to be digested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Standard input.
    Stdin,
    /// A file.
    File(PathBuf),
    /// A file, or all regular files of a tree.
    Tree(PathBuf),
    /// Nothing yet: to ask again is to wait for the next one, as for what is typed.
    Later,
}

/// How.
#[derive(Clone, Copy, Debug)]
pub struct Method {
    /// The hash.
    pub hash: Hash,
    /// The instructions by which many files are hashed side by side; by none libcrypto hashes one after the other.
    pub means: Option<Means>,
    /// Threads.
    pub workers: usize,
}

/// What is told.
pub enum Told {
    /// What came of a file.
    File(Digested),
    /// Files were told [a while](LATE) ago: what is held back of them is due.
    Flush,
}

/// Assumed, not measured: 100 ms, which a reader at a terminal does not see.
const LATE: Duration = Duration::from_millis(100);

/// What came of a file.
pub struct Digested {
    /// Its path, of standard input `-`.
    pub path: PathBuf,
    /// Its digest.
    pub digest: Result<Vec<u8>, FileError>,
}

/// Digests all inputs, which are asked for one by one and no more after the last, and tells of each file in the order of the inputs.
///
/// # Errors
///
/// Where libcrypto is needed and has no such hash, or whatever `tell` returns: then nothing more is told.
pub fn digest_all<E: From<FileError>>(
    inputs: impl Iterator<Item = Input> + Send,
    method: Method,
    mut tell: impl FnMut(Told) -> Result<(), E>,
) -> Result<(), E> {
    let workers = method.workers.max(1);
    let descriptors = Descriptors::of_process(workers);
    // Those of outputs, too, which are not here.
    let files = 2 * descriptors.files_per_thread;
    let inputs = Inputs::new(inputs, descriptors.directories);
    let alone = Alone::new(method)?;
    let worker = || Worker::new(&inputs, method, &alone, files);
    thread::scope(|scope| {
        // Whatever the way out, no thread waits for a window that moves no more, or reads on.
        let end = inputs.ended_at_last();
        let (sender, receiver) = mpsc::channel();
        let mut told = InOrder { next: 0, waiting: BTreeMap::new(), due: None, inputs: &inputs };
        let mut begun = Vec::new();
        for _ in 0..workers {
            let (sender, worker) = (sender.clone(), worker());
            let thread = thread::Builder::new().name("evener-sum".to_owned());
            begun.extend(
                thread.spawn_scoped(scope, move || worker.run(&mut |done| sender.send(done).is_ok())),
            );
        }
        drop(sender);
        if begun.is_empty() {
            // Not one thread more can be had.
            let mut outcome = Ok(());
            worker().run(&mut |done| {
                outcome = told.take(done, &mut tell).and_then(|()| tell(Told::Flush));
                outcome.is_ok()
            });
            return outcome;
        }
        let outcome = told.take_all(&receiver, &mut tell);
        drop((end, receiver));
        evener::join_all(begun);
        outcome
    })
}

/// What came of a file, by its number.
type Done = (u64, Digested);

/// Puts what came in order.
struct InOrder<'a, I> {
    next: u64,
    waiting: BTreeMap<u64, Digested>,
    /// When what was told is due.
    due: Option<Instant>,
    inputs: &'a Inputs<I>,
}

impl<I> InOrder<'_, I> {
    fn take_all<E>(
        &mut self,
        receiver: &Receiver<Done>,
        tell: &mut impl FnMut(Told) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            let left = self.due.map(|due| due.saturating_duration_since(Instant::now()));
            let done = match left {
                None => receiver.recv().map_err(RecvTimeoutError::from),
                Some(Duration::ZERO) => Err(RecvTimeoutError::Timeout),
                Some(left) => receiver.recv_timeout(left),
            };
            match done {
                Ok(done) => self.take(done, tell)?,
                Err(RecvTimeoutError::Timeout) => {
                    self.due = None;
                    tell(Told::Flush)?;
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }

    fn take<E>(
        &mut self,
        (number, done): Done,
        tell: &mut impl FnMut(Told) -> Result<(), E>,
    ) -> Result<(), E> {
        self.waiting.insert(number, done);
        while let Some(done) = self.waiting.remove(&self.next) {
            tell(Told::File(done))?;
            self.due = self.due.or_else(|| Instant::now().checked_add(LATE));
            self.next += 1;
        }
        self.inputs.told_to(self.next);
        Ok(())
    }
}
