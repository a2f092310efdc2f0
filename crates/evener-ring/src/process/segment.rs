//! Words of System V shared memory: its length is fixed for its life, so that no process can take a page from under another one.
//!
//! A segment: [`Segment::create`] -> its number is passed to others -> [`Segment::attach`] (looked at before it is believed) -> the last
//! process detaches, or a process takes it off the system's list ([`Segment::remove`]) and it goes with the last one.

use std::io;
use std::mem::MaybeUninit;
use std::ptr;

use super::mapped_words::MappedWords;
use crate::{Word, Words};

/// An attached segment of words, detached when this is dropped. A forked child has it too.
#[derive(Debug)]
pub struct Segment {
    words: MappedWords,
    number: i32,
}

/// Why a segment is not attached.
#[derive(Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// There is none of that number, or it is about to go.
    Missing,
    /// Another user made or owns it, others may use it, or its length is another.
    NotOurs,
    /// The system's error.
    System(io::Error),
}

impl Segment {
    /// Makes a segment of `word_count` zero words for this user only.
    ///
    /// # Errors
    ///
    /// The system's: no space, or a limit (`kernel.shmall`, `kernel.shmmni`).
    pub fn create(word_count: usize) -> io::Result<Self> {
        let bytes = word_count.checked_mul(size_of::<Word>()).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: takes numbers and makes a segment, no memory of ours.
        let number = unsafe { libc::shmget(libc::IPC_PRIVATE, bytes, libc::IPC_CREAT | MODE) };
        if number < 0 {
            return Err(io::Error::last_os_error());
        }
        Self::map(number, word_count).inspect_err(|_| remove(number))
    }

    /// Attaches the segment `number` where it is this user's (`uid`), no other user's to use, and so many words long.
    ///
    /// # Errors
    ///
    /// [`Refusal`] where it is not.
    pub fn attach(number: i32, word_count: usize, uid: u32) -> Result<Self, Refusal> {
        check(number, word_count, uid)?;
        let segment = Self::map(number, word_count).map_err(|error| match error.raw_os_error() {
            Some(libc::EINVAL | libc::EIDRM) => Refusal::Missing,
            Some(libc::EACCES) => Refusal::NotOurs,
            _ => Refusal::System(error),
        })?;
        // Its number may have gone over to another between the look and the call: what is attached now is what this sees.
        check(number, word_count, uid)?;
        Ok(segment)
    }

    /// Attaches the segment `number` as [`attach`](Self::attach) does, of whatever length.
    ///
    /// # Errors
    ///
    /// [`Refusal`] where it is another user's, or others may use it.
    pub fn attach_whole(number: i32, uid: u32) -> Result<Self, Refusal> {
        let word_count = look(number)?.shm_segsz / size_of::<Word>();
        Self::attach(number, word_count, uid)
    }

    /// Returns its number, by which others attach it.
    #[must_use]
    pub const fn number(&self) -> i32 {
        self.number
    }

    /// Takes it off the system's list: processes that have it attached keep it, and it goes with the last of them.
    pub fn remove(&self) {
        remove(self.number);
    }

    /// Does the same where no other process has it attached; says whether it did.
    #[must_use = "others may have it"]
    pub fn remove_unshared(&self) -> bool {
        let is_unshared = look(self.number).is_ok_and(|stat| stat.shm_nattch == 1);
        if is_unshared {
            self.remove();
        }
        is_unshared
    }

    fn map(number: i32, word_count: usize) -> io::Result<Self> {
        // SAFETY: a new mapping at a place that the kernel chooses touches no memory of ours.
        let memory = unsafe { libc::shmat(number, ptr::null(), 0) };
        if memory.addr() == usize::MAX {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the segment begins on a page, was seen or made to hold so many words, cannot become shorter, and stays attached until this is dropped.
        Ok(Self { words: unsafe { MappedWords::new(memory, word_count) }?, number })
    }
}

impl Words for Segment {
    #[inline]
    fn words(&self) -> &[Word] {
        self.words.words()
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: this is where it was attached, and what `words` lent ended before.
        unsafe { libc::shmdt(self.words.address()) };
    }
}

/// Read and write for its owner, nothing for others.
const MODE: libc::c_int = 0o600;

fn remove(number: i32) {
    // SAFETY: takes numbers; the command reads no structure.
    unsafe { libc::shmctl(number, libc::IPC_RMID, ptr::null_mut()) };
}

fn look(number: i32) -> Result<libc::shmid_ds, Refusal> {
    let mut stat = MaybeUninit::<libc::shmid_ds>::uninit();
    // SAFETY: the place has the size that the call fills.
    if unsafe { libc::shmctl(number, libc::IPC_STAT, stat.as_mut_ptr()) } != 0 {
        let error = io::Error::last_os_error();
        return Err(match error.raw_os_error() {
            Some(libc::EINVAL | libc::EIDRM) => Refusal::Missing,
            Some(libc::EACCES) => Refusal::NotOurs,
            _ => Refusal::System(error),
        });
    }
    // SAFETY: the call succeeded, so it filled the place.
    Ok(unsafe { stat.assume_init() })
}

fn check(number: i32, word_count: usize, uid: u32) -> Result<(), Refusal> {
    let stat = look(number)?;
    // The C libraries differ in the types of these.
    let mode = i128::from(stat.shm_perm.mode) & 0o777;
    let bytes = word_count.saturating_mul(size_of::<Word>());
    let is_ours = (stat.shm_perm.uid, stat.shm_perm.cuid) == (uid, uid) && mode == i128::from(MODE);
    if is_ours && i128::try_from(stat.shm_segsz).ok() == i128::try_from(bytes).ok() {
        Ok(())
    } else {
        Err(Refusal::NotOurs)
    }
}
