//! What a process has of the arbiter: its places, the modules that it names, its permits.
//!
//! [`Arbiter::attach`] -> [`Arbiter::module`] -> [`Module::acquire`]: a place of this process that is idle -> the gate -> [`Permit`], which gives both back when it is dropped. A forked child
//! attaches for itself at its first request (`attachment.rs`).

mod attachment;
mod snapshot;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use evener_core::{Class, Nanos};
use evener_fd::Directories;
use evener_ring::{Mapping, PerProcess, Word64};

use self::attachment::Attachment;
use crate::costs::{self, Costs};
use crate::gate::{Gate, Grant, Refused, Request, WEIGHT_MAX};
use crate::layout::Shape;
use crate::segment::{NoArbiter, Origin, Shared, look, name_hash, remove};
use crate::world::World as _;

pub use snapshot::{HolderView, ModuleView, ProcessView, Snapshot};

/// The variable that names the directory of the anchor, where it is not the usual one ([`Directories::from_environment`]).
pub const DIRECTORY_VARIABLE: &str = "EVENER_ARBITER_DIR";

/// This process's access to the segment of its user. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Arbiter(Arc<Access>);

struct Access {
    origin: Origin,
    weight: u32,
    attached: PerProcess<Attachment, Mapping>,
}

/// How to attach.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the anchor may lie.
    pub directories: Directories,
    /// First part of its name.
    pub name: String,
    /// Of a segment that has to be made.
    pub shape: Shape,
    /// Requests that this process may have for each one of another that waits; 1 to [`WEIGHT_MAX`].
    pub weight: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            directories: Directories::default(),
            name: "arbiter".to_owned(),
            shape: Shape::USUAL,
            weight: 1,
        }
    }
}

impl Options {
    fn origin(&self) -> Origin {
        Origin { directories: self.directories.clone(), name: self.name.clone(), shape: self.shape }
    }
}

impl Arbiter {
    /// Attaches the segment of this user, made where there is none.
    ///
    /// # Errors
    ///
    /// [`NoArbiter`]: why this process goes on alone. Its text is for one line.
    pub fn attach(options: &Options) -> Result<Self, NoArbiter> {
        let origin = options.origin();
        let weight = options.weight.clamp(1, WEIGHT_MAX);
        let word = || Mapping::wiped_by_fork(1).map_err(NoArbiter::of(FORKS));
        let attached = PerProcess::new(word()?);
        let first = Attachment::new(&origin, weight)?;
        attached.get_or_make(|| Some(first));
        Ok(Self(Arc::new(Access { origin, weight, attached })))
    }

    /// Reads what all processes have and want, where any of them has made a segment: nothing is made, and no place is taken.
    ///
    /// # Errors
    ///
    /// [`NoArbiter`]: why what lies there is not believed.
    pub fn look(options: &Options) -> Result<Option<Snapshot>, NoArbiter> {
        let origin = options.origin();
        Ok(look(&origin)?.map(|shared| snapshot::read(&shared)))
    }

    /// Takes the segment of this user away, as where its words were spoilt: who has it goes on with those who have it, and who comes next makes a new one.
    /// Whether there was one.
    ///
    /// # Errors
    ///
    /// [`NoArbiter`]: why what lies there was left alone.
    pub fn remove(options: &Options) -> Result<bool, NoArbiter> {
        remove(&options.origin())
    }

    /// Names a module that this process has, with the requests that it takes at a time. Who names it first says how many these are.
    #[must_use]
    pub fn module(&self, name: &str, capacity: u32) -> Module {
        let hash = name_hash(name);
        Module { arbiter: self.clone(), name: name.into(), hash, capacity, known: Word64::new(0) }
    }

