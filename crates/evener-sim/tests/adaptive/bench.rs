//! What the tests share: workloads by name, runs, bounds.

use evener_core::plan::Policy;
use evener_core::{Cost, Objective};
use evener_sim::adaptive::Adaptive;
use evener_sim::bounds::{Requests, lower_bound};
use evener_sim::lab::{Planned, Setup, Workload};
use evener_sim::papers::am3358::{Means, Mix, Model, Series, compare, equal_jobs, machine};

/// The eight sizes of paper 002 and the two mixes.
pub const WORKLOADS: [&str; 10] =
    ["8", "16", "64", "256", "1024", "4096", "8192", "16384", "mixed_uniform8", "mixed_tls"];

/// Costs of paper 002, table 2.
pub fn costs() -> Vec<(u64, Cost)> {
    Series::Aes128.fit().costs
}

pub fn workload(name: &str) -> Workload {
    let costs = costs();
    match name {
        "mixed_uniform8" => Mix::Uniform8.workload(&costs),
        "mixed_tls" => Mix::Tls.workload(&costs),
        size => {
            let bytes: u64 = size.parse().unwrap();
            equal_jobs(costs.iter().position(|&(listed, _)| listed == bytes).unwrap())
        }
    }
}

/// Runs of the adaptive policy, which learns the costs in each anew.
pub fn adaptive(name: &str, change: impl Fn(&mut Setup), objective: Objective) -> Means {
    let costs = costs();
    let mut changed = machine(&costs, Model::Policy, 1, 0);
    change(&mut changed);
    let policy = || Adaptive::new(&changed, objective);
    Means::of(&compare(&costs, &workload(name), &change, policy).unwrap())
}

/// Runs of a policy of the papers.
pub fn papers(name: &str, policy: Policy, hogs: u32) -> Means {
    let change = |setup: &mut Setup| setup.hogs = hogs;
    Means::of(&compare(&costs(), &workload(name), change, || Planned::new(policy, 1, 1)).unwrap())
}

/// The lower bound in milliseconds.
pub fn bound(name: &str, requests: Requests) -> f64 {
    let (costs, jobs) = (costs(), workload(name));
    let of = |class: usize| jobs.jobs().iter().filter(|job| job.class == class).count();
    let jobs: Vec<(Cost, u32)> =
        costs.iter().enumerate().map(|(class, &(_, cost))| (cost, u32::try_from(of(class)).unwrap())).collect();
    lower_bound(&jobs, requests) / 1e6
}
