//! What a front end hands in: drivers for each thread, and the modules.

use crate::{CpuKit, ModuleSetup};

/// Makes the drivers of a run. A front end implements it once; everything else stays free of driver crates.
pub trait Machinery: Sync {
    /// A kit for one more thread.
    fn kit(&self) -> CpuKit;

    /// The modules of one run, for jobs that live as long as `'m`.
    fn modules<'m>(&self) -> Vec<ModuleSetup<'m>>;
}
