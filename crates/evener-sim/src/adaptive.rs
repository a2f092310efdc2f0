//! The adaptive policy on the simulator: the planner of the live system, fed with what simulated jobs took.
//!
//! A worker asks -> the plan is made anew where it is old or something was learned for the first time -> the table
//! answers -> what the job took goes to the estimator. Nothing here decides; all of that is `evener_core`'s.

use evener_core::estimate::{Estimator, ModuleSample};
use evener_core::plan::adaptive::{
    Choice as Decision, Lane, Offer, Prospect, Station, TRIES_MAX, Table, plan,
};
use evener_core::{Algorithm, Class, Direction, Method, Nanos, Objective};

use crate::lab::{Choice, Chooser, Path, Sample, Setup, View, Which, WorkerView};

/// Age after which a plan is made anew.
const PLAN_AGE_MAX: Nanos = Nanos::from_millis(2);

/// The adaptive policy, learning while it runs.
pub struct Adaptive {
    estimator: Estimator,
    objective: Objective,
    /// By class of the setup.
    classes: Vec<Class>,
    stations: Vec<Station>,
    lost: Vec<bool>,
    table: Option<(Nanos, Table)>,
}

impl Adaptive {
    /// A policy that knows nothing of the costs yet.
    #[must_use]
    pub fn new(setup: &Setup, objective: Objective) -> Self {
        let class = |bytes: u64| {
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            Class::of(Algorithm::Aes128Cbc, Direction::Encrypt, bytes, false)
        };
        let station = |side: &crate::lab::ModuleSide| Station { units: side.spec.units, depth: side.depth };
        Self {
            estimator: Estimator::new(setup.modules.len()),
            objective,
            classes: setup.classes.iter().map(|of| class(of.bytes)).collect(),
            stations: setup.modules.iter().map(station).collect(),
            lost: vec![false; setup.modules.len()],
            table: None,
        }
    }

    /// What was learned.
    #[must_use]
    pub const fn estimator(&mut self) -> &mut Estimator {
        &mut self.estimator
    }

    fn plan(&mut self, view: &View<'_>) -> &Table {
        let is_old = self.table.as_ref().is_none_or(|(made, _)| view.now - *made >= PLAN_AGE_MAX);
        if is_old {
            self.table = Some((view.now, plan(&self.prospect(view))));
        }
        &self.table.as_ref().expect("made where it was missing").1
    }

    fn prospect(&self, view: &View<'_>) -> Prospect {
        let cpu_workers = workers(view, Path::Cpu).count();
        let threads = u32::try_from(cpu_workers).unwrap_or(u32::MAX);
        let (cores, competing) = (view.cores as f64, f64::from(view.competing));
        let spare = cores - competing - f64::from(threads);
        let modules = self.stations.len().max(1) as f64;
        Prospect {
            objective: self.objective,
            cpu_workers: threads,
            share: (cores / (cores + competing)).min(1.0),
            lambda: 1.0 - (spare / modules).clamp(0.0, 1.0),
            stations: self.stations.clone(),
            lanes: view
                .classes
                .iter()
                .enumerate()
                .map(|(at, seen)| self.lane(at, seen.bytes, seen.waiting))
                .collect(),
        }
    }

    fn lane(&self, at: usize, bytes: u64, waiting: u32) -> Lane {
        let (class, bytes) = (self.classes[at], usize::try_from(bytes).unwrap_or(usize::MAX));
        let offer = |module: usize| {
            let known = self.estimator.on_module(module, class);
            let tries_left = TRIES_MAX.saturating_sub(known.tries);
            match (known.d.at(bytes), known.h.at(bytes)) {
                _ if self.lost[module] => Offer::Never,
                (Some(d), Some(h)) => Offer::Known { d, h, tries_left: 0 },
                _ => Offer::Unknown { tries_left },
            }
        };
        Lane {
            c: self.estimator.c(class, bytes, 1),
            waiting,
            offers: (0..self.stations.len()).map(offer).collect(),
        }
    }

    /// Time until worker `seen` has done what it holds, by what its jobs take.
    fn busy(&self, seen: &WorkerView, view: &View<'_>) -> Nanos {
        let Some(oldest) = seen.busy.first() else { return Nanos::ZERO };
        let class = self.classes[oldest.class];
        let bytes = usize::try_from(view.classes[oldest.class].bytes).unwrap_or(usize::MAX);
        let takes = match seen.worker.path {
            Path::Cpu => self.estimator.c(class, bytes, 1),
            Path::Module => {
                let known = self.estimator.on_module(seen.worker.index as usize, class);
                known.d.at(bytes).zip(known.h.at(bytes)).map(|(d, h)| d + h)
            }
        };
        takes.unwrap_or_default() - (view.now - oldest.since)
    }

    /// Least of that over the workers of a path.
    fn least_busy(&self, view: &View<'_>, path: Path) -> Nanos {
        let workers = workers(view, path).filter(|seen| !seen.is_lost);
        workers.map(|seen| self.busy(seen, view)).min().unwrap_or_default()
    }
}

fn workers<'a>(view: &View<'a>, path: Path) -> impl Iterator<Item = &'a WorkerView> {
    view.workers.iter().filter(move |seen| seen.worker.path == path)
}

impl Chooser for Adaptive {
    fn cpu_takes(&mut self, _index: u32, view: &View<'_>) -> Choice {
        let modules_busy = self.least_busy(view, Path::Module);
        let decision = self.plan(view).core_takes(|lane| view.classes[lane].waiting, modules_busy);
        answer(decision)
    }

    fn module_takes(&mut self, index: u32, view: &View<'_>) -> Choice {
        let cores_busy = self.least_busy(view, Path::Cpu);
        let module = index as usize;
        let decision = self.plan(view).module_takes(module, |lane| view.classes[lane].waiting, cores_busy);
        if let Decision::Take { lane, is_try: true } = decision {
            self.estimator.tries(module, self.classes[lane], 1);
            self.table = None;
        }
        answer(decision)
    }

    fn observe(&mut self, sample: &Sample) {
        let class = self.classes[sample.class];
        let module = sample.worker.index as usize;
        let is_new = match sample.worker.path {
            Path::Cpu => {
                let is_new = self.estimator.cpu(class, Method::Plain, 1).is_none();
                self.estimator.saw_cpu(class, Method::Plain, 1, sample.bytes, sample.core);
                is_new
            }
            Path::Module => {
                let is_new = self.estimator.on_module(module, class).d.samples == 0;
                let (d, h) = (sample.core + sample.interrupt, sample.service);
                let seen = ModuleSample { jobs: 1, bytes: sample.bytes, d, h, now: sample.now };
                self.estimator.saw_module(module, class, &seen);
                is_new
            }
        };
        if is_new {
            self.table = None;
        }
    }

    fn lose(&mut self, index: u32) {
        self.lost[index as usize] = true;
        self.table = None;
    }
}

const fn answer(decision: Decision) -> Choice {
    match decision {
        Decision::Take { lane, .. } => Choice::Take { which: Which::OfClass(lane), jobs: 1 },
        Decision::AskAgainIn(time) => Choice::AskAgainIn(time),
        Decision::Leave => Choice::Rest,
    }
}
