//! `evener devices`: what this machine has to encrypt with, and what it lacks.
//!
//! Path: facts are gathered (`inventory.rs`, `afalg.rs`, `device_paths`) -> [`Inventory`], as they stand in the JSON -> the same facts laid out for the eye
//! (`text.rs`).

macro_rules! put {
    ($text:expr, $($format:tt)*) => {
        writeln!($text, $($format)*).expect("a String takes everything")
    };
}

mod afalg;
mod cost_cache_view;
mod inventory;
mod module_check;
mod text;

use std::path::PathBuf;

use evener::calibrate;
use evener_machine::modules::ModuleSpec;
use evener_machine::processor::Processor;
use serde::Serialize;

use self::afalg::Afalg;
use self::cost_cache_view::CostCacheView;
use self::inventory::{every_operation, inventory};
use self::module_check::ModuleCheck;
use self::text::text;
use crate::device_paths::{self, DevicePath};
use crate::machine;
use crate::machine::options::ModuleOptions;
use crate::terminal::{Exit, output};

/// Shows what this machine has to encrypt with.
///
/// Processor and workers, drivers with their versions, from how many waiting jobs on the multi-buffer method
/// is taken, what is missing and which package brings it, modules that stand behind the kernel, and those that can be emulated; and for each way to
/// a crypto engine what shuts it (kernel option, module, version, restriction, permission) and what to do.
#[derive(clap::Args)]
pub(crate) struct Devices {
    /// Prints JSON.
    #[arg(long)]
    json: bool,

    /// Measures the methods again, also where an earlier run has done so.
    #[arg(long)]
    measure: bool,

    /// Looks at this module too, as a run would: what it does, or why it is refused. May be repeated.
    #[arg(long = "module", value_name = "MODULE")]
    modules: Vec<ModuleSpec>,

    /// Forgets what earlier runs learned of the costs of jobs on this processor, and does nothing else.
    #[arg(long, conflicts_with_all = ["json", "measure"])]
    forget: bool,

    /// Looks for ways to crypto engines in the files of a system below this folder, and asks this machine's kernel nothing.
    #[arg(long, hide = true, value_name = "DIR")]
    system_root: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Devices) -> anyhow::Result<Exit> {
    let mut machine = machine::whole(&ModuleOptions::default())?;
    if arguments.forget {
        return cost_cache_view::forget(&machine);
    }
    let known = machine.load_or_measure_costs(&every_operation(), arguments.measure);
    let mut inventory = inventory(&machine, &known);
    inventory.asked = arguments.modules.iter().map(ModuleCheck::open).collect();
    inventory.device_paths = device_paths::survey(arguments.system_root.as_deref());
    if arguments.json {
        return output::answer((serde_json::to_string_pretty(&inventory)? + "\n").as_bytes());
    }
    output::answer(output::plain(&text(&inventory)).as_bytes())
}

#[derive(Serialize)]
struct Inventory {
    version: &'static str,
    processor: Processor,
    /// Instructions that the provider's own kernels can use, those of the narrowest registers first.
    kernels: Vec<&'static str>,
    workers: Workers,
    drivers: Vec<Driver>,
    methods: Methods,
    costs: CostCacheView,
    modules: Vec<Driver>,
    /// Modules that the user asked about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    asked: Vec<ModuleCheck>,
    /// Modules that stand behind the kernel's AF_ALG.
    afalg: Afalg,
    /// Why there is no module behind OCF's node; absent where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    devcrypto_missing: Option<String>,
    /// Ways to crypto engines, and what shuts each.
    device_paths: Vec<DevicePath>,
}

#[derive(Serialize)]
struct Workers {
    /// CPU workers that a run starts unless told otherwise.
    count: usize,
    /// Cores in the affinity mask.
    cores_allowed: usize,
    /// Cores that the cgroup's quota pays for.
    cores_by_quota: Option<usize>,
}

#[derive(Serialize)]
struct Driver {
    name: String,
    /// What stands behind it, with version; absent where `missing` says why.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    /// Jobs side by side at its best.
    #[serde(skip_serializing_if = "Option::is_none")]
    width: Option<u32>,
    emulated: bool,
    /// Why it cannot be used here.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<String>,
}

#[derive(Serialize)]
struct Methods {
    /// Where what they cost is kept between runs.
    file: Option<String>,
    /// `kept` by an earlier run, `measured` now, or why it could not be kept.
    state: String,
    #[serde(skip)]
    is_plain_only: bool,
    /// The sizes that are measured; others do as the nearest.
    size_class_bytes: [usize; calibrate::SIZES.len()],
    rows: Vec<MethodRow>,
}

#[derive(Serialize)]
struct MethodRow {
    algorithm: &'static str,
    direction: String,
    /// By size: from how many jobs on a burst goes to multi-buffer; null: never.
    multi_buffer_from: Vec<Option<u16>>,
}
