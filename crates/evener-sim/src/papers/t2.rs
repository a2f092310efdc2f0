//! Paper 001: crypto processes queue for the hardware threads of an UltraSPARC T2. **Shape only**: the paper gives
//! its results in a figure without numbers, so nothing here can be checked against a measurement.
//!
//! Path of one figure: processes arrive ([`Arrivals`]) -> each waits for the slot that its process id names, or for
//! any slot ([`Admission`]) -> slots are used for a while and stand empty for another ([`Occupation`]). Beside it the
//! shape of throughput: [`Machine::ungated`] falls with every process, [`Machine::gated`] stays level and costs a
//! little from the start, so the two cross; where they cross was put in, not found out.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::random::Random;

/// Slots of the paper: as many as the processor has hardware threads, 8 cores of 8.
pub const SLOTS: u32 = 64;

/// Random process ids lie below this: the usual limit of Solaris, and what the reference draws from.
const IDS: u32 = 30_000;

/// Crypto units of the processor, one per core.
pub const UNITS: u32 = 8;

/// Which process may use which slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The paper's control lists: process id modulo slots names the list; its head runs, the others wait for that
    /// slot even where others stand empty.
    Lists,
    /// One queue for all slots; the process that has waited longest takes the first free slot.
    Fifo,
}

/// Process ids of processes that start together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// One id after the other, as a program that forks without a pause gets them.
    Sequential,
    /// Ids without pattern below 30 000, by [`Random`] with this seed.
    Random(u64),
}

impl Arrivals {
    /// The ids of the first `count` processes.
    #[must_use]
    pub fn ids(self, count: u32) -> Vec<u32> {
        match self {
            // 1000: where ids start does not matter, only that they follow each other.
            Self::Sequential => (1000..1000 + count).collect(),
            Self::Random(seed) => {
                let mut random = Random::new(seed);
                (0..count).map(|_| below(&mut random, IDS)).collect()
            }
        }
    }
}

fn below(random: &mut Random, end: u32) -> u32 {
    u32::try_from(random.below(u64::from(end))).expect("it is below a u32")
}

/// A process that wants a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Process id.
    pub id: u32,
    /// How long it keeps its slot, in units of the caller's choice.
    pub holds: u64,
}

/// How slots were used from the first start to the last end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occupation {
    /// When each process got its slot, in the order of arrival.
    pub starts: Vec<u64>,
    /// When the last process gave its slot back.
    pub end: u64,
    /// Sum of all times for which slots were held.
    pub held: u64,
    /// How many slots there are.
    pub slots: u32,
}

impl Admission {
    /// Lets `processes` through, which all arrive at time 0, in this order.
    ///
    /// # Panics
    ///
    /// Where `slots` is 0.
    #[must_use]
    pub fn admit(self, processes: &[Process], slots: u32) -> Occupation {
        assert!(slots > 0, "without a slot no process can pass");
        let starts = match self {
            Self::Lists => starts_in_lists(processes, slots),
            Self::Fifo => starts_in_fifo(processes, slots),
        };
        let ends = starts.iter().zip(processes).map(|(start, process)| start + process.holds);
        let end = ends.max().unwrap_or(0);
        Occupation { starts, end, held: processes.iter().map(|process| process.holds).sum(), slots }
    }
}

fn starts_in_lists(processes: &[Process], slots: u32) -> Vec<u64> {
    let mut free_at = vec![0; slots as usize];
    let start = |process: &Process| {
        let slot = &mut free_at[(process.id % slots) as usize];
        std::mem::replace(slot, *slot + process.holds)
    };
    processes.iter().map(start).collect()
}

fn starts_in_fifo(processes: &[Process], slots: u32) -> Vec<u64> {
    let mut free_at: BinaryHeap<Reverse<u64>> = (0..slots).map(|_| Reverse(0)).collect();
    let start = |process: &Process| {
        let Reverse(start) = free_at.pop().expect("as many are pushed as popped");
        free_at.push(Reverse(start + process.holds));
        start
    };
    processes.iter().map(start).collect()
}

impl Occupation {
    /// Share of the slots' time in which they were held, 0 to 1; 0 where there was no process.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "sums far below 2^53")]
    pub fn utilisation(&self) -> f64 {
        if self.end == 0 { 0.0 } else { self.held as f64 / (f64::from(self.slots) * self.end as f64) }
    }
}

/// Share of the 64 slots' time that `count` equal processes use, 0 to 1. With lists this is
/// `count / (64 * longest list)`.
#[must_use]
pub fn utilisation(admission: Admission, arrivals: Arrivals, count: u32) -> f64 {
    let equal = |id| Process { id, holds: 1 };
    let processes: Vec<Process> = arrivals.ids(count).into_iter().map(equal).collect();
    admission.admit(&processes, SLOTS).utilisation()
}

