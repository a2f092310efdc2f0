//! Against the reference simulation, cell by cell. It computes in floating-point milliseconds, with generators for
//! threads; here are integer nanoseconds and machines of states.

use evener_core::plan::Policy;
use evener_sim::bounds::{Requests, fair_halves, lower_bound, work_conservation};
use evener_sim::costs::{JOBS, fit_with};
use evener_sim::papers::am3358::{Model, Series, predict};

use crate::golden::{BOUNDS, CELLS, Errors, FAIR, Row, cost, rows};

/// Half of the last digit of a column with one decimal, and a nanosecond per job for rounding costs.
const ROUNDING_MS: f64 = 0.05 + 0.004;

#[test]
fn costs_are_those_of_the_reference() {
    for row in rows(BOUNDS, &["table", "size", "c_us", "d_us", "h_us"]) {
        let cost = cost(row.series(), row.size());
        for (simulated, column) in [(cost.c, "c_us"), (cost.d, "d_us"), (cost.h, "h_us")] {
            let (us, printed) = (simulated.as_secs_f64() * 1e6, row.number(column));
            assert!(
                (us - printed).abs() <= 0.005 * printed + 0.005,
                "{} {column}: {us} {printed}",
                row.size()
            );
        }
    }
}

#[test]
fn bounds_are_those_of_the_reference() {
    let columns = ["table", "size", "lb_sync_ms", "lb_async_ms"];
    let bounds = rows(BOUNDS, &columns);
    assert_eq!(bounds.len(), 24);
    for row in bounds {
        let jobs = [(cost(row.series(), row.size()), JOBS)];
        for (requests, column) in [(Requests::Synchronous, columns[2]), (Requests::Asynchronous, columns[3])]
        {
            let ms = lower_bound(&jobs, requests) / 1e6;
            assert!((ms - row.number(column)).abs() < ROUNDING_MS, "{} {column}: {ms}", row.size());
        }
    }
}

#[test]
fn the_bounds_move_as_the_reference_says_when_the_modules_own_time_is_a_fifth_off() {
    for row in rows(BOUNDS, &["table", "size", "lb_sync_h20", "lb_async_h20"]) {
        let fit = row.series().fit();
        let off = [0.8, 1.2].map(|factor| fit_with(&row.series().columns(), fit.beta, fit.h1 * factor).costs);
        for (requests, column) in
            [(Requests::Synchronous, "lb_sync_h20"), (Requests::Asynchronous, "lb_async_h20")]
        {
            let bounds = off.each_ref().map(|costs| {
                let cost = costs.iter().find(|(bytes, _)| *bytes == row.size()).unwrap().1;
                lower_bound(&[(cost, JOBS)], requests) / 1e6
            });
            let (low, high) = row.text(column).split_once("..").unwrap();
            let [low, high]: [f64; 2] = [low, high].map(|ms| ms.parse().unwrap());
            let simulated = [bounds[0].min(bounds[1]), bounds[0].max(bounds[1])];
            let near = (simulated[0] - low).abs() <= 0.51 && (simulated[1] - high).abs() <= 0.51;
            assert!(near, "{} {column}: {simulated:?} {low} {high}", row.size());
        }
    }
}

#[test]
fn the_closed_form_of_the_shared_queue_is_that_of_the_reference() {
    let fair = rows(FAIR, &["table", "size", "fair_ms", "module_files"]);
    assert_eq!(fair.len(), 33);
    for row in fair {
        let (ns, module_jobs) = fair_halves(cost(row.series(), row.size()), f64::from(JOBS));
        assert!((ns / 1e6 - row.number("fair_ms")).abs() < ROUNDING_MS, "{}: {ns}", row.size());
        assert!((module_jobs - row.number("module_files")).abs() < 0.6, "{}: {module_jobs}", row.size());
    }
}

#[test]
fn work_conservation_is_that_of_the_reference() {
    let columns = ["table", "size", "column", "model", "predicted_ms"];
    let half = f64::from(JOBS) / 2.0;
    let mut rows_seen = 0;
    for row in rows(CELLS, &columns).iter().filter(|row| row.text("model") == "W") {
        let ms = work_conservation(cost(row.series(), row.size()), [half, half]) / 1e6;
        assert!((ms - row.number("predicted_ms")).abs() < 0.01, "{}: {ms}", row.size());
        rows_seen += 1;
    }
    assert_eq!(rows_seen, 8);
}

fn model(row: &Row) -> Option<Model> {
    match row.text("model") {
        "L0" => Some(Model::L0),
        "L1_hz128" => Some(Model::L1 { hz: 128 }),
        "L1_hz250" => Some(Model::L1 { hz: 250 }),
        _ => None,
    }
}

fn policy(row: &Row) -> Policy {
    match row.text("column") {
        "round_robin" => Policy::RoundRobin,
        "polling" => Policy::Polling,
        "proposed" | "module_and_cpu" => Policy::SharedQueue,
        other => panic!("{other}"),
    }
}

/// Where the demand decides, one per cent; where the scheduler does, five.
fn tolerance(size: u64) -> f64 {
    if size >= 8192 { 1.0 } else { 5.0 }
}

#[test]
fn every_simulated_cell_is_that_of_the_reference() {
    let columns = ["table", "size", "column", "model", "predicted_ms", "pred_module_files"];
    let mut errors = Vec::new();
    for row in rows(CELLS, &columns) {
        let Some(model) = model(&row) else { continue };
        let simulated = predict(cost(row.series(), row.size()), model, policy(&row)).unwrap();
        let error = Errors::of([
            (simulated.makespan_ms, row.number("predicted_ms")),
            (simulated.module_jobs, row.number("pred_module_files")),
        ]);
        let what = format!("{:?} {} {:?} {}", row.series(), row.size(), model, policy(&row));
        assert!(error.largest() <= tolerance(row.size()), "{what}: {:?} {simulated:?}", error.0);
        errors.extend(error.0);
    }
    assert_eq!(errors.len(), 2 * 147);
    // The errors are far below the bound: the two differ by rounding only.
    Errors(errors).stay_within(0.5, 0.05, "simulated cells");
}

#[test]
fn sizes_come_in_the_order_of_the_papers() {
    for series in Series::ALL {
        let sizes: Vec<u64> = series.columns().iter().map(|size| size.bytes).collect();
        assert!(sizes.is_sorted() && sizes.len() >= 8, "{series:?}");
    }
}
