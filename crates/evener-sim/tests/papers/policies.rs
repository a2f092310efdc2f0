//! Policies compared on the costs of paper 002, table 2, with and without a competing program: against the reference.

use evener_core::plan::Policy;
use evener_core::{Cost, Nanos};
use evener_sim::bounds::{Requests, lower_bound};
use evener_sim::lab::{Planned, Report, Setup, Workload};
use evener_sim::papers::am3358::{Means, Mix, Series, compare, equal_jobs};

use crate::golden::{Errors, INTERRUPT, POLICIES, Row, RowErrors, rows};
use crate::learner::Learner;

fn policy(row: &Row) -> Option<Policy> {
    match row.text("policy") {
        "cpu" => Some(Policy::CpuOnly),
        "mod" => Some(Policy::ModuleOnly),
        "rr" => Some(Policy::RoundRobin),
        "pull" => Some(Policy::SharedQueue),
        _ => None,
    }
}

fn workload(name: &str, costs: &[(u64, Cost)]) -> Workload {
    match name {
        "mixed_uniform8" => Mix::Uniform8.workload(costs),
        "mixed_tls" => Mix::Tls.workload(costs),
        size => {
            let bytes: u64 = size.parse().unwrap();
            equal_jobs(costs.iter().position(|&(listed, _)| listed == bytes).unwrap())
        }
    }
}

fn simulate(name: &str, policy: Policy, hogs: u32) -> Vec<Report> {
    let costs = Series::Aes128.fit().costs;
    let change = |setup: &mut Setup| setup.hogs = hogs;
    compare(&costs, &workload(name, &costs), change, || Planned::new(policy, 1, 1)).unwrap()
}

/// One per cent where the demand decides, five where scheduler and chance do. Interrupts of few jobs vary more.
fn tolerance(name: &str) -> f64 {
    if ["8192", "16384"].contains(&name) { 1.0 } else { 5.0 }
}

#[test]
fn the_papers_policies_take_the_time_that_the_reference_gives_them() {
    let columns = [
        "hogs",
        "workload",
        "policy",
        "makespan_ms",
        "module_files",
        "crypto_cpu_ms",
        "hog_cpu_ms",
        "ctx_switches",
    ];
    let mut all = RowErrors::default();
    for row in rows(POLICIES, &columns) {
        let Some(policy) = policy(&row) else { continue };
        let name = row.text("workload");
        let simulated = Means::of(&simulate(name, policy, row.text("hogs").parse().unwrap()));
        let pairs = [(simulated.makespan_ms, "makespan_ms"), (simulated.crypto_ms, "crypto_cpu_ms")];
        let mut errors = Errors::of(pairs.map(|(simulated, column)| (simulated, row.number(column))));
        if policy == Policy::SharedQueue {
            errors.0.extend(Errors::of([(simulated.module_jobs, row.number("module_files"))]).0);
        }
        if row.text("hogs") == "1" {
            errors.0.extend(Errors::of([(simulated.hog_ms, row.number("hog_cpu_ms"))]).0);
        }
        let what = format!("{} hogs, {name}, {policy}", row.text("hogs"));
        let switches = row.number("ctx_switches");
        println!("{what}: {:.2?} {simulated:?}, reference {switches} switches", errors.0);
        assert!(
            (simulated.switches - switches).abs() <= 0.05 * switches + 2.0,
            "{what}: {simulated:?}, {switches}"
        );
        assert!(errors.largest() <= tolerance(name), "{what}: {:?} {simulated:?}", errors.0);
        all.add(errors);
    }
    all.stay_within(68, [5.0, 0.5], "policies against the reference");
}

