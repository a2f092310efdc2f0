//! Sessions of jobs under way. A queue counts its jobs by session, so that a burst costs one change of a count that threads share, and not
//! one for each job.

use std::sync::Arc;

use evener::core::Session as Keyed;

use crate::session::Session;

/// The sessions.
#[derive(Default)]
pub(super) struct KeptSessions {
    rows: Vec<Option<Kept>>,
    /// The row of the last job.
    last: usize,
}

struct Kept {
    session: Arc<Session>,
    /// Jobs that need it.
    jobs: usize,
}

impl Kept {
    #[inline]
    fn is_of(&self, handle: *const Session) -> bool {
        std::ptr::eq(Arc::as_ptr(&self.session), handle)
    }
}

impl KeptSessions {
    /// Counts one more job of a session; returns its row and what the job is armed with.
    ///
    /// # Safety
    ///
    /// The handle is that of an open session. What is returned is used only until the job is [let go of](Self::release).
    #[inline(always)]
    pub(super) unsafe fn acquire(&mut self, handle: *const Session) -> (usize, &'static Keyed) {
        let is_it = |row: &Option<Kept>| row.as_ref().is_some_and(|kept| kept.is_of(handle));
        if !self.rows.get(self.last).is_some_and(is_it) {
            // SAFETY: as the caller promised.
            self.last = unsafe { self.find(handle) };
        }
        let kept = self.rows[self.last].as_mut().expect("the row was just found or made");
        kept.jobs += 1;
        let keyed: *const Keyed = kept.session.keyed();
        // SAFETY: the row has the session until the last of its jobs is let go of.
        (self.last, unsafe { &*keyed })
    }

    /// The row of a session, which is made where there is none.
    ///
    /// # Safety
    ///
    /// As [`Self::acquire`].
    #[cold]
    unsafe fn find(&mut self, handle: *const Session) -> usize {
        let is_it = |row: &Option<Kept>| row.as_ref().is_some_and(|kept| kept.is_of(handle));
        if let Some(row) = self.rows.iter().position(is_it) {
            return row;
        }
        // SAFETY: the handle came from `Arc::into_raw`, and is open, so that it has a count.
        unsafe { Arc::increment_strong_count(handle) };
        // SAFETY: the count that was just added is this one's.
        let session = unsafe { Arc::from_raw(handle) };
        let kept = Some(Kept { session, jobs: 0 });
        match self.rows.iter().position(Option::is_none) {
            Some(row) => {
                self.rows[row] = kept;
                row
            }
            None => {
                self.rows.push(kept);
                self.rows.len() - 1
            }
        }
    }

    /// Counts one job less; the last one lets go of the session.
    #[inline]
    pub(super) fn release(&mut self, row: usize) {
        if let Some(kept) = &mut self.rows[row] {
            kept.jobs -= 1;
            if kept.jobs == 0 {
                self.rows[row] = None;
            }
        }
    }
}
