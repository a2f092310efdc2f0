//! Processes at one module: no request is lost, permits go in order, and what goes wrong is said.

use super::*;

/// Sixteen processes at four units, in requests of a fifth of a millisecond.
fn small() -> Experiment {
    Experiment {
        place: Place::Emulated,
        algorithm: Algorithm::Aes128Cbc,
        bytes: 1_024,
        units: 4,
        core: Nanos(4_000),
        service: Nanos::from_micros(200),
        permits: 4,
        bound_to: None,
        compare_every: 1,
        limit: Duration::from_secs(30),
    }
}

const PROCESSES: usize = 16;
const REQUESTS: usize = 10;

#[test]
fn no_request_is_lost_and_every_result_is_right_in_every_mode() {
    let gates = Gates::new(&small()).unwrap();
    for mode in Mode::ALL {
        let round = gates.round(mode, PROCESSES, REQUESTS).unwrap();
        assert_eq!(round.figures.requests, PROCESSES * REQUESTS, "{mode:?}");
        assert_eq!(round.figures.compared, PROCESSES * REQUESTS, "{mode:?}");
        let mut ids = round.ids.clone();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), PROCESSES, "{mode:?}");
        if mode != Mode::Cores {
            // No unit works faster than it is said to.
            let least_s = (PROCESSES * REQUESTS) as f64 * 200e-6 / 4.0;
            assert!(round.figures.wall_s >= least_s, "{mode:?}: {}", round.figures.wall_s);
            assert!(round.figures.busy.unwrap() <= 1.0 + 1e-9, "{mode:?}: {:?}", round.figures.busy);
            assert!(round.figures.p50_us >= 200.0, "{mode:?}: {}", round.figures.p50_us);
        }
    }
}

#[test]
fn one_permit_is_granted_in_the_order_of_tickets_and_to_all_alike() {
    let one = Experiment { units: 1, permits: 1, ..small() };
    let figures = Gates::new(&one).unwrap().round(Mode::Fifo, PROCESSES, REQUESTS).unwrap().figures;
    assert_eq!(figures.out_of_order, Some(0));
    assert!(figures.waited > PROCESSES * REQUESTS / 2, "{} of them waited", figures.waited);
    // A machine that keeps a process from its core for some turns takes these from it.
    assert!(figures.fairness >= 0.9, "{}", figures.fairness);
}

#[test]
fn the_head_of_a_list_runs_its_whole_session_before_the_next() {
    // Ids of a list are 64 apart, so that of 130 processes some share one; at one unit with two processes in a list, the second begins when the first is through.
    let experiment = Experiment { service: Nanos::from_micros(50), ..small() };
    let figures = Gates::new(&experiment).unwrap().round(Mode::Lists64, 130, 4).unwrap().figures;
    let fair = Gates::new(&experiment).unwrap().round(Mode::Fifo, 130, 4).unwrap().figures;
    assert!(figures.fairness < fair.fairness, "{} {}", figures.fairness, fair.fairness);
    assert_eq!(figures.requests, 520);
}

#[test]
fn a_request_that_fails_ends_the_round_and_says_how_many_processes_it_cost() {
    let gates = Gates::new(&small()).unwrap();
    assert!(gates.round(Mode::Fifo, 2, 2).is_ok());
    let partial = Experiment { bytes: 1_000, ..small() };
    let gates = Gates::new(&partial).unwrap();
    let failed = gates.round(Mode::Queue, 2, 2).unwrap_err().to_string();
    assert!(failed.contains("2 of 2") || failed.contains("0 of 2"), "{failed}");
}

#[test]
fn more_processes_than_the_segment_has_places_for_are_refused_in_words() {
    let gates = Gates::new(&small()).unwrap();
    let refused = gates.round(Mode::Fifo, processes_max() + 1, 1).unwrap_err().to_string();
    assert!(refused.contains(&processes_max().to_string()), "{refused}");
    assert!(processes_max() >= 1_500);
}

#[test]
fn what_the_simulator_says_is_told_of_emulated_modules_only() {
    let ids: Vec<u32> = (0..16).collect();
    let of = |experiment: &Experiment, mode| predict(experiment, mode, &ids, 10, 2, Nanos(8_000));
    let fifo = of(&small(), Mode::Fifo).unwrap();
    assert!(fifo.makespan.0 >= 160 * 200_000 / 4 && fifo.times.len() == 160);
    let host = Experiment { place: Place::Host("hosted:/nowhere".parse().unwrap()), units: 0, ..small() };
    assert!(of(&host, Mode::Fifo).is_none() && of(&host, Mode::Cores).is_some());
}
