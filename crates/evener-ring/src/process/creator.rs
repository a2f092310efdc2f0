//! The process in which something was made, told by a word that a fork wipes: its number would take a system call.

use std::process;

use super::Mapping;
use crate::Words as _;
use crate::sync::atomic::Ordering::Relaxed;

/// A mark that a forked child does not have.
#[derive(Debug)]
pub struct Creator {
    mark: Option<Mapping>,
    process: u32,
}

impl Creator {
    /// This process.
    #[must_use]
    pub fn current() -> Self {
        let mark = Mapping::wiped_by_fork(1).ok();
        // Relaxed, here and below: a word that changes by a fork only.
        mark.iter().for_each(|mark| mark.words()[0].store(HERE, Relaxed));
        Self { mark, process: process::id() }
    }

    /// Whether this is that process. Where the system has no memory that a fork wipes, its number decides.
    #[must_use]
    #[inline]
    pub fn is_current(&self) -> bool {
        match &self.mark {
            Some(mark) => mark.words()[0].load(Relaxed) == HERE,
            None => self.process == process::id(),
        }
    }
}

const HERE: u32 = 1;
