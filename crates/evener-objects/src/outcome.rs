//! How an object, or the whole of a command, ended: done, to be tried again, or never to be.

use std::fmt;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Why something was not done, and whether another try may do it.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    pub(crate) text: String,
}

/// What a failure is a failure of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A server that is busy, a connection that broke: another try may do it.
    Transient,
    /// The same, where it was tried for as long as it was to be: another run may do it.
    Exhausted,
    /// Another try meets the same.
    Never,
    /// There is no such object.
    Absent,
    /// There is one already where none was to be.
    Exists,
    /// The object is another one than it was.
    Changed,
    /// The store has no such upload any more, or a part of it is another one: it is to be begun anew.
    Lost,
    /// Every output of the run meets the same: it ends.
    EndsRun,
}

impl Failure {
    pub(crate) fn new(kind: Kind, text: impl fmt::Display) -> Self {
        // One line, for reports and logs are of lines.
        let text = text.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        Self { kind, text }
    }

    pub(crate) fn never(text: impl fmt::Display) -> Self {
        Self::new(Kind::Never, text)
    }

    /// Whether the same shard is worth another run for its sake: what is gone or has changed is listed otherwise then.
    pub(crate) const fn is_for_again(&self) -> bool {
        !matches!(self.kind, Kind::Never | Kind::Exists | Kind::EndsRun)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// How the command ended, as its exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All was done.
    Done = 0,
    /// Something was not, and another run of the same may do it.
    Again = 1,
    /// Something was not, and another run of the same would not either.
    Never = 2,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl From<&Failure> for Exit {
    fn from(failure: &Failure) -> Self {
        if failure.is_for_again() { Self::Again } else { Self::Never }
    }
}

/// How long one request is tried again, with pauses that double.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retries {
    pub(crate) timeout: Duration,
}

/// The first pause and the longest. Assumed, not measured: 100 ms and 10 s, as clients of stores have them.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

impl Retries {
    /// Tries until it goes well, fails for another reason than the moment, or time is over; `tried_again` hears of each further try.
    pub(crate) fn until_done<T>(
        self,
        mut tried_again: impl FnMut(),
        mut work: impl FnMut() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let (start, mut tries) = (Instant::now(), 0);
        loop {
            let ended = work();
            let is_over = !matches!(&ended, Err(failure) if failure.kind == Kind::Transient);
            let Some(pause) = self.pause(start, tries).filter(|_| !is_over) else { return ended };
            std::thread::sleep(pause);
            tries += 1;
            tried_again();
        }
    }

    /// The pause after so many tries since `start`, where there is time for a further one.
    pub(crate) fn pause(self, start: Instant, tries: u32) -> Option<Duration> {
        let pause = PAUSES.0.saturating_mul(2_u32.saturating_pow(tries)).min(PAUSES.1);
        (start.elapsed() + pause < self.timeout).then(|| pause.mul_f64(jitter()))
    }
}

/// What goes on for long and is taken up again where it breaks: since when it breaks without having gone on, and how often it did.
#[derive(Debug, Default)]
pub(crate) struct Breaks(Option<(Instant, u32)>);

impl Breaks {
    /// The pause before it is taken up again, where there is time for that.
    pub(crate) fn pause(&mut self, retries: Retries) -> Option<Duration> {
        let (start, tries) = self.0.unwrap_or_else(|| (Instant::now(), 0));
        let pause = retries.pause(start, tries)?;
        self.0 = Some((start, tries + 1));
        Some(pause)
    }

    /// It goes on.
    pub(crate) const fn end(&mut self) {
        self.0 = None;
    }
}

/// Half of a pause to all of it, so that those who failed together do not come back together.
fn jitter() -> f64 {
    let mut byte = [0];
    // Without random bytes all of it is waited.
    match getrandom::getrandom(&mut byte) {
        Ok(()) => 0.5 + f64::from(byte[0]) / 512.0,
        Err(_) => 1.0,
    }
}
