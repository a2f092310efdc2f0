//! The numbers of the plan's rules. What each rule says stands in the head of `mod.rs`; formulas and reasons in `docs/design/adaptive.md`.

use crate::tuning;
use crate::units::Nanos;

tuning! {
    /// The numbers of the plan's rules, R1 to R10.
    pub struct Tuning;

    /// Modules take a class only where all that save core time on it add this part of what the cores do together, and each of them this
    /// part of what one core does: less is not worth a thread that wakes. Each module against all cores would leave a fleet idle: 64
    /// modules of which each adds 1 % to 256 cores.
    ["R1"] worth_min: f64 = 0.03, 0.0, 0.5, "part of the jobs that cores do in a time",
        "simulation (docs/design/adaptive.md, Each module against all cores)";
    /// A class on a module pays only above this part of its `c`, so that noise does not open the gate and close it.
    ["R1"] gain_margin: f64 = 0.01, 0.0, 0.2, "part of c", "Assumed, not measured: 0.01, because means of many samples err by some of it";
    /// What a module's path leaves of the only core while it is kept busy is of no use below this part: each going to and fro costs a
    /// change of threads and colder caches.
    ["R1"] of_use: f64 = 0.5, 0.0, 1.0, "part of the only core",
        "docs/design/kernel-modules.md: a sixth was left and nothing gained. Assumed, not measured: 0.5, because single requests of a path that takes all \
         of the core showed more than a quarter to be left";
    /// Of several modules the fastest is taken to be busy with a job as long as the one that is left to it: a table knows only when the
    /// first of all is free.
    ["R3, R4"] busy: f64 = 2.0, 1.0, 4.0, "times of a job at the fastest", "one job before, and the job itself";
    /// A worker that leaves a job to others asks again after one in so many parts of the time that they need.
    ["R3, R4"] looks_in_rest: f64 = 4.0, 1.0, 100.0, "looks in the time until the others are done",
        "Assumed, not measured: 4, because a look takes some nanoseconds and estimates err by a quarter";
    /// It waits so long at least.
    ["R3, R4"] wait_min: Nanos = Nanos::from_micros(50), Nanos::from_micros(1), Nanos::from_millis(1), "time",
        "Assumed, not measured: 50 us, because a wake-up takes some of it";
    /// It waits so long at most.
    ["R3, R4"] wait_max: Nanos = Nanos::from_micros(250), Nanos::from_micros(50), Nanos::from_millis(10), "time",
        "simulation (docs/design/adaptive.md, Leaving for good in the tail)";
    /// Modules that can use this part of the core time of the process leave none to cores for what they do cheaper.
    ["R5"] saturated: f64 = 0.95, 0.5, 1.0, "part of the process's core time", "Assumed, not measured: 0.95, because sums of means err by some per cent";
    /// So many jobs must wait for each request that may be outstanding, for modules to be kept busy.
    ["R5"] left_per_request: u32 = 4, 1, 64, "jobs for each request outstanding", "Assumed, not measured: 4, because with fewer the modules are done soon and the core idled for nothing";
    /// A core that leaves all to modules looks after so long whether a new plan says otherwise.
    ["R5"] wait_for_plan: Nanos = Nanos::from_millis(1), Nanos::from_micros(50), Nanos::from_millis(100), "time", "half of the age of a plan (R10)";
    /// A class is tried on a module only where so much core time of it was spent or waits. A short run never tries.
    ["R6"] try_work_min: Nanos = Nanos::from_millis(20), Nanos::from_millis(1), Nanos::from_millis(1_000), "core time of the class",
        "four tries of the slowest preset take a tenth of it";
    /// A module's worker waits so long for a cost that is just being measured.
    ["R6"] wait_for_cost: Nanos = Nanos::from_micros(200), Nanos::from_micros(10), Nanos::from_millis(10), "time",
        "Assumed, not measured: 200 us, because it is below what a core needs for a claim";
    /// A module must be better by this part for a single request: both answers cost the same within it, and inline has no risk.
    ["R7"] route_margin: f64 = 0.02, 0.0, 0.5, "part of the time inline", "Assumed, not measured: 0.02, because means err by about that";
    /// Where a request is to be back early, core time counts for so much of its price: between two ways that end at the same time it takes
    /// the cheaper.
    ["R7"] latency_price: f64 = 0.05, 0.0, 1.0, "part of lambda", "Assumed, not measured: 0.05, because the time of the end is to decide, and core time only between ways that end within some per cent";
    /// Nice value of own CPU workers that give way to the modules' threads: the greatest there is.
    ["R8"] nice_to_give_way: i32 = 19, 0, 19, "nice value", "sched(7): the least weight of all";
    /// The same beside programs that compete, half of the usual weight.
    ["R8"] nice_beside: i32 = 3, 0, 19, "nice value",
        "simulation: with 0 the module's path gets the core too late and cores do its jobs at twice the core time, with 6 mixes take a fifth \
         longer";
    /// Beside programs that compete the process takes more than so many times a fair share: one other program keeps 0.3 of a core that all its
    /// threads want.
    ["R9"] over_fair_max: f64 = 1.4, 1.0, 4.0, "fair shares", "Assumed, not measured: 1.4, because at 1 the makespan is longest and at 2 the other program has no core left; 1.4 is their geometric mean";
    /// Core time of a claim of a core, about, so that workers end together.
    ["R10"] claim_time: Nanos = Nanos::from_micros(500), Nanos::from_micros(50), Nanos::from_millis(20), "core time",
        "a fortieth of the work that is worth a try (R6)";
    /// A plan older than this is made anew.
    ["R10"] plan_age_max: Nanos = Nanos::from_millis(2), Nanos::from_micros(100), Nanos::from_millis(100), "age", "a plan takes some microseconds (docs/design/adaptive.md, Numbers reached)";
    /// What modules' paths may have used beyond a core's rest and is still remembered: a job or two.
    ["R10"] credit_max: Nanos = Nanos::from_millis(1), Nanos::ZERO, Nanos::from_millis(100), "core time",
        "Assumed, not measured: 1 ms, because it is a job or two of the slowest preset";
}
