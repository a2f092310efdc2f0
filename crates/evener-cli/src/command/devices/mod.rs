//! `evener devices`: what this machine has to encrypt with, and what it lacks.
//!
//! [`inventory`] gathers facts as they stand in the JSON; [`text`] lays the same facts out for the eye.

mod cost_cache_view;
mod module_check;

use std::fmt::Write as _;
use std::path::Path;

use evener::calibrate;
use evener::core::{Algorithm, Direction, Profile};
use evener_driver_emulated::Preset;
use evener_driver_kernel::{Module, Standing, Survey, ocf, why_no_node};
use serde::Serialize;

use crate::machine::cost_cache;
use crate::machine::libraries::Operation;
use crate::machine::modules::ModuleSpec;
use crate::machine::options::ModuleOptions;
use crate::machine::processor::{Processor, this_processor};
use crate::machine::{Machine, MethodCosts};
use crate::terminal::{Exit, PathDisplay, output, units};
use cost_cache_view::CostCacheView;
use module_check::ModuleCheck;

macro_rules! put {
    ($text:expr, $($format:tt)*) => {
        writeln!($text, $($format)*).expect("a String takes everything")
    };
}

/// Shows what this machine has to encrypt with.
///
/// Processor and workers, drivers with their versions, from how many waiting jobs on the multi-buffer method
/// is taken, what is missing and which package brings it, modules that stand behind the kernel, and those that can be emulated.
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
}

pub(crate) fn run(arguments: &Devices) -> anyhow::Result<Exit> {
    let mut machine = Machine::new(&ModuleOptions::default())?;
    if arguments.forget {
        return cost_cache_view::forget(&machine);
    }
    let known = machine.load_or_measure_costs(&every_operation(), arguments.measure);
    let mut inventory = inventory(&machine, &known);
    inventory.asked = arguments.modules.iter().map(ModuleCheck::open).collect();
    let answer =
        if arguments.json { serde_json::to_string_pretty(&inventory)? + "\n" } else { text(&inventory) };
    output::answer(answer.as_bytes())
}

#[derive(Serialize)]
struct Inventory {
    version: &'static str,
    processor: Processor,
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
}

#[derive(Serialize)]
struct Afalg {
    modules: Vec<KernelModule>,
    /// Where there is none: why.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<String>,
}

#[derive(Serialize)]
struct KernelModule {
    /// As in `--module`.
    name: String,
    /// What it does, in the kernel's words.
    does: String,
    /// Why it cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

impl Afalg {
    /// Opens each that can be bound.
    fn survey() -> Self {
        Self::of(evener_driver_kernel::survey(), opens)
    }