/// Times of one operation, in arbitrary units, and what disorder costs. All four are assumed, not measured: the paper gives no
/// numbers, and only the shape that follows has a meaning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Time on a hardware thread.
    pub cpu: f64,
    /// Time on a crypto unit.
    pub unit: f64,
    /// By which share every operation grows for each 64 runnable processes beyond the 64 that can run (alpha).
    pub disorder: f64,
    /// By which share the gate lengthens every operation (beta).
    pub gate: f64,
}

impl Machine {
    /// A machine whose gate pays from `crossover` processes on: then `disorder` follows from `gate`. One equation, two
    /// unknowns: with every `gate` the paper's "about 500" can be met.
    #[must_use]
    pub fn that_crosses_at(crossover: u32, gate: f64) -> Self {
        let beyond = f64::from(crossover.saturating_sub(SLOTS)) / f64::from(SLOTS);
        Self { disorder: gate / beyond, gate, ..GUESS }
    }

    /// Operations per unit of time while `runnable` processes compete for threads and units.
    #[must_use]
    pub fn rate(&self, runnable: f64) -> f64 {
        let by_latency = runnable / (self.cpu + self.unit);
        let by_units = f64::from(UNITS) / self.unit;
        let by_threads = f64::from(SLOTS) / self.cpu;
        let beyond = (runnable - f64::from(SLOTS)).max(0.0) / f64::from(SLOTS);
        by_latency.min(by_units).min(by_threads) / (1.0 + self.disorder * beyond)
    }

    /// Operations per unit of time with `count` processes and no gate.
    #[must_use]
    pub fn ungated(&self, count: u32) -> f64 {
        self.rate(f64::from(count))
    }

    /// Operations per unit of time with `count` equal processes behind the paper's lists, from the first start to the
    /// last end. 0 where there are no processes.
    #[must_use]
    pub fn gated(&self, arrivals: Arrivals, count: u32) -> f64 {
        let mut lengths = [0_u32; SLOTS as usize];
        for id in arrivals.ids(count) {
            lengths[(id % SLOTS) as usize] += 1;
        }
        lengths.sort_unstable();
        // All heads advance at the same pace, so the shortest lists run dry first.
        let (mut time, mut done) = (0.0, 0.0);
        for (active, length) in (1..=SLOTS).rev().map(f64::from).zip(lengths.map(f64::from)) {
            time += (length - done) * (1.0 + self.gate) * active / self.rate(active);
            done = length;
        }
        if time > 0.0 { f64::from(count) / time } else { 0.0 }
    }

    /// The least number of processes, in steps of 4 from 64 to 1536, from which on the gate is faster.
    #[must_use]
    pub fn crossover(&self) -> Option<u32> {
        let pays = |&count: &u32| self.ungated(count) < self.gated(Arrivals::Sequential, count);
        (SLOTS..=1536).step_by(4).find(pays)
    }
}

