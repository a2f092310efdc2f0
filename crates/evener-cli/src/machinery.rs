//! The drivers of a run: what one core works with, and the modules.
//!
//! [`Machine::new`] looks once at what is there; [`Machine::know`] measures the methods that a run needs;
//! after that every thread gets its own drivers.

use std::sync::Arc;

use anyhow::Context as _;
use evener::core::{InlineDriver, Profile};
use evener::{CpuKit, Machinery, ModuleSetup};
use evener_driver_libcrypto::Libcrypto;
use evener_driver_multibuffer::{Absent, Multibuffer};

use crate::methods::{self, Methods, Row};
use crate::processor::this_processor;
use crate::say;

/// What this machine and the options make available.
pub(crate) struct Machine {
    pub(crate) libcrypto: Profile,
    pub(crate) multibuffer: Result<Profile, Absent>,
    pub(crate) methods: Methods,
}

/// What came of knowing the methods.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// There is nothing to choose: without multi-buffer library everything is plain.
    PlainOnly,
    /// Everything asked for was measured by an earlier run.
    Before,
    /// Something was measured now and kept.
    Kept,
    /// Something was measured now and could not be kept, because of this.
    NotKept(String),
}

impl Machine {
    /// Looks at what is there.
    ///
    /// # Errors
    ///
    /// Where libcrypto cannot be used: then nothing can.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let libcrypto = Libcrypto::new().context("libcrypto")?.profile().clone();
        let multibuffer = multibuffer().map(|driver| driver.profile().clone());
        let with = multibuffer.as_ref().map_or("absent", |profile| &profile.detail);
        let machine = format!(
            "processor {}\nlibcrypto {}\nmultibuffer {with}",
            this_processor().model,
            libcrypto.detail
        );
        let (methods, complaint) = Methods::load(machine, methods::directory().as_deref());
        complaint.iter().for_each(say::warning);
        Ok(Self { libcrypto, multibuffer, methods })
    }

    /// Sees to it that the methods for `asked` are known; with `again` measures them whether known or not.
    pub(crate) fn know(&mut self, asked: &[Row], again: bool) -> Known {
        let asked = if again { asked.to_vec() } else { self.methods.unknown(asked) };
        let (Ok(mut plain), Ok(mut multi)) = (Libcrypto::new(), multibuffer()) else {
            return Known::PlainOnly;
        };
        if asked.is_empty() {
            return Known::Before;
        }
        self.methods.measure(&asked, &mut plain, &mut multi);
        self.methods.save().map_or_else(|error| Known::NotKept(error.to_string()), |()| Known::Kept)
    }
}

impl Machinery for Machine {
    fn kit(&self) -> CpuKit {
        let plain = Libcrypto::new().expect("it was there when the machine was looked at");
        let multi = multibuffer().ok().map(|driver| Box::new(driver) as Box<dyn InlineDriver>);
        CpuKit::new(Box::new(plain), multi, Arc::new(self.methods.table.clone()))
    }

    fn modules<'m>(&self) -> Vec<ModuleSetup<'m>> {
        Vec::new()
    }
}

/// The multi-buffer driver, unless `EVENER_DISABLE` names it.
fn multibuffer() -> Result<Multibuffer, Absent> {
    let disabled = std::env::var("EVENER_DISABLE").unwrap_or_default();
    if disabled.split(',').any(|name| name.trim() == "multibuffer") {
        return Err(Absent::Disabled);
    }
    Multibuffer::load()
}
