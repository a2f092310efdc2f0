//! A row for each class: what a job of it costs everywhere, whether modules take it (R1), and what the rest of the workers could do of it;
//! and in which order a module looks at the classes (R2).

use super::input::{ClassInput, CostOnModule, ModuleCapacity, PlanInput};
use super::tuning::TUNING;
use crate::policy::objective::Objective;
use crate::units::Nanos;

/// A class as workers see it. Costs in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) c: Option<f64>,
    /// Time of one job on a core of which workers have only a share; infinite where `c` is not known.
    pub(super) on_shared_core: f64,
    /// One for each module.
    pub(super) cells: Vec<Cell>,
    /// The greatest gain on any module; below zero where none takes it.
    pub(super) gain: f64,
    /// Core time that jobs of this class took so far, as far as the caller says.
    pub(super) worked: f64,
    /// Whether cores leave it to modules altogether.
    pub(super) is_left_to_modules: bool,
    /// Whether the only module's path uses all core time by itself while it works on the class: no core gains by any job of it, however few
    /// wait.
    pub(super) keeps_all_cores: bool,
    /// What the others could do of it.
    pub(super) without: Without,
}

/// What everybody but one worker could do of a class.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Without {
    /// But one core.
    pub(super) core: RestOfWorkers,
    /// But this module.
    pub(super) module: Vec<RestOfWorkers>,
}

/// What all workers but one do with the jobs of a class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RestOfWorkers {
    /// Time from one job to the next, all of them working side by side. Infinite where no worker takes it.
    pub(super) drain: f64,
    /// Time until one job is done by the fastest of them, which may have one before it: `Tuning::busy`. Equals do not
    /// count: two that wait for each other wait for ever.
    pub(super) least: f64,
}

/// A class on one module.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cell {
    /// Core time saved per time of the module; not above zero: the module does not take it.
    pub(super) gain: f64,
    /// `None` where it is not known.
    pub(super) path: Option<Path>,
    pub(super) tries: Tries,
}

/// What the path to a module takes for a class.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Path {
    /// `d`, and `d + h`: time from the beginning of a job to its end.
    pub(super) d: f64,
    pub(super) latency: f64,
    /// Part of a core that it uses while the module works on this class without a pause.
    pub(super) core_use: f64,
}

/// Jobs that may be sent to learn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tries {
    /// Of many that wait.
    pub(super) left: u32,
    /// Of requests that come alone, which may not pay where many jobs beside a busy core do.
    pub(super) single_left: u32,
    /// One may come last of all that waits.
    pub(super) is_long_untried: bool,
}

impl Cell {
    /// Zeros where it is not known.
    pub(super) fn path(&self) -> Path {
        self.path.unwrap_or_default()
    }
}

impl Row {
    /// Rising: cores take the first that waits.
    pub(super) fn core_rank(&self) -> f64 {
        if self.c.is_none() { f64::NEG_INFINITY } else { self.gain.max(f64::MIN) }
    }
}

/// The row of a class.
pub(super) fn row(plan_input: &PlanInput, lambda: f64, class: &ClassInput) -> Row {
    let c = class.c.map(float);
    // Jobs per nanosecond of all cores together.
    let core_rate = c.map_or(0.0, |c| plan_input.share / c.max(1.0));
    let cores_rate = core_rate * f64::from(plan_input.cpu_workers);
    let capacities = class.on_modules.iter().zip(&plan_input.capacities);
    let turns: Vec<Option<f64>> = capacities.map(|(on_module, at)| turn(on_module, *at)).collect();
    let rate = |module: usize| turns[module].map_or(0.0, |turn| 1.0 / turn);
    let savers =
        (0..turns.len()).filter(|&module| c.is_some_and(|c| saves(&class.on_modules[module], c, lambda)));
    let is_worth_it = savers.map(rate).sum::<f64>() > TUNING.worth_min * cores_rate;
    let rate_min = if is_worth_it { TUNING.worth_min * core_rate } else { f64::INFINITY };
    let cells: Vec<Cell> = class
        .on_modules
        .iter()
        .zip(&turns)
        .map(|(on_module, turn)| cell(on_module, *turn, c, rate_min, lambda))
        .collect();
    let open = || (0..cells.len()).filter(|&module| cells[module].gain > 0.0);
    let all_rate: f64 = open().map(rate).sum();
    let fastest = Fastest::of(open().map(|module| (module, cells[module].path().latency)));
    // Cores that leave the class to modules altogether do none of it.
    let [cores, core] =
        if plan_input.objective == Objective::Cpu { [0.0; 2] } else { [cores_rate, core_rate] };
    let without_module = |module: usize| {
        let own = if cells[module].gain > 0.0 { rate(module) } else { 0.0 };
        let least = (1.0 / core).min(TUNING.busy * fastest.but(module));
        RestOfWorkers { drain: 1.0 / (cores + (all_rate - own).max(0.0)), least }
    };
    let one = if open().nth(1).is_some() { TUNING.busy } else { 1.0 };
    Row {
        c,
        on_shared_core: c.map_or(f64::INFINITY, |c| c / plan_input.share),
        gain: cells.iter().map(|cell| cell.gain).fold(f64::NEG_INFINITY, f64::max),
        worked: 0.0,
        is_left_to_modules: false,
        keeps_all_cores: false,
        without: Without {
            core: RestOfWorkers {
                drain: 1.0 / (cores_rate - core_rate + all_rate),
                least: one * fastest.least,
            },
            module: (0..cells.len()).map(without_module).collect(),
        },
        cells,
    }
}

