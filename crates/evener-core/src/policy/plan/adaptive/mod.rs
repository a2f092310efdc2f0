//! The adaptive policy: every job where it costs the process least, by what was measured.
//!
//! The path of one plan: a [`Prospect`] (costs, price of a core, what waits) -> [`plan`] -> a [`Table`] that workers
//! ask what to take and callers ask where one request goes, each in a few nanoseconds (`table.rs`). A new plan is
//! made every few milliseconds. Pure code: simulator and live system run it alike. `docs/adaptive.md` has the
//! reasons and the ways not taken.
//!
//! What it decides, in the papers' terms: a module takes a class where that leaves more core time than it costs
//! (`lambda * d < c`), the class with the greatest gain per time of the module first; cores take the least
//! gain first, and nothing that modules do for less where they can use all of the cores' time; and at the end
//! nobody begins what the others would finish sooner.

mod route;
mod table;

pub use route::{Queue, Route};
pub use table::{Choice, NICE_BESIDE, NICE_TO_GIVE_WAY, Table};

pub use crate::cost::estimate::TRIES_MAX;

use crate::policy::objective::Objective;
use crate::units::Nanos;

/// What is known of one class on one module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Offer {
    /// The module does not do it, or must not: no driver support, locked by the guard.
    #[default]
    Never,
    /// Nothing is known; so many jobs may still be sent to find out.
    Unknown {
        /// Jobs that may be sent.
        tries_left: u32,
    },
    /// What a job costs there.
    Known {
        /// `d`: core time of the module path.
        d: Nanos,
        /// `h`: time of the module.
        h: Nanos,
        /// Jobs that may be sent although it does not pay, to see whether that is still so.
        tries_left: u32,
        /// These also where they would come last of all that waits.
        is_long_untried: bool,
    },
}

/// One class of jobs as the planner sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lane {
    /// `c` of a job in the bursts that cores run, where known.
    pub c: Option<Nanos>,
    /// Jobs that wait.
    pub waiting: u32,
    /// One for each module.
    pub offers: Vec<Offer>,
}

/// A module as the planner sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Station {
    /// Jobs that it works on at the same time.
    pub units: u32,
    /// Requests that may be outstanding. With one, the path's core time is part of each turn.
    pub depth: u32,
}

/// What a plan is made from.
#[derive(Clone, Debug, PartialEq)]
pub struct Prospect {
    /// What counts.
    pub objective: Objective,
    /// Threads that run jobs on cores.
    pub cpu_workers: u32,
    /// Part of a core that such a thread gets: 1 where nothing competes.
    pub share: f64,
    /// Price of a core, from 0 (there is one idle) to 1 (all that the process may use are busy).
    pub lambda: f64,
    /// Whether threads that run jobs on cores let modules' threads go first. If not, each gets its fair part of the cores.
    pub gives_way: bool,
    /// The modules.
    pub stations: Vec<Station>,
    /// The classes.
    pub lanes: Vec<Lane>,
}

/// Modules take a class only where all that save core time on it add this part of what the cores do together, and each
/// of them this part of what one core does: less is not worth a thread that wakes. Each module against all cores would
/// leave a fleet idle: 64 modules of which each adds 1 % to 256 cores.
const WORTH_MIN: f64 = 0.03;

/// A class on a module pays only above this part of its `c`, so that noise does not open the gate and close it.
const GAIN_MARGIN: f64 = 0.01;

/// Modules that can use this part of the core time of the process leave none to cores for what they do cheaper.
const SATURATED: f64 = 0.95;

/// Of several modules the fastest is taken to be busy with a job as long as the one that is left to it: a table is
/// told only when the first of all is free.
const BUSY: f64 = 2.0;

/// A class is tried on a module only where so much core time of it was spent or waits: four tries of the slowest preset take a
/// tenth of it. A short run never tries.
pub const TRY_WORK_MIN: Nanos = Nanos::from_millis(20);

/// Core time of a claim of a core, about, so that workers end together: a fortieth of [`TRY_WORK_MIN`].
pub const CLAIM_TIME: Nanos = Nanos::from_micros(500);

/// Beside programs that compete nobody takes more than so many times a fair share: one other program keeps 0.3 of
/// a core that all its threads want. Assumed, not measured: 1.4, a balance between that program and the makespan.
const OVER_FAIR_MAX: f64 = 1.4;

