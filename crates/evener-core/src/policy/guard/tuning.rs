//! The numbers of the guard's rules: G1 control, G2 loss, G3 lock and trial, G4 requests of any length.

use crate::tuning;
use crate::units::Nanos;

tuning! {
    /// The numbers of the guard.
    pub struct Tuning;

    /// One of so many jobs that would be routed runs inline as control: 1.6 % of the gain is the price of knowing it. A power of two.
    ["G1"] control_period: u64 = 64, 2, 1 << 16, "routed jobs to a control", "its price, 1.6 % of the gain (docs/design/adaptive.md, Limits)";
    /// Where the price of controls is more than one in so many parts of what is routed, fewer will do, for a core would have to become that
    /// much faster before routing were wrong. Beside a module that takes a thirteenth of a core's time, one job in 64 inline were a fifth of
    /// all time. A multiple of the period.
    ["G1"] control_share: u64 = 256, 64, 1 << 20, "parts of what is routed", "Assumed, not measured: one in 256, because 0.4 % is below the noise of a run";
    /// Controls are at most so many times as rare: a changed core must not be noticed after minutes only. A power of two.
    ["G1"] control_stretch_max: u64 = 64, 1, 1 << 16, "times the period", "Assumed, not measured: 64, because the next control, after 4096 jobs, is seconds away at 1,000 jobs a second";
    /// So many jobs are measured inline before any is routed: their mean is within 12 % of the true one in 19 of 20 cases where single jobs
    /// vary by 30 %.
    ["G1"] control_jobs_first: u64 = 8, 1, 1_000, "jobs", "statistics, as the text says";
    /// Where jobs are long so much time of them will do, and two of them: longer ones vary less, and eight of 1 MiB take half a second of a
    /// slow core.
    ["G1"] control_time_first: Nanos = Nanos::from_millis(10), Nanos::from_millis(1), Nanos::from_millis(1_000), "core time",
        "Assumed, not measured: 10 ms, because two of those vary less than eight short ones";
    /// Where others say what a job takes inline, one in so many is a control job until there are as many as that.
    ["G1"] control_period_told: u64 = 4, 2, 64, "jobs", "Assumed, not measured: 4, because a wrong word is then known after 16 to 32 jobs, and a right one costs a quarter of those";
    /// Control jobs after which their weight is halved.
    ["G1"] control_window: u64 = 128, 2, 1 << 20, "control jobs",
        "Assumed, not measured: 128, because it balances noise and the time in which a changed inline cost is noticed, 64 control jobs to half";
    /// Loss in core or wall time that a class may always have.
    ["G2"] loss_allowed: Nanos = Nanos::from_millis(5), Nanos::from_micros(100), Nanos::from_millis(1_000), "core or wall time",
        "Assumed, not measured: 5 ms, because it is lost once; what came of it: docs/design/adaptive.md, Numbers reached";
    /// The same for a class on trial.
    ["G2"] loss_allowed_on_trial: Nanos = Nanos::from_millis(1), Nanos::from_micros(50), Nanos::from_millis(1_000), "core or wall time",
        "Assumed, not measured: 1 ms, because that is small beside what is always allowed and large beside one wake-up";
    /// A class may lose one in so many parts of what its routed jobs would have cost inline: 2 %.
    ["G2"] loss_share: u64 = 50, 2, 10_000, "parts of the inline cost", "Assumed, not measured: 2 %, because noise in means of many jobs is less; what came of it: docs/design/adaptive.md, Numbers reached";
    /// Inline cost after which loss and inline cost are halved, so that no class ever has more than 2 % of it to lose at a stroke.
    ["G2"] loss_window: Nanos = Nanos::from_millis(10_000), Nanos::from_millis(100), Nanos::from_millis(1_000_000), "inline cost",
        "Assumed, not measured: 10 s, because 2 % of it are 0.2 s";
    /// Of so many routed jobs one may be excused that took more than twice what is paid for on the direct path: it is taken for one that lost its core.
    /// A way that is always so slow is seen whole with the second.
    ["G2"] excuse_period: u64 = 1_024, 64, 1 << 20, "routed jobs", "Assumed, not measured: 1024, because 64 bursts of sixteen messages of 16 KiB take 2 ms, the shortest slice of a scheduler";
    /// Length of the first lock of a class; each one after it is twice as long. A trial may lose less than a hundredth of that, and one
    /// request that met a stall of 6 ms, of a module that takes a thirteenth of a core's time, costs no second of its gain.
    ["G3"] lock_first: Nanos = Nanos::from_millis(125), Nanos::from_millis(1), Nanos::from_millis(10_000), "time", "a hundred times what a trial may lose, and more";
    /// The longest lock.
    ["G3"] lock_max: Nanos = Nanos::from_millis(300_000), Nanos::from_millis(1_000), Nanos::from_millis(3_600_000), "time",
        "Assumed, not measured: 5 min, because a repaired module is then used again within minutes";
    /// Routed jobs after which a trial is judged.
    ["G3"] trial_jobs: u64 = 256, 8, 1 << 20, "jobs", "Assumed, not measured: 256, because noise of 30 % in single jobs leaves 2 % in their mean";
    /// Requests of more bytes than two to this are entered at their share of that: one that lost its core for a slice is no verdict on its
    /// class. So many bytes take about half a millisecond, a tenth of what a class may always lose.
    ["G4"] entered_whole: u32 = 22, 4, 30, "power of two, bytes", "Assumed, not measured: 22, because 4 MiB take half a millisecond at 8 GB/s";
}

// A control lies at a place of each period that follows from the leading bits of a product; and a period's share is whole.
const _: () =
    assert!(TUNING.control_period.is_power_of_two() && TUNING.control_stretch_max.is_power_of_two());
const _: () = assert!(TUNING.control_share % TUNING.control_period == 0);
