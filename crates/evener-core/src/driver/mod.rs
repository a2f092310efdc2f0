//! Says what a driver is: our code that talks to one kind of thing that computes. Drivers know no policy.
//!
//! Two kinds, because a core and a module differ in one thing: a core computes during the call
//! ([`InlineDriver`]), a module computes while the core does something else ([`QueuedDriver`]). For single requests of others'
//! threads there is one more, [`SingleDriver`].

pub mod cache;
pub mod known_answers;

use crate::job::algorithm::{Algorithm, Direction};
use crate::job::session::{SessionId, WithIv};
use crate::job::{Job, JobError};
use crate::units::Nanos;

/// Silence after which a module, a device or a host is taken for dead, wherever one waits for it. Assumed, not measured: 2 s, because the
/// slowest request of any preset takes a hundredth of that, and a host on a busy machine answers in a thousandth.
pub const SILENCE_MAX: Nanos = Nanos::from_millis(2_000);

/// How long one that was silent for too long is waited for once more before it is taken for dead. A process that was stopped (SIGSTOP, a frozen
/// container) goes on with all its threads at once: who waits may find its time over before the thread that brings the answer has run.
/// Assumed, not measured: 50 ms, ten slices of a scheduler.
pub const LAST_WAIT: Nanos = Nanos::from_millis(50);

/// What a driver says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Short name, as in `--module` and in summaries: `libcrypto`, `emulated:am3358`.
    pub name: String,
    /// What stands behind it, with version: `OpenSSL 3.0.19`, `libipsec-mb 1.3.0, AVX-512`.
    pub detail: String,
    /// Jobs that it works on side by side at its best: SIMD lanes of a core, or requests in flight of a module.
    pub width: u32,
    /// Whether its figures are invented or programmed, so that no report gives them as a speed of Evener.
    pub emulated: bool,
}

/// A driver that computes on the calling core.
pub trait InlineDriver: Send {
    /// What it says of itself.
    fn profile(&self) -> &Profile;

    /// Whether it does this at all. Constant over its life.
    fn supports(&self, algorithm: Algorithm, direction: Direction) -> bool;

    /// Longest job it takes, in bytes of input: a longer one comes back as `Failed`.
    fn job_bytes_max(&self, _algorithm: Algorithm, _direction: Direction) -> usize {
        usize::MAX
    }

    /// Whether it takes jobs over memory that another process may change while it works ([`Job::shared`]): of ciphers without padding or tag, of
    /// hashes and of MACs. It then works in that memory, makes no reference to it, and whatever changes there spoils that job's result and
    /// nothing else.
    fn takes_shared(&self) -> bool {
        false
    }

    /// Bursts of an algorithm in a direction before the first whose results are compared with the plain method's, where lanes are watched: none of a foreign
    /// library.
    fn checked_from(&self, _algorithm: Algorithm, _direction: Direction) -> u32 {
        0
    }

