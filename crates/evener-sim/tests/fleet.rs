//! The lower bound for many cores and modules, judged by the closed forms for one of each and by a search of its own.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use evener_core::plan::Policy;
use evener_core::{Cost, Nanos};
use evener_sim::bounds::{Fleet, Requests, fleet_bound, lower_bound};
use evener_sim::papers::am3358::Series;
use evener_sim::scenario::{PRESETS, Scenario};

fn costs() -> Vec<Cost> {
    Series::Aes128.fit().costs.into_iter().map(|(_, cost)| cost).collect()
}

fn is_near(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-6 * other
}

#[test]
fn for_one_core_and_one_module_it_is_the_known_bound() {
    for requests in [Requests::Synchronous, Requests::Asynchronous] {
        let fleet = Fleet { count: 1, units: 1, requests, own_share: 1.0 };
        let all: Vec<(Cost, u32)> = costs().into_iter().map(|cost| (cost, 500)).collect();
        let lists = all.iter().map(|&job| vec![job]).chain([all.clone()]);
        for list in lists {
            let (ours, known) = (fleet_bound(&list, 1, fleet), lower_bound(&list, requests));
            assert!(is_near(ours, known), "{requests:?} {list:?}: {ours} {known}");
        }
    }
}

/// Jobs of one cost: modules take what they can; the least time in which cores manage the rest.
fn searched(cost: Cost, n: f64, cores: f64, fleet: Fleet) -> f64 {
    let [c, d, h] = [cost.c, cost.d, cost.h].map(|time| time.as_secs_f64() * 1e9);
    let turn = (h / f64::from(fleet.units)).max(fleet.own_share * d);
    let fits = |time: f64| {
        let most = if d < c { f64::from(fleet.count) * time / turn } else { 0.0 };
        let on_modules = most.min(n);
        (n - on_modules) * c + on_modules * d <= cores * time
    };
    let (mut low, mut high) = (0.0, n * c);
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        if fits(middle) { high = middle } else { low = middle }
    }
    high
}

#[test]
fn for_jobs_of_one_cost_it_is_what_a_search_finds() {
    for cost in costs() {
        for (cores, count, units) in [(1, 4, 1), (2, 1, 2), (8, 16, 1), (64, 4, 3), (256, 64, 1), (8, 64, 2)]
        {
            let fleet = Fleet { count, units, requests: Requests::Asynchronous, own_share: 1.0 };
            let n = 1_000_000;
            let (ours, found) = (
                fleet_bound(&[(cost, n)], cores, fleet),
                searched(cost, f64::from(n), f64::from(cores), fleet),
            );
            assert!(is_near(ours, found), "{cores} cores, {fleet:?}, {cost:?}: {ours} {found}");
        }
    }
}

#[test]
fn it_is_never_below_what_cores_without_modules_or_the_longest_job_need() {
    let cost = Cost { c: Nanos(900), d: Nanos(100), h: Nanos(300) };
    let none = Fleet { count: 0, units: 1, requests: Requests::Synchronous, own_share: 1.0 };
    assert!(is_near(fleet_bound(&[(cost, 8)], 4, none), 1_800.0));
    assert!(is_near(fleet_bound(&[(cost, 1)], 64, Fleet { count: 64, ..none }), 400.0));
}

#[test]
fn no_policy_beats_the_bound_of_a_preset_and_the_adaptive_one_comes_nearest() {
    for name in ["am3358-aes-128", "am3358-aes-192", "am3358-aes-256", "am3358-paper-000"] {
        let scenario = Scenario::preset(name).unwrap();
        let bound = scenario.lower_bound().unwrap();
        let took = |policy| {
            let reports = scenario.run(policy).unwrap();
            assert!(reports.iter().all(|report| report.lost() == 0), "{name} {policy}");
            reports.iter().map(|report| report.makespan.as_secs_f64() * 1e9).sum::<f64>()
                / reports.len() as f64
        };
        let papers = Policy::PAPERS.map(took);
        let adaptive = took(Policy::Adaptive);
        // Costs vary by 5 % each, their mean over 4000 jobs by far less.
        assert!(
            papers.iter().chain([&adaptive]).all(|&time| time > 0.995 * bound),
            "{name}: {papers:?} {bound}"
        );
        let best = papers.into_iter().fold(f64::INFINITY, f64::min);
        assert!(adaptive < 1.005 * best, "{name}: {adaptive} {best} {bound}");
    }
}

#[test]
fn a_stream_has_no_bound_and_the_adaptive_policy_loses_none_of_its_jobs() {
    let scenario = Scenario::preset("am3358-stream").unwrap();
    assert!(scenario.is_stream() && scenario.lower_bound().is_none());
    assert!(scenario.run(Policy::Adaptive).unwrap().iter().all(|report| report.lost() == 0));
}

#[test]
fn modules_that_differ_have_no_bound_and_none_at_all_leaves_the_cores() {
    let (_, text) = PRESETS.iter().find(|(name, _)| *name == "am3358-aes-128").unwrap();
    let (from, to) = (text.find("[[module]]").unwrap(), text.find("[workload]").unwrap());
    let second = text[from..to].replace("units = 1", "units = 2");
    let differ = format!("{}{second}{}", &text[..to], &text[to..]);
    assert_eq!(Scenario::parse("two", &differ).unwrap().lower_bound(), None);
    let none = Scenario::parse("none", &format!("{}{}", &text[..from], &text[to..])).unwrap();
    let report = &none.run(Policy::Adaptive).unwrap()[0];
    assert_eq!((report.cpu_jobs(), report.lost()), (4_000, 0));
    assert!(is_near(none.lower_bound().unwrap(), 4_000.0 * 538_315.0));
}
