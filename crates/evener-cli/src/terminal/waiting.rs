//! A line that says what is done while that takes long and how far it is cannot be known: on a terminal only.

use std::env;
use std::io::{IsTerminal as _, Write as _, stderr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::termios::tcgetwinsize;

use super::columns::plain;

/// Nothing is said before: most of what is waited for is over sooner.
const SILENCE: Duration = Duration::from_secs(1);
/// Time between two looks, short enough to seem alive.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);
/// Columns where a terminal does not say.
const USUAL_COLUMNS: usize = 80;

/// What is said.
pub(crate) struct Waiting(Mutex<String>);

impl Waiting {
    /// Says something else from now on.
    pub(crate) fn say(&self, what: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = what;
    }

    fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Runs `work`; where it takes longer than a second, says `what` meanwhile, and since when.
pub(crate) fn said_while<R>(what: &str, work: impl FnOnce(&Waiting) -> R) -> R {
    let waiting = Waiting(Mutex::new(what.to_owned()));
    if !is_watched() {
        return work(&waiting);
    }
    let start = Instant::now();
    let mut is_drawn = false;
    let look = |is_over: bool| match is_over {
        true if is_drawn => erase(),
        false if start.elapsed() >= SILENCE => {
            is_drawn = true;
            draw(&waiting.text(), start.elapsed());
        }
        _ => {}
    };
    painted_while(look, || work(&waiting))
}

/// Runs `work`; another thread looks at it again and again meanwhile, and once more when it is over.
pub(crate) fn painted_while<R>(mut look: impl FnMut(bool) + Send, work: impl FnOnce() -> R) -> R {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let paint = || {
            while !over.load(Ordering::Relaxed) {
                look(false);
                thread::park_timeout(BETWEEN_LOOKS);
            }
            look(true);
        };
        // Where no thread is to be had, nothing is drawn.
        let painter = thread::Builder::new().spawn_scoped(scope, paint).ok();
        let _ending = OnDrop(|| {
            over.store(true, Ordering::Relaxed);
            painter.iter().for_each(|painter| painter.thread().unpark());
        });
        work()
    })
}

/// Whether standard error is a terminal, and one that can redraw a line.
pub(crate) fn is_watched() -> bool {
    stderr().is_terminal() && env::var_os("TERM").is_some_and(|name| !name.is_empty() && name != "dumb")
}

/// Columns of the terminal on standard error.
pub(crate) fn columns() -> usize {
    let said = tcgetwinsize(stderr()).map_or(0, |size| usize::from(size.ws_col));
    if said == 0 { USUAL_COLUMNS } else { said }
}

fn draw(what: &str, taken: Duration) {
    let time = format!(", {} s", taken.as_secs());
    // The last column stays free: some terminals go on to the next line from there.
    let room = columns().saturating_sub(time.len() + 1);
    let what: String = plain(what).chars().take(room).collect();
    write!(stderr(), "\r{what}{time}\x1b[K").ok();
}

fn erase() {
    write!(stderr(), "\r\x1b[K").ok();
}

/// Ends the drawing also where the work panics; else the scope would wait for ever.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