/// Times of an operation. Assumed, not measured: 0.6 on a thread and 1.0 on a unit, because the paper gives none and only their ratio shapes a curve.
const GUESS: Machine = Machine { cpu: 0.6, unit: 1.0, disorder: 0.0, gate: 0.0 };

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::table::Table;

    const LISTS: Table = Table::new(include_str!("../../../../vectors/papers/golden/pred_t2_lists.csv"));
    const SHAPE: Table = Table::new(include_str!("../../../../vectors/papers/golden/pred_t2_shape.csv"));

    fn numbers(table: &Table, column: &str) -> Vec<f64> {
        table.numbers(column).unwrap()
    }

    fn counts(table: &Table) -> Vec<u32> {
        table.cells("processes").unwrap().iter().map(|cell| cell.parse().unwrap()).collect()
    }

    /// 200 draws of random ids, from the least value to the greatest.
    fn draws(of: impl Fn(Arrivals) -> f64) -> Vec<f64> {
        let mut values: Vec<f64> = (0..200).map(|seed| of(Arrivals::Random(seed))).collect();
        values.sort_by(f64::total_cmp);
        values
    }

    #[test]
    fn slots_are_used_as_the_reference_says_where_no_chance_is_involved() {
        let lists = numbers(&LISTS, "slot_utilisation_pid_mod_64_sequential");
        let fifo = numbers(&LISTS, "slot_utilisation_global_fifo_64_permits");
        for (row, count) in counts(&LISTS).into_iter().enumerate() {
            for (admission, golden) in [(Admission::Lists, lists[row]), (Admission::Fifo, fifo[row])] {
                let computed = utilisation(admission, Arrivals::Sequential, count);
                assert!((computed - golden).abs() < 0.000_51, "{admission:?} {count}: {computed} {golden}");
            }
        }
    }

    #[test]
    fn a_thousand_processes_and_more_keep_95_of_100_slots_busy_in_one_queue() {
        for count in [1000, 1024, 1100, 1280, 1500, 2000, 5000] {
            for arrivals in [Arrivals::Sequential, Arrivals::Random(7)] {
                assert!(utilisation(Admission::Fifo, arrivals, count) >= 0.95, "{count}");
            }
        }
    }

    #[test]
    fn lists_lose_a_third_of_the_slots_to_random_ids_as_the_reference_says() {
        let golden = numbers(&LISTS, "slot_utilisation_random_pid");
        for (row, count) in counts(&LISTS).into_iter().enumerate() {
            let computed =
                draws(|arrivals| utilisation(Admission::Lists, arrivals, count)).iter().sum::<f64>() / 200.0;
            // The reference is a mean of 20 draws of another generator.
            assert!((computed - golden[row]).abs() < 0.03, "{count}: {computed} {}", golden[row]);
        }
    }

    #[test]
    fn one_queue_serves_in_order_of_arrival_and_leaves_no_slot_empty_while_someone_waits() {
        let mut random = Random::new(5);
        let mut process = |id| Process { id, holds: 1 + random.below(50) };
        let processes: Vec<Process> = (0..500).map(&mut process).collect();
        let occupation = Admission::Fifo.admit(&processes, SLOTS);
        assert!(occupation.starts.is_sorted());
        for time in 0..*occupation.starts.last().unwrap() {
            let runs = |(start, process): (&u64, &Process)| *start <= time && time < start + process.holds;
            let busy = occupation.starts.iter().zip(&processes).filter(|&pair| runs(pair)).count();
            assert_eq!(busy, SLOTS as usize, "at {time}");
        }
    }

    #[test]
    fn a_list_waits_for_its_own_slot_though_others_are_free() {
        let processes = [(1, 10), (65, 10), (2, 10)].map(|(id, holds)| Process { id, holds });
        assert_eq!(Admission::Lists.admit(&processes, SLOTS).starts, [0, 10, 0]);
        assert_eq!(Admission::Fifo.admit(&processes, SLOTS).starts, [0, 0, 0]);
    }

    #[test]
    fn throughput_has_the_shape_of_the_reference() {
        let machine = Machine::that_crosses_at(500, 0.03);
        let [plain, lists, random] =
            ["plain_ops_per_unit", "lists_seq_pid", "lists_random_pid"].map(|column| numbers(&SHAPE, column));
        for (row, count) in counts(&SHAPE).into_iter().enumerate() {
            assert!((machine.ungated(count) - plain[row]).abs() < 0.000_51, "{count}");
            assert!((machine.gated(Arrivals::Sequential, count) - lists[row]).abs() < 0.000_51, "{count}");
            let computed = draws(|arrivals| machine.gated(arrivals, count));
            // The reference is one draw of another generator: it must lie among ours.
            assert!(
                computed[0] <= random[row] && random[row] <= computed[199],
                "{count}: {computed:?} {}",
                random[row]
            );
        }
    }

    #[test]
    fn behind_the_gate_throughput_is_level_without_it_it_falls_and_they_cross_once() {
        let machine = Machine::that_crosses_at(500, 0.03);
        let counts = (1..=24).map(|step| step * SLOTS);
        let gated: Vec<f64> =
            counts.clone().map(|count| machine.gated(Arrivals::Sequential, count)).collect();
        let ungated: Vec<f64> = counts.map(|count| machine.ungated(count)).collect();
        assert!(gated.iter().all(|rate| (rate / gated[0] - 1.0).abs() < 1e-9), "{gated:?}");
        assert!(ungated.is_sorted_by(|one, next| one > next), "{ungated:?}");
        assert!(ungated[0] > gated[0] && ungated[23] < gated[23]);
    }

    #[test]
    fn where_they_cross_follows_from_what_was_put_in() {
        for (wanted, gate) in [(300, 0.01), (500, 0.03), (500, 0.1), (1000, 0.03)] {
            let found = Machine::that_crosses_at(wanted, gate).crossover().unwrap();
            assert!(found.abs_diff(wanted) <= 40, "{wanted}: {found}");
        }
        assert_eq!(Machine { gate: 0.03, ..GUESS }.crossover(), None);
    }
}
