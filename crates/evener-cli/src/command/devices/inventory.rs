//! Gathers the facts about this machine.

use std::path::Path;

use evener::calibrate;
use evener::core::{Algorithm, Direction, Profile};
use evener_driver_emulated::Preset;
use evener_driver_kernel::{ocf, why_no_node};
use evener_kernels::Level;
use evener_machine::cost_cache;
use evener_machine::libraries::Operation;
use evener_machine::processor::this_processor;
use evener_machine::{Machine, MethodCosts};

use super::afalg::{Afalg, opens};
use super::cost_cache_view::CostCacheView;
use super::{Driver, Inventory, MethodRow, Methods, Workers};
use crate::terminal::PathDisplay;

/// OCF's node, as in `--module`.
const DEVCRYPTO: &str = "devcrypto";

pub(super) fn inventory(machine: &Machine, known: &MethodCosts) -> Inventory {
    let budget = evener::core_budget();
    Inventory {
        version: env!("CARGO_PKG_VERSION"),
        processor: this_processor(),
        kernels: Level::all().map(Level::name).collect(),
        workers: Workers {
            count: budget.workers(),
            cores_allowed: budget.allowed,
            cores_by_quota: budget.quota,
        },
        drivers: drivers(machine),
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
        device_paths: Vec::new(),
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

    fn missing(name: &str, reason: String) -> Self {
        Self { name: name.to_owned(), detail: None, width: None, emulated: false, missing: Some(reason) }
    }
}

fn drivers(machine: &Machine) -> Vec<Driver> {
    let multibuffer = machine.multibuffer.as_ref().map(|looked_for| match looked_for {
        Ok(profile) => Driver::there(profile),
        Err(unavailable) => Driver::missing("multibuffer", unavailable.to_string()),
    });
    let no_lanes =
        || Driver::missing("lanes", "this processor or this build lacks the instructions".to_owned());
    let lanes = machine.lanes.as_ref().map_or_else(no_lanes, Driver::there);
    [Some(Driver::there(&machine.libcrypto)), multibuffer, Some(lanes)].into_iter().flatten().collect()
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
pub(super) fn every_operation() -> Vec<Operation> {
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
