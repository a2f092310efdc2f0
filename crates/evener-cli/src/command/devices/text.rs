//! The facts about this machine, laid out for the eye.

use evener_kernels::Level;
use evener_machine::processor::Processor;
use std::fmt::Write as _;

use evener_driver_kernel::ocf;

use super::module_check::ModuleCheck;
use super::{Inventory, MethodRow, Methods, Workers};
use crate::device_paths;
use crate::terminal::units;

pub(super) fn text(inventory: &Inventory) -> String {
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
    let kernels = match (inventory.kernels.is_empty(), Level::ARE_BUILT) {
        (false, _) => format!(
            "AES in GCM, CTR, XTS and ECB, CBC decrypted, and encrypted side by side, of OpenSSL programs, by {}",
            list(&inventory.kernels)
        ),
        (true, true) => "none: they need an x86-64 processor with AES-NI and PCLMULQDQ".to_owned(),
        (true, false) => "none: left out of this build, which needs x86-64 and rustc 1.89".to_owned(),
    };
    put!(text, "  kernels   {kernels}");
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
    put!(text, "\nDevice paths");
    text.push_str(&device_paths::text(&inventory.device_paths));
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
