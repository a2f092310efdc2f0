//! `evener run-shard`: one shard of a plan, from its listing to its report.
//!
//! ```text
//! feed (names of the shard) ─> queue ─> each thread: done already? ─> read ─> segments on this core ─> written under its name, with its mark
//!                                └──> parts of large objects, before new objects
//! ```
//! A thread takes an object, or a part of a large one, to its end. There are more threads than cores, for most of the time each waits for a store.
//! A shard that is a range of an object has the parts of that alone; `round.rs` has how machines make one output of theirs.

mod core;
mod feed;
mod large;
mod notes;
mod order;
mod parts;
mod queue;
mod round;
mod worker;

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use evener::core::Direction as Way;
use evener::core::plan::Policy;
use evener::{CoreDrivers, DriverFactory as _, Setup};
use evener_files::Task;
use evener_files::object::{ObjectWork, mark};
use evener_machine::{Choice, Machine, Silent};
use evener_shards::{Existing, Plan, PlanError, Portion, Ranged, ShardRun};
use rustix::process::{Signal, set_parent_process_death_signal};

use self::core::Core;
use crate::keys;
use crate::outcome::{Exit, Failure, Kind, Retries};
use crate::report::{self, Report};
use crate::spared::Spared;
use crate::store::{self, Found, Rules, Store};
use feed::Feed;
use order::Order;
use queue::Queue;
use worker::{InParts, Worker};

/// What an object may have to be read and written at once, and what a part of a larger one has: more than the 5 MiB that stores want, and a few
/// of them fit the memory of a small pod.
///
/// Where this, the next one or what is made of them changes, names of notes have to (`notes.rs`): machines that share an object cut it alike.
const PART_BYTES: u64 = 8 << 20;
/// Parts of one object; stores take 10000.
const PARTS_MAX: u64 = 9_000;
/// What a thread has in slots, at most.
const SLOTS_BYTES: u64 = 4 << 20;
/// Threads where nothing else is said: a few for each core, for they wait for a store.
const THREADS_PER_CORE: usize = 4;

/// Does a shard.
pub(crate) fn run(run: &ShardRun) -> Result<Exit, Failure> {
    if run.with_parent {
        // A parent that has ended already is not noticed: then it is as without.
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(Failure::never)?;
    }
    let mut spared = Spared::default();
    let plan = plan(&run.plan, &mut spared)?;
    let of_plan = |error: PlanError| Failure::never(format_args!("{}: {error}", run.plan.display()));
    let portion = plan.shard(run.number).map_err(of_plan)?;
    let retries = Retries { timeout: Duration::from_secs(run.timeout_s.into()) };
    let task = keys::task(plan.direction, &run.keys, &mut spared, retries.timeout)?;
    mark(&task, &plan.salt, &[])
        .ok_or_else(|| Failure::never("passphrases are for people: shards take keys"))?;
    // Where links lead was another machine's when the plan was made.
    store::places(&plan.source, &plan.destination)?;
    let source = store::open(&plan.source, retries).map_err(missing)?;
    spared.add_places([&plan.source, &plan.destination]);
    let rules = Rules { spared: spared.clone(), needs_marks: run.existing != Existing::Replace };
    let destination = store::open_for_outputs(&plan.destination, retries, rules).map_err(missing)?;
    let lines = run.json.as_deref().map(|path| report::lines(path, &spared)).transpose()?;
    let report = Report::new(run.number, lines, run.quiet);
    let shared = shared(portion, &task, &*destination);
    let feed = match portion {
        Portion::Names(shard, upto) => Feed::new(&*source, shard, upto, plan.is_ordered, retries, &report),
        // What cannot be shared is done whole, by the first of its shards.
        Portion::Range(object, number) => {
            let is_here = shared.is_some() || number == 0;
            Feed::One(is_here.then(|| Found::by_tag(&object.name, object.bytes, &object.tag)))
        }
    };
    let threads = threads(&task, run);
    let extra_bytes = run.memory_bytes.saturating_sub(thread_bytes(&task).saturating_mul(threads as u64));
    let queue = Queue::new(feed, extra_bytes);
    let shard = Order {
        plan: &plan,
        portion,
        shared,
        task: &task,
        source: &*source,
        destination: &*destination,
        existing: run.existing,
        retries,
        report: &report,
        ended: OnceLock::new(),
    };
    on_threads(&shard, &queue, threads)?;
    drop(queue);
    match shard.ended.into_inner() {
        Some(failure) => Err(failure),
        None => report.finish(),
    }
}

