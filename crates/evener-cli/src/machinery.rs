//! The drivers of a run: what one core works with, and the modules.
//!
//! [`Machine::new`] looks once at what is there; [`Machine::know`] measures the methods that a run needs;
//! after that every thread gets its own drivers.

use std::sync::Arc;

use anyhow::Context as _;
use evener::core::{InlineDriver, Profile};
use evener::{CpuKit, Machinery, ModuleSetup};
use evener_driver_emulated::{CostedCpu, Emulated, Preset};
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
    emulation: Emulation,
}

/// Hardware that is not there, for experiments.
#[derive(clap::Args, Clone, Default)]
#[command(next_help_heading = "Experiments")]
pub(crate) struct Emulation {
    /// Adds an emulated module: emulated:am3358, emulated:cell, or emulated:d=A+B,h=A+B; may be repeated.
    #[arg(long = "module", value_name = "MODULE")]
    pub(crate) modules: Vec<Preset>,

    /// Makes a job on the CPU as dear as on the processor of an emulated module: emulated:am3358.
    #[arg(long, value_name = "MODULE")]
    pub(crate) cpu_cost: Option<Preset>,
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
    pub(crate) fn new(emulation: &Emulation) -> anyhow::Result<Self> {
        unknown_drivers().iter().for_each(say::warning);
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
        Ok(Self { libcrypto, multibuffer, methods, emulation: emulation.clone() })
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
        if let Some(preset) = &self.emulation.cpu_cost {
            let costed = CostedCpu::new(Box::new(libcrypto()), preset.clone());
            return CpuKit::new(Box::new(costed), None, Arc::default());
        }
        let multi = multibuffer().ok().map(|driver| Box::new(driver) as Box<dyn InlineDriver>);
        CpuKit::new(Box::new(libcrypto()), multi, Arc::new(self.methods.table.clone()))
    }

    fn modules<'m>(&self) -> Vec<ModuleSetup<'m>> {
        let module = |preset: &Preset| {
            let driver = Emulated::new(preset.clone(), Box::new(libcrypto()));
            ModuleSetup::new(Box::new(driver), self.kit())
        };
        self.emulation.modules.iter().map(module).collect()
    }
}

fn libcrypto() -> Libcrypto {
    Libcrypto::new().expect("it was there when the machine was looked at")
}

/// The multi-buffer driver, unless the user does not want it.
fn multibuffer() -> Result<Multibuffer, Absent> {
    if disabled().iter().any(|name| name == MULTIBUFFER) {
        return Err(Absent::Disabled);
    }
    Multibuffer::load()
}

const MULTIBUFFER: &str = "multibuffer";

/// What `EVENER_DISABLE` names.
fn disabled() -> Vec<String> {
    let named = std::env::var("EVENER_DISABLE").unwrap_or_default();
    named.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
}

/// A sentence for each name that switches nothing off, so that nobody measures what he did not ask for.
fn unknown_drivers() -> Vec<String> {
    let unknown = disabled().into_iter().filter(|name| name != MULTIBUFFER);
    unknown.map(|name| format!("EVENER_DISABLE names {name:?}; only {MULTIBUFFER} can be left out")).collect()
}
