//! `evener explain`: where a job would go now, and why.
//!
//! Steps of an answer: what earlier runs learned -> a microbenchmark of what they did not ([`evener_machine::microbench`]) -> the price of
//! a core -> the planner's table for this one class, the same as in a run -> [`answer`].

mod answer;

use anyhow::bail;
use evener::core::estimate::Learned;
use evener::core::plan::adaptive::{Choice, ClassInput, CostOnModule, PlanInput, Queue, Route, Table, plan};
use evener::core::{Algorithm, Direction, Estimator, Method, Nanos, Objective, SessionError};
use evener_machine::Machine;
use evener_machine::cpu_load::CpuLoad;
use evener_machine::microbench::{self, JobKind, NotMeasured};

use crate::machine;
use crate::machine::options::ModuleOptions;
use crate::terminal::{Exit, output, units};
use answer::{Answer, Candidate, Circumstances, Overhead};

/// Says where a job would go now, and why.
///
/// One line for each way: plain, multi-buffer, and each module, with what a job costs there: core time of the CPU (c)
/// or of the module's path (d), time of the module alone (h), the price of a core (lambda: 0 where one is idle, 1 where
/// all are busy), and what counts: wait + service + lambda * core time. Costs are those that earlier runs learned.
/// Where there are none they are measured now, in at most 50 ms of core time and with four jobs on a module, and kept.
#[derive(clap::Args)]
pub(crate) struct Explain {
    /// What would be run, such as AES-128-CBC, AES-256-GCM, SHA-256.
    #[arg(long)]
    algorithm: Algorithm,

    /// Bytes of a job: 1 to 1G.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    size: usize,

    /// Jobs that are handed over together.
    #[arg(long, value_name = "JOBS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    burst: u32,

    /// In which direction.
    #[arg(long, value_enum, default_value = "encrypt")]
    direction: Towards,

    /// Where input and output lie.
    #[arg(long, value_enum, default_value = "out-of-place")]
    layout: Layout,

    /// What is to be least: throughput (the time until all is done), latency (of one request), cpu (core time).
    #[arg(long, default_value = "throughput")]
    objective: Objective,

