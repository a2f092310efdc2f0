//! The drivers of a run: what one core works with, and the modules.
//!
//! [`Machine::new`] looks once at what is there; [`Machine::know`] fetches what earlier runs learned and measures what a run
//! needs beyond it; after that every thread gets its own drivers.

pub(crate) mod cost_cache;
pub(crate) mod cpu_load;
pub(crate) mod microbench;
pub(crate) mod modules;
pub(crate) mod processor;

use anyhow::Context as _;
use evener::core::estimate::text::Equipment;
use evener::core::plan::adaptive::Station;
use evener::core::{Algorithm, Direction, Estimator, InlineDriver, Profile};
use evener::{CpuKit, Machinery, ModuleSetup, SystemClock, calibrate};
use evener_driver_emulated::{CostedCpu, Preset};
use evener_driver_libcrypto::Libcrypto;
use evener_driver_multibuffer::{Absent, Multibuffer};
use evener_sim::lab::Runners;

use crate::terminal::output;
use modules::{Found, Named};
use processor::this_processor;

/// What this machine and the options make available.
pub(crate) struct Machine {
    /// The processor's model.
    pub(crate) processor: String,
    pub(crate) libcrypto: Profile,
    pub(crate) multibuffer: Result<Profile, Absent>,
    /// What is known of costs.
    pub(crate) learned: Estimator,
    cpu_cost: Option<Preset>,
    modules: Vec<Found>,
}

/// Modules beside the cores, and hardware that is not there, for experiments.
#[derive(clap::Args, Clone, Default)]
#[command(next_help_heading = "Experiments")]
pub(crate) struct Emulation {
    /// Adds a module: hosted:SOCKET, the module of an `evener host` (CBC encryption and hashes, more with
    /// hosted:SOCKET,offer=all; hosted:SOCKET,uid=N where it runs as a user other than root and you); afalg:DRIVER, a driver of the kernel; devcrypto or devcrypto:/dev/NAME, a node of OCF (`evener
    /// devices` lists both); or an emulated one, emulated:am3358, emulated:cell, or emulated:d=A+B,h=A+B. May be repeated.
    #[arg(long = "module", value_name = "MODULE")]
    pub(crate) modules: Vec<Named>,

    /// Makes a job on the CPU as dear as on the processor of an emulated module: emulated:am3358.
    #[arg(long, value_name = "MODULE")]
    pub(crate) cpu_cost: Option<Preset>,
}

impl Emulation {
    /// Whether anything is emulated, so that no figure is a speed of Evener.
    pub(crate) fn emulates(&self) -> bool {
        self.cpu_cost.is_some() || self.modules.iter().any(|module| matches!(module, Named::Emulated(_)))
    }
}