    /// Runs all jobs of a burst, which may have different sessions, and sets the outcome of each.
    ///
    /// Each job leaves as `Done` or `Failed`, whatever happens to the others. A job that this driver does not
    /// support, or whose [lengths do not fit](Job::lengths_fit), leaves as `Failed` with its memory untouched.
    fn run(&mut self, burst: &mut [Box<Job<'_>>]);

    /// The same for jobs that have one session, told by its address, and one length, so that a driver need not look at each of them to know it.
    fn run_alike(&mut self, burst: &mut [Box<Job<'_>>]) {
        self.run(burst);
    }

    /// Drops, and wipes, what it has made of sessions that `has_ended` names (key schedules, contexts). Such a session may
    /// still come again; it is then prepared anew. Nothing to do for a driver that keeps nothing between bursts.
    fn evict(&mut self, has_ended: HasEnded<'_>);
}

/// Says of a session whether it has ended: no thread will submit jobs with it any more.
pub type HasEnded<'a> = &'a dyn Fn(SessionId) -> bool;

/// Why a module did not take a job now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// It holds as many jobs as it can: poll, then ask again.
    Full,
    /// It is gone for good: give what it held to another worker.
    Lost,
}

/// A driver that hands jobs to a module and collects them later.
///
/// The driver holds a job from `submit` until `poll` or `abandon` gives it back, each job exactly once. It
/// writes into the job's memory only when it gives the job back as `Done` ([`Job::publish`]); until then input
/// and output are as submitted, so that a failed job can be redone from the same bytes.
pub trait QueuedDriver<'m>: Send {
    /// What it says of itself.
    fn profile(&self) -> &Profile;

    /// Whether it does this at all. Constant over its life.
    fn supports(&self, algorithm: Algorithm, direction: Direction) -> bool;

    /// Hands a job over.
    ///
    /// # Errors
    ///
    /// The job comes back untouched with the reason.
    fn submit(&mut self, job: Box<Job<'m>>) -> Result<(), (Box<Job<'m>>, Refusal)>;

    /// Moves finished jobs to the end of `done`; sleeps up to `timeout` where none is finished yet.
    ///
    /// Returns how many came. A module that is lost gives back all it held as `Failed(ModuleLost)`.
    fn poll(&mut self, done: &mut Vec<Box<Job<'m>>>, timeout: Nanos) -> usize;

    /// Jobs that it holds.
    fn in_flight(&self) -> usize;

    /// Core time that threads of the driver's own have used so far, beside the thread that calls it.
    fn core_time(&self) -> Nanos {
        Nanos::ZERO
    }

    /// Gives up: every job still held is appended to `given_back` as `Failed(ModuleLost)`, and the module
    /// never touches their memory again.
    fn abandon(&mut self, given_back: &mut Vec<Box<Job<'m>>>);

    /// Gives up the keys of sessions that `has_ended` names: in the kernel, at a host, in memory of its own. A key that
    /// jobs still use goes with the last of them. A session that comes again is opened anew.
    fn evict(&mut self, has_ended: HasEnded<'_>);
}

/// A driver for single requests whose callers wait. Several threads may wait at once. Whether they compute in the module themselves, or
/// may leave when their time is over, the driver decides.
pub trait SingleDriver: Send + Sync {
    /// Whether it takes so many bytes at once; what it does not take goes to the [`QueuedDriver`] of the same module.
    fn takes(&self, algorithm: Algorithm, bytes: usize) -> bool;

    /// Works with session and IV on a text and gives it the result, unless that takes longer than `timeout` and the driver lets its
    /// callers leave. The driver reads and writes the text only during this call.
    ///
    /// # Errors
    ///
    /// Why the text was given nothing.
    fn run_single(&self, keyed: WithIv<'_>, text: &mut dyn Text, timeout: Nanos) -> Result<(), Unanswered>;

    /// As [`QueuedDriver::core_time`]: that of threads of the driver, without the callers' own.
    fn core_time(&self) -> Nanos;

    /// As [`QueuedDriver::evict`]. Where callers are in the module themselves it may take as long as a request.
    fn evict(&self, has_ended: HasEnded<'_>);
}

/// What a request of a [`SingleDriver`] works on.
pub trait Text {
    /// The input; the same until the result was taken.
    fn input(&self) -> &[u8];

    /// Takes the result, once; it is as long as the input.
    fn take(&mut self, result: &[u8]);

    /// The input, and beside it where the result is to stand, which is as long: anything may be written there before. `None` where it is to
    /// stand in the input's place, or the text gives none away.
    fn apart(&mut self) -> Option<(&[u8], &mut [u8])> {
        None
    }

    /// The result stands there: in place of [`Text::take`].
    fn taken(&mut self) {}
}

/// Why a request of a [`SingleDriver`] brought no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// The module was silent for too long.
    Late,
    /// It failed.
    Failed(JobError),
}

/// Wall clock and thread clock; the runtime has real ones, simulations their own.
pub trait Clock: Send + Sync {
    /// Time since some fixed moment.
    fn now(&self) -> Nanos;

    /// Core time of the calling thread. Costs about 640 ns in a virtual machine (measured), so it is sampled.
    fn thread_time(&self) -> Nanos;
}
