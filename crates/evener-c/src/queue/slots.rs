//! Boxes for jobs under way, used again, and whose job of the program each stands for.

use std::sync::{Arc, OnceLock};

use evener::core::job::Loan;
use evener::core::{Algorithm, Direction, Job, Padding, Session as Keyed};

use super::kept_sessions::KeptSessions;
use super::raw::{self, Armed};
use crate::abi;
use crate::error::Error;
use crate::runtime::Runtime;

/// The boxes.
pub(super) struct Slots {
    /// By a box's mark: what it stands for.
    rows: Vec<Row>,
    idle: Vec<Box<Job<'static>>>,
    max: usize,
    used: usize,
    sessions: KeptSessions,
}

struct Row {
    job: *mut abi::Job,
    /// `None` where the job cannot be done.
    armed: Option<Armed>,
}

impl Slots {
    /// At most so many; each is made when it is needed.
    pub(super) fn new(max: usize) -> Self {
        Self { rows: Vec::new(), idle: Vec::new(), max, used: 0, sessions: KeptSessions::default() }
    }

    pub(super) const fn used(&self) -> usize {
        self.used
    }

    pub(super) const fn free(&self) -> usize {
        self.max - self.used
    }

    /// A box that is armed for this job. One that cannot be done is armed so that every driver fails it without touching memory.
    ///
    /// # Safety
    ///
    /// As [`Queue::submit`](super::Queue::submit); one is free.
    #[inline]
    pub(super) unsafe fn arm(&mut self, job: *mut abi::Job, runtime: &Arc<Runtime>) -> Box<Job<'static>> {
        let mut armed = self.take_idle();
        let row = &mut self.rows[usize::try_from(armed.mark).expect("a mark is a row")];
        row.job = job;
        // SAFETY: as the caller promised.
        row.armed = unsafe { raw::arm(&mut armed, job, runtime, &mut self.sessions) };
        if row.armed.is_none() {
            armed.lend(Loan::InPlace(&mut []));
            armed.arm(impossible(), &[], 0);
        }
        armed
    }

    fn take_idle(&mut self) -> Box<Job<'static>> {
        self.used += 1;
        self.idle.pop().unwrap_or_else(|| {
            let mut made = Job::in_place(&mut []);
            made.mark = self.rows.len() as u64;
            self.rows.push(Row { job: std::ptr::null_mut(), armed: None });
            made
        })
    }

    /// Takes back a box whose job was not taken.
    pub(super) fn take_back(&mut self, job: Box<Job<'static>>) {
        let row = &mut self.rows[usize::try_from(job.mark).expect("a mark is a row")];
        let armed = row.armed.take();
        self.put_idle(job, armed);
    }

    /// Writes what came of a job into the program's struct, which is returned.
    #[inline]
    pub(super) fn settle(&mut self, job: Box<Job<'static>>) -> *mut abi::Job {
        let row = &mut self.rows[usize::try_from(job.mark).expect("a mark is a row")];
        let (settled, armed) = (row.job, row.armed.take());
        let (status, written) = armed.map_or((Error::Invalid as i32, 0), |_| Error::status(job.outcome()));
        let tag = if armed.is_some_and(|armed| armed.tag_out > 0) { job.tag() } else { &[] };
        // SAFETY: who handed the job over promised that it is whole and that no one else writes to it until it is given back, which is now.
        unsafe { raw::settle(settled, (status, written), tag) };
        self.put_idle(job, armed);
        settled
    }

    #[inline]
    fn put_idle(&mut self, mut job: Box<Job<'static>>, armed: Option<Armed>) {
        // Neither memory nor session is the box's any more.
        job.disarm();
        job.lend(Loan::InPlace(&mut []));
        if let Some(armed) = armed {
            self.sessions.release(armed.row);
        }
        self.used -= 1;
        self.idle.push(job);
    }
}

/// A session whose empty job no driver does: XTS needs a block.
fn impossible() -> Arc<Keyed> {
    static IMPOSSIBLE: OnceLock<Arc<Keyed>> = OnceLock::new();
    let made = || {
        let key: [u8; 32] = std::array::from_fn(|at| u8::from(at >= 16));
        let keyed = Keyed::new(Algorithm::Aes128Xts, Direction::Encrypt, Padding::None, &key);
        Arc::new(keyed.expect("its halves differ"))
    };
    Arc::clone(IMPOSSIBLE.get_or_init(made))
}
