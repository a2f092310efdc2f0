//! The files, one by one, each with its number: threads take them in turns, and not too far ahead of what was told.
//!
//! Names that are long in coming, as those of a list that is typed, are waited for by one thread, which holds no lock meanwhile.

use std::ffi::OsString;
use std::fs::metadata;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rustix::fs::FileType;

use super::Input;
use super::streams::{self, Stream, Turns};
use crate::error::FileError;
use crate::input::place::{OpenPlaces, Place};
use crate::walk::{Descent, Found, Order};

/// Files that may have been taken beyond the first that was not told of. Assumed, not measured: 8192, some 2 MiB of names and digests.
pub(super) const WINDOW: u64 = 8_192;

/// A file to be digested.
pub(super) struct Item {
    pub(super) number: u64,
    pub(super) what: What,
    /// Of a stream: the thread that reads it waits for this.
    pub(super) turn: Option<streams::Turn>,
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
    is_ended: AtomicBool,
}

struct State<I> {
    /// Not here while a thread waits for the next one.
    names: Option<I>,
    /// What came of it.
    name: Option<Input>,
    /// Whether there are no more, and none is asked for again.
    are_over: bool,
    /// Whether the next one is long in coming.
    is_late: bool,
    /// The tree that is gone through.
    tree: Option<Descent>,
    open: Arc<OpenPlaces>,
    streams: Turns,
    /// Number of the next file.
    next: u64,
    /// All before this one were told.
    told: u64,
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
    /// With so many directories open at a time.
    pub(super) fn new(names: I, directories: usize) -> Self {
        let state = State {
            names: Some(names),
            name: None,
            are_over: false,
            is_late: false,
            tree: None,
            open: OpenPlaces::new(directories),
            streams: Turns::default(),
            next: 0,
            told: 0,
        };
        Self { state: Mutex::new(state), moved: Condvar::new(), is_ended: AtomicBool::new(false) }
    }

    /// Says that all before this number were told.
    pub(super) fn told_to(&self, number: u64) {
        self.lock().told = number;
        self.moved.notify_all();
    }

    /// Whether nothing more is wanted.
    pub(super) fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Relaxed)
    }

    /// Ends all when it goes.
    pub(super) fn ended_at_last(&self) -> impl Drop {
        struct End<'a, I>(&'a Inputs<I>);
        impl<I> Drop for End<'_, I> {
            fn drop(&mut self) {
                // Who looks at it before it waits has the lock.
                let _state = self.0.lock();
                self.0.is_ended.store(true, Ordering::Relaxed);
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
    /// The next file. A thread that has others does not wait for what may be long in coming, nor for those before it to be told, which may be its own.
    pub(super) fn next(&self, has_others: bool) -> Turn {
        let mut state = self.lock();
        loop {
            if self.is_ended() {
                return Turn::End;
            }
            if state.next < state.told + WINDOW {
                match state.find() {
                    Asked::File(what, turn) => {
                        let number = state.next;
                        state.next += 1;
                        return Turn::Item(Item { number, what, turn });
                    }
                    Asked::Over => return Turn::End,
                    Asked::Later if !has_others => {
                        if let Some(names) = state.names.take() {
                            drop(state);
                            state = self.wait_for(names);
                            continue;
                        }
                    }
                    Asked::Later => {}
                }
            }
            if has_others {
                return Turn::Wait;
            }
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for the next name.
    fn wait_for(&self, mut names: I) -> MutexGuard<'_, State<I>> {
        let name = names.next();
        let mut state = self.lock();
        state.names = Some(names);
        state.put(name);
        self.moved.notify_all();
        state
    }
}

/// What a look for the next file finds.
enum Asked {
    File(What, Option<streams::Turn>),
    /// The next name is to be waited for.
    Later,
    Over,
}

impl<I: Iterator<Item = Input>> State<I> {
    fn find(&mut self) -> Asked {
        loop {
            if let Some(what) = self.find_in_tree() {
                return Asked::File(what, None);
            }
            match (self.name.take(), &mut self.names) {
                (Some(name), _) => {
                    if let Some((what, turn)) = self.begin(name) {
                        return Asked::File(what, turn);
                    }
                }
                (None, _) if self.are_over => return Asked::Over,
                (None, Some(names)) if !self.is_late => {
                    let name = names.next();
                    self.put(name);
                }
                (None, _) => return Asked::Later,
            }
        }
    }

    fn put(&mut self, name: Option<Input>) {
        self.is_late = name == Some(Input::Later);
        self.are_over = name.is_none();
        self.name = name.filter(|_| !self.is_late);
    }

    /// The file of a name; none where it is a tree, which is gone through from now on.
    fn begin(&mut self, name: Input) -> Option<(What, Option<streams::Turn>)> {
        let (path, may_be_tree) = match name {
            Input::Stdin => return Some((What::Stdin, Some(self.streams.next(Stream::of_stdin())))),
            Input::File(path) => (path, false),
            Input::Tree(path) => (path, true),
            Input::Later => return None,
        };
        // What cannot be looked at is told of when it is opened.
        let Ok(found) = metadata(&path) else { return Some((What::Named(path), None)) };
        if !(may_be_tree && found.is_dir()) {
            let turn = Stream::of(&found).map(|stream| self.streams.next(stream));
            return Some((What::Named(path), turn));
        }
        match Descent::by(Order::Names, &path, &self.open) {
            Ok(tree) => {
                self.tree = Some(tree);
                None
            }
            Err(error) => Some((What::Failed(path, error), None)),
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
