//! The keys of a scenario file. Times and shares are whole numbers, their unit is the end of the key.

use serde::Deserialize;
use toml::Spanned;

pub(super) type Number = Spanned<u64>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) name: Spanned<String>,
    pub(super) source: String,
    pub(super) policies: Vec<Spanned<String>>,
    pub(super) machine: Machine,
    pub(super) costs: Vec<CostRow>,
    pub(super) cpu: Cpu,
    #[serde(default)]
    pub(super) module: Vec<Module>,
    pub(super) workload: Spanned<Work>,
    pub(super) chance: Spanned<Chance>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Machine {
    pub(super) cores: Number,
    pub(super) ticks_per_second: Number,
    pub(super) competing_programs: Number,
    pub(super) first: First,
    pub(super) monitor_ns: Number,
    pub(super) limit_s: Number,
}

/// The workers that are created first.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum First {
    Cpu,
    Module,
}

/// A size with the costs of its jobs.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CostRow {
    pub(super) bytes: Number,
    pub(super) c_ns: Number,
    pub(super) d_ns: Number,
    pub(super) h_ns: Number,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cpu {
    pub(super) workers: Number,
    pub(super) nice: Spanned<i32>,
    pub(super) cap: Option<Cap>,
    /// Core time to claim and complete a job, beside its cost; 0 where it is not given, as for modules.
    pub(super) hand_over_ns: Option<Number>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cap {
    pub(super) share_permille: Number,
    pub(super) holds_module_path: bool,
    pub(super) counts_interrupts: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Module {
    pub(super) units: Number,
    pub(super) depth: Number,
    pub(super) priority: Spanned<i32>,
    pub(super) path: ModulePath,
    pub(super) slow: Option<Slow>,
    pub(super) lost_at_ms: Option<Number>,
    pub(super) hand_over_ns: Option<Number>,
    /// One result in so many is checked by the core, and the first four; none where it is not given.
    pub(super) check_every: Option<Number>,
    /// Its own costs, where they are not those of the scenario.
    pub(super) costs: Option<Vec<ModuleCostRow>>,
}

/// The threads that run the core's part of the path.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ModulePath {
    Direct,
    KernelWaits,
    Interrupt,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Slow {
    pub(super) at_ms: Number,
    pub(super) factor: Number,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModuleCostRow {
    pub(super) bytes: Number,
    pub(super) d_ns: Number,
    pub(super) h_ns: Number,
}

/// Either `list`, or `jobs` and `sizes`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Work {
    pub(super) list: Option<List>,
    pub(super) jobs: Option<Number>,
    pub(super) sizes: Option<Spanned<Vec<Weighted>>>,
    pub(super) seed: u64,
    pub(super) arrivals: Arrivals,
}

/// A list that is built into the simulator.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum List {
    Uniform8,
    Tls,
}

/// A size and how often it is drawn.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Weighted {
    pub(super) bytes: Number,
    pub(super) weight: Number,
}

/// `at_once` alone, `poisson` with `mean_ns`, or `bursts` with all three.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arrivals {
    pub(super) kind: Spanned<Kind>,
    pub(super) mean_ns: Option<Number>,
    pub(super) on_ns: Option<Number>,
    pub(super) off_ns: Option<Number>,
}

/// How jobs arrive.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    AtOnce,
    Poisson,
    Bursts,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Chance {
    pub(super) jitter_permille: Number,
    pub(super) seeds: Vec<u64>,
    pub(super) tick_phases_permille: Vec<Number>,
}