/// The part of the cores, in per cent, beyond which CPU workers of a process with a fair `share` (1 where nothing
/// competes) begin nothing: a [`Budget`](crate::policy::budget::Budget) to which both paths are charged. Modules' workers
/// go on, for they spend less; but for the least effect on other programs they keep to it too.
#[must_use]
pub fn cap_percent(objective: Objective, share: f64) -> u32 {
    let cap = match objective {
        Objective::Cpu => share,
        Objective::Throughput | Objective::Latency => share * OVER_FAIR_MAX,
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 1..=100")]
    let percent = (cap * 100.0).round().clamp(1.0, 100.0) as u32;
    percent
}

/// What a module's path leaves of the only core while it is kept busy is of no use below this part: each going to and fro costs a
/// change of threads and colder caches. Measured in docs/kernel.md, where a sixth was left and nothing was gained. A half is a guess: in
/// one trace of the guest single requests of a path that takes all of the core showed more than a quarter to be left, and core and path
/// worked beside each other in vain.
const OF_USE: f64 = 0.5;

/// `d` of a job on a module beside the only core, with what is of no use to others beside it. `h` of several outstanding is the time of
/// all.
#[must_use]
pub fn all_of_turn(d: Nanos, h: Nanos, depth: u32) -> Nanos {
    let turn = if depth > 1 { d.max(Nanos(h.0 / u64::from(depth))) } else { d + h };
    let is_left = d.as_secs_f64() < (1.0 - OF_USE) * turn.as_secs_f64() || cfg!(mutant = "crumbs_of_use");
    if is_left { d } else { turn }
}

/// Makes the plan.
///
/// # Panics
///
/// Where a lane has not one offer for each module.
#[must_use]
pub fn plan(prospect: &Prospect) -> Table {
    assert!(
        prospect.lanes.iter().all(|lane| lane.offers.len() == prospect.stations.len()),
        "a lane has one offer for each module"
    );
    let lambda = price(prospect);
    let mut rows: Vec<Row> = prospect.lanes.iter().map(|lane| row(prospect, lambda, lane)).collect();
    let mut core_order: Vec<usize> = (0..rows.len()).collect();
    // What is unknown first: everything else waits for its cost.
    core_order.sort_by(|&a, &b| rows[a].core_rank().total_cmp(&rows[b].core_rank()));
    let orders: Vec<Order> = (0..prospect.stations.len()).map(|module| Order::new(&rows, module)).collect();
    let leaves_to_modules =
        prospect.objective == Objective::Cpu || is_saturated(prospect, lambda, &rows, &orders);
    let cores = cores(prospect);
    for row in &mut rows {
        row.is_left_to_modules = leaves_to_modules && row.gain > 0.0;
        // Of one module: with several it is not known which will take it.
        let takes_all = |cell: &Cell| cell.gain > 0.0 && cell.core_use >= SATURATED * cores;
        row.keeps_all_cores =
            row.is_left_to_modules && row.cells.len() == 1 && row.cells.iter().all(takes_all);
        if row.keeps_all_cores && !cfg!(mutant = "last_ones_left_by_both") {
            row.without_module = vec![Others { drain: f64::INFINITY, least: f64::INFINITY }];
        }
    }
    Table::new(prospect, lambda, rows, core_order, orders)
}

/// Cores that the threads which run jobs get.
fn cores(prospect: &Prospect) -> f64 {
    prospect.share * f64::from(prospect.cpu_workers)
}

/// Whether the module paths can use all core time that the process gets: then a core that runs a job which a
/// module does for less only keeps the module's path from it. Where cores do not give way, also whether the paths do more
/// jobs by themselves than paths and cores together where each thread gets its fair part of the cores.
fn is_saturated(prospect: &Prospect, lambda: f64, rows: &[Row], orders: &[Order]) -> bool {
    if lambda < 1.0 || prospect.lanes.iter().any(|lane| lane.waiting > 0 && lane.c.is_none()) {
        return false;
    }
    // What each module would work on now.
    let next = |(module, order): (usize, &Order)| {
        let lane = order.gains.iter().find(|&&lane| prospect.lanes[lane].waiting > 0);
        lane.map(|&lane| (&rows[lane].cells[module], rows[lane].c.unwrap_or(f64::INFINITY)))
    };
    let paths: Vec<(&Cell, f64)> = orders.iter().enumerate().filter_map(next).collect();
    let wanted: f64 = paths.iter().map(|(cell, _)| cell.core_use).sum();
    let cores = cores(prospect);
    wanted >= SATURATED * cores || !prospect.gives_way && are_better_alone(&paths, cores)
}

/// Whether module paths do more jobs where cores leave them all core time than where both share it fairly, as threads of one
/// priority do. `paths` are what they would work on, with its cost on a core.
fn are_better_alone(paths: &[(&Cell, f64)], cores: f64) -> bool {
    let threads = cores + float(Nanos(paths.len() as u64));
    let fair = cores / threads;
    let [mut alone, mut beside, mut left] = [0.0, 0.0, cores];
    for (cell, _) in paths {
        let gets = cell.core_use.min(fair);
        alone += cell.core_use / cell.d.max(1.0);
        beside += gets / cell.d.max(1.0);
        left -= gets;
    }
    let c = paths.iter().map(|(_, c)| *c).fold(f64::INFINITY, f64::min);
    !paths.is_empty() && alone > beside + left / c && !cfg!(mutant = "fair_parts_ignored")
}

/// For the least effect on other programs core time has its full price even where a core is idle.
fn price(prospect: &Prospect) -> f64 {
    match prospect.objective {
        Objective::Cpu => 1.0,
        Objective::Throughput | Objective::Latency => prospect.lambda.clamp(0.0, 1.0),
    }
}

/// A class as workers see it. Costs in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    c: Option<f64>,
    /// Time of one job on a core of which workers have only a share; infinite where `c` is not known.
    on_shared_core: f64,
    /// One for each module.
    cells: Vec<Cell>,
    /// The greatest gain on any module; below zero where none takes it.
    gain: f64,
    /// Core time that jobs of this class took so far, as far as the caller says.
    worked: f64,
    /// Whether cores leave it to modules altogether.
    is_left_to_modules: bool,
    /// Whether the only module's path uses all core time by itself while it works on the class: no core gains by any job of it, however few
    /// wait.
    keeps_all_cores: bool,
    /// What everybody but one core could do of it.
    without_core: Others,
    /// What everybody but this module could do of it.
    without_module: Vec<Others>,
}