    /// Reads what all processes have and want: for `evener status`.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.attachment().map(|attachment| snapshot::read(attachment.shared())).unwrap_or_default()
    }

    /// Takes the segment off the system's list: it goes with the last process that has it, and nobody finds it any more. For measurements, which leave nothing behind.
    pub fn unlink(&self) {
        if let Some(attachment) = self.attachment() {
            attachment.shared().unlink();
        }
    }

    /// What this process has of the segment, attached anew in a forked child.
    #[inline]
    fn attachment(&self) -> Option<&'static Attachment> {
        let Access { origin, weight, attached } = &*self.0;
        attached.get_or_make(|| Attachment::new(origin, *weight).ok())
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("origin", &self.origin).finish_non_exhaustive()
    }
}

/// A module that the processes of this user share.
#[derive(Debug)]
pub struct Module {
    arbiter: Arbiter,
    name: Box<str>,
    hash: [u32; 2],
    capacity: u32,
    /// Which attachment it was looked up in, its place in the segment and one more, and its permits: a child's may be another.
    known: Word64,
}

impl Module {
    /// Gets a permit for one request that is predicted to take so long on the module, in the order of asking; waits at most so long.
    ///
    /// # Errors
    ///
    /// [`Refused`]: the request is to be done elsewhere.
    #[inline]
    pub fn acquire(&self, predicted: Nanos, longest_wait: Nanos) -> Result<Permit, Refused> {
        let request = Request { predicted_ns: predicted.0, longest_wait_ns: longest_wait.0, hopes: false };
        self.acquire_by(request, Discipline::Order)
    }

    /// Gets a permit as [`acquire`](Self::acquire), and waits for so long though it is predicted to take longer: for a thread that has nothing else to do.
    ///
    /// # Errors
    ///
    /// [`Refused`]: its time is over.
    pub fn wait_for(&self, predicted: Nanos, longest_wait: Nanos) -> Result<Permit, Refused> {
        let request = Request { predicted_ns: predicted.0, longest_wait_ns: longest_wait.0, hopes: true };
        self.acquire_by(request, Discipline::Order)
    }

    /// Gets a permit where one is free and nobody waits for it.
    ///
    /// # Errors
    ///
    /// [`Refused`]: the request is to be done elsewhere.
    #[inline]
    pub fn try_acquire(&self, predicted: Nanos) -> Result<Permit, Refused> {
        self.acquire(predicted, Nanos::ZERO)
    }

    /// As paper 004's flags: a thread that comes first when one goes down has it. To compare with; not beside [`acquire`](Self::acquire).
    ///
    /// # Errors
    ///
    /// [`Refused`]: the request is to be done elsewhere.
    pub fn acquire_flag(&self, predicted: Nanos, longest_wait: Nanos) -> Result<Permit, Refused> {
        let request = Request { predicted_ns: predicted.0, longest_wait_ns: longest_wait.0, hopes: false };
        self.acquire_by(request, Discipline::Flags)
    }

    #[inline]
    fn acquire_by(&self, request: Request, discipline: Discipline) -> Result<Permit, Refused> {
        let attachment = self.arbiter.attachment().ok_or(Refused::NoPlace)?;
        let (module, capacity) = self.known_in(attachment).ok_or(Refused::NoPlace)?;
        let line = attachment.take_line().ok_or(Refused::NoPlace)?;
        let gate = gate(attachment.shared(), module, capacity).ok_or(Refused::NoPlace)?;
        let (place, turn) = attachment.line(line);
        let granted = match discipline {
            Discipline::Order => gate.acquire(place, turn, &request),
            Discipline::Flags => gate.acquire_flag(place, turn, &request),
        };
        match granted {
            Ok(grant) => {
                attachment.count_grant(place);
                Ok(Permit { attachment, module, capacity, line, grant, request, discipline })
            }
            Err(why) => {
                attachment.give_line_back(line);
                Err(why)
            }
        }
    }

    /// Returns how long a request that came now would wait at most, as all processes predict; as long as can be said where no permit comes back, and none where
    /// there is no arbiter.
    #[must_use]
    pub fn expected_start(&self) -> Option<Nanos> {
        let attachment = self.arbiter.attachment()?;
        let (module, capacity) = self.known_in(attachment)?;
        let shared = attachment.shared();
        Some(Nanos(gate(shared, module, capacity)?.expected_wait_ns(shared.now())))
    }

