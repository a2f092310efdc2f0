//! The numbers of the choice between plain and multi-buffer: M1 margin, M2 tries, M3 doubt, M4 drift.

use crate::tuning;

tuning! {
    /// The numbers of the method chooser.
    pub(super) struct Tuning;

    /// Multi-buffer must be better by this part: another library's code and tables in the caches, and the lanes that its last jobs leave
    /// empty, cost what no sample of a burst shows.
    ["M1"] margin: f64 = 0.05, 0.0, 0.5, "part of plain's cost", "calibration has found no better margin (docs/design/adaptive.md, Plain or multi-buffer)";
    /// By so many standard errors two means must differ to be believed different.
    ["M1"] sure: f64 = 2.0, 0.0, 10.0, "standard errors", "statistics: 19 of 20 cases";
    /// Bursts that try the method that is not in force, of a class and width.
    ["M2"] tries_max: u32 = 4, 1, 100, "bursts", "Assumed, not measured: 4, because two that agree settle a mean and two may surprise";
    /// Times by which lanes that are filled again and again may cost less than lanes that are filled once.
    ["M2"] filled_again: f64 = 2.0, 1.0, 10.0, "times", "Assumed, not measured: 2, because 1.15 and 1.4 were seen (short hashes, Zen 4)";
    /// Jobs of a try while nothing at all is known of a class and method.
    ["M2"] jobs_of_first_try: usize = 4, 1, 64, "jobs", "Assumed, not measured: 4, because a method may be much dearer";
    /// Times what the method in force costs a neighbour, up to which a first try is as wide as others.
    ["M2"] close: f64 = 2.0, 1.0, 10.0, "times", "Assumed, not measured: 2, for a wide try of what costs so much more takes as long as the part that it replaces";
    /// Jobs of other tries, but for the widest bursts.
    ["M2"] jobs_of_try: usize = 16, 1, 64, "jobs", "full lanes of AVX-512 (libipsec-mb)";
    /// Samples from which on more of them make a mean hardly surer.
    ["M2"] samples_enough: u32 = 16, 1, 1_000, "samples", "one more than a mean is worth at most (L1)";
    /// Samples of the method in force after which a mean of the other that is made of few is doubted, however far off it is: first jobs touch
    /// cold memory.
    ["M3"] samples_of_doubt: u32 = 16, 1, 1_000, "samples", "one new huge page takes ten times as long as 16 KiB of AES-CBC (measured)";
    /// Samples of the method in force after which a class does not rely on its neighbours any more, which may have been measured wrongly or
    /// in another place.
    ["M3"] samples_of_its_own: u32 = 16, 1, 1_000, "samples", "Assumed, not measured: 16, because what four tries take is little beside them";
    /// Further tries of such a mean each time the samples of the method in force have doubled.
    ["M3"] looks_again: u32 = 2, 1, 100, "bursts", "as many as surprise a mean (L2)";
    /// A method in force that costs so much more or less than when the other was last measured is compared again.
    ["M4"] drift: f64 = 0.25, 0.01, 1.0, "part of its cost",
        "Assumed, not measured: 0.25, because that is above what frequencies of cores change, below what a neighbour on the memory bus takes";
    /// Samples of each method that such a comparison needs.
    ["M4"] samples_of_comparison: u32 = 2, 1, 100, "samples", "as many as throw over a mean that holds no more (L2)";
    /// Tries until they are there. A try of jobs of several sizes is no sample.
    ["M4"] tries_of_comparison: u32 = 4, 1, 100, "bursts", "twice the samples: half may be none";
}
