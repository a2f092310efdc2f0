//! The keys of a scenario file. Times and shares are whole numbers, their unit is the end of the key.

use serde::Deserialize;
use toml::Spanned;

pub(super) type Number = Spanned<u64>;

/// A section of the file with its keys; any other key is an error.
macro_rules! section {
    ($(#[$about:meta])* struct $name:ident { $($(#[$of_key:meta])* $key:ident: $type:ty,)* }) => {
        $(#[$about])*
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct $name {
            $($(#[$of_key])* pub(super) $key: $type,)*
        }
    };
}

section! {
    struct File {
        name: Spanned<String>,
        source: String,
        policies: Vec<Spanned<String>>,
        machine: Machine,
        costs: Vec<CostRow>,
        cpu: Cpu,
        #[serde(default)]
        module: Vec<Module>,
        workload: Spanned<Work>,
        chance: Spanned<Chance>,
    }
}

section! {
    struct Machine {
        cores: Number,
        ticks_per_second: Number,
        competing_programs: Number,
        first: First,
        monitor_ns: Number,
        limit_s: Number,
    }
}

/// The workers that are created first.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum First {
    Cpu,
    Module,
}

section! {
    /// A size with what its jobs cost.
    struct CostRow {
        bytes: Number,
        c_ns: Number,
        d_ns: Number,
        h_ns: Number,
    }
}

section! {
    struct Cpu {
        workers: Number,
        nice: Spanned<i32>,
        cap: Option<Cap>,
        /// Beside each job, to claim it and complete it; 0 where it is not given, as for modules.
        hand_over_ns: Option<Number>,
    }
}

section! {
    struct Cap {
        share_permille: Number,
        holds_module_path: bool,
        counts_interrupts: bool,
    }
}

section! {
    struct Module {
        units: Number,
        depth: Number,
        priority: Spanned<i32>,
        path: ModulePath,
        slow: Option<Slow>,
        lost_at_ms: Option<Number>,
        hand_over_ns: Option<Number>,
        /// One result in so many is checked by the core, and the first four; none where it is not given.
        check_every: Option<Number>,
        /// Its own costs, where they are not those of the scenario.
        costs: Option<Vec<ModuleCostRow>>,
    }
}

/// The threads that run the core's part of the path.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ModulePath {
    Direct,
    KernelWaits,
    Interrupt,
}

section! {
    struct Slow {
        at_ms: Number,
        factor: Number,
    }
}

section! {
    struct ModuleCostRow {
        bytes: Number,
        d_ns: Number,
        h_ns: Number,
    }
}

section! {
    /// Either `list`, or `jobs` and `sizes`.
    struct Work {
        list: Option<List>,
        jobs: Option<Number>,
        sizes: Option<Spanned<Vec<Weighted>>>,
        seed: u64,
        arrivals: Arrivals,
    }
}

/// A list that is built into the simulator.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum List {
    Uniform8,
    Tls,
}

section! {
    /// A size and how often it is drawn.
    struct Weighted {
        bytes: Number,
        weight: Number,
    }
}

section! {
    /// `at_once` alone, `poisson` with `mean_ns`, or `bursts` with all three.
    struct Arrivals {
        kind: Spanned<Kind>,
        mean_ns: Option<Number>,
        on_ns: Option<Number>,
        off_ns: Option<Number>,
    }
}

/// How jobs arrive.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    AtOnce,
    Poisson,
    Bursts,
}

section! {
    struct Chance {
        jitter_permille: Number,
        seeds: Vec<u64>,
        tick_phases_permille: Vec<Number>,
    }
}