/// Reads the plan, whose file is spared.
fn plan(path: &Path, spared: &mut Spared) -> Result<Plan, Failure> {
    let name = path.display();
    let mut text = String::new();
    let read = File::open(path).and_then(|mut file| {
        spared.add(&file, "the plan");
        file.read_to_string(&mut text)
    });
    read.map_err(|error| Failure::never(format_args!("cannot read {name}: {error}")))?;
    Plan::read(&text).map_err(|error| Failure::never(format_args!("{name}: {error}")))
}

/// A directory that the plan has, and that is not there: what is to be mounted there may come.
fn missing(failure: Failure) -> Failure {
    if failure.kind != Kind::Absent {
        return failure;
    }
    let text = format_args!("{failure}; it may be a mount that is missing (evener plan makes DEST)");
    Failure::new(Kind::Transient, text)
}

/// The range that a shard is, where it can be done beside others: where their parts can become one output, under a header that all can make,
/// of one state of the source.
fn shared<'p>(portion: Portion<'p>, task: &Task, destination: &dyn Store) -> Option<(&'p Ranged, u32)> {
    let Portion::Range(object, number) = portion else { return None };
    let is_pinned = Found::by_tag(&object.name, object.bytes, &object.tag).strong_tag().is_some();
    let can_be = is_pinned && ObjectWork::can_be_shared(task) && destination.sharing().is_some();
    can_be.then_some((object, number))
}

/// Has threads work on the shard; this one is among them.
fn on_threads(shard: &Order<'_>, queue: &Queue<'_, Arc<InParts>>, threads: usize) -> Result<(), Failure> {
    let (way, algorithms) = match shard.task {
        Task::Encrypt(sealer) => (Way::Encrypt, sealer.algorithms()),
        Task::Decrypt(opener) => (Way::Decrypt, opener.algorithms()),
    };
    let operations: Vec<_> = algorithms.into_iter().map(|algorithm| (algorithm, way)).collect();
    let machine =
        Machine::only_for(&operations, &Choice::default(), false, &Silent).map_err(Failure::never)?;
    let slots = slots(shard.task);
    let drivers: Vec<CoreDrivers> = (0..threads).map(|_| machine.core_drivers()).collect();
    let setup = Setup {
        policy: Policy::CpuOnly,
        callers: threads,
        homes: threads + 1,
        home_jobs: slots,
        ..Setup::default()
    };
    let work = evener::try_run(setup, |runtime| {
        thread::scope(|scope| {
            let mut drivers = drivers.into_iter();
            let own = drivers.next();
            let mut others = Vec::new();
            for drivers in drivers {
                let core = Core::new(shard.task, slots, runtime.caller(drivers));
                let work = move || Worker { shard, queue, core }.run();
                let thread = thread::Builder::new().name("evener-transfer".to_owned());
                // Where no further thread is to be had, those there are do all of it.
                let Ok(begun) = thread.spawn_scoped(scope, work) else { break };
                others.push(begun);
            }
            if let Some(drivers) = own {
                let core = Core::new(shard.task, slots, runtime.caller(drivers));
                Worker { shard, queue, core }.run();
            }
            evener::join_all(others);
        });
    });
    work.map(drop).map_err(Failure::never)
}

/// Bytes of a segment.
fn segment_bytes(task: &Task) -> u64 {
    match task {
        Task::Encrypt(sealer) => sealer.slot_bytes(),
        Task::Decrypt(opener) => opener.slot_bytes(),
    }
}

/// Segments that a thread works on at once.
fn slots(task: &Task) -> usize {
    usize::try_from(SLOTS_BYTES / segment_bytes(task).max(1)).unwrap_or(1).clamp(1, 64)
}

/// Bytes for a part of usual size, read and made: whole segments of [`PART_BYTES`].
fn part_memory(task: &Task) -> u64 {
    PART_BYTES.saturating_add(segment_bytes(task)).saturating_mul(2)
}

/// What a thread takes.
fn thread_bytes(task: &Task) -> u64 {
    part_memory(task).saturating_add(segment_bytes(task).saturating_mul(slots(task) as u64))
}

/// As many threads as were asked for, or as are good and fit the memory.
fn threads(task: &Task, run: &ShardRun) -> usize {
    if let Some(threads) = run.transfers {
        return threads.get().into();
    }
    let affordable = usize::try_from(run.memory_bytes / thread_bytes(task)).unwrap_or(usize::MAX);
    (THREADS_PER_CORE * evener::core_budget().workers()).min(affordable).max(1)
}