/// What is measured at once.
pub(crate) type Row = (Algorithm, Direction);

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
    /// Where libcrypto cannot be used, for then nothing can; and where a module that was asked for cannot be.
    pub(crate) fn new(emulation: &Emulation) -> anyhow::Result<Self> {
        unknown_drivers().iter().for_each(output::warning);
        let libcrypto = Libcrypto::new().context("libcrypto")?.profile().clone();
        let multibuffer = multibuffer().map(|driver| driver.profile().clone());
        let (processor, learned) = (this_processor().model, Estimator::default());
        let modules = emulation.modules.iter().map(Found::new).collect::<anyhow::Result<_>>()?;
        let cpu_cost = emulation.cpu_cost.clone();
        Ok(Self { processor, libcrypto, multibuffer, learned, cpu_cost, modules })
    }

    /// Sees to it that the costs of both methods are known for `asked`; with `again` measures them whether known or not.
    pub(crate) fn know(&mut self, asked: &[Row], again: bool) -> Known {
        self.learned = cost_cache::load(self);
        self.know_modules(asked, again);
        let known = self.know_methods(asked, again);
        if evener::core_budget().workers() == 1 {
            let behind =
                (0..self.modules.len()).filter(|module| self.modules[*module].is_behind_the_kernel());
            behind.for_each(|module| self.learned.pair_up(module, microbench::WIDTH));
        }
        known
    }

    fn know_methods(&mut self, asked: &[Row], again: bool) -> Known {
        let is_wanted = |row: &&Row| again || !calibrate::is_known(&self.learned, **row);
        let asked: Vec<Row> = asked.iter().filter(is_wanted).copied().collect();
        if asked.is_empty() && self.multibuffer.is_ok() {
            return Known::Before;
        }
        let [Some(mut plain), Some(mut multi)] = self.drivers() else { return Known::PlainOnly };
        if !asked.iter().any(|row| multi.supports(row.0, row.1)) {
            return Known::Before;
        }
        calibrate::measure(&mut *plain, &mut *multi, &asked, &SystemClock, &mut self.learned);
        let kept = cost_cache::save(self, &self.learned);
        kept.map_or_else(|error| Known::NotKept(error.to_string()), |()| Known::Kept)
    }

    /// Measures what clocks miss of modules behind the kernel and what requests take there, where no earlier run did, and
    /// keeps it. Where others use the cores nothing can be measured, and a later run tries again.
    fn know_modules(&mut self, asked: &[Row], again: bool) {
        self.learned.make_room_for(self.modules.len());
        let mut is_new = false;
        for (number, module) in
            self.modules.iter().enumerate().filter(|(_, module)| module.is_behind_the_kernel())
        {
            if again || self.learned.unseen(number).is_none() {
                let unseen = microbench::unseen(module);
                is_new |= unseen.is_some();
                unseen.into_iter().for_each(|unseen| self.learned.keep_unseen(number, unseen));
            }
            let Some(unseen) = self.learned.unseen(number) else { continue };
            for &row in asked {
                if again || !microbench::is_known(&self.learned, number, row) {
                    is_new |=
                        microbench::first_costs(module, number, row, unseen, &mut self.learned).is_some();
                }
            }
        }
        if is_new {
            // A cache that cannot be written costs the next run its knowledge, and this one nothing.
            cost_cache::save(self, &self.learned).ok();
        }
    }

    /// What is known of costs on cores, and nothing of modules but what clocks miss of them.
    pub(crate) fn costs_of_cores(&self) -> Estimator {
        let mut costs = Estimator::new(self.modules.len());
        let unseen = (0..self.modules.len()).filter_map(|it| Some((it, self.learned.unseen(it)?)));
        unseen.for_each(|(module, unseen)| costs.keep_unseen(module, unseen));
        let known = self.learned.all_cpu();
        known.for_each(|(class, method, width, mean)| costs.keep_cpu(class, method, width, *mean));
        costs
    }

    /// What the first run on this machine begins with: of modules nothing, unless they are behind the kernel, for those were
    /// measured before.
    pub(crate) fn costs_to_begin_with(&self) -> Estimator {
        let is_measured = self.modules.iter().any(Found::is_behind_the_kernel);
        if is_measured { self.learned.clone() } else { self.costs_of_cores() }
    }

    /// What a core runs jobs with, by method.
    pub(crate) fn drivers(&self) -> [Option<Box<dyn InlineDriver>>; 2] {
        if let Some(preset) = &self.cpu_cost {
            return [Some(Box::new(CostedCpu::new(Box::new(libcrypto()), preset.clone()))), None];
        }
        let multi = multibuffer().ok().map(|driver| Box::new(driver) as Box<dyn InlineDriver>);
        [Some(Box::new(libcrypto())), multi]
    }

    /// Whose costs count here.
    pub(crate) fn equipment(&self) -> Equipment {
        let plain = match &self.cpu_cost {
            Some(preset) => format!("{} at the cost of {}", self.libcrypto.detail, preset.name()),
            None => self.libcrypto.detail.clone(),
        };
        let multi = self.multibuffer.as_ref().ok().filter(|_| self.cpu_cost.is_none());
        let libraries = [Some(&plain[..]), multi.map(|profile| &profile.detail[..])];
        let modules: Vec<Profile> = self.modules.iter().map(Found::profile).collect();
        Equipment::new(&self.processor, libraries, &modules)
    }

    /// The modules as a planner sees them.
    pub(crate) fn stations(&self) -> Vec<Station> {
        self.modules.iter().map(Found::station).collect()
    }

    /// The threads of the modules' drivers.
    pub(crate) fn runners(&self) -> Vec<Runners> {
        self.modules.iter().map(Found::runners).collect()
    }

    /// Whether the kernel works for a module where no thread's clock sees it.
    pub(crate) fn is_behind_the_kernel(&self, module: usize) -> bool {
        self.modules[module].is_behind_the_kernel()
    }

    /// Names of the modules.
    pub(crate) fn module_names(&self) -> Vec<String> {
        self.modules.iter().map(|module| module.profile().name).collect()
    }

    /// Requests that modules have answered this process, whoever asked, by their names; those of which no driver counts are left out.
    pub(crate) fn module_requests(&self) -> Vec<(String, u64)> {
        self.modules.iter().filter_map(|module| Some((module.profile().name, module.answered()?))).collect()
    }

    /// What is emulated, so that nobody takes the figures for a speed of Evener.
    pub(crate) fn emulated(&self) -> Vec<String> {
        let cpu = self.cpu_cost.iter().map(|cpu| format!("the CPU cost of {}", cpu.name()));
        let modules = self.modules.iter().filter(|module| module.is_emulated());
        cpu.chain(modules.map(|module| module.profile().name)).collect()
    }
}

impl Machinery for Machine {
    fn kit(&self) -> CpuKit {
        let [plain, multi] = self.drivers();
        let plain = plain.expect("there is always a plain one");
        CpuKit::new(plain, multi)
    }

    fn modules<'m>(&self) -> Vec<ModuleSetup<'m>> {
        self.modules.iter().map(|module| ModuleSetup::new(module.driver(), self.kit())).collect()
    }
}

pub(crate) fn libcrypto() -> Libcrypto {
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
