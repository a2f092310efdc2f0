//! A terminal as a screen of lines: taken when a [`Screen`] is opened, and given back on every way out.
//!
//! Path: [`Screen::open`] -> [`Screen::draw`] (only lines that changed are written) and [`Screen::wait`] in turns -> drop. A panic, and
//! signals that end or suspend, give the terminal back before anything else is written to it.

use std::fmt::Write as _;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, getpid, kill_process};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGWINCH};
use signal_hook::{flag, low_level::pipe};

use super::columns;
use super::keyboard::{Decoder, Key};
use super::signals;

/// The terminal while it shows lines.
pub(crate) struct Screen {
    terminal: Arc<Terminal>,
    signals: Signals,
    decoder: Decoder,
    shown: Vec<Line>,
    size: Size,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

/// A line, which is cut or filled to the width of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    style: Style,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    /// Bold.
    Title,
    /// Dark on light.
    Chosen,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Key(Key),
    /// The screen is to be drawn: its size changed, or what stood there is gone.
    Redraw,
    /// A signal that ends, or the terminal is gone.
    Stop,
}

impl Line {
    pub(crate) const fn new(style: Style, text: String) -> Self {
        Self { style, text }
    }
}

impl Screen {
    /// Takes the terminal of standard input and output.
    ///
    /// # Errors
    ///
    /// The system's, where it is no terminal or a handler of signals is refused.
    pub(crate) fn open() -> io::Result<Self> {
        let (input, output) = (io::stdin(), io::stdout());
        Self::on(input.as_fd().try_clone_to_owned()?, output.as_fd().try_clone_to_owned()?)
    }

    fn on(input: OwnedFd, output: OwnedFd) -> io::Result<Self> {
        let usual = tcgetattr(&input)?;
        let terminal = Arc::new(Terminal { input, output, usual, is_taken: AtomicBool::new(false) });
        let signals = Signals::new()?;
        give_back_before_a_panic_is_told(&terminal);
        terminal.take()?;
        let size = terminal.size();
        Ok(Self { terminal, signals, decoder: Decoder::default(), shown: Vec::new(), size })
    }

    pub(crate) fn size(&self) -> Size {
        self.terminal.size()
    }

    /// Shows `lines`, the first at the top.
    ///
    /// # Errors
    ///
    /// The system's, as where the terminal is gone.
    pub(crate) fn draw(&mut self, lines: &[Line]) -> io::Result<()> {
        let size = self.size();
        let mut text = String::new();
        if size != self.size || self.shown.is_empty() {
            self.shown.clear();
            self.size = size;
            text += "\x1b[2J";
        }
        for (row, line) in lines.iter().enumerate().take(size.rows) {
            if self.shown.get(row) != Some(line) {
                let fitted = columns::fit(&line.text, size.columns);
                let style = line.style.code();
                write!(text, "\x1b[{};1H{style}{fitted}\x1b[m", row + 1).map_err(io::Error::other)?;
            }
        }
        self.shown = lines.to_vec();
        self.terminal.write(text.as_bytes())
    }

    /// Waits until something happens, at most for `time`, and says what did.
    ///
    /// # Errors
    ///
    /// The system's, where it refuses to wait, or to give the terminal again after a suspension.
    pub(crate) fn wait(&mut self, time: Option<Duration>) -> io::Result<Vec<Event>> {
        let has_input = {
            let limit = time.and_then(|time| Timespec::try_from(time).ok());
            let mut waiting = [
                PollFd::new(&self.terminal.input, PollFlags::IN),
                PollFd::new(&self.signals.wakes, PollFlags::IN),
            ];
            match poll(&mut waiting, limit.as_ref()) {
                Err(Errno::INTR) | Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
            !waiting[0].revents().is_empty()
        };
        let mut events = self.after_signals()?;
        if has_input {
            events.extend(self.input());
        }
        Ok(events)
    }

    fn after_signals(&mut self) -> io::Result<Vec<Event>> {
        self.signals.drain();
        if self.signals.stop.load(SeqCst) {
            return Ok(vec![Event::Stop]);
        }
        if self.signals.suspend.swap(false, SeqCst) {
            self.terminal.give_back();
            // Here the process stands until SIGCONT.
            kill_process(getpid(), Signal::STOP)?;
            self.signals.resume.store(true, SeqCst);
        }
        if self.signals.resume.swap(false, SeqCst) {
            self.terminal.take()?;
            self.shown.clear();
            return Ok(vec![Event::Redraw]);
        }
        Ok(Vec::new())
    }

    fn input(&mut self) -> Vec<Event> {
        let mut bytes = [0; 256];
        match rustix::io::read(&self.terminal.input, &mut bytes) {
            Err(Errno::INTR | Errno::AGAIN) => Vec::new(),
            // The other end of the terminal is closed.
            Ok(0) | Err(_) => vec![Event::Stop],
            Ok(count) => self.decoder.keys(&bytes[..count]).into_iter().map(Event::Key).collect(),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.terminal.give_back();
    }
}

impl Style {
    const fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Title => "\x1b[1m",
            Self::Chosen => "\x1b[7m",
        }
    }
}

