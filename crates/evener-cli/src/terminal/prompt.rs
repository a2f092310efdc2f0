//! A question whose answer is not shown, at the terminal of the process, wherever its standard descriptors lead.
//!
//! Path: [`hidden`] -> echo off -> a line is read -> echo as it was. A signal that ends or suspends the process gives the terminal back first; after a
//! suspension the question is asked again.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, read, write};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use signal_hook::consts::SIGTSTP;
use signal_hook::low_level::emulate_default_handler;
use signal_hook::{SigId, flag, low_level};
use zeroize::Zeroizing;

use super::output::plain;
use super::signals;

/// Longest answer. Assumed, not measured: 4 KiB, as long as a terminal's line can be.
const ANSWER_BYTES_MAX: usize = 4_096;

/// Longest time between two looks for a signal that another thread was given. Assumed, not measured: 20 ms.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// The terminal that does not show what is typed, with how it was before.
static TAKEN: Mutex<Option<(OwnedFd, Termios)>> = Mutex::new(None);

/// Asks; returns the line that was typed, without its end.
///
/// # Errors
///
/// Where there is no terminal, or the system's; [`io::ErrorKind::UnexpectedEof`] where nothing is typed any more.
pub(crate) fn hidden(question: &str) -> io::Result<Zeroizing<Vec<u8>>> {
    let terminal = open("/dev/tty", OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
    let suspension = Suspension::new()?;
    loop {
        let _taken = Taken::new(&terminal)?;
        write_all(&terminal, plain(question).as_bytes())?;
        match line(&terminal, &suspension)? {
            Answer::Line(line) => return Ok(line),
            Answer::Suspended => {
                give_back();
                write_all(&terminal, b"\n")?;
                emulate_default_handler(SIGTSTP)?;
            }
        }
    }
}

/// Shows again what is typed, for a process that ends.
pub(crate) fn give_back() {
    let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some((terminal, usual)) = taken {
        tcsetattr(&terminal, OptionalActions::Now, &usual).ok();
    }
}

/// The terminal, until it is given back.
struct Taken;

impl Taken {
    fn new(terminal: &OwnedFd) -> io::Result<Self> {
        let usual = tcgetattr(terminal)?;
        let mut hidden = usual.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        // The end of the line is shown, or what is written next would stand behind the question.
        hidden.local_modes.insert(LocalModes::ECHONL | LocalModes::ICANON | LocalModes::ISIG);
        *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) = Some((terminal.try_clone()?, usual));
        let taken = Self;
        // What was typed before the question is no answer to it.
        tcsetattr(terminal, OptionalActions::Flush, &hidden)?;
        Ok(taken)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        give_back();
    }
}

/// Whether Ctrl-Z was typed.
struct Suspension {
    flag: Arc<AtomicBool>,
    id: Option<SigId>,
}

impl Suspension {
    fn new() -> io::Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        let is_ignored = evener_startup::was_ignored(SIGTSTP);
        let id = if is_ignored { None } else { Some(flag::register(SIGTSTP, Arc::clone(&flag))?) };
        Ok(Self { flag, id })
    }
}

impl Drop for Suspension {
    fn drop(&mut self) {
        // The handler stays, and without an action of ours the signal would have none at all.
        if let Some(id) = self.id {
            low_level::unregister(id);
            flag::register_conditional_default(SIGTSTP, Arc::new(AtomicBool::new(true))).ok();
        }
    }
}

enum Answer {
    Line(Zeroizing<Vec<u8>>),
    Suspended,
}

fn line(terminal: &OwnedFd, suspension: &Suspension) -> io::Result<Answer> {
    // All space from the start, so that no copy is left behind by growing.
    let mut line = Zeroizing::new(Vec::with_capacity(ANSWER_BYTES_MAX));
    let mut byte = Zeroizing::new([0]);
    loop {
        if suspension.flag.swap(false, SeqCst) {
            return Ok(Answer::Suspended);
        }
        if let Some(signal) = signals::noted() {
            give_back();
            write_all(terminal, b"\n").ok();
            evener_startup::end_by(signal);
        }
        match poll(&mut [PollFd::new(terminal, PollFlags::IN)], Some(&LOOK)) {
            Ok(0) | Err(Errno::INTR) => continue,
            ready => ready?,
        };
        match read(terminal.as_fd(), &mut byte[..]) {
            Err(Errno::INTR | Errno::AGAIN) => {}
            Ok(0) if line.is_empty() => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(0) => return Ok(Answer::Line(line)),
            Ok(_) if matches!(byte[0], b'\n' | b'\r') => return Ok(Answer::Line(line)),
            Ok(_) if line.len() < ANSWER_BYTES_MAX => line.push(byte[0]),
            Ok(_) => return Err(io::Error::other("the answer is too long")),
            Err(errno) => return Err(errno.into()),
        }
    }
}

fn write_all(terminal: &OwnedFd, mut text: &[u8]) -> io::Result<()> {
    while !text.is_empty() {
        match write(terminal, text) {
            Ok(written) => text = &text[written..],
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}
