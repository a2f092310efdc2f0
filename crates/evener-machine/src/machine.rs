//! What is there, looked at once: the drivers, the modules, and what is known of costs.

use std::io;

use evener::core::estimate::text::{CostScope, Library};
use evener::core::plan::adaptive::ModuleCapacity;
use evener::core::{Algorithm, Direction, Estimator, InlineDriver, Method, Profile};
use evener::{CoreDrivers, DriverFactory, ModuleSetup, SystemClock, calibrate};
use evener_driver_emulated::{CostedCpu, Preset};
use evener_driver_lanes::Lanes;
use evener_driver_libcrypto::Libcrypto;
use evener_driver_multibuffer::Unavailable;

use crate::cost_cache;
use crate::error::MachineError;
use crate::libraries::{Operation, algorithms_of_lanes, lanes, libcrypto, multibuffer, unknown_drivers};
use crate::microbench::{self, JobKind, NotMeasured};
use crate::modules::{ModuleSpec, OpenModule};
use crate::observer::Observer;
use crate::processor::this_processor;
use crate::second_driver::second_driver;
use crate::sharing;

/// Modules that a user named, and hardware that is not there, for experiments.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// The modules beside the cores.
    pub modules: Vec<ModuleSpec>,
    /// The emulated module as dear as whose processor each job on the CPU is made.
    pub cpu_cost: Option<Preset>,
}

/// What this machine and a choice make available.
pub struct Machine {
    /// The processor's model.
    pub processor: String,
    /// OpenSSL's libcrypto.
    pub libcrypto: Profile,
    /// The multi-buffer library; none where nothing needs it.
    pub multibuffer: Option<Result<Profile, Unavailable>>,
    /// Kernels of our own.
    pub lanes: Option<Profile>,
    /// What is known of costs.
    pub learned: Estimator,
    cpu_cost: Option<Preset>,
    modules: Vec<OpenModule>,
    observer: &'static dyn Observer,
}

/// Where the costs of the methods come from.
#[derive(Debug, PartialEq, Eq)]
pub enum MethodCosts {
    /// There is nothing to choose: without multi-buffer library everything is plain.
    PlainOnly,
    /// All needed costs were measured by an earlier run.
    Cached,
    /// Something was measured now and saved.
    Saved,
    /// Something was measured now and could not be saved, because of this.
    NotSaved(String),
}

impl Machine {
    /// Looks at what is there.
    ///
    /// # Errors
    ///
    /// Where libcrypto cannot be used, for then nothing can; and where a named module cannot be.
    pub fn new(choice: &Choice, observer: &'static dyn Observer) -> Result<Self, MachineError> {
        Libcrypto::new().map_err(MachineError::Libcrypto)?;
        let multibuffer = multibuffer().map(|driver| driver.profile().clone());
        Self::with(choice, lanes(), Some(multibuffer), observer)
    }

    /// Looks at what these operations need: where kernels of our own do them, or there `is_little` to do, no library is opened.
    ///
    /// # Errors
    ///
    /// As [`Machine::new`].
    pub fn only_for(
        operations: &[Operation],
        choice: &Choice,
        is_little: bool,
        observer: &'static dyn Observer,
    ) -> Result<Self, MachineError> {
        let lanes = lanes().filter(|lanes| operations.iter().all(|it| lanes.supports(it.0, it.1)));
        match lanes {
            None if !is_little => Self::new(choice, observer),
            lanes => Self::with(choice, lanes, None, observer),
        }
    }

    /// Whether a job can go more than one way, so that costs are of use.
    pub fn has_choice(&self) -> bool {
        self.has_second_method() || !self.modules.is_empty()
    }

    fn with(
        choice: &Choice,
        lanes: Option<Lanes>,
        multibuffer: Option<Result<Profile, Unavailable>>,
        observer: &'static dyn Observer,
    ) -> Result<Self, MachineError> {
        unknown_drivers().iter().for_each(|name| observer.warn(name));
        let (libcrypto, lanes) = (libcrypto().profile().clone(), lanes.map(|it| it.profile().clone()));
        let (processor, learned) = (this_processor().model, Estimator::default());
        let modules = choice.modules.iter().map(OpenModule::new).collect::<Result<_, _>>()?;
        let cpu_cost = choice.cpu_cost.clone();
        Ok(Self { processor, libcrypto, multibuffer, lanes, learned, cpu_cost, modules, observer })
    }

