//! The learning policy of the reference simulation, written anew as a chooser: it shows that a chooser sees all it
//! needs, and holds depth, priority and samples to the reference's numbers.
//!
//! The module takes the class that saves the core most per unit of module time, if it saves any; the CPU takes the
//! class that the module gains least from; both leave the last jobs to the one that ends them sooner.

use evener_core::Nanos;
use evener_sim::lab::{Choice, Chooser, Path, Sample, View, Which};

/// Weight of a new sample.
const WEIGHT: f64 = 1.0 / 8.0;
/// Jobs of an unknown class that the module tries before it waits for the CPU to know the class.
const TRIES: u32 = 4;

#[derive(Clone, Copy, Default)]
struct Learned {
    c: Option<f64>,
    d: Option<f64>,
    h: Option<f64>,
    tries: u32,
}

pub(crate) struct Learner {
    classes: Vec<Learned>,
}

impl Learner {
    pub(crate) fn new(classes: usize) -> Self {
        Self { classes: vec![Learned::default(); classes] }
    }

    /// What a class saves per unit of module time, where that is known.
    fn gain(&self, class: usize) -> Option<f64> {
        let Learned { c, d, h, .. } = self.classes[class];
        Some((c? - d?) / (d? + h?))
    }

    fn module_time(&self, class: usize) -> Option<f64> {
        Some(self.classes[class].d? + self.classes[class].h?)
    }

    /// Time that all that waits takes on a path, and what the path's worker has begun.
    fn load(&self, view: &View<'_>, path: Path, time: impl Fn(usize) -> Option<f64>) -> Option<f64> {
        let waits = waiting(view).map(|class| Some(time(class)? * f64::from(view.classes[class].waiting)));
        let begun = view.workers.iter().filter(|worker| worker.worker.path == path);
        let begun = begun.filter_map(|worker| time(worker.busy.last()?.class));
        Some(waits.sum::<Option<f64>>()? + begun.sum::<f64>())
    }
}

fn waiting<'a>(view: &'a View<'_>) -> impl Iterator<Item = usize> + 'a {
    (0..view.classes.len()).filter(|&class| view.classes[class].waiting > 0)
}

fn one(class: usize) -> Choice {
    Choice::Take { which: Which::OfClass(class), jobs: 1 }
}

impl Chooser for Learner {
    fn cpu_takes(&mut self, _: u32, view: &View<'_>) -> Choice {
        if let Some(unknown) = waiting(view).find(|&class| self.classes[class].c.is_none()) {
            return one(unknown);
        }
        let known = waiting(view).filter_map(|class| Some((self.gain(class)?, class)));
        let Some((gain, class)) = known.min_by(|one, other| one.0.total_cmp(&other.0)) else {
            return waiting(view).next().map_or(Choice::Rest, one);
        };
        let share = 1.0 / f64::from(1 + view.competing);
        let module = self.load(view, Path::Module, |class| self.module_time(class));
        match (module, self.classes[class].c) {
            (Some(module), Some(c)) if gain > 0.0 && module < c / share => Choice::Rest,
            _ => one(class),
        }
    }

    fn module_takes(&mut self, _: u32, view: &View<'_>) -> Choice {
        let tried = |class: &usize| self.classes[*class].d.is_none() && self.classes[*class].tries < TRIES;
        if let Some(unknown) = waiting(view).find(tried) {
            self.classes[unknown].tries += 1;
            return one(unknown);
        }
        let worth = waiting(view).filter_map(|class| Some((self.gain(class)?, class)));
        let worth = worth.filter(|(gain, _)| *gain > 0.0);
        let Some((_, class)) = worth.max_by(|one, other| one.0.total_cmp(&other.0)) else {
            let unknown = waiting(view).any(|class| self.gain(class).is_none());
            return if unknown { Choice::AskAgainIn(Nanos::from_micros(200)) } else { Choice::Rest };
        };
        let share = 1.0 / f64::from(1 + view.competing);
        let cpu = self.load(view, Path::Cpu, |class| self.classes[class].c);
        match (cpu, self.module_time(class)) {
            (Some(cpu), Some(module)) if cpu / share < module => Choice::Rest,
            _ => one(class),
        }
    }

    fn observe(&mut self, sample: &Sample) {
        let learn = |value: &mut Option<f64>, new: Nanos| {
            let new = new.as_secs_f64();
            *value = Some(value.map_or(new, |old| old + WEIGHT * (new - old)));
        };
        let class = &mut self.classes[sample.class];
        match sample.worker.path {
            Path::Cpu => learn(&mut class.c, sample.core),
            Path::Module => {
                learn(&mut class.d, sample.core + sample.interrupt);
                learn(&mut class.h, sample.service);
            }
        }
    }

    fn lose(&mut self, _: u32) {}
}
