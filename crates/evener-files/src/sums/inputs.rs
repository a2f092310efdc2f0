//! The files, one by one, each with its number: threads take them in turns, and not too far ahead of what was told.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rustix::fs::FileType;

use super::Input;
use crate::error::FileError;
use crate::input::place::{OpenPlaces, Place};
use crate::walk::{Descent, Found, Order};

/// Files that may have been taken beyond the first that was not told of. Assumed, not measured: 8192, some 2 MiB of names and digests.
pub(super) const WINDOW: u64 = 8_192;

/// Directories that are kept open.
const DIRECTORIES: usize = 64;

/// A file to be digested.
pub(super) struct Item {
    pub(super) number: u64,
    pub(super) input: usize,
    pub(super) what: What,
}

/// What it is.
pub(super) enum What {
    Stdin,
    Named(PathBuf),
    /// A file that the walk found.
    Found(Arc<Place>, OsString),
    /// What cannot be read.
    Failed(PathBuf, FileError),
}

/// All files.
pub(super) struct Inputs<I> {
    state: Mutex<State<I>>,
    moved: Condvar,
}

struct State<I> {
    inputs: I,
    /// Inputs that were begun.
    begun: usize,
    /// The tree that is gone through.
    tree: Option<Descent>,
    open: Arc<OpenPlaces>,
    /// Number of the next file.
    next: u64,
    /// All before this one were told.
    told: u64,
    is_ended: bool,
}

/// What a thread is to do.
pub(super) enum Turn {
    /// This one.
    Item(Item),
    /// First what it has.
    Wait,
    /// Nothing any more.
    End,
}

impl<I> Inputs<I> {
    pub(super) fn new(inputs: I) -> Self {
        let open = OpenPlaces::new(DIRECTORIES);
        let state = State { inputs, begun: 0, tree: None, open, next: 0, told: 0, is_ended: false };
        Self { state: Mutex::new(state), moved: Condvar::new() }
    }

    /// Says that all before this number were told.
    pub(super) fn told_to(&self, number: u64) {
        self.lock().told = number;
        self.moved.notify_all();
    }

    /// Ends all when it goes.
    pub(super) fn ended_at_last(&self) -> impl Drop {
        struct End<'a, I>(&'a Inputs<I>);
        impl<I> Drop for End<'_, I> {
            fn drop(&mut self) {
                self.0.lock().is_ended = true;
                self.0.moved.notify_all();
            }
        }
        End(self)
    }

    fn lock(&self) -> MutexGuard<'_, State<I>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<I: Iterator<Item = Input>> Inputs<I> {
    /// The next file. A thread that has others does not wait for those before it to be told, for they may be its own.
    pub(super) fn next(&self, has_others: bool) -> Turn {
        let mut state = self.lock();
        while state.next >= state.told + WINDOW && !state.is_ended {
            if has_others {
                return Turn::Wait;
            }
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.is_ended {
            return Turn::End;
        }
        let Some((input, what)) = state.find() else { return Turn::End };
        let number = state.next;
        state.next += 1;
        Turn::Item(Item { number, input, what })
    }
}

impl<I: Iterator<Item = Input>> State<I> {
    fn find(&mut self) -> Option<(usize, What)> {
        loop {
            if let Some(what) = self.find_in_tree() {
                return Some((self.begun - 1, what));
            }
            let input = self.inputs.next()?;
            self.begun += 1;
            let what = match input {
                Input::Stdin => What::Stdin,
                Input::Tree(path) if std::fs::metadata(&path).is_ok_and(|it| it.is_dir()) => {
                    match Descent::by(Order::Names, &path, &self.open) {
                        Ok(tree) => {
                            self.tree = Some(tree);
                            continue;
                        }
                        Err(error) => What::Failed(path, error),
                    }
                }
                Input::File(path) | Input::Tree(path) => What::Named(path),
            };
            return Some((self.begun - 1, what));
        }
    }

    /// Regular files, and what cannot be read; links, and what else there is, are left out.
    fn find_in_tree(&mut self) -> Option<What> {
        let tree = self.tree.as_mut()?;
        while let Some(found) = tree.next() {
            match found {
                Found::Other { place, name, kind: FileType::RegularFile, .. } => {
                    return Some(What::Found(place, name));
                }
                Found::Failed(path, error) => return Some(What::Failed(path, error)),
                Found::Directory { .. } | Found::Other { .. } => {}
            }
        }
        self.tree = None;
        None
    }
}
