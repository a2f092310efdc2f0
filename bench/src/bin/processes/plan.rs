//! What each experiment is: its module, its work, how many processes.

use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;
use evener_bench::processes::report::conditions;
use evener_bench::processes::{Experiment, Mode, Place};
use evener_bench::programs::host::Host;
use evener_core::{Algorithm, Nanos};
use evener_driver_emulated::Preset;

use super::{Arguments, Kind};

/// All that a command measures.
pub(super) struct Plan {
    pub(super) title: String,
    pub(super) conditions: Vec<String>,
    pub(super) works: Vec<Work>,
    /// Ends with the plan.
    _host: Option<Host>,
}

/// One kind of work.
pub(super) struct Work {
    /// Empty where there is one only.
    pub(super) name: String,
    pub(super) experiment: Experiment,
    pub(super) modes: Vec<Mode>,
    /// Processes, and requests of each.
    pub(super) sizes: Vec<(usize, usize)>,
    /// Times as many requests without the module: a core is far quicker than an emulated one, and with as many its processes would be through before all have begun.
    pub(super) cores_times: usize,
}

pub(super) fn of(arguments: &Arguments) -> anyhow::Result<Plan> {
    match arguments.experiment {
        Kind::T2 => t2(arguments),
        Kind::Host => host(arguments),
        Kind::Kernel => kernel(arguments),
        Kind::Cell => cell(arguments),
        Kind::Order => order(arguments),
        Kind::Again => anyhow::bail!("nothing is measured again, only drawn"),
    }
}

fn t2(arguments: &Arguments) -> anyhow::Result<Plan> {
    let bytes = arguments.bytes.unwrap_or(BYTES);
    let mut experiment = emulated(arguments, "emulated:t2", Algorithm::Aes128Cbc, bytes, SLOW)?;
    // One works at a unit and one stands behind it, so that no unit waits for a switch.
    experiment.permits = arguments.permits.unwrap_or(2 * experiment.permits);
    let modes = or(&arguments.modes, &[Mode::Plain, Mode::Queue, Mode::Lists64, Mode::Fifo, Mode::Cores]);
    let conditions = conditions(&experiment, "");
    let work = Work { cores_times: CORES_TIMES, ..to_1500(arguments, experiment, modes) };
    let title = "Paper 001 again: processes at the emulated T2".to_owned();
    Ok(Plan { title, conditions, works: vec![work], _host: None })
}

fn host(arguments: &Arguments) -> anyhow::Result<Plan> {
    let counts = or(&arguments.counts, &TO_1500);
    let most = counts.iter().copied().max().unwrap_or(1);
    let clients = (most + 8).to_string();
    let module = arguments.module.as_deref().unwrap_or("cpu");
    let host = Host::start(Command::new(&arguments.evener), &["--module", module, "--clients", &clients])
        .with_context(|| arguments.evener.display().to_string())?;
    let place = Place::Host(format!("hosted:{}", host.socket().display()).parse()?);
    let experiment = at(place, arguments, Nanos::from_micros(10), BURST)?;
    let modes = or(&arguments.modes, &[Mode::Plain, Mode::Lists64, Mode::Fifo, Mode::Cores]);
    let conditions = conditions(&experiment, module);
    let total = arguments.total.unwrap_or(32_768);
    let cores_times = if module == "cpu" { CORES_TIMES } else { 1 };
    let work =
        Work { name: String::new(), experiment, modes, sizes: sizes(arguments, &counts, total), cores_times };
    let what = if module == "cpu" { "a host's core".to_owned() } else { format!("a host of {module}") };
    let title = format!("Paper 001 again: processes at {what}");
    Ok(Plan { title, conditions, works: vec![work], _host: Some(host) })
}

fn kernel(arguments: &Arguments) -> anyhow::Result<Plan> {
    let module = arguments.module.as_deref().unwrap_or("afalg:virtio_crypto_aes_cbc");
    let mut experiment =
        at(Place::Kernel(module.parse()?), arguments, Nanos::from_micros(200), DEPTH_BEHIND_THE_KERNEL)?;
    // Who says what a request takes there knows the module. Linux's driver of virtio-crypto has one request there at a time.
    experiment.units = usize::from(arguments.service_us.is_some());
    let modes = or(&arguments.modes, &[Mode::Plain, Mode::Lists64, Mode::Fifo, Mode::Cores]);
    let conditions = conditions(&experiment, module);
    let work = to_1500(arguments, experiment, modes);
    let title = format!("Paper 001 again: processes at {module}");
    Ok(Plan { title, conditions, works: vec![work], _host: None })
}

/// 8192 requests, if no other number is asked for, of 1 to 1500 processes.
fn to_1500(arguments: &Arguments, experiment: Experiment, modes: Vec<Mode>) -> Work {
    let sizes = sizes(arguments, &TO_1500, arguments.total.unwrap_or(8_192));
    Work { name: String::new(), experiment, modes, sizes, cores_times: 1 }
}

/// Paper 001's requests at a place of which the arbiter is told what a request takes, and with so many permits unless others are asked for.
fn at(place: Place, arguments: &Arguments, service_told: Nanos, permits: u32) -> anyhow::Result<Experiment> {
    Ok(Experiment {
        place,
        algorithm: Algorithm::Aes128Cbc,
        bytes: arguments.bytes.unwrap_or(BYTES),
        units: 0,
        core: Nanos::ZERO,
        service: service(arguments, service_told, service_told)?,
        permits: arguments.permits.unwrap_or(permits),
        bound_to: None,
        compare_every: COMPARE_EVERY,
        limit: LIMIT,
    })
}

