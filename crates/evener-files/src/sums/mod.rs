//! Digests of files and of all files of trees, in the order in which they were named, by all cores.
//!
//! Path of a file: `inputs.rs` names it, in its turn -> a thread (`worker.rs`) opens it (`opened.rs`), reads it by the batch with others and has the lanes hash them side by side, or by itself (`alone.rs`)
//! what is very long or is no regular file -> [`digest_all`] tells what came of it when all before it were told.
//!
//! Nothing is mapped: a file that is cut short while it is read is read to its end. Memory: about 2 MiB of text for each thread, and the names and digests of up to
//! [`WINDOW`](inputs::WINDOW) files that wait for one before them.

mod alone;
mod inputs;
mod opened;
mod worker;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;

pub use evener_kernels::hashes::{Hash, Means};

use self::alone::Alone;
use self::inputs::Inputs;
use self::worker::Worker;
use crate::error::FileError;

/// What is to be digested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Standard input.
    Stdin,
    /// A file.
    File(PathBuf),
    /// A file, or all regular files of a tree.
    Tree(PathBuf),
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

/// What came of a file.
pub struct Digested {
    /// Which of the inputs it was or belonged to, from 0.
    pub input: usize,
    /// Its path, of standard input `-`.
    pub path: PathBuf,
    /// Its digest.
    pub digest: Result<Vec<u8>, FileError>,
}

/// Digests all inputs, which are asked for one by one, and tells of each file in the order of the inputs.
///
/// # Errors
///
/// Where libcrypto is needed and has no such hash, or whatever `tell` returns: then nothing more is told.
pub fn digest_all<E: From<FileError>>(
    inputs: impl Iterator<Item = Input> + Send,
    method: Method,
    mut tell: impl FnMut(Digested) -> Result<(), E>,
) -> Result<(), E> {
    let inputs = Inputs::new(inputs);
    let alone = Alone::new(method)?;
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        // Whatever the way out, no thread waits for a window that moves no more.
        let _end = inputs.ended_at_last();
        let mut told = InOrder { next: 0, waiting: BTreeMap::new(), inputs: &inputs };
        let mut are_begun = false;
        for _ in (0..method.workers).filter(|_| method.workers > 1) {
            let (sender, worker) = (sender.clone(), Worker::new(&inputs, method, &alone));
            let thread = thread::Builder::new().name("evener-sum".to_owned());
            let begun = thread.spawn_scoped(scope, move || worker.run(&mut |done| sender.send(done).is_ok()));
            are_begun |= begun.is_ok();
        }
        drop(sender);
        if are_begun {
            return receiver.iter().try_for_each(|done| told.take(done, &mut tell));
        }
        // One thread is enough, or all that can be had.
        let mut outcome = Ok(());
        Worker::new(&inputs, method, &alone).run(&mut |done| {
            outcome = told.take(done, &mut tell);
            outcome.is_ok()
        });
        outcome
    })
}

/// What came of a file, by its number.
type Done = (u64, Digested);

/// Puts what came in order.
struct InOrder<'a, I> {
    next: u64,
    waiting: BTreeMap<u64, Digested>,
    inputs: &'a Inputs<I>,
}

impl<I> InOrder<'_, I> {
    fn take<E>(
        &mut self,
        (number, done): Done,
        tell: &mut impl FnMut(Digested) -> Result<(), E>,
    ) -> Result<(), E> {
        self.waiting.insert(number, done);
        while let Some(done) = self.waiting.remove(&self.next) {
            tell(done)?;
            self.next += 1;
        }
        self.inputs.told_to(self.next);
        Ok(())
    }
}
