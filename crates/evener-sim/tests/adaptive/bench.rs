//! What the tests share: workloads by name, runs, bounds.

use evener_core::estimate::{Learned, OnModule};
use evener_core::plan::Policy;
use evener_core::{Algorithm, Class, Cost, Direction, Method, Nanos, Objective};
use evener_sim::adaptive::Adaptive;
use evener_sim::bounds::{Requests, lower_bound};
use evener_sim::lab::{Planned, Report, Setup, Workload, run};
use evener_sim::papers::am3358::{Means, Mix, Model, Series, compare, equal_jobs, machine};

/// The eight sizes of paper 002 and the two mixes.
pub(crate) const WORKLOADS: [&str; 10] =
    ["8", "16", "64", "256", "1024", "4096", "8192", "16384", "mixed_uniform8", "mixed_tls"];

/// The policies of paper 002 that need no monitor.
pub(crate) const PAPERS: [Policy; 4] =
    [Policy::CpuOnly, Policy::ModuleOnly, Policy::RoundRobin, Policy::SharedQueue];

/// Costs of paper 002, table 2.
pub(crate) fn costs() -> Vec<(u64, Cost)> {
    Series::Aes128.fit().costs
}

pub(crate) fn workload(name: &str) -> Workload {
    let costs = costs();
    match name {
        "mixed_uniform8" => Mix::Uniform8.workload(&costs),
        "mixed_tls" => Mix::Tls.workload(&costs),
        size => equal_jobs(class_of(size.parse().unwrap())),
    }
}

/// The position of a size among the costs.
pub(crate) fn class_of(bytes: u64) -> usize {
    costs().iter().position(|&(listed, _)| listed == bytes).unwrap()
}

/// A machine as the policy arranges it for these jobs.
pub(crate) fn arranged(jobs: &Workload, hogs: u32, depth: u32) -> Setup {
    let mut setup = machine(&costs(), Model::Policy, 1, 200);
    change(&mut setup, jobs, hogs, depth);
    setup
}

fn change(setup: &mut Setup, jobs: &Workload, hogs: u32, depth: u32) {
    setup.hogs = hogs;
    setup.modules[0].depth = depth;
    Adaptive::arrange(setup, jobs);
}

/// Three runs of the adaptive policy, which learns the costs in each anew.
pub(crate) fn adaptive(name: &str, hogs: u32, depth: u32, objective: Objective) -> Means {
    let jobs = workload(name);
    let setup = arranged(&jobs, hogs, depth);
    let policy = || Adaptive::new(&setup, objective);
    let reports = compare(&costs(), &jobs, |setup| change(setup, &jobs, hogs, depth), policy).unwrap();
    assert!(reports.iter().all(|report| report.lost() == 0));
    Means::of(&reports)
}

/// Three runs of a policy of the papers, with one request outstanding.
pub(crate) fn papers(name: &str, policy: Policy, hogs: u32) -> Means {
    let change = |setup: &mut Setup| setup.hogs = hogs;
    Means::of(&compare(&costs(), &workload(name), change, || Planned::new(policy, 1, 1)).unwrap())
}

/// One run of a policy of the papers.
pub(crate) fn planned(setup: &Setup, jobs: &Workload, policy: Policy) -> Report {
    let modules = u32::try_from(setup.modules.len()).unwrap();
    run(setup, jobs, &mut Planned::new(policy, setup.cpu.workers, modules)).unwrap()
}

/// The lower bound in milliseconds.
pub(crate) fn bound(name: &str, requests: Requests) -> f64 {
    let (costs, jobs) = (costs(), workload(name));
    let of = |class: usize| jobs.jobs().iter().filter(|job| job.class == class).count();
    let jobs: Vec<(Cost, u32)> = costs
        .iter()
        .enumerate()
        .map(|(class, &(_, cost))| (cost, u32::try_from(of(class)).unwrap()))
        .collect();
    lower_bound(&jobs, requests) / 1e6
}

/// Makes a policy believe what `costs` says of a class on a module, as if it had been seen often.
pub(crate) fn set_known_cost(policy: &mut Adaptive, module: usize, bytes: u64, cost: Cost) {
    let size = usize::try_from(bytes).unwrap();
    let class = Class::of(Algorithm::Aes128Cbc, Direction::Encrypt, size, false);
    let learned = |time: Nanos| Learned::kept(time.0 as f64, bytes as f64, 1_000);
    let estimator = policy.estimator();
    estimator.keep_cpu(class, Method::Plain, 0, learned(cost.c));
    let known = OnModule { d: learned(cost.d), h: learned(cost.h), tries: 4, ..OnModule::default() };
    estimator.keep_module(module, class, known);
}

pub(crate) fn millis(time: Nanos) -> f64 {
    time.as_secs_f64() * 1e3
}