fn cell(arguments: &Arguments) -> anyhow::Result<Plan> {
    let mut works = Vec::new();
    let pace = arguments.pace;
    let mut told = vec![format!(
        "EMULATED: six units, {pace} times as slow as the preset; all processes on core 0; one permit for each unit"
    )];
    for algorithm in [Algorithm::Aes128Ecb, Algorithm::Aes128Cbc] {
        for bytes in arguments.bytes.map_or_else(|| SIZES_004.to_vec(), |bytes| vec![bytes]) {
            let of_preset = emulated(arguments, "emulated:cell", algorithm, bytes, None)?;
            // Its main processor, which all calls go through, is one core.
            let [core, service] =
                [of_preset.core, of_preset.service].map(|time| Nanos(time.0 * arguments.pace.max(1)));
            let experiment = Experiment { bound_to: Some(0), core, service, ..of_preset };
            told.push(format!("{algorithm} {bytes} B: {core} of a core, {service} of a unit"));
            // A tenth of a second of the core's part.
            let tenth = 100_000_000 / core.0.max(1);
            let total = arguments.total.unwrap_or_else(|| usize::try_from(tenth).unwrap_or(1_024));
            let each = |processes: &usize| (*processes, (total / processes).max(arguments.least));
            let sizes = or(&arguments.counts, &[1, 2, 3, 4, 5, 6]).iter().map(each).collect();
            let modes = or(&arguments.modes, &[Mode::Queue, Mode::Flags, Mode::Fifo, Mode::Cores]);
            works.push(Work {
                name: format!("{algorithm} {bytes} B"),
                experiment,
                modes,
                sizes,
                cores_times: CORES_TIMES,
            });
        }
    }
    let title = "Paper 004 again: processes at the emulated Cell".to_owned();
    Ok(Plan { title, conditions: told, works, _host: None })
}

fn order(arguments: &Arguments) -> anyhow::Result<Plan> {
    let short = Some(Nanos::from_micros(150));
    let one = emulated(
        arguments,
        "emulated:t2,units=1",
        Algorithm::Aes128Cbc,
        arguments.bytes.unwrap_or(1_024),
        short,
    )?;
    let experiment = Experiment { permits: 1, ..one };
    let conditions = conditions(&experiment, "");
    let total = arguments.total.unwrap_or(4_000);
    let sizes = sizes(arguments, &[16, 1_000], total);
    let work = Work { name: String::new(), experiment, modes: vec![Mode::Fifo], sizes, cores_times: 1 };
    let title = "The order of grants: one unit, one permit".to_owned();
    Ok(Plan { title, conditions, works: vec![work], _host: None })
}

/// The module of a preset, with the time that a unit takes for a request as it is asked for, else as `usual`, else as the preset says.
fn emulated(
    arguments: &Arguments,
    preset: &str,
    algorithm: Algorithm,
    bytes: usize,
    usual: Option<Nanos>,
) -> anyhow::Result<Experiment> {
    let preset: Preset = preset.parse()?;
    let cost = preset.cost(algorithm, bytes).with_context(|| format!("the preset has no {algorithm}"))?;
    let units = preset.units();
    let permits = arguments.permits.unwrap_or(u32::try_from(units)?);
    let service = service(arguments, cost.h, usual.unwrap_or(cost.h))?;
    let (core, compare_every) = (cost.d, COMPARE_EVERY);
    Ok(Experiment {
        place: Place::Emulated,
        algorithm,
        bytes,
        units,
        core,
        service,
        permits,
        bound_to: None,
        compare_every,
        limit: LIMIT,
    })
}

fn service(arguments: &Arguments, of_preset: Nanos, usual: Nanos) -> anyhow::Result<Nanos> {
    match arguments.service_us.as_deref() {
        None => Ok(usual),
        Some("preset") => Ok(of_preset),
        Some(micros) => Ok(Nanos::from_micros(micros.parse().context("--service-us")?)),
    }
}

/// So many requests in all, of each process at least so many as is asked and at most those of paper 001.
fn sizes(arguments: &Arguments, counts: &[usize], total: usize) -> Vec<(usize, usize)> {
    let each = |processes: usize| (total / processes.max(1)).clamp(arguments.least.max(1), 1_024);
    or(&arguments.counts, counts).into_iter().map(|processes| (processes, each(processes))).collect()
}

fn or<T: Copy>(asked: &[T], usual: &[T]) -> Vec<T> {
    if asked.is_empty() { usual.to_vec() } else { asked.to_vec() }
}

/// Paper 001's request and processes.
const BYTES: usize = 10_240;
const TO_1500: [usize; 12] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 1_500];
/// Paper 004's requests.
const SIZES_004: [usize; 5] = [16, 64, 256, 1_024, 8_192];
/// A request that is long beside a switch, so that what is seen is the order and not the machine's.
const SLOW: Option<Nanos> = Some(Nanos::from_millis(1));
/// Requests that a host's core works on at once: a fill of its lanes.
const BURST: u32 = 16;
/// Requests that a driver of the kernel is handed at a time where it works on one: `evener_driver_kernel`'s depth.
const DEPTH_BEHIND_THE_KERNEL: u32 = 8;
const CORES_TIMES: usize = 16;
const COMPARE_EVERY: usize = 64;
const LIMIT: Duration = Duration::from_secs(55);
