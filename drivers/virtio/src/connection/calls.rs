//! The wait for what comes back: awake for as long as that is sooner than to sleep, then asleep until the other side calls.
//!
//! | the caller | and the connection |
//! |---|---|
//! | waits first | looks awake ([`Connection::spin_until`]), as far as [`Spin`](super::wait::Spin) has learned that it pays |
//! | would sleep | asks the other side to call after so many requests ([`Connection::request_call`]) and says where to sleep |
//! | comes while another one sleeps for more | asks for a call after the next one ([`Connection::expedite_call`]) |

use std::sync::Arc;
use std::time::Duration;

use super::Connection;
use super::error::ConnectionError;
use super::wait::{Waiter, spin_until};

impl Connection {
    /// Looks awake whether `count` requests came back, for as long as that is sooner than to sleep, and `limit` at most.
    pub(crate) fn spin_until(&mut self, count: u16, limit: Duration) -> Result<bool, ConnectionError> {
        let Some(pays) = self.spin.next() else { return Ok(false) };
        self.queue.quiet();
        let queue = &mut self.queue;
        if spin_until(pays.min(limit), || Ok(queue.look()? >= count))? {
            // Another thread may have waited in between; of that wait nothing is learned.
            if let Some(shown) = self.shown {
                self.spin.came(shown.elapsed());
            }
            return Ok(true);
        }
        // A wait that had less time says nothing of the host.
        if pays <= limit {
            self.spin.missed();
        }
        Ok(false)
    }

    /// Asks for a call once `count` requests came back. None where they are back already, else where to wait for that.
    pub(crate) fn request_call(&mut self, count: u16) -> Result<Option<Arc<Waiter>>, ConnectionError> {
        let is_there = self.queue.wake_after(count)?;
        // Where they are back, the other side may have seen the old wish or the new, so that no call is certain.
        self.until_call = if is_there { u16::MAX } else { count };
        Ok((!is_there).then(|| Arc::clone(self.link.waiter())))
    }

    /// Has the thread that sleeps at the connection called for the next request that comes back, though it asked for more. Says whether that is so; if not,
    /// something came back.
    pub(crate) fn expedite_call(&mut self) -> Result<bool, ConnectionError> {
        // A call that comes anyway is left as it is: a new wish could hide the old one from the other side.
        if self.until_call <= 1 || cfg!(mutant = "follower_asks_no_call") {
            return Ok(true);
        }
        match self.request_call(1)? {
            Some(_) => Ok(true),
            // The sleeper's may be among it, and its wish was overwritten.
            None => self.link.waiter().wake().map(|()| false),
        }
    }
}
