//! The numbers of the policy for single requests: S1 which are looked at, S2 runs without a look, S3 trials, S4 tables, S5 what other processes learned. Costs, guard and
//! plan are core's, with core's numbers.

use evener_core::{Nanos, tuning};

tuning! {
    /// The numbers of the policy for single requests.
    pub(super) struct Tuning;

    /// Requests of a class that are not looked at once the policy has kept one from a module: each time it keeps one more they are doubled. A
    /// look takes 0.2 us, a request of 1 KiB 1 us.
    ["S1"] unsampled_first: u32 = 31, 1, 1_000, "requests to a look", "Assumed, not measured: 31, because a look is then below 1 % of 1 KiB";
    /// So many at most.
    ["S1"] unsampled_max: u32 = 4_095, 1, 100_000, "requests to a look", "a look takes 3 us: with 255 it was 0.6 % of requests of 4 KiB";
    /// Nor are they to take longer than this, beside which a look is nothing even on a slow core.
    ["S1"] unsampled_time: Nanos = Nanos::from_millis(1), Nanos::from_micros(10), Nanos::from_millis(100), "core time",
        "there 31 requests of 16 KiB, 33 ms, went by before a module that took a thirteenth was tried";
    /// Or than such a part of what their class has worked, where that is longer.
    ["S1"] unsampled_part: u32 = 64, 8, 100_000, "times what goes by without a look",
        "Assumed, not measured: 64, because what a module that began to pay was not given meanwhile is then below 2 % of the work";
    /// So long at most.
    ["S1"] unsampled_time_max: Nanos = Nanos::from_millis(20), Nanos::from_millis(1), Nanos::from_millis(1_000), "core time",
        "Assumed, not measured: 20 ms, as old as a table gets (S4)";
    /// Of requests that go to a module one in so many has its core time taken.
    ["S1"] sampled: u32 = 16, 1, 1_000, "requests to a sample", "a thread's clock takes 640 ns";
    /// All of the first ones have.
    ["S1"] sampled_first: u32 = 8, 1, 1_000, "requests", "as many as settle a mean (L2)";
    /// Requests that follow one that went, without a look, at most.
    ["S2"] run_requests_max: u64 = 15, 0, 1_000, "requests", "asking takes longer than a tenth of what a short request takes there";
    /// The time that they are to take together.
    ["S2"] run_time_max: Nanos = Nanos::from_millis(1), Nanos::from_micros(10), Nanos::from_millis(100), "time",
        "Assumed, not measured: 1 ms, because the guard allows a class on trial to lose as much (G2)";
    /// One that takes so many times what is expected is the last.
    ["S2"] run_surprise: u64 = 3, 2, 1_000, "times what is expected", "Assumed, not measured: 3, because that is above what a mean takes for a surprise (L2)";
    /// The first requests of a trial teach nothing: so many, or those of `cold_time`. What stands behind a module sleeps deeper after some
    /// milliseconds of rest than between two requests.
    ["S3"] cold_requests: u32 = 12, 0, 1_000, "requests", "docs/results/guest-afalg.md: 350 to 440 us each at first, 280 of 1000 in a row";
    /// The same as a time.
    ["S3"] cold_time: Nanos = Nanos::from_millis(5), Nanos::ZERO, Nanos::from_millis(1_000), "time", "a dozen of those requests";
    /// Requests after those, which teach.
    ["S3"] taught: u32 = 4, 1, 1_000, "requests", "as many as a class is tried by (R6)";
    /// A trial ends once its requests have taken so much longer than on a core, all together: one that takes 2 ms where a core takes 0.3 may
    /// be the first after a rest, or one whose thread was kept from its core. Below what a class may always lose (G2), so that the guard does
    /// not lock for a trial.
    ["S3"] trial_loss_max: Nanos = Nanos::from_millis(4), Nanos::from_micros(100), evener_core::guard::TUNING.loss_allowed, "time", "G2, less 1 ms";
    /// Samples that costs which another process learned are worth at most.
    ["S5"] believed: u32 = 3, 1, 15, "samples", "Assumed, not measured: 3, as many as costs of an earlier run are worth (L3): after as many of this process's own half of an error is gone";
    /// Core time of a class before this process asks a module for the first time of which others told that it does not pay: to connect takes a process and its host 2.4 ms
    /// together.
    ["S5"] first_try_work: Nanos = Nanos::from_millis(200), Nanos::from_millis(20), Nanos::from_millis(10_000), "core time of the class",
        "a hundredth of it is the connection (docs/results/hosted.md)";
    /// Core time of requests beside others of their thread before the first of them goes to a module that other processes have, too. It is not known what such requests take there, so the
    /// guard has to find out, for 5 ms (G2).
    ["S5"] first_beside_work: Nanos = Nanos::from_millis(500), Nanos::from_millis(20), Nanos::from_millis(10_000), "core time",
        "a hundredth of it is what the guard allows, half of one the connection";
    /// Age after which a table is made anew.
    ["S4"] table_age_max: Nanos = Nanos::from_millis(20), Nanos::from_millis(1), Nanos::from_millis(1_000), "age", "it takes some microseconds";
}