/// The terminal, and how it was.
struct Terminal {
    input: OwnedFd,
    output: OwnedFd,
    usual: Termios,
    is_taken: AtomicBool,
}

impl Terminal {
    fn take(&self) -> io::Result<()> {
        let mut modes = self.usual.clone();
        modes.make_raw();
        // Ctrl-C and Ctrl-Z stay signals.
        modes.local_modes |= LocalModes::ISIG;
        self.is_taken.store(true, SeqCst);
        tcsetattr(&self.input, OptionalActions::Now, &modes)?;
        self.write(TAKE)
    }

    /// Errors are passed over: a terminal that is gone needs nothing.
    fn give_back(&self) {
        if self.is_taken.swap(false, SeqCst) {
            self.write(GIVE_BACK).ok();
            tcsetattr(&self.input, OptionalActions::Now, &self.usual).ok();
        }
    }

    fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let count = rustix::io::retry_on_intr(|| rustix::io::write(&self.output, bytes))?;
            bytes = &bytes[count..];
        }
        Ok(())
    }

    /// As the terminal says, within bounds; as usual where it says nothing.
    fn size(&self) -> Size {
        let said = tcgetwinsize(&self.output).map_or((0, 0), |size| (size.ws_row, size.ws_col));
        let bounded =
            |said: u16, usual: usize| if said == 0 { usual } else { usize::from(said).min(SIDE_MAX) };
        Size { rows: bounded(said.0, 24), columns: bounded(said.1, 80) }
    }
}

/// Signals that end.
const ENDING: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/// What signals have said.
struct Signals {
    wakes: UnixStream,
    stop: Arc<AtomicBool>,
    suspend: Arc<AtomicBool>,
    resume: Arc<AtomicBool>,
}

impl Signals {
    fn new() -> io::Result<Self> {
        let (wakes, wake) = UnixStream::pair()?;
        wakes.set_nonblocking(true)?;
        let new = || Arc::new(AtomicBool::new(false));
        let (stop, suspend, resume) = (new(), new(), new());
        // A later one ends a process that stands in a write to a terminal that takes nothing.
        signals::note(&ENDING, Arc::clone(&stop))?;
        flag::register(SIGTSTP, Arc::clone(&suspend))?;
        flag::register(SIGCONT, Arc::clone(&resume))?;
        for signal in ENDING.into_iter().chain([SIGTSTP, SIGCONT, SIGWINCH]) {
            pipe::register(signal, wake.try_clone()?)?;
        }
        Ok(Self { wakes, stop, suspend, resume })
    }

    fn drain(&self) {
        let mut bytes = [0; 64];
        while rustix::io::read(&self.wakes, &mut bytes).is_ok_and(|count| count > 0) {}
    }
}

/// What a panic says would be lost on a screen that is left behind it.
fn give_back_before_a_panic_is_told(terminal: &Arc<Terminal>) {
    let (terminal, next) = (Arc::clone(terminal), panic::take_hook());
    panic::set_hook(Box::new(move |info| {
        terminal.give_back();
        next(info);
    }));
}

/// Another screen, no cursor, and nothing goes on in the next line: then the last place of a line may be written.
const TAKE: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";

const GIVE_BACK: &[u8] = b"\x1b[?7h\x1b[?25h\x1b[?1049l";

/// Assumed, not measured: 500 rows and columns, because a terminal may claim 65,535 of each, and none has them.
const SIDE_MAX: usize = 500;

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Mode, OFlags, fcntl_setfl, open};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    #[test]
    fn a_panic_gives_the_terminal_back_before_it_is_told() {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let other_end = openpt(flags).unwrap();
        grantpt(&other_end).unwrap();
        unlockpt(&other_end).unwrap();
        fcntl_setfl(&other_end, OFlags::NONBLOCK).unwrap();
        let name = ptsname(&other_end, Vec::new()).unwrap();
        let terminal = open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let modes = || tcgetattr(&terminal).unwrap().local_modes;
        let before = modes();
        let told = Arc::new(AtomicBool::new(false));
        let (seen, by) = (Arc::clone(&told), terminal.try_clone().unwrap());
        panic::set_hook(Box::new(move |_| {
            seen.store(tcgetattr(&by).unwrap().local_modes.contains(LocalModes::ECHO), SeqCst);
        }));
        let mut screen = Screen::on(terminal.try_clone().unwrap(), terminal.try_clone().unwrap()).unwrap();
        screen.draw(&[Line::new(Style::Plain, "x".into())]).unwrap();
        assert!(!modes().contains(LocalModes::ECHO), "it was not taken");
        let ended = panic::catch_unwind(|| panic!("as it may happen while the screen is there"));
        drop(panic::take_hook());
        assert!(ended.is_err() && told.load(SeqCst), "the panic was told to a terminal without echo");
        assert_eq!(modes(), before);
        drop(screen);
        let mut bytes = [0; 4_096];
        let count = rustix::io::read(&other_end, &mut bytes).unwrap();
        let written = &bytes[..count];
        let given_back = written.windows(GIVE_BACK.len()).filter(|part| *part == GIVE_BACK).count();
        assert!(written.ends_with(GIVE_BACK) && given_back == 1, "{written:?}");
    }
}
