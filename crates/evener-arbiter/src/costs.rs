//! What processes learned of modules' costs, for those that come next.
//!
//! A row: a process writes all words of a class and a check of them -> another reads them, and takes the row for missing where the check is wrong. So two that write at once, and one that
//! dies between two words, leave nothing that is believed; the next to write makes it good.

use evener_core::Class;

use crate::layout::{COST_WORDS, Shape};
use crate::world::{World, millis};

/// A mean of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mean {
    /// In nanoseconds; what is longer than four seconds is written as that.
    pub ns: u32,
    /// How far single samples stray from it, in nanoseconds.
    pub deviation_ns: u32,
}

/// What a class costs on a module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// Core time of a job on the core's own path.
    pub c: Mean,
    /// Core time of the same job on the module's path.
    pub d: Mean,
    /// Time in which the module works and the core is free.
    pub h: Mean,
    /// Mean length of these jobs.
    pub bytes: u32,
    /// Samples that the means are made of.
    pub samples: u32,
}

/// Writes what a class costs.
pub(crate) fn publish<W: World>(world: &W, shape: &Shape, module: usize, class: Class, costs: &Costs) {
    let Some(span) = shape.costs(module, class.index()) else { return };
    let mut row = [0; COST_WORDS];
    let Costs { c, d, h, bytes, samples } = *costs;
    let means = [c, d, h].into_iter().flat_map(|mean| [mean.ns, mean.deviation_ns]);
    let words = means.chain([bytes, samples, millis(world.now())]);
    row.iter_mut().zip(words).for_each(|(place, word)| *place = word);
    row[CHECK] = check(&row, class);
    row.iter().enumerate().for_each(|(word, value)| world.store(span.at + word, *value));
}

/// Empties the rows of a module.
pub(crate) fn clear<W: World>(world: &W, shape: &Shape, module: usize) {
    let rows = (0..Class::COUNT).map_while(|class| shape.costs(module, class));
    // A check is odd, so 0 is never right; pages that were not written stay untouched.
    let checks = rows.map(|span| span.at + CHECK).filter(|at| world.load(*at) != 0);
    checks.for_each(|at| world.store(at, 0));
}

/// Reads what a class costs; none where it was not written, or not whole.
pub(crate) fn read<W: World>(world: &W, shape: &Shape, module: usize, class: Class) -> Option<Costs> {
    let span = shape.costs(module, class.index())?;
    let mut row = [0; COST_WORDS];
    row.iter_mut().enumerate().for_each(|(word, place)| *place = world.load(span.at + word));
    if row[CHECK] != check(&row, class) || row[SAMPLES] == 0 {
        return None;
    }
    let mean = |word: usize| Mean { ns: row[word], deviation_ns: row[word + 1].min(row[word]) };
    Some(Costs { c: mean(0), d: mean(2), h: mean(4), bytes: row[6], samples: row[SAMPLES].min(SAMPLES_MAX) })
}

const SAMPLES: usize = 7;
const CHECK: usize = COST_WORDS - 1;

/// Samples that are believed of another process: a mean is worth no more (weight 1/8).
const SAMPLES_MAX: u32 = 15;

/// FNV-1a of the words before the check, and of the class, so that a row in the wrong place is none.
fn check(row: &[u32; COST_WORDS], class: Class) -> u32 {
    let class = u32::try_from(class.index()).unwrap_or(u32::MAX);
    let words = row[..CHECK].iter().copied().chain([class]);
    let bytes = words.flat_map(u32::to_ne_bytes);
    bytes.fold(0x811C_9DC5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)) | 1
}
