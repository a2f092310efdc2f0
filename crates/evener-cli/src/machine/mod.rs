//! The drivers of a run: what one core works with, and the modules.
//!
//! [`Machine::new`] looks once at what is there; [`Machine::know`] fetches what earlier runs learned and measures what a run
//! needs beyond it; after that every thread gets its own drivers.

pub(crate) mod cost_cache;
pub(crate) mod cpu_load;
pub(crate) mod libraries;
pub(crate) mod microbench;
pub(crate) mod modules;
pub(crate) mod options;
pub(crate) mod processor;

use std::io;

use anyhow::Context as _;
use evener::core::estimate::text::Equipment;
use evener::core::plan::adaptive::Station;
use evener::core::{Estimator, InlineDriver, Profile};
use evener::{CpuKit, Machinery, ModuleSetup, SystemClock, calibrate};
use evener_driver_emulated::{CostedCpu, Preset};
use evener_driver_libcrypto::Libcrypto;
use evener_driver_multibuffer::Absent;
use evener_sim::lab::Runners;

use crate::terminal::output;
use libraries::{Row, libcrypto, multibuffer, unknown_drivers};
use microbench::{Kind, Untried};
use modules::Found;
use options::Emulation;
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
        self.learned = cost_cache::load(&self.equipment(), &self.processor);
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
        let kept = self.save_costs(&self.learned);
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
            self.save_costs(&self.learned).ok();
        }
    }

    /// Keeps what a run learned, beside what earlier runs kept of other modules and libraries.
    ///
    /// # Errors
    ///
    /// Where there is a directory for caches and the file cannot be written into it.
    pub(crate) fn save_costs(&self, learned: &Estimator) -> io::Result<()> {
        cost_cache::save(&self.equipment(), &self.processor, learned)
    }

    /// Measures what jobs of one kind cost on a module, by sending it a few.
    pub(crate) fn measure_module(
        &self,
        number: usize,
        kind: &Kind,
        learned: &mut Estimator,
    ) -> Result<(), Untried> {
        let unseen = self.learned.unseen(number).unwrap_or_default();
        microbench::on_module(&self.modules[number], number, unseen, kind, learned)
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