#[test]
fn interrupts_take_what_the_reference_says() {
    let columns =
        ["hogs", "workload", "policy", "makespan_ms", "interrupt_ms", "crypto_cpu_ms", "total_share_pct"];
    let mut rows_seen = 0;
    for row in rows(INTERRUPT, &columns) {
        let Some(policy) = policy(&row) else { continue };
        let name = row.text("workload");
        let simulated = Means::of(&simulate(name, policy, row.text("hogs").parse().unwrap()));
        let share = 100.0 * (simulated.crypto_ms + simulated.interrupt_ms) / simulated.makespan_ms;
        let what = format!("{} hogs, {name}, {policy}: {simulated:?}", row.text("hogs"));
        let interrupt = row.number("interrupt_ms");
        let near = tolerance(name) / 100.0 * interrupt + 0.05;
        assert!((simulated.interrupt_ms - interrupt).abs() <= near, "{what}, reference {interrupt} ms");
        assert!((share - row.number("total_share_pct")).abs() <= tolerance(name), "{what}");
        rows_seen += 1;
    }
    assert_eq!(rows_seen, 60);
}

/// The learning policy on a raised module path, with one and with two requests outstanding.
#[test]
fn a_chooser_that_learns_reaches_what_the_reference_reaches() {
    let costs = Series::Aes128.fit().costs;
    let columns = ["hogs", "workload", "policy", "makespan_ms", "crypto_cpu_ms", "lb_sync_ms", "lb_async_ms"];
    let mut all = RowErrors::default();
    for row in rows(POLICIES, &columns) {
        let (depth, bound) = match row.text("policy") {
            "adaptL" => (1, "lb_sync_ms"),
            "adaptL_async2" => (2, "lb_async_ms"),
            _ => continue,
        };
        let (name, hogs) = (row.text("workload"), row.text("hogs").parse().unwrap());
        let change = |setup: &mut Setup| {
            (setup.hogs, setup.modules[0].depth, setup.modules[0].priority) = (hogs, depth, 1);
        };
        let learner = || Learner::new(costs.len());
        let simulated = Means::of(&compare(&costs, &workload(name, &costs), change, learner).unwrap());
        let pairs = [
            (simulated.makespan_ms, row.number("makespan_ms")),
            (simulated.crypto_ms, row.number("crypto_cpu_ms")),
        ];
        let errors = Errors::of(pairs);
        let what = format!("{hogs} hogs, {name}, depth {depth}");
        println!("{what}: {:.2?} {simulated:?}", errors.0);
        assert!(errors.largest() <= tolerance(name), "{what}: {:?} {simulated:?}", errors.0);
        assert!(hogs > 0 || simulated.makespan_ms <= 1.02 * row.number(bound), "{what}: {simulated:?}");
        all.add(errors);
    }
    all.stay_within(34, [5.0, 1.0], "learning policy against the reference");
}

#[test]
fn bounds_of_mixes_are_those_of_the_reference() {
    let costs = Series::Aes128.fit().costs;
    for (mix, name) in [(Mix::Uniform8, "mixed_uniform8"), (Mix::Tls, "mixed_tls")] {
        let sizes = mix.sizes();
        let count = |bytes| u32::try_from(sizes.iter().filter(|&&size| size == bytes).count()).unwrap();
        let jobs: Vec<(Cost, u32)> =
            costs.iter().map(|&(bytes, cost)| (cost, count(bytes))).filter(|(_, n)| *n > 0).collect();
        let table = rows(POLICIES, &["workload", "lb_sync_ms", "lb_async_ms"]);
        let row = table.iter().find(|row| row.text("workload") == name).unwrap();
        for (requests, column) in
            [(Requests::Synchronous, "lb_sync_ms"), (Requests::Asynchronous, "lb_async_ms")]
        {
            let ms = lower_bound(&jobs, requests) / 1e6;
            assert!((ms - row.number(column)).abs() < 0.06, "{name} {column}: {ms}");
        }
    }
}

#[test]
fn a_run_repeats_itself_and_loses_no_job() {
    let (one, other) =
        (simulate("mixed_tls", Policy::SharedQueue, 1), simulate("mixed_tls", Policy::SharedQueue, 1));
    assert_eq!(one, other);
    for report in one {
        assert_eq!((report.lost(), report.cpu_jobs() + report.module_jobs()), (0, 4000));
    }
}

#[test]
fn the_core_is_never_given_out_twice() {
    for report in simulate("4096", Policy::SharedQueue, 1) {
        let used = report.crypto() + report.interrupts + report.hog() + report.monitor;
        assert!(
            used <= report.makespan && report.makespan - used < Nanos::from_micros(1),
            "{used} {report:?}"
        );
    }
}