/// What all workers but one do with the jobs of a class.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Others {
    /// Time from one job to the next, all of them working side by side. Infinite where nobody takes it.
    drain: f64,
    /// Time until one job is done by the fastest of them, which may have one before it: [`BUSY`]. Equals do not
    /// count: who waits for its like waits for ever.
    least: f64,
}

/// A class on one module.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cell {
    /// Core time saved per time of the module; not above zero: the module does not take it.
    gain: f64,
    /// `d`, and `d + h`: time from the beginning of a job to its end.
    d: f64,
    latency: f64,
    /// Part of a core that the path uses while the module works on this class without a pause.
    core_use: f64,
    /// Jobs that may be sent to learn.
    tries_left: u32,
    /// The same of requests that come alone, which may not pay where many jobs beside a busy core do.
    single_tries_left: u32,
    is_known: bool,
    /// One may come last of all that waits.
    is_long_untried: bool,
}

impl Row {
    /// Rising: cores take the first that waits.
    fn core_rank(&self) -> f64 {
        if self.c.is_none() { f64::NEG_INFINITY } else { self.gain.max(f64::MIN) }
    }
}

fn row(prospect: &Prospect, lambda: f64, lane: &Lane) -> Row {
    let c = lane.c.map(float);
    // Jobs per nanosecond of all cores together.
    let core_rate = c.map_or(0.0, |c| prospect.share / c.max(1.0));
    let cores_rate = core_rate * f64::from(prospect.cpu_workers);
    let stations = lane.offers.iter().zip(&prospect.stations);
    let turns: Vec<Option<f64>> = stations.map(|(offer, at)| turn(offer, *at)).collect();
    let rate = |module: usize| turns[module].map_or(0.0, |turn| 1.0 / turn);
    let savers = (0..turns.len()).filter(|&module| c.is_some_and(|c| saves(&lane.offers[module], c, lambda)));
    let is_worth_it = savers.map(rate).sum::<f64>() > WORTH_MIN * cores_rate;
    let rate_min = if is_worth_it { WORTH_MIN * core_rate } else { f64::INFINITY };
    let cells: Vec<Cell> =
        lane.offers.iter().zip(&turns).map(|(offer, turn)| cell(offer, *turn, c, rate_min, lambda)).collect();
    let open = || (0..cells.len()).filter(|&module| cells[module].gain > 0.0);
    let all_rate: f64 = open().map(rate).sum();
    let fastest = Fastest::of(open().map(|module| (module, cells[module].latency)));
    // Cores that leave the class to modules altogether do none of it.
    let [cores, core] = if prospect.objective == Objective::Cpu { [0.0; 2] } else { [cores_rate, core_rate] };
    let without_module = |module: usize| {
        let own = if cells[module].gain > 0.0 { rate(module) } else { 0.0 };
        let least = (1.0 / core).min(BUSY * fastest.but(module));
        Others { drain: 1.0 / (cores + (all_rate - own).max(0.0)), least }
    };
    let one = if open().nth(1).is_some() { BUSY } else { 1.0 };
    Row {
        c,
        on_shared_core: c.map_or(f64::INFINITY, |c| c / prospect.share),
        gain: cells.iter().map(|cell| cell.gain).fold(f64::NEG_INFINITY, f64::max),
        worked: 0.0,
        is_left_to_modules: false,
        keeps_all_cores: false,
        without_core: Others { drain: 1.0 / (cores_rate - core_rate + all_rate), least: one * fastest.least },
        without_module: (0..cells.len()).map(without_module).collect(),
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
fn turn(offer: &Offer, station: Station) -> Option<f64> {
    let Offer::Known { d, h, .. } = *offer else { return None };
    let units = f64::from(station.units.min(station.depth).max(1));
    // With several outstanding, the path's core time passes while the module works on another.
    let turn = if station.depth > 1 { (float(h) / units).max(float(d)) } else { float(d) + float(h) };
    Some(turn.max(1.0))
}

/// Whether a job leaves more core time than it costs on a module; not where that is unknown.
fn saves(offer: &Offer, c: f64, lambda: f64) -> bool {
    let Offer::Known { d, .. } = *offer else { return false };
    (c - lambda * float(d) > GAIN_MARGIN * c) != cfg!(mutant = "gate_reversed")
}

/// A module that does fewer than `rate_min` jobs per nanosecond does not take them.
fn cell(offer: &Offer, turn: Option<f64>, c: Option<f64>, rate_min: f64, lambda: f64) -> Cell {
    let closed = Cell {
        gain: f64::NEG_INFINITY,
        d: 0.0,
        latency: 0.0,
        core_use: 0.0,
        tries_left: 0,
        single_tries_left: 0,
        is_known: false,
        is_long_untried: false,
    };
    match (*offer, turn, c) {
        (Offer::Known { d, h, tries_left, is_long_untried }, Some(turn), Some(c)) => {
            let (d, latency) = (float(d), float(d) + float(h));
            let pays = saves(offer, c, lambda) && 1.0 / turn > rate_min;
            let gain = if pays { (c - lambda * d) / latency } else { f64::NEG_INFINITY };
            let single_tries_left = tries_left;
            let tries_left = if pays { 0 } else { tries_left };
            let core_use = d / turn;
            Cell {
                gain,
                d,
                latency,
                core_use,
                tries_left,
                single_tries_left,
                is_known: true,
                is_long_untried,
            }
        }
        (Offer::Unknown { tries_left }, _, _) => Cell { tries_left, single_tries_left: tries_left, ..closed },
        _ => closed,
    }
}

/// The order in which a module looks at the classes.
#[derive(Clone, Debug, PartialEq)]
struct Order {
    /// Those to be tried, the dearest first: it is the likeliest to pay.
    tries: Vec<usize>,
    /// Those that it takes, the greatest gain first.
    gains: Vec<usize>,
}

impl Order {
    fn new(rows: &[Row], module: usize) -> Self {
        let cell = |lane: usize| &rows[lane].cells[module];
        let mut tries: Vec<usize> = (0..rows.len()).filter(|&lane| cell(lane).tries_left > 0).collect();
        tries.sort_by(|&a, &b| rows[b].c.unwrap_or(0.0).total_cmp(&rows[a].c.unwrap_or(0.0)));
        let mut gains: Vec<usize> = (0..rows.len()).filter(|&lane| cell(lane).gain > 0.0).collect();
        gains.sort_by(|&a, &b| cell(b).gain.total_cmp(&cell(a).gain));
        Self { tries, gains }
    }
}

#[expect(clippy::cast_precision_loss, reason = "costs are far below 2^53 nanoseconds")]
const fn float(time: Nanos) -> f64 {
    time.0 as f64
}

#[cfg(test)]
mod tests;
