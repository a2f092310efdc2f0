//! A report of `evener sim live` with new predictions, by the costs that stand in it.

use std::path::Path;

use anyhow::{Context as _, ensure};

use super::line;
use super::report::{OnModule, Results, SCHEMA};
use crate::input_file;
use crate::terminal::PathDisplay;

/// The report at `path`.
///
/// # Errors
///
/// It cannot be read, is of another version, or tells of a machine that cannot be.
pub(super) fn predicted(path: &Path) -> anyhow::Result<Results> {
    let text = input_file::text(path).with_context(|| format!("cannot read {}", PathDisplay(path)))?;
    let no_report = || format!("{} is no report of evener sim live", PathDisplay(path));
    let mut results: Results = serde_json::from_str(&text).with_context(no_report)?;
    check(&results).with_context(no_report)?;
    let machine_facts = results.machine;
    for size in &mut results.sizes {
        let modules = size.modules.iter().map(OnModule::module).collect();
        let machine = machine_facts.simulated(modules);
        let measured = size.measured();
        for policy_line in &mut size.policies {
            let policy = policy_line.policy.parse().map_err(anyhow::Error::msg)?;
            let live = policy_line.live_runs.iter().copied().unzip();
            *policy_line = line(&machine, &measured, policy, size.jobs, &live)?;
        }
    }
    Ok(results)
}

fn check(results: &Results) -> anyhow::Result<()> {
    ensure!(results.schema == SCHEMA, "its schema is {:?}, not {SCHEMA}", results.schema);
    results.machine.check()?;
    results.sizes.iter().flat_map(|size| &size.modules).try_for_each(OnModule::check)
}
