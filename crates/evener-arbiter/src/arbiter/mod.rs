//! What a process has of the arbiter: its places, the modules that it names, its permits.
//!
//! [`Arbiter::attach`] -> [`Arbiter::module`] -> [`Module::acquire`]: a place of this process that is idle -> the gate -> [`Permit`], which gives both back when it is dropped. A forked child
//! attaches for itself at its first request (`attachment.rs`).

mod attachment;
mod module;
mod participation;
mod snapshot;

use std::fmt;
use std::sync::Arc;

use evener_fd::Directories;
use evener_ring::{Mapping, PerProcess};

use self::attachment::Attachment;
use crate::gate::WEIGHT_MAX;
use crate::layout::Shape;
use crate::segment::{NoArbiter, Origin, look, remove};

pub use module::{Module, Permit};
pub use participation::Participation;
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
        Module::new(self.clone(), name, capacity)
    }

    /// Reads what all processes have and want: for `evener status`.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.attachment().map(|attachment| snapshot::read(attachment.shared())).unwrap_or_default()
    }

    /// Takes the segment off the system's list: it goes with the last process that has it, and no process finds it any more. For measurements, which leave nothing behind.
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

const FORKS: &str = "memory that a fork wipes";