    /// Loads what earlier runs learned of any operation, and measures nothing: for a program that begins and knows not yet what it will do.
    pub fn load_costs(&mut self) {
        let all: Vec<Operation> =
            Algorithm::ALL.iter().map(|algorithm| (*algorithm, Direction::Encrypt)).collect();
        self.learned = cost_cache::load(&self.cost_scope(), &self.processor, &all, self.observer);
        self.learned.make_space_for(self.modules.len());
    }

    /// Measures what an operation costs, where nothing is known of it, and keeps it: 20 ms, once on a machine.
    pub fn measure_unknown(&mut self, operation: Operation) -> MethodCosts {
        self.load_or_measure_modules(&[operation], false);
        self.load_or_measure_methods(&[operation], false)
    }

    /// Loads the costs of both methods for `operations` from the cache and measures those that it lacks; with `again` measures all.
    pub fn load_or_measure_costs(&mut self, operations: &[Operation], again: bool) -> MethodCosts {
        self.learned = cost_cache::load(&self.cost_scope(), &self.processor, operations, self.observer);
        self.load_or_measure_modules(operations, again);
        let known = self.load_or_measure_methods(operations, again);
        if evener::core_budget().workers() == 1 {
            let behind =
                (0..self.modules.len()).filter(|module| self.modules[*module].is_behind_the_kernel());
            behind.for_each(|module| self.learned.pair_up(module, evener::core::estimate::PLAN_WIDTH));
        }
        known
    }

    fn load_or_measure_methods(&mut self, operations: &[Operation], again: bool) -> MethodCosts {
        let is_wanted = |row: &&Operation| again || !calibrate::is_known(&self.learned, **row);
        let unknown: Vec<Operation> = operations.iter().filter(is_wanted).copied().collect();
        if unknown.is_empty() && self.has_second_method() {
            return MethodCosts::Cached;
        }
        let [Some(mut plain), Some(mut multi)] = self.drivers() else { return MethodCosts::PlainOnly };
        if !unknown.iter().any(|row| multi.supports(row.0, row.1)) {
            return MethodCosts::Cached;
        }
        let (observer, learned) = (self.observer, &mut self.learned);
        observer.while_measuring(&mut || {
            calibrate::measure(&mut *plain, &mut *multi, &unknown, &SystemClock, learned);
        });
        let saved = self.save_costs(&self.learned);
        saved.map_or_else(|error| MethodCosts::NotSaved(error.to_string()), |()| MethodCosts::Saved)
    }

