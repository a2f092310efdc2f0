//! A thread: it has a batch of files open, reads on in each, and hashes what it read side by side. What goes alone waits until those are at their end.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use evener_kernels::hashes::{Lanes, Running, Span};
use rustix::fs;

use super::alone::Alone;
use super::inputs::{Inputs, Item, Turn};
use super::opened::{Opened, open, read_on};
use super::streams;
use super::{Digested, Done, Input, Method};
use crate::error::FileError;

/// Bytes of a file that are read at a time: whole blocks of every hash, and so many that a file of 64 KiB, and that it ends there, is seen by one call.
const READ_BYTES: usize = (64 << 10) + 128;

/// A file of this length goes alone: side by side with others it would take long, while the others are done.
const ALONE_FROM: u64 = 64 << 20;

/// The same where libcrypto is quicker with one file than lanes are.
const ALONE_FROM_BY_LIBCRYPTO: u64 = 1 << 20;

/// Files of a batch: lanes, and as many that follow as soon as shorter ones are at their end.
const BATCH_OF_LANES: usize = 2;

/// A thread's own.
pub(super) struct Worker<'a, I> {
    inputs: &'a Inputs<I>,
    method: Method,
    alone: &'a Alone,
    lanes: Option<Lanes>,
    /// Room for a batch's files, of those that are open first.
    slots: Vec<Slot>,
    free: Vec<Vec<u8>>,
    /// What goes alone, next.
    single: Option<Single>,
}

/// What goes alone.
enum Single {
    File(u64, PathBuf, OwnedFd),
    /// Not opened before its turn.
    Stream(Item),
}

/// A file that is open.
struct Slot {
    number: u64,
    path: PathBuf,
    file: OwnedFd,
    running: Running,
    place: Vec<u8>,
    /// What was read.
    bytes: usize,
    /// Bytes that are to come by the length that the file had; 0 where it said that it is empty, or has grown.
    left: u64,
    is_at_end: bool,
    error: Option<FileError>,
}

impl<'a, I: Iterator<Item = Input>> Worker<'a, I> {
    /// One that has so many files open at a time, of which one goes alone.
    pub(super) fn new(inputs: &'a Inputs<I>, method: Method, alone: &'a Alone, files: usize) -> Self {
        let means = method.means.filter(|means| Lanes::count(method.hash, *means) > 0);
        let batch = means.map_or(0, |means| BATCH_OF_LANES * Lanes::count(method.hash, means));
        let free = (0..batch.min(files.max(2) - 1)).map(|_| Vec::new()).collect();
        let lanes = means.map(Lanes::new);
        Self { inputs, method, alone, lanes, slots: Vec::new(), free, single: None }
    }

    /// Works until there is nothing more, or `tell` says that no more is wanted.
    pub(super) fn run(mut self, tell: &mut impl FnMut(Done) -> bool) {
        while !self.inputs.is_ended() {
            let Some(is_end) = self.fill(tell) else { return };
            let goes_on = if !self.slots.is_empty() {
                self.slots.iter_mut().for_each(Slot::read_on);
                self.hash();
                self.settle(tell)
            } else if let Some(single) = self.single.take() {
                self.digest(single, tell)
            } else {
                !is_end
            };
            if !goes_on {
                return;
            }
        }
    }

    /// Opens files as long as there is room for more. Whether there are no more; nothing where `tell` wants no more.
    fn fill(&mut self, tell: &mut impl FnMut(Done) -> bool) -> Option<bool> {
        while self.single.is_none() {
            let Some(place) = self.free.pop().or_else(|| self.lanes.is_none().then(Vec::new)) else { break };
            let item = match self.inputs.next(!self.slots.is_empty()) {
                Turn::Item(item) => item,
                turn => {
                    self.free.push(place);
                    return Some(matches!(turn, Turn::End));
                }
            };
            let number = item.number;
            if item.turn.is_some() {
                self.free.push(place);
                self.single = Some(Single::Stream(item));
                break;
            }
            match open(item.what) {
                (path, Ok(opened)) if self.goes_along(&opened) => {
                    // A wish only.
                    fs::fadvise(&opened.file, 0, None, fs::Advice::WillNeed).ok();
                    self.slots.push(Slot::new(number, path, opened, place, self.method));
                    continue;
                }
                (path, Ok(opened)) => self.single = Some(Single::File(number, path, opened.file)),
                (path, Err(error)) => {
                    if !tell((number, Digested { path, digest: Err(error) })) {
                        return None;
                    }
                }
            }
            self.free.push(place);
        }
        Some(false)
    }

    /// Digests what goes alone and tells of it; false where no more is wanted.
    fn digest(&mut self, single: Single, tell: &mut impl FnMut(Done) -> bool) -> bool {
        let (number, path, opened, _turn) = match single {
            Single::File(number, path, file) => (number, path, Ok(file), None),
            Single::Stream(Item { number, what, turn }) => {
                turn.iter().for_each(streams::Turn::wait);
                let (path, opened) = open(what);
                (number, path, opened.map(|opened| opened.file), turn)
            }
        };
        let is_wanted = || !self.inputs.is_ended();
        let digest = opened.and_then(|file| self.alone.digest(&file, self.lanes.as_mut(), is_wanted));
        digest.transpose().is_some_and(|digest| tell((number, Digested { path, digest })))
    }

    /// Whether a file goes side by side with others.
    fn goes_along(&self, opened: &Opened) -> bool {
        let alone_from = if self.method.has_chain() { ALONE_FROM } else { ALONE_FROM_BY_LIBCRYPTO };
        self.lanes.is_some() && opened.bytes.is_some_and(|bytes| bytes < alone_from)
    }

    fn hash(&mut self) {
        let spans = self.slots.iter_mut().filter(|slot| slot.error.is_none()).map(Slot::span);
        let mut spans: Vec<Span<'_>> = spans.collect();
        if let Some(lanes) = &mut self.lanes {
            lanes.run(&mut spans);
        }
    }

    /// Tells of files that are at their end; false where no more is wanted.
    fn settle(&mut self, tell: &mut impl FnMut(Done) -> bool) -> bool {
        let mut at = 0;
        while let Some(slot) = self.slots.get(at) {
            if !slot.is_at_end && slot.error.is_none() {
                at += 1;
                continue;
            }
            let Slot { number, path, running, place, error, .. } = self.slots.swap_remove(at);
            self.free.push(place);
            let digest = error.map_or_else(
                || {
                    let mut digest = vec![0; self.method.hash.digest_bytes()];
                    running.digest(&mut digest);
                    Ok(digest)
                },
                Err,
            );
            if !tell((number, Digested { path, digest })) {
                return false;
            }
        }
        true
    }
}

impl Slot {
    fn new(
        number: u64,
        path: PathBuf,
        Opened { file, bytes: length }: Opened,
        mut place: Vec<u8>,
        method: Method,
    ) -> Self {
        place.resize(READ_BYTES, 0);
        let running = Running::new(method.hash);
        let left = length.unwrap_or(0);
        Self { number, path, file, running, place, bytes: 0, left, is_at_end: false, error: None }
    }

    fn read_on(&mut self) {
        match read_on(&self.file, &mut self.place, self.left) {
            Ok(bytes) => {
                (self.bytes, self.is_at_end) = (bytes, bytes < self.place.len());
                self.left = self.left.saturating_sub(bytes as u64);
            }
            Err(error) => self.error = Some(error),
        }
    }

    fn span(&mut self) -> Span<'_> {
        let text = &self.place[..self.bytes];
        if self.is_at_end { Span::last(&mut self.running, text) } else { Span::more(&mut self.running, text) }
    }
}
