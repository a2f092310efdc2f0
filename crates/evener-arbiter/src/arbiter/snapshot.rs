//! What all processes have and want, at one moment: for people to look at.

use evener_core::Class;
use evener_ring::value;

use crate::arrival_queue::ArrivalQueue;
use crate::costs::{self, Costs};
use crate::gate::{Gate, WEIGHT_MAX};
use crate::layout::{Header, Line, ModuleCount, Owner, Phase, Shape, WaitQueue};
use crate::segment::{Shared, text_of};
use crate::work::{Work, work_of};
use crate::world::{World as _, elapsed_us};

/// All modules and processes of a segment. Each word is as it was when it was read; together they may never have been.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Those that have a name.
    pub modules: Vec<ModuleView>,
    /// Those that have places, a line for each place.
    pub processes: Vec<ProcessView>,
}

/// A module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleView {
    /// As its users call it, the first 64 bytes.
    pub name: String,
    /// Its permits.
    pub capacity: usize,
    /// Who has one.
    pub holders: Vec<HolderView>,
    /// Who waits, in the order of service.
    pub waiting: Vec<ProcessView>,
    /// How long a request that came now would wait, in nanoseconds; none where no permit comes back.
    pub expected_wait_ns: Option<u64>,
    /// What was done there.
    pub work: Work,
    /// What was counted.
    pub counts: Vec<(ModuleCount, u64)>,
    /// What was learned of it, by class.
    pub costs: Vec<(Class, Costs)>,
}

/// Who has a permit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HolderView {
    /// The process.
    pub process: ProcessView,
    /// How long its request was predicted to take, in nanoseconds.
    pub predicted_ns: u32,
    /// Since when it has it, in microseconds.
    pub held_us: u32,
}

/// A process, by one of its places. All of this is what it says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessView {
    /// Which place.
    pub place: usize,
    /// Its number where it was started; another namespace numbers otherwise.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Requests that it may have for each one of another.
    pub weight: u32,
    /// Requests that were granted to this place.
    pub grants: u64,
    /// Whether it asks for a permit or has one.
    pub is_busy: bool,
}

pub(super) fn read(shared: &Shared) -> Snapshot {
    let shape = *shared.shape();
    let used = (shared.load(shape.header(Header::Used)) as usize).min(shape.places());
    let is_taken = |place: &usize| shared.load(shape.place(*place, Line::Taken)) == 1;
    Snapshot {
        modules: (0..shape.modules()).filter_map(|module| module_view(shared, &shape, module)).collect(),
        processes: (0..used).filter(is_taken).map(|place| process(shared, &shape, place)).collect(),
    }
}

fn module_view(shared: &Shared, shape: &Shape, module: usize) -> Option<ModuleView> {
    let name = shared.name_of(module)?;
    let capacity = shared.capacity(module);
    let now = shared.now();
    let holder = |permit: usize| {
        let owner = Owner::of(shared.load(shape.permit(module, permit)), shape.places())?;
        let line = |word: Line| shared.load(shape.place(owner.place, word));
        Some(HolderView {
            process: process(shared, shape, owner.place),
            predicted_ns: line(Line::Predicted),
            held_us: elapsed_us(line(Line::Since), now),
        })
    };
    let wait_queue = |wait_queue: WaitQueue| {
        ArrivalQueue::new(shared, shape, module, wait_queue).all().map(|waiter| waiter.place).collect()
    };
    let waiting: Vec<usize> =
        [WaitQueue::Express, WaitQueue::Main].into_iter().flat_map::<Vec<usize>, _>(wait_queue).collect();
    let count = |count: ModuleCount| {
        let at = shape.count(module, count);
        (count, value(shared.load(at), shared.load(at + 1)))
    };
    let wait = Gate::new(shared, shape, module, capacity)?.expected_wait_ns(now);
    let cost = |index: usize| {
        let class = Class::from_index(index)?;
        Some((class, costs::read(shared, shape, module, class)?))
    };
    Some(ModuleView {
        name,
        capacity,
        holders: (0..capacity).filter_map(holder).collect(),
        waiting: waiting.into_iter().map(|place| process(shared, shape, place)).collect(),
        expected_wait_ns: (wait < u64::MAX).then_some(wait),
        work: work_of(shared, shape, module),
        counts: ModuleCount::ALL.map(count).to_vec(),
        costs: (0..Class::COUNT).filter_map(cost).collect(),
    })
}

fn process(shared: &Shared, shape: &Shape, place: usize) -> ProcessView {
    let line = |word: Line| shape.place(place, word);
    let name: Vec<u8> = (0..4).flat_map(|word| shared.load(line(Line::Name) + word).to_ne_bytes()).collect();
    let grants = line(Line::Grants);
    ProcessView {
        place,
        pid: shared.load(line(Line::Pid)),
        name: text_of(&name),
        weight: shared.load(line(Line::Weight)).clamp(1, WEIGHT_MAX),
        grants: value(shared.load(grants), shared.load(grants + 1)),
        is_busy: Phase::of(shared.load(line(Line::Phase))) != Phase::Idle,
    }
}