    /// Measures what clocks miss of modules behind the kernel and what requests take there, where no earlier run did, and
    /// keeps it. Where others use the cores nothing can be measured, and a later run tries again.
    fn load_or_measure_modules(&mut self, operations: &[Operation], again: bool) {
        self.learned.make_space_for(self.modules.len());
        let mut is_new = false;
        for (number, module) in
            self.modules.iter().enumerate().filter(|(_, module)| module.is_behind_the_kernel())
        {
            if again || self.learned.overhead(number).is_none() {
                let overhead = microbench::overhead(module);
                is_new |= overhead.is_some();
                overhead.into_iter().for_each(|overhead| self.learned.keep_overhead(number, overhead));
            }
            let Some(overhead) = self.learned.overhead(number) else { continue };
            for &row in operations {
                if again || !microbench::is_known(&self.learned, number, row) {
                    is_new |=
                        microbench::first_costs(module, number, row, overhead, &mut self.learned).is_some();
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
    pub fn save_costs(&self, learned: &Estimator) -> io::Result<()> {
        cost_cache::save(&self.cost_scope(), &self.processor, learned)
    }

    /// Measures what jobs of one kind cost on a module, by sending it a few.
    ///
    /// # Errors
    ///
    /// Where it does not do such jobs, or fails one.
    pub fn measure_module(
        &self,
        number: usize,
        kind: &JobKind,
        learned: &mut Estimator,
    ) -> Result<(), NotMeasured> {
        let overhead = self.learned.overhead(number).unwrap_or_default();
        microbench::measure_module(&self.modules[number], number, overhead, kind, learned)
    }

    /// What is known of costs on cores, and nothing of modules but what clocks miss of them.
    pub fn costs_of_cores(&self) -> Estimator {
        let mut costs = Estimator::new(self.modules.len());
        let overhead =
            (0..self.modules.len()).filter_map(|module| Some((module, self.learned.overhead(module)?)));
        overhead.for_each(|(module, overhead)| costs.keep_overhead(module, overhead));
        let known = self.learned.all_cpu();
        known.for_each(|(class, method, width, mean)| costs.keep_cpu(class, method, width, *mean));
        costs
    }

    /// What the first run on this machine begins with: of modules nothing, unless they are behind the kernel, for those were
    /// measured before.
    pub fn costs_to_begin_with(&self) -> Estimator {
        let is_measured = self.modules.iter().any(OpenModule::is_behind_the_kernel);
        if is_measured { self.learned.clone() } else { self.costs_of_cores() }
    }

    /// What a core runs jobs with, by method.
    pub fn drivers(&self) -> [Option<Box<dyn InlineDriver>>; 2] {
        if let Some(preset) = &self.cpu_cost {
            return [Some(Box::new(CostedCpu::new(Box::new(libcrypto()), preset.clone()))), None];
        }
        let library = self.library().and_then(|_| multibuffer().ok());
        let lanes = self.lanes.as_ref().and_then(|_| lanes());
        [Some(Box::new(libcrypto())), second_driver(lanes, library)]
    }

    /// The multi-buffer library, where it is there and needed.
    pub fn library(&self) -> Option<&Profile> {
        self.multibuffer.as_ref()?.as_ref().ok()
    }

    fn has_second_method(&self) -> bool {
        self.cpu_cost.is_none() && (self.library().is_some() || self.lanes.is_some())
    }

    /// Whose costs count here.
    pub fn cost_scope(&self) -> CostScope {
        let plain = match &self.cpu_cost {
            Some(preset) => format!("{} at the cost of {}", self.libcrypto.detail, preset.name()),
            None => self.libcrypto.detail.clone(),
        };
        let of_lanes = algorithms_of_lanes();
        let second = |profile, only| Library { method: Method::MultiBuffer, detail: profile, only };
        let mut libraries = vec![Library { method: Method::Plain, detail: &plain, only: None }];
        if self.has_second_method() {
            libraries.extend(self.library().map(|library| second(&library.detail, None)));
            libraries.extend(self.lanes.as_ref().map(|lanes| second(&lanes.detail, Some(&of_lanes))));
        }
        let modules: Vec<Profile> = self.modules.iter().map(OpenModule::profile).collect();
        CostScope::new(&self.processor, &libraries, &modules)
    }

    /// The modules as a planner sees them.
    pub fn capacities(&self) -> Vec<ModuleCapacity> {
        self.modules.iter().map(OpenModule::capacity).collect()
    }

    /// The threads of the modules' drivers: how many, and for how many results together they wake who waits.
    pub fn runners(&self) -> Vec<(u32, u32)> {
        self.modules.iter().map(OpenModule::runners).collect()
    }

    /// Whether the kernel works for a module where no thread's clock sees it.
    pub fn is_behind_the_kernel(&self, module: usize) -> bool {
        self.modules[module].is_behind_the_kernel()
    }

    /// Names of the modules.
    pub fn module_names(&self) -> Vec<String> {
        self.modules.iter().map(|module| module.profile().name).collect()
    }

    /// Requests of this process that modules have answered, by their names; those of which no driver counts are left out.
    pub fn module_requests(&self) -> Vec<(String, u64)> {
        self.modules.iter().filter_map(|module| Some((module.profile().name, module.answered()?))).collect()
    }

    /// What is emulated: figures are then no speed of Evener.
    pub fn emulated(&self) -> Vec<String> {
        let cpu = self.cpu_cost.iter().map(|cpu| format!("the CPU cost of {}", cpu.name()));
        let modules = self.modules.iter().filter(|module| module.is_emulated());
        cpu.chain(modules.map(|module| module.profile().name)).collect()
    }
}

impl DriverFactory for Machine {
    fn core_drivers(&self) -> CoreDrivers {
        let [plain, multi] = self.drivers();
        let plain = plain.expect("there is always a plain one");
        CoreDrivers::new(plain, multi).watching_lanes()
    }

    fn modules<'m>(&self) -> Vec<ModuleSetup<'m>> {
        let is_shared = self.modules.iter().any(|module| module.shared_name().is_some());
        let arbiter = is_shared.then(|| sharing::arbiter(self.observer)).flatten();
        let setup = |module: &OpenModule| {
            let shared = module.shared(arbiter.as_ref());
            ModuleSetup { shared, ..ModuleSetup::new(module.driver(), self.core_drivers()) }
        };
        self.modules.iter().map(setup).collect()
    }
}
