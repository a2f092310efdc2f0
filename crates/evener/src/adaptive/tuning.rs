//! The numbers of what only the live system does: A1 windows for tries, A2 age of plans, A3 claims, A4 what is believed, T1 to T3 turns.
//! Those that the simulator has, too, are core's ([`evener_core::plan::adaptive::TUNING`]).

use evener_core::{Nanos, tuning};

tuning! {
    /// The numbers of the live adaptive policy.
    pub(super) struct Tuning;

    /// Modules' workers are kept awake so long for nothing but a try. Long beside any job of a preset, for where all cores are busy the
    /// module's thread may wait for one.
    ["A1"] try_window: Nanos = Nanos::from_millis(50), Nanos::from_millis(1), Nanos::from_millis(1_000), "time",
        "Assumed, not measured: 50 ms, because the longest job of a preset takes a few";
    /// Time until the next such window where none was used.
    ["A1"] try_pause: Nanos = Nanos::from_millis(250), Nanos::from_millis(10), Nanos::from_millis(10_000), "time",
        "Assumed, not measured: 250 ms, because awake in a sixth of the time is little";
    /// Plans on one core are older than core's R10 allows, for they, and cores that wake for one, take it from what is planned. Pairs of turns
    /// and classes that are new make plans old sooner.
    ["A2"] plan_age_on_one_core: Nanos = Nanos::from_millis(100), Nanos::from_millis(2), Nanos::from_millis(1_000), "age",
        "a look takes 0.2 to 0.6 ms in the guest of docs/design/testbed.md";
    /// Where no module takes anything a worker looks so seldom, on several cores: ten looks in the time of a window (A1) and more would find
    /// nothing new.
    ["A2"] look_back_after: Nanos = Nanos::from_millis(20), Nanos::from_millis(2), Nanos::from_millis(1_000), "time",
        "Assumed, not measured: 20 ms, because classes are tried after as much of their work (R6)";
    /// Jobs that a module's worker takes at once at most. A claim takes a fiftieth of a request in the guest of docs/design/testbed.md.
    ["A3"] in_a_row: u32 = 64, 1, 1_024, "jobs",
        "docs/results/guest-afalg.md: with 8, a quarter and a plan each 20 ms adaptive was at 0.93 of module_only, with these and 100 ms at 1.00";
    /// So many times as many must wait then: the last ones are claimed one by one.
    ["A3"] rows_min: u32 = 16, 1, 1_024, "times as many", "docs/results/guest-afalg.md, as of in_a_row";
    /// A module's worker waits so long for the first control job of a class.
    ["A3"] wait_for_control: Nanos = Nanos::from_micros(200), Nanos::from_micros(10), Nanos::from_millis(10), "time",
        "Assumed, not measured: 200 us, because it is below what a core needs for a claim";
    /// One in so many parts of the time of the core's jobs may be others', for it to count as alone.
    ["A4"] beside_parts: u64 = 16, 2, 1_000, "parts of the time", "Assumed, not measured: 16, because a timer's interrupts take a per cent or less";
    /// Requests of a module's turn, beside as many as it holds, which drain it. The first ones come after its rest and are left out
    /// (`costs/overhead/`), and those between are measured.
    ["T1"] requests: u32 = 22, 13, 1_000, "requests", "Assumed, not measured: 22, because ten are left beside the dozen after a rest";
    /// Jobs of a core's turn.
    ["T1"] jobs: u32 = 8, 1, 1_000, "jobs", "as many as the guard wants to have measured (G1)";
    /// Jobs that must wait besides: the end of a run is no time to learn.
    ["T1"] left_min: u32 = 16, 0, 10_000, "jobs", "Assumed, not measured: 16, because that is one burst in full lanes of AVX-512";
    /// A module's turn may take so many times as long as expected before the core goes on.
    ["T1"] times_expected: u64 = 4, 1, 1_000, "times",
        "Assumed, not measured: 4, because a module that takes longer is late by more than a plan errs";
    /// Requests of the way in force that are measured at least to make a pair.
    ["T2"] measured_min: u64 = 6, 1, 1_000, "requests", "Assumed, not measured: 6, because the mean of six strays by two fifths of what one does";
    /// And at most, for what was long ago was at another speed: then half of them count.
    ["T2"] measured_max: u64 = 32, 2, 10_000, "requests", "Assumed, not measured: 32, because that is a turn and a half";
    /// Turns may cost one in so many parts of the work while it is not sure which is faster.
    ["T3"] parts: u64 = 100, 2, 10_000, "parts of the work", "Assumed, not measured: 100, because 1 % is within the noise of a run";
    /// The same where it is sure.
    ["T3"] parts_where_sure: u64 = 400, 2, 100_000, "parts of the work", "Assumed, not measured: 400, because only a later change is looked for, and a quarter of the price finds it in four times the time";
    /// Requests' time for going to and fro: one each to fill and to drain the module, and a third of each of the dozen that come slower after
    /// its rest.
    ["T3"] to_and_fro: u64 = 6, 0, 1_000, "requests", "docs/results/guest-afalg.md: 355 us for 280";
}