    /// Prints JSON (docs/reference/schemas/explain.schema.json).
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    module_options: ModuleOptions,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Towards {
    Encrypt,
    Decrypt,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Layout {
    /// Apart.
    OutOfPlace,
    /// Output replaces input.
    InPlace,
}

fn parse_size(text: &str) -> Result<usize, String> {
    let size = units::parse_bytes(text)?;
    let small = usize::try_from(size).ok().filter(|size| (1..=SIZE_MAX).contains(size));
    small.ok_or_else(|| "a job has 1 byte to 1 GiB".to_owned())
}

const SIZE_MAX: usize = 1 << 30;

/// Core time of all trials on the CPU together.
const TRIALS_MAX: Nanos = Nanos::from_millis(50);

/// Jobs of a burst in a trial: the widest class of widths begins here, and the widest core has so many lanes.
const TRIAL_BURST_MAX: usize = 16;

/// Time until a module's sleeping worker runs. Assumed, not measured: 5 us, the lower end of 5 to 50 us on an idle
/// machine.
const WAKE_UP: Nanos = Nanos::from_micros(5);

pub(crate) fn run(arguments: &Explain) -> anyhow::Result<Exit> {
    let kind = arguments.kind()?;
    let mut machine = machine::whole(&arguments.module_options)?;
    machine.load_or_measure_costs(&[kind.operation], false);
    let mut learned = machine.learned.clone();
    let load = CpuLoad::now();
    let mut ways = core_candidates(&machine, &kind, &mut learned);
    ways.extend(module_candidates(&machine, &kind, &mut learned));
    let not_kept = match ways.iter().any(|way| way.is_measured_now) {
        true => machine.save_costs(&learned).err(),
        false => None,
    };
    let plan_input = plan_input(arguments, &machine, &kind, &learned, load);
    let table = plan(&plan_input);
    // What the planner itself weighs a single job by, which under some objectives is less than a burst's.
    let lambda = if kind.burst == 1 { table.price_of_one() } else { table.lambda() };
    weigh(&mut ways, lambda);
    choose(&mut ways, &table, &plan_input, learned.method(kind.class(), kind.burst));
    let answer = Answer {
        kind,
        circumstances: Circumstances { objective: arguments.objective, load, lambda },
        ways,
        run_method: learned.method(kind.class(), kind.burst),
        emulated: machine.emulated(),
        not_kept: not_kept.map(|error| error.to_string()),
    };
    let text = if arguments.json { answer.json()? } else { answer.text() };
    output::answer(text.as_bytes())
}

impl Explain {
    fn kind(&self) -> anyhow::Result<JobKind> {
        let direction = match self.direction {
            Towards::Encrypt => Direction::Encrypt,
            Towards::Decrypt => Direction::Decrypt,
        };
        if direction == Direction::Decrypt && !self.algorithm.is_cipher() {
            bail!(SessionError::Direction(self.algorithm));
        }
        let is_apart = self.layout == Layout::OutOfPlace;
        let burst = usize::try_from(self.burst)?;
        Ok(JobKind { operation: (self.algorithm, direction), bytes: self.size, burst, is_apart })
    }
}

/// Plain and multi-buffer, as far as they are there. What is not known is measured, and all of it before any is shown:
/// what one method took may change what is known of the other.
fn core_candidates(machine: &Machine, kind: &JobKind, learned: &mut Estimator) -> Vec<Candidate> {
    let trial = JobKind { burst: kind.burst.min(TRIAL_BURST_MAX), ..*kind };
    // Of the longest jobs no burst is measured that is wider than the lanes: what those take stands for it.
    let mean = |learned: &Estimator, method| {
        let at = |jobs| learned.cpu(kind.class(), method, jobs).copied();
        at(kind.burst).or_else(|| at(trial.burst))
    };
    let mut ways = Vec::new();
    for (method, driver) in Method::ALL.into_iter().zip(machine.drivers()) {
        let Some(mut driver) = driver else { continue };
        let is_new = mean(learned, method).is_none();
        let limit = Nanos(TRIALS_MAX.0 / 2);
        let untried = match is_new {
            true => microbench::measure_core(&mut *driver, method, &trial, limit, learned).err(),
            false => None,
        };
        ways.push((method, Candidate::new(method.name(), is_new, untried)));
    }
    let shown = |(method, mut way): (Method, Candidate)| {
        if let Some(c) = mean(learned, method) {
            (way.samples, way.cost.c) = (c.samples, c.at(kind.bytes));
        }
        way
    };
    ways.into_iter().map(shown).collect()
}

fn module_candidates(machine: &Machine, kind: &JobKind, learned: &mut Estimator) -> Vec<Candidate> {
    let mut ways = Vec::new();
    for (module, name) in machine.module_names().into_iter().enumerate() {
        let known = |learned: &Estimator| learned.on_module(module, kind.class());
        let is_new = known(learned).d.samples == 0;
        let untried = match is_new {
            true => machine.measure_module(module, kind, learned).err(),
            false => None,
        };
        let mut way = Candidate::new(&name, is_new, untried);
        way.module = Some(module);
        way.overhead = match (machine.is_behind_the_kernel(module), learned.overhead(module)) {
            (false, _) => Overhead::Whole,
            (true, Some(overhead)) => Overhead::Measured(overhead.at(kind.bytes as u64)),
            (true, None) => Overhead::Unknown,
        };
        let (d, h) = (known(learned).d, known(learned).h);
        let at = |mean: Learned| mean.at(kind.bytes);
        (way.samples, way.cost.d, way.cost.h, way.wait) = (d.samples, at(d), at(h), WAKE_UP);
        ways.push(way);
    }
    ways
}

/// One class, as a run would show it to the planner.
fn plan_input(
    arguments: &Explain,
    machine: &Machine,
    kind: &JobKind,
    learned: &Estimator,
    load: CpuLoad,
) -> PlanInput {
    let capacities = machine.capacities();
    let threads = u32::try_from(load.cores.min(kind.burst)).unwrap_or(u32::MAX);
    let on_module = |module| {
        let known = learned.on_module(module, kind.class());
        match (known.d.at(kind.bytes), known.h.at(kind.bytes)) {
            (Some(d), Some(h)) => CostOnModule::Known { d, h, tries_left: 0, is_long_untried: false },
            // The trial has failed, or the module does not do it.
            _ => CostOnModule::Never,
        }
    };
    let class_input = ClassInput {
        c: learned.c(kind.class(), kind.bytes, kind.burst),
        waiting: arguments.burst,
        on_modules: (0..capacities.len()).map(on_module).collect(),
    };
    PlanInput {
        objective: arguments.objective,
        cpu_workers: threads,
        share: load.share(),
        lambda: load.price(threads, capacities.len()),
        yields: false,
        capacities,
        classes: vec![class_input],
    }
}

/// What each way comes to: wait + service + lambda * core time.
fn weigh(ways: &mut [Candidate], lambda: f64) {
    for way in ways {
        let core = way.cost.c.or(way.cost.d);
        let service = core.map(|core| core + way.cost.h.unwrap_or_default());
        way.total_ns =
            service.zip(core).map(|(service, core)| float(way.wait + service) + lambda * float(core));
    }
}

/// Marks where the planner lets the jobs go: a single one to one way, a burst to all that would take of it.
fn choose(ways: &mut [Candidate], table: &Table, plan_input: &PlanInput, method: Method) {
    let waiting = |_: usize| plan_input.classes[0].waiting;
    let takes = |choice| matches!(choice, Choice::Take { .. });
    let queues = vec![Queue { wait: WAKE_UP }; plan_input.capacities.len()];
    let route = table.route(0, &queues);
    let goes_to_core = match plan_input.classes[0].waiting {
        1 => route == Route::Inline,
        _ => takes(table.core_takes(waiting, Nanos::ZERO)),
    };
    let goes_to = |module| match plan_input.classes[0].waiting {
        1 => route == Route::Module(module),
        _ => takes(table.module_takes(module, waiting, Nanos::ZERO)),
    };
    for way in ways.iter_mut() {
        way.is_chosen = way.module.is_some_and(goes_to);
    }
    // A core runs it by the method in force, whose cost the planner was given.
    let in_force = ways.iter_mut().find(|way| way.cost.c.is_some() && way.name == method.name());
    if let Some(way) = in_force.filter(|_| goes_to_core) {
        way.is_chosen = true;
    }
}

#[expect(clippy::cast_precision_loss, reason = "costs are far below 2^53 nanoseconds")]
const fn float(time: Nanos) -> f64 {
    time.0 as f64
}

impl Candidate {
    fn new(name: &str, is_measured_now: bool, untried: Option<NotMeasured>) -> Self {
        Self { name: name.to_owned(), is_measured_now, untried, ..Self::default() }
    }
}
