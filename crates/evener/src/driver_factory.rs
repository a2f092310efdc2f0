//! What a front end hands in: drivers for each thread, and the modules.

use crate::{CoreDrivers, ModuleSetup};

/// Makes the drivers of a run. A front end implements it once; everything else stays free of driver crates.
pub trait DriverFactory: Sync {
    /// A set of drivers for one more thread.
    fn core_drivers(&self) -> CoreDrivers;

    /// The modules of one run, for jobs that live as long as `'m`.
    fn modules<'m>(&self) -> Vec<ModuleSetup<'m>>;
}