    /// Returns what was learned of a class on this module, by whichever process.
    #[must_use]
    pub fn costs(&self, class: Class) -> Option<Costs> {
        let attachment = self.arbiter.attachment()?;
        let (module, _) = self.known_in(attachment)?;
        costs::read(attachment.shared(), attachment.shared().shape(), module, class)
    }

    /// Tells others what was learned of a class on this module.
    pub fn publish(&self, class: Class, learned: &Costs) {
        let Some(attachment) = self.arbiter.attachment() else { return };
        if let Some((module, _)) = self.known_in(attachment) {
            costs::publish(attachment.shared(), attachment.shared().shape(), module, class, learned);
        }
    }

    /// Returns its permits; none where the segment has no room for it.
    #[must_use]
    pub fn capacity(&self) -> Option<u32> {
        let attachment = self.arbiter.attachment()?;
        self.known_in(attachment).and_then(|(_, capacity)| u32::try_from(capacity).ok())
    }

    /// Where it stands in the segment, and its permits.
    #[inline]
    fn known_in(&self, attachment: &Attachment) -> Option<(usize, usize)> {
        // Relaxed: the words that it names were there before this process asked.
        let known = self.known.load(Relaxed);
        if known >> 32 != u64::from(attachment.number()) || known & 0xFFFF == 0 {
            return self.look_up(attachment);
        }
        let (module, capacity) = ((known & 0xFFFF) as usize - 1, (known >> 16 & 0xFFFF) as usize);
        if capacity == 0 {
            return None;
        }
        match attachment.shared().is_called(module, self.hash) {
            true => Some((module, capacity)),
            false => self.look_up(attachment),
        }
    }

    /// Looks for its name, or gives it a place. Where there is none, this process does without for good: to look takes a lock of all.
    #[cold]
    fn look_up(&self, attachment: &Attachment) -> Option<(usize, usize)> {
        let found = attachment.shared().module(&self.name, self.capacity);
        let found = found.map(|module| (module, attachment.shared().capacity(module)));
        let (module, capacity) = found.unwrap_or_default();
        let known = u64::from(attachment.number()) << 32 | (capacity as u64) << 16 | (module as u64 + 1);
        self.known.store(known, Relaxed);
        found
    }
}

/// Who is served first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Discipline {
    Order,
    Flags,
}

/// The right to have one request at a module. Given back when it is dropped.
#[derive(Debug)]
#[must_use = "a permit that is dropped is given back"]
pub struct Permit {
    attachment: &'static Attachment,
    module: usize,
    capacity: usize,
    line: usize,
    grant: Grant,
    request: Request,
    discipline: Discipline,
}

impl Permit {
    /// Returns whether somebody waits for it: time for who has it for many requests to give it back.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        gate(self.attachment.shared(), self.module, self.capacity).is_some_and(|gate| gate.has_waiters())
    }

    /// Returns what was granted.
    #[must_use]
    pub const fn grant(&self) -> &Grant {
        &self.grant
    }
}

impl Drop for Permit {
    #[inline]
    fn drop(&mut self) {
        // A copy in a forked child is nobody's.
        if !self.attachment.is_here() {
            return;
        }
        let (place, turn) = self.attachment.line(self.line);
        if let Some(gate) = gate(self.attachment.shared(), self.module, self.capacity) {
            match self.discipline {
                Discipline::Order => gate.release(place, turn, &self.grant, &self.request),
                Discipline::Flags => gate.release_flag(place, &self.grant),
            }
        }
        self.attachment.give_line_back(self.line);
    }
}

#[inline]
fn gate(shared: &Shared, module: usize, capacity: usize) -> Option<Gate<'_, Shared>> {
    Gate::new(shared, shared.shape(), module, capacity)
}

const FORKS: &str = "memory that a fork wipes";