#[cfg(test)]
mod tests {
    use std::ops::Range;
    use std::sync::mpsc::{RecvTimeoutError, channel};
    use std::sync::{Condvar, Mutex};

    use bytes::Bytes;
    use evener_files::age_keys::generate_identity;
    use evener_shards::{Direction, Keys, Shard};

    use super::*;
    use crate::store::{Listing, Making, Standing, Upload};

    /// A store of objects of this length, in which a read of the beginning of `bad` panics.
    struct Panicking(u64);

    impl Store for Panicking {
        fn list(&self, _: &str) -> Listing {
            let bytes = self.0;
            let found = move |name: &str| Ok(Found { name: name.to_owned(), bytes, version: String::new() });
            Box::new(["a", "bad", "c", "d", "e", "f"].map(found).into_iter())
        }

        fn read(&self, found: &Found, range: Range<u64>) -> Result<Bytes, Failure> {
            if found.name == "bad" && range.start == 0 {
                // The others have taken the parts behind it by then, and wait.
                thread::sleep(Duration::from_millis(300));
                panic!("as it is to");
            }
            let bytes = usize::try_from(range.end - range.start).map_err(Failure::never)?;
            Ok(vec![7; bytes].into())
        }

        fn standing(&self, _: &str) -> Result<Option<Standing>, Failure> {
            Ok(None)
        }

        fn put(&self, _: &Making, _: Bytes) -> Result<(), Failure> {
            Ok(())
        }

        fn begin(&self, _: &Making) -> Result<Arc<dyn Upload>, Failure> {
            Ok(Arc::new(InTurn::default()))
        }
    }

    /// An upload that takes the next part only, as Azure's: the others wait.
    #[derive(Default)]
    struct InTurn {
        /// The next part, and whether it was given up.
        state: Mutex<(usize, bool)>,
        changed: Condvar,
    }

    impl Upload for InTurn {
        fn part(&self, number: usize, _: u64, _: Bytes) -> Result<(), Failure> {
            let is_early = |(next, is_given_up): &mut (usize, bool)| *next < number && !*is_given_up;
            let mut state = self.changed.wait_while(self.state.lock().unwrap(), is_early).unwrap();
            state.0 = number + 1;
            self.changed.notify_all();
            Ok(())
        }

        fn complete(&self) -> Result<(), Failure> {
            Ok(())
        }

        fn give_up(&self) {
            self.state.lock().unwrap().1 = true;
            self.changed.notify_all();
        }

        fn abort(&self) {}
    }

    fn run_that_panics(bytes: u64) -> Result<(), Failure> {
        let store = Panicking(bytes);
        let made = generate_identity(std::time::SystemTime::now(), false).map_err(Failure::never)?;
        let keys = Keys { recipients: vec![made.recipient.clone()], ..Keys::default() };
        let task = keys::task(Direction::Encrypt, &keys, &mut Spared::default(), Duration::ZERO)?;
        let plan = Plan {
            direction: Direction::Encrypt,
            source: "a".to_owned(),
            destination: "b".to_owned(),
            suffix: String::new(),
            salt: [0; 16],
            is_ordered: true,
            shards: vec![Shard { after: String::new(), objects: 6, bytes: 6 * bytes }],
            ranged: Vec::new(),
        };
        let retries = Retries { timeout: Duration::ZERO };
        let report = Report::new(0, None, true);
        let shard = Order {
            plan: &plan,
            portion: plan.shard(0).unwrap(),
            shared: None,
            task: &task,
            source: &store,
            destination: &store,
            existing: Existing::Keep,
            retries,
            report: &report,
            ended: OnceLock::new(),
        };
        let queue = Queue::new(Feed::new(&store, &plan.shards[0], None, true, retries, &report), 0);
        on_threads(&shard, &queue, 3)
    }

    #[test]
    fn a_thread_that_panics_ends_the_run_and_no_other_waits_for_it() {
        for bytes in [5, 5 * PART_BYTES] {
            let (ends, ended) = channel();
            thread::spawn(move || ends.send(run_that_panics(bytes)));
            // The panic goes on in the thread that began the run, so nothing is sent.
            let ended = ended.recv_timeout(Duration::from_secs(60));
            assert!(matches!(ended, Err(RecvTimeoutError::Disconnected)), "{bytes}: {ended:?}");
        }
    }
}
