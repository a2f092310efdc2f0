//! The adaptive policy on machines larger than any at hand, against the least time that the work takes there.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stdout, reason = "says what was reached")]

use evener_sim::scale::{Cell, Figures, Mix};

fn figures(modules: u32, cores: u32, streams: u32, mix: Mix) -> Figures {
    let cell = Cell { modules, cores, streams, mix };
    let (figures, _) = cell.run(|policy| policy).unwrap();
    println!("{cell:?}: {figures:?}");
    assert_eq!(figures.lost, 0, "{cell:?}");
    figures
}

#[test]
fn where_jobs_are_many_times_the_workers_most_of_the_bound_is_reached() {
    for mix in Mix::ALL {
        for (modules, cores) in [(1, 1), (4, 2), (1, 64)] {
            let at = figures(modules, cores, 100_000, mix);
            assert!(
                at.load > 1.0 && at.of_bound <= 1.01,
                "{modules} modules, {cores} cores, {mix:?}: {at:?}"
            );
            assert!(at.of_bound >= 0.93, "{modules} modules, {cores} cores, {mix:?}: {at:?}");
        }
    }
}

/// Runs in which modules rested though jobs waited, and in which each module was too little beside so many cores.
#[test]
fn long_runs_of_large_machines_reach_the_bound_too() {
    for (modules, cores, jobs, mix) in [
        (16, 8, 7_200, Mix::TlsRecords),
        (16, 8, 20_000, Mix::TlsRecords),
        (64, 64, 40_000, Mix::TlsRecords),
        (64, 256, 60_000, Mix::TlsRecords),
        (4, 2, 20_000, Mix::Files),
    ] {
        let cell = Cell { modules, cores, streams: 100_000, mix };
        let (at, _) = cell.run_of(jobs, |policy| policy).unwrap();
        println!("{cell:?}: {at:?}");
        assert_eq!(at.lost, 0, "{cell:?}");
        assert!((0.95..1.01).contains(&at.of_bound), "{cell:?}: {at:?}");
        assert!(at.module_share > 0.1, "{cell:?}: {at:?}");
    }
}

#[test]
fn one_stream_is_served_as_it_comes_on_any_machine() {
    for (modules, cores) in [(1, 1), (64, 8), (16, 256)] {
        let at = figures(modules, cores, 1, Mix::TlsRecords);
        assert!(at.load < 0.1 && at.of_bound > 0.99, "{modules} modules, {cores} cores: {at:?}");
        // The longest record takes 1.2 ms on a core.
        assert!(at.p99.as_secs_f64() < 5e-3, "{modules} modules, {cores} cores: {at:?}");
    }
}

#[test]
fn cores_and_modules_that_are_added_are_used() {
    let of = |modules, cores| figures(modules, cores, 100_000, Mix::Files).jobs_per_s;
    let (small, cores, both) = (of(4, 8), of(4, 64), of(64, 64));
    assert!(cores > 3.0 * small && both > 1.2 * cores, "{small} {cores} {both}");
}

#[test]
fn the_grid_has_every_machine_once() {
    let cells: Vec<Cell> = Cell::grid().collect();
    assert_eq!(cells.len(), 120);
    assert!(cells.iter().enumerate().all(|(at, cell)| !cells[..at].contains(cell)));
}
