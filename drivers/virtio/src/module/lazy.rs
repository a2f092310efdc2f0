//! A device that is reserved at once, and taken with the first request: a program that sends it none pays for it next to nothing.
//!
//! `reserve -> (the first driver takes it) -> drivers of the module, or lost ones`. The process that reserves it has the system's word that
//! no other process gets it, and opens no file afterwards; taking it makes other calls to the system, as each request does.

use std::process;
use std::sync::{Mutex, OnceLock, PoisonError};

use evener_core::driver::SingleDriver;
use evener_core::{Algorithm, Direction, QueuedDriver};
use evener_vfio::Reserved;

use crate::module::{Module, OpenError};
use crate::module_name::{ModuleName, Place};
use crate::requests::connector::{reserve, take};

/// A device that is this process's, and maybe not taken yet.
#[derive(Debug)]
pub struct LazyModule {
    name: ModuleName,
    reserved: Mutex<Option<Reserved>>,
    /// What came of taking it: `None` where it could not be had.
    module: OnceLock<Option<Module>>,
    /// The process that reserved it.
    process: u32,
}

impl LazyModule {
    /// Reserves the device of that name; `None` where it names a host.
    ///
    /// # Errors
    ///
    /// An [`OpenError`] where it cannot be had.
    pub fn reserve(name: &ModuleName) -> Option<Result<Self, OpenError>> {
        let Place::Function(address) = name.place() else { return None };
        let lazy_module = |reserved| Self {
            name: name.clone(),
            reserved: Mutex::new(Some(reserved)),
            module: OnceLock::new(),
            process: process::id(),
        };
        let unreachable = |error| OpenError::Unreachable { name: name.to_string(), error };
        Some(reserve(*address).map(lazy_module).map_err(unreachable))
    }

    /// Whether it does this for us; of one that is not taken yet, whether it may. In a forked child it does nothing.
    #[must_use]
    pub fn supports(&self, algorithm: Algorithm, direction: Direction) -> bool {
        let is_possible = || self.name.offer().has(algorithm, direction);
        match self.module.get() {
            _ if self.process != process::id() => false,
            None => is_possible(),
            Some(taken) => taken.as_ref().is_some_and(|module| module.supports(algorithm, direction)),
        }
    }

    /// A driver for jobs of all threads; lost from the beginning where the device cannot be had.
    #[must_use]
    pub fn driver<'m>(&self) -> Box<dyn QueuedDriver<'m> + 'm> {
        self.module().map_or_else(|| Module::lost(&self.name).driver(), Module::driver)
    }

    /// A driver for single requests; lost from the beginning where the device cannot be had.
    #[must_use]
    pub fn single(&self) -> Box<dyn SingleDriver> {
        self.module().map_or_else(|| Module::lost(&self.name).single(), Module::single)
    }

    /// The module, taken now where it was not. In a forked child it is the parent's, and another thread's lock may be held for ever.
    fn module(&self) -> Option<&Module> {
        if self.process != process::id() {
            return None;
        }
        self.module.get_or_init(|| self.take()).as_ref()
    }

    fn take(&self) -> Option<Module> {
        let reserved = self.reserved.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Module::over(&self.name, take(reserved).ok()?).ok()
    }
}
