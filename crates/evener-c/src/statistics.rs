//! What a runtime did, in numbers.

use evener::core::Method;

use crate::abi::Statistics;
use crate::error::Failure;
use crate::runtime::Runtime;

/// So far; a job that was given back is counted.
///
/// # Errors
///
/// [`Error::Fork`](crate::Error::Fork).
pub fn statistics(runtime: &Runtime) -> Result<Statistics, Failure> {
    runtime.check_process()?;
    let report = runtime.report();
    let (all, lanes, modules) = (report.total(), report.method(Method::MultiBuffer), report.modules());
    let parts = || report.workers.iter().filter_map(|worker| worker.module.as_ref());
    Ok(Statistics {
        size: size_of::<Statistics>(),
        jobs: all.jobs,
        bytes: all.bytes,
        failed: all.failed,
        lane_jobs: lanes.jobs,
        lane_bytes: lanes.bytes,
        module_jobs: modules.jobs,
        module_bytes: modules.bytes,
        redone: all.redone,
        checked: parts().map(|module| module.checked).sum(),
        lost_modules: parts().filter(|module| module.quarantine.is_some()).count() as u64,
    })
}