    fn of(survey: Survey, open: impl Fn(&str) -> anyhow::Result<()>) -> Self {
        let module = |Standing { driver, does, refused }: Standing| {
            let name = format!("afalg:{driver}");
            let refused = refused.or_else(|| open(&name).err().map(|error| format!("{error:#}")));
            KernelModule { name, does, refused }
        };
        Self { modules: survey.hardware.into_iter().map(module).collect(), missing: survey.nothing }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for KernelModule { name, does, refused } in &self.modules {
            match refused {
                None => put!(text, "  {name}: {does}"),
                Some(reason) => put!(text, "  {name}: {does}; not used: {reason}"),
            }
        }
        if let Some(reason) = &self.missing {
            put!(text, "  afalg: none: {reason}");
        }
        text
    }
}

/// Opens a module behind the kernel, known answers included, as a run would.
fn opens(name: &str) -> anyhow::Result<()> {
    Module::open(&name.parse()?)?;
    Ok(())
}

/// OCF's node, as in `--module`.
const DEVCRYPTO: &str = "devcrypto";

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

fn inventory(machine: &Machine, known: &MethodCosts) -> Inventory {
    let budget = evener::core_budget();
    Inventory {
        version: env!("CARGO_PKG_VERSION"),
        processor: this_processor(),
        workers: Workers {
            count: budget.workers(),
            cores_allowed: budget.allowed,
            cores_by_quota: budget.quota,
        },
        drivers: vec![Driver::there(&machine.libcrypto), multibuffer(machine)],
        methods: Methods {
            file: cost_cache::file(&machine.processor).map(|file| PathDisplay(&file).to_string()),
            state: state(known),
            is_plain_only: *known == MethodCosts::PlainOnly,
            size_class_bytes: calibrate::SIZES,
            rows: every_operation().into_iter().map(|row| method_row(machine, row)).collect(),
        },
        costs: CostCacheView::read(machine),
        modules: Preset::known().iter().map(|preset| Driver::there(&preset.profile())).collect(),
        asked: Vec::new(),
        afalg: Afalg::survey(),
        devcrypto_missing: why_no_node(Path::new(ocf::NODE))
            .or_else(|| opens(DEVCRYPTO).err().map(|error| format!("{error:#}"))),
    }
}

impl Driver {
    fn there(profile: &Profile) -> Self {
        Self {
            name: profile.name.clone(),
            detail: Some(profile.detail.clone()),
            width: Some(profile.width),
            emulated: profile.emulated,
            missing: None,
        }
    }
}

fn multibuffer(machine: &Machine) -> Driver {
    match &machine.multibuffer {
        Ok(profile) => Driver::there(profile),
        Err(unavailable) => Driver {
            name: "multibuffer".to_owned(),
            detail: None,
            width: None,
            emulated: false,
            missing: Some(unavailable.to_string()),
        },
    }
}

fn state(known: &MethodCosts) -> String {
    match known {
        MethodCosts::PlainOnly => "all plain: there is no multi-buffer library".to_owned(),
        MethodCosts::Cached => "measured by an earlier run".to_owned(),
        MethodCosts::Saved => "measured now".to_owned(),
        MethodCosts::NotSaved(reason) => format!("measured now, and not kept: {reason}"),
    }
}

/// Everything that can be run.
fn every_operation() -> Vec<Operation> {
    let both = [Direction::Encrypt, Direction::Decrypt];
    let all = Algorithm::ALL.iter().flat_map(|&algorithm| both.map(|direction| (algorithm, direction)));
    all.filter(|(algorithm, direction)| *direction == Direction::Encrypt || algorithm.is_cipher()).collect()
}

fn method_row(machine: &Machine, (algorithm, direction): Operation) -> MethodRow {
    let from = |class| machine.learned.multi_buffer_from(class);
    MethodRow {
        algorithm: algorithm.name(),
        direction: direction.to_string(),
        multi_buffer_from: calibrate::classes(algorithm, direction).map(from).collect(),
    }
}

fn text(inventory: &Inventory) -> String {
    let mut text = String::new();
    write_processor(&mut text, inventory);
    write_drivers(&mut text, inventory);
    write_methods(&mut text, &inventory.methods);
    text.push_str(&inventory.costs.text());
    text
}

fn write_processor(text: &mut String, inventory: &Inventory) {
    let Processor { model, architecture, features, absent_features } = &inventory.processor;
    put!(text, "Processor");
    put!(text, "  model     {model} ({architecture})");
    put!(text, "  has       {}", list(features));
    put!(text, "  lacks     {}", list(absent_features));
    let Workers { count, cores_allowed, cores_by_quota } = &inventory.workers;
    let allowed = units::counted(*cores_allowed as u64, "core");
    let quota = match cores_by_quota {
        Some(cores) => format!("the cgroup's quota pays for {}", units::counted(*cores as u64, "core")),
        None => "the cgroup sets no quota".to_owned(),
    };
    put!(text, "  workers   {count}: {allowed} allowed by affinity, {quota}");
}

fn write_drivers(text: &mut String, inventory: &Inventory) {
    put!(text, "\nDrivers");
    for driver in &inventory.drivers {
        let what = match (&driver.detail, &driver.missing) {
            (Some(detail), _) => format!("{detail}; {}", side_by_side(driver.width)),
            (None, missing) => format!("not used: {}", missing.as_deref().unwrap_or("unknown reason")),
        };
        put!(text, "  {:<11} {what}", driver.name);
    }
    put!(text, "\nModules");
    text.push_str(&ModuleCheck::text(&inventory.asked));
    text.push_str(&inventory.afalg.text());
    match &inventory.devcrypto_missing {
        None => put!(text, "  devcrypto: {}", ocf::NODE),
        Some(reason) => put!(text, "  devcrypto: none: {reason}"),
    }
    for module in &inventory.modules {
        put!(text, "  {}: {}", module.name, module.detail.as_deref().unwrap_or_default());
    }
}

fn side_by_side(width: Option<u32>) -> String {
    match width.unwrap_or(1) {
        1 => "one job after the other".to_owned(),
        width => format!("up to {width} jobs side by side on a core"),
    }
}

/// One line per algorithm, both directions side by side, so that it fits a screen.
fn write_methods(text: &mut String, methods: &Methods) {
    put!(text, "\nMethods ({})", methods.state);
    if methods.is_plain_only {
        return;
    }
    put!(text, "  multi-buffer from so many jobs on, by the nearest size of a job; - is plain always");
    put!(text, "  {:17}  {:^36}  {:^36}", "", "encrypt", "decrypt");
    let sizes: String = methods.size_class_bytes.into_iter().map(size).collect();
    put!(text, "  {:17}  {sizes}  {sizes}", "bytes");
    for rows in methods.rows.chunk_by(|one, next| one.algorithm == next.algorithm) {
        let of_row = |row: &MethodRow| row.multi_buffer_from.iter().map(|&from| width(from)).collect();
        let widths: Vec<String> = rows.iter().map(of_row).collect();
        put!(text, "  {:17}  {}", rows[0].algorithm, widths.join("  "));
    }
    if let Some(file) = &methods.file {
        put!(text, "  kept in {file}");
    }
}

fn size(bytes: usize) -> String {
    let shown = if bytes < 1_024 { bytes.to_string() } else { format!("{}K", bytes / 1_024) };
    format!("{shown:>6}")
}

fn width(from: Option<u16>) -> String {
    format!("{:>6}", from.map_or_else(|| "-".to_owned(), |width| width.to_string()))
}

fn list(names: &[&str]) -> String {
    if names.is_empty() { "nothing that matters here".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_behind_af_alg_is_listed_with_why_it_is_not_used() {
        let standing = |driver: &str, refused: Option<&str>| Standing {
            driver: driver.to_owned(),
            does: "cbc(aes)".to_owned(),
            refused: refused.map(str::to_owned),
        };
        let hardware =
            vec![standing("right", None), standing("lies", None), standing("shut", Some("not admitted"))];
        let afalg = Afalg::of(Survey { hardware, nothing: None }, |name| match name {
            "afalg:lies" => anyhow::bail!("afalg:lies is refused: it lies"),
            "afalg:right" => Ok(()),
            other => unreachable!("{other} cannot be bound"),
        });
        assert_eq!(
            afalg.text(),
            "  afalg:right: cbc(aes)\n  afalg:lies: cbc(aes); not used: afalg:lies is refused: it lies\n  \
             afalg:shut: cbc(aes); not used: not admitted\n"
        );
        let none = Survey { hardware: vec![], nothing: Some("this kernel has no AF_ALG".to_owned()) };
        let none = Afalg::of(none, |_| unreachable!("nothing to open"));
        assert_eq!(none.text(), "  afalg: none: this kernel has no AF_ALG\n");
    }
}