/// The shortest time of a job among modules, and the shortest among all but that one.
struct Fastest {
    module: usize,
    least: f64,
    second: f64,
}

impl Fastest {
    fn of(latencies: impl Iterator<Item = (usize, f64)>) -> Self {
        let none = Self { module: usize::MAX, least: f64::INFINITY, second: f64::INFINITY };
        latencies.fold(none, |best, (module, latency)| match latency < best.least {
            true => Self { module, least: latency, second: best.least },
            false => Self { second: best.second.min(latency), ..best },
        })
    }

    const fn but(&self, module: usize) -> f64 {
        if self.module == module { self.second } else { self.least }
    }
}

/// Time of a module from one job to the next, where its cost is known.
fn turn(on_module: &CostOnModule, capacity: ModuleCapacity) -> Option<f64> {
    let CostOnModule::Known { d, h, .. } = *on_module else { return None };
    let units = f64::from(capacity.units.min(capacity.depth).max(1));
    // With several outstanding, the path's core time passes while the module works on another.
    let turn = if capacity.depth > 1 { (float(h) / units).max(float(d)) } else { float(d) + float(h) };
    Some(turn.max(1.0))
}

/// Whether a job leaves more core time than it costs on a module; not where that is unknown.
fn saves(on_module: &CostOnModule, c: f64, lambda: f64) -> bool {
    let CostOnModule::Known { d, .. } = *on_module else { return false };
    (c - lambda * float(d) > TUNING.gain_margin * c) != cfg!(mutant = "gate_reversed")
}

/// A module that does fewer than `rate_min` jobs per nanosecond does not take them.
fn cell(on_module: &CostOnModule, turn: Option<f64>, c: Option<f64>, rate_min: f64, lambda: f64) -> Cell {
    let closed = Cell {
        gain: f64::NEG_INFINITY,
        path: None,
        tries: Tries { left: 0, single_left: 0, is_long_untried: false },
    };
    match (*on_module, turn, c) {
        (CostOnModule::Known { d, h, tries_left, is_long_untried }, Some(turn), Some(c)) => {
            let (d, latency) = (float(d), float(d) + float(h));
            let pays = saves(on_module, c, lambda) && 1.0 / turn > rate_min;
            let gain = if pays { (c - lambda * d) / latency } else { f64::NEG_INFINITY };
            let left = if pays { 0 } else { tries_left };
            let tries = Tries { left, single_left: tries_left, is_long_untried };
            Cell { gain, path: Some(Path { d, latency, core_use: d / turn }), tries }
        }
        (CostOnModule::Unknown { tries_left }, _, _) => {
            Cell { tries: Tries { left: tries_left, single_left: tries_left, ..closed.tries }, ..closed }
        }
        _ => closed,
    }
}

/// The order in which a module looks at the classes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Order {
    /// Those to be tried, the dearest first: it is the likeliest to pay.
    pub(super) tries: Vec<usize>,
    /// Those that it takes, the greatest gain first.
    pub(super) gains: Vec<usize>,
}

impl Order {
    pub(super) fn new(rows: &[Row], module: usize) -> Self {
        let cell = |class: usize| &rows[class].cells[module];
        let mut tries: Vec<usize> = (0..rows.len()).filter(|&class| cell(class).tries.left > 0).collect();
        tries.sort_by(|&a, &b| rows[b].c.unwrap_or(0.0).total_cmp(&rows[a].c.unwrap_or(0.0)));
        let mut gains: Vec<usize> = (0..rows.len()).filter(|&class| cell(class).gain > 0.0).collect();
        gains.sort_by(|&a, &b| cell(b).gain.total_cmp(&cell(a).gain));
        Self { tries, gains }
    }
}

#[expect(clippy::cast_precision_loss, reason = "costs are far below 2^53 nanoseconds")]
pub(super) const fn float(time: Nanos) -> f64 {
    time.0 as f64
}
