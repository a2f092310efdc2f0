//! The controller of combining against programs whose throughput is known: what it must find, and what it may lose.

use std::cell::Cell;

use evener_core::Nanos;
use evener_core::combine::{Controller, EPOCH, EPOCH_MAX, Epoch, TOGETHER_MAX, YIELDS};
use proptest::prelude::*;

/// Two cores, so that five callers pass the gate.
const CORES: usize = 2;

/// Bytes of an epoch in which each caller works for itself.
const INLINE_BYTES: u64 = 50_000_000;

fn epoch(callers: u32, bytes: u64) -> Epoch {
    let core = Nanos(EPOCH.0 * CORES as u64);
    Epoch { span: EPOCH, core, callers, bytes, requests: 0, in_calls: Nanos::ZERO }
}

/// A program: what it brings in epoch `n`, by whether it combines.
fn live(epochs: usize, program: impl Fn(usize, bool) -> Epoch) -> Vec<u32> {
    let mut controller = Controller::new(CORES);
    let mut together = 0;
    (0..epochs)
        .map(|n| {
            let in_force = together;
            together = controller.end_epoch(&program(n, in_force > 0)).map_or(0, |waiting| waiting.together);
            in_force
        })
        .collect()
}

/// Share of epochs in which it combines, in percent.
fn percent_on(settings: &[u32]) -> usize {
    settings.iter().filter(|&&together| together > 0).count() * 100 / settings.len()
}

fn gains(percent: u64) -> impl Fn(usize, bool) -> Epoch {
    move |_, combines| epoch(16, INLINE_BYTES * if combines { percent } else { 100 } / 100)
}

#[test]
fn combining_that_gains_is_found_at_once_and_kept() {
    for percent in [115, 150, 600] {
        let settings = live(1_000, gains(percent));
        assert!(settings[..6].contains(&16), "the first trial comes after four epochs");
        assert!(percent_on(&settings) >= 96, "{percent} %: on in {} %", percent_on(&settings));
    }
}

#[test]
fn combining_that_gains_nothing_is_tried_ever_more_rarely() {
    for percent in [100, 105, 5] {
        let settings = live(10_000, gains(percent));
        let tried = settings.iter().filter(|&&together| together > 0).count();
        // Far below, 64 + 128 + .. + 1024, then every 1024: thirteen comparisons in 10 000 epochs, of one epoch each. Near it,
        // 16 + 32 + .. + 512, then every 512: 24, of two each.
        let expected = if percent < 50 { 10..=14 } else { 40..=52 };
        assert!(expected.contains(&tried), "{percent} %: {tried} epochs");
    }
}

#[test]
fn neighbours_that_come_end_it_within_three_epochs_and_cost_little() {
    // From epoch 300 on other programs want the cores: combining falls to a twentieth, working alone to 0.8.
    let settings = live(800, |n, combines| match (n >= 300, combines) {
        (false, true) => epoch(16, INLINE_BYTES * 2),
        (false, false) => epoch(16, INLINE_BYTES),
        (true, true) => epoch(16, INLINE_BYTES / 20),
        (true, false) => epoch(16, INLINE_BYTES * 8 / 10),
    });
    assert!(percent_on(&settings[..300]) > 90);
    let lost = settings[300..].iter().filter(|&&together| together > 0).count();
    assert!(lost <= 8, "{lost} of 500 epochs at a twentieth");
}

#[test]
fn two_bad_epochs_end_nothing() {
    // Two epochs in fifteen are spoilt by another program.
    let settings = live(1_000, |n, combines| match (n % 15, combines) {
        (0 | 1, true) => epoch(16, INLINE_BYTES * 6 / 10),
        (_, combines) => gains(140)(n, combines),
    });
    assert!(percent_on(&settings) >= 90, "on in {} %", percent_on(&settings));
}

#[test]
fn what_the_machine_loses_for_a_while_ends_nothing() {
    // Every 30 epochs it has half as much for ten, however others work.
    let settings = live(1_000, |n, combines| {
        let seen = gains(130)(n, combines);
        Epoch { bytes: if n % 30 < 10 { seen.bytes / 2 } else { seen.bytes }, ..seen }
    });
    assert!(percent_on(&settings) >= 85, "on in {} %", percent_on(&settings));
}

#[test]
fn a_comparison_that_is_lost_by_little_is_repeated_within_half_a_second() {
    let settings = live(100, |n, combines| gains(if n < 10 { 95 } else { 150 })(n, combines));
    assert!(settings[10..35].contains(&16));
    assert!(settings[35..].iter().all(|&together| together > 0) || percent_on(&settings[35..]) >= 96);
    let settings = live(100, |n, combines| gains(if n < 10 { 60 } else { 150 })(n, combines));
    assert_eq!(percent_on(&settings[10..70]), 0, "what was lost by much waits longer");
}

#[test]
fn neighbours_that_come_and_go_cost_less_than_combining_brings_between() {
    // A second without, a second with them, for five minutes.
    let bytes = |n: usize, combines| match (n / 50 % 2, combines) {
        (0, true) => INLINE_BYTES * 2,
        (0, false) => INLINE_BYTES,
        (_, true) => INLINE_BYTES / 20,
        (_, false) => INLINE_BYTES * 8 / 10,
    };
    let settings = live(15_000, |n, combines| epoch(16, bytes(n, combines)));
    let done: u64 = settings.iter().enumerate().map(|(n, &together)| bytes(n, together > 0)).sum();
    let alone: u64 = (0..settings.len()).map(|n| bytes(n, false)).sum();
    assert!(done > alone, "{} %", done * 100 / alone);
}

#[test]
fn a_gain_that_comes_later_is_found_within_the_longest_back_off() {
    let settings = live(6_000, |n, combines| gains(if n < 3_000 { 90 } else { 200 })(n, combines));
    assert!(percent_on(&settings[3_000 + 1_030..]) > 95);
}

#[test]
fn an_inline_path_that_becomes_faster_is_noticed_by_a_control_epoch() {
    // Combining keeps its speed; working alone becomes as fast.
    let settings = live(400, |n, combines| epoch(16, INLINE_BYTES * if combines || n > 100 { 2 } else { 1 }));
    assert!(percent_on(&settings[..100]) > 90);
    // Seen in the comparison near 108; further ones of two epochs after 8, 16, 32 and 64 epochs.
    let after = settings[110..280].iter().filter(|&&together| together > 0).count();
    assert!(after <= 11, "{after} of 170 epochs");
}

#[test]
fn up_to_two_callers_per_core_never_wait() {
    for callers in 0..=4 {
        let settings = live(500, |_, combines| epoch(callers, INLINE_BYTES * if combines { 9 } else { 1 }));
        assert_eq!(percent_on(&settings), 0, "{callers} callers");
    }
}

#[test]
fn below_saturation_nothing_is_tried() {
    let at = |percent: u64| {
        live(500, |n, combines| Epoch {
            core: Nanos(EPOCH.0 * CORES as u64 * percent / 100),
            ..gains(200)(n, combines)
        })
    };
    assert_eq!(percent_on(&at(85)), 0);
    assert!(percent_on(&at(95)) > 90);
}

#[test]
fn a_program_that_waits_for_its_requests_is_left_alone_when_they_came_late() {
    // Half of what the cores can do is wanted; every two seconds it comes late, and is then done as fast as can be.
    let settings = live(2_000, |n, combines| {
        let (busy, bytes) = match n % 100 {
            0..3 => (20, INLINE_BYTES / 10),
            3..6 => (100, INLINE_BYTES),
            _ => (if combines { 100 } else { 80 }, INLINE_BYTES / 2),
        };
        Epoch { core: Nanos(EPOCH.0 * CORES as u64 * busy / 100), ..epoch(16, bytes) }
    });
    assert_eq!(percent_on(&settings), 0);
}

#[test]
fn as_many_wait_as_called_but_not_more_than_there_are_lanes() {
    for (callers, together) in [(5, 5), (8, 8), (16, 16), (64, 16)] {
        let settings = live(20, |_, combines| epoch(callers, INLINE_BYTES * if combines { 2 } else { 1 }));
        assert_eq!(settings.last(), Some(&together));
    }
}

#[test]
fn core_time_that_is_counted_late_ends_nothing() {
    // A quarter of what an epoch alone used is counted as the next one's.
    let owed = Cell::new(0);
    let settings = live(1_000, |n, combines| {
        let owes = if combines { 0 } else { 27 };
        let percent = 100 - owes + owed.replace(owes);
        Epoch { core: Nanos(EPOCH.0 * CORES as u64 * percent / 100), ..gains(200)(n, combines) }
    });
    assert!(percent_on(&settings) >= 96, "on in {} %", percent_on(&settings));
}

#[test]
fn a_neighbour_that_takes_the_cores_only_when_they_are_given_away_costs_little() {
    for percent in [5, 60] {
        let settings = live(2_000, |n, combines| Epoch {
            core: Nanos(EPOCH.0 * CORES as u64 * if combines { 50 } else { 100 } / 100),
            ..gains(percent)(n, combines)
        });
        assert!(percent_on(&settings) <= 1, "{percent} %: on in {} %", percent_on(&settings));
    }
}

#[test]
fn one_spoilt_epoch_alone_brings_nothing_on() {
    let settings = live(400, |n, _| epoch(16, if n % 4 == 3 { INLINE_BYTES * 6 / 10 } else { INLINE_BYTES }));
    assert!(percent_on(&settings) <= 5, "on in {} %", percent_on(&settings));
}

#[test]
fn one_unlucky_pair_ends_nothing() {
    // Every other time that callers begin to combine, their first epoch is spoilt.
    let (before, turns) = (Cell::new(false), Cell::new(0));
    let settings = live(1_000, |_, combines| {
        let begins = combines && !before.replace(combines);
        before.set(combines);
        turns.set(turns.get() + u32::from(begins));
        let percent = if begins && turns.get() % 2 == 1 { 90 } else { 150 };
        gains(percent)(0, combines)
    });
    assert!(percent_on(&settings) >= 90, "on in {} %", percent_on(&settings));
}

#[test]
fn callers_that_combined_work_alone_when_they_begin_to_wait_for_their_requests() {
    // From epoch 200 on they wait in two epochs, and do in the next what came late.
    let settings = live(1_000, |n, combines| {
        let (busy, bytes) = match (n < 200, n % 3) {
            (true, _) => return gains(200)(n, combines),
            (false, 2) => (100, INLINE_BYTES),
            (false, _) => (20, INLINE_BYTES / 10),
        };
        Epoch { core: Nanos(EPOCH.0 * CORES as u64 * busy / 100), ..epoch(16, bytes) }
    });
    let after = settings[200..].iter().filter(|&&together| together > 0).count();
    assert!(after <= 4, "{after} of 800 epochs");
}

#[test]
fn a_caller_without_a_core_in_one_epoch_is_waited_for_if_it_called_in_the_one_before() {
    let settings =
        live(40, |n, combines| epoch(if n % 2 == 0 { 16 } else { 7 }, gains(200)(n, combines).bytes));
    assert!(settings.iter().all(|&together| together == 0 || together == 16));
}

#[test]
fn a_pause_is_no_failure() {
    let pause = |n: usize| if n % 100 == 99 { Nanos(EPOCH_MAX.0 + 1) } else { EPOCH };
    let settings = live(1_000, |n, combines| Epoch { span: pause(n), ..gains(200)(n, combines) });
    assert!(percent_on(&settings) > 90, "on in {} %", percent_on(&settings));
}

/// Below saturation: what a daemon of 16 threads does in an epoch, by percent of two cores, of what it does alone.
#[derive(Clone, Copy)]
struct Daemon {
    busy: u64,
    /// Requests in calls at once, in percent of one.
    in_calls: u64,
    /// While callers combine, in percent of alone: bytes per time, core time per byte, time of a call.
    bytes: u64,
    core: u64,
    call: u64,
}

/// Two thirds busy; combining saves a quarter of its core time, and calls take less long.
const GAINS: Daemon = Daemon { busy: 66, in_calls: 150, bytes: 100, core: 75, call: 95 };

impl Daemon {
    fn epoch(self, combines: bool) -> Epoch {
        let percent = |value: u64, percent: u64| value * if combines { percent } else { 100 } / 100;
        let bytes = percent(10_000_000, self.bytes);
        let core = percent(EPOCH.0 * CORES as u64 * self.busy / 100, self.bytes * self.core / 100);
        let requests = bytes / 65_536;
        let in_calls = percent(EPOCH.0 * self.in_calls / 100, self.bytes * self.call / 100);
        Epoch { core: Nanos(core), requests, in_calls: Nanos(in_calls), ..epoch(16, bytes) }
    }

    /// Share of 4,000 epochs, in percent, in which it combines.
    fn percent_on(self) -> usize {
        percent_on(&live(4_000, |_, combines| self.epoch(combines)))
    }

    /// The same where every epoch strays, by `noise` percent of what it is.
    fn percent_on_with(self, noise: &[u64]) -> usize {
        percent_on(&live(noise.len(), |n, combines| {
            let Epoch { core, bytes, requests, in_calls, .. } = self.epoch(combines);
            let strays = |value: u64| value * noise[n] / 100;
            // What it has to do strays, and what it costs with it, and how long calls take besides.
            let [core, in_calls] = [Nanos(strays(core.0)), Nanos(strays(strays(in_calls.0)))];
            Epoch { core, in_calls, requests: strays(requests), ..epoch(16, strays(bytes)) }
        }))
    }
}

#[test]
fn a_daemon_below_saturation_that_saves_core_time_combines() {
    assert!(GAINS.percent_on() >= 90, "on in {} %", GAINS.percent_on());
    let settings = live(100, |_, combines| GAINS.epoch(combines));
    assert!(settings[60..].iter().all(|&together| together == 16), "after eight epochs and a trial of 48");
}

#[test]
fn a_daemon_whose_calls_take_longer_combines_only_where_more_bytes_come_through() {
    let longer = Daemon { call: 130, ..GAINS };
    assert!(longer.percent_on() <= 3, "on in {} %", longer.percent_on());
    let faster = Daemon { bytes: 108, ..longer };
    assert!(faster.percent_on() >= 90, "on in {} %", faster.percent_on());
}

#[test]
fn a_daemon_that_loses_throughput_or_saves_too_little_does_not_combine() {
    for daemon in [Daemon { bytes: 93, ..GAINS }, Daemon { core: 94, ..GAINS }] {
        assert!(daemon.percent_on() <= 3, "on in {} %", daemon.percent_on());
    }
}

#[test]
fn a_daemon_whose_requests_hardly_meet_or_whose_cores_are_idle_is_left_alone() {
    for daemon in [Daemon { in_calls: 60, ..GAINS }, Daemon { busy: 40, ..GAINS }] {
        assert_eq!(daemon.percent_on(), 0);
    }
}

#[test]
fn a_trial_below_saturation_that_is_hopeless_ends_after_two_pairs_and_comes_ever_more_rarely() {
    let daemon = Daemon { bytes: 20, ..GAINS };
    let settings = live(10_000, |_, combines| daemon.epoch(combines));
    // At 8, and then 256, 512, 1024, 2048 and 4096 epochs after the end of the one before.
    assert_eq!(settings.iter().filter(|&&together| together > 0).count(), 2 * 6);
}

#[test]
fn what_was_won_below_saturation_is_given_up_within_a_second_when_core_time_rises_and_within_ten_when_calls_take_longer()
 {
    for (later, within) in [(Daemon { core: 120, ..GAINS }, 60), (Daemon { call: 150, ..GAINS }, 560)] {
        let settings = live(2_000, |n, combines| if n < 600 { GAINS } else { later }.epoch(combines));
        assert!(percent_on(&settings[60..600]) >= 90);
        // Half of the epochs of a control are combined, and of trials after 16, 256 and 512 epochs.
        let on = settings[600 + within..].iter().filter(|&&together| together > 0).count();
        assert!(on <= 4 * 24, "{on} epochs");
    }
}

#[test]
fn callers_below_saturation_yield_less_than_at_it() {
    let setting = |program: &dyn Fn(bool) -> Epoch| {
        let (mut controller, mut waiting) = (Controller::new(CORES), None);
        (0..100).for_each(|_| waiting = controller.end_epoch(&program(waiting.is_some())));
        waiting.map(|waiting| waiting.yields)
    };
    assert_eq!(setting(&|combines| GAINS.epoch(combines)), Some(1));
    assert_eq!(setting(&|combines| gains(200)(0, combines)), Some(YIELDS));
}

#[test]
fn a_daemon_at_saturation_whose_cores_combining_frees_goes_on_as_one_below() {
    // Alone it has both cores busy; combined it has done what there is to do in two thirds of the time.
    let daemon = Daemon { busy: 96, bytes: 115, core: 60, ..GAINS };
    assert!(daemon.percent_on() >= 85, "on in {} %", daemon.percent_on());
}

#[test]
fn a_daemon_below_saturation_that_pauses_often_is_not_for_ever_on_trial() {
    // A quarter of a second at work, then a pause: no trial comes to its end.
    let settings = live(4_000, |n, combines| {
        let span = if n % 12 == 11 { Nanos(EPOCH_MAX.0 + 1) } else { EPOCH };
        Epoch { span, ..GAINS.epoch(combines) }
    });
    assert!(percent_on(&settings) <= 3, "on in {} %", percent_on(&settings));
}

/// Percentages from 90 to 110, always the same ones for a seed (a linear congruential generator, after Knuth).
fn strays(seed: u64, count: usize) -> Vec<u64> {
    let next = |state: &u64| {
        Some(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407))
    };
    let states = std::iter::successors(Some(seed), next).skip(8);
    states.take(count).map(|state| 90 + (state >> 33) % 21).collect()
}

#[test]
fn noise_of_a_tenth_seldom_flips_what_is_weighed_below_saturation() {
    // A minute each, a hundred times.
    let mean = |daemon: Daemon| {
        let shares = (1..=100).map(|seed| daemon.percent_on_with(&strays(seed, 3_000)));
        shares.sum::<usize>() / 100
    };
    assert!(mean(GAINS) >= 90, "what gains: on in {} %", mean(GAINS));
    for daemon in [Daemon { core: 100, ..GAINS }, Daemon { call: 125, ..GAINS }] {
        assert!(mean(daemon) <= 4, "what does not: on in {} %", mean(daemon));
    }
}

proptest! {
    #[test]
    fn whatever_is_seen_the_setting_is_one_that_can_be(
        epochs in prop::collection::vec((0u64..200_000_000, 0u64..400_000_000, 0u32..100, any::<u64>()), 1..300),
    ) {
        let mut controller = Controller::new(CORES);
        for (span, core, callers, bytes) in epochs {
            let (span, core) = (Nanos(span), Nanos(core));
            let (requests, in_calls) = (bytes / 16_384, core);
            let waiting = controller.end_epoch(&Epoch { span, core, callers, bytes, requests, in_calls });
            let together = waiting.map_or(0, |waiting| waiting.together);
            prop_assert!(together == 0 || (2..=TOGETHER_MAX).contains(&together));
            prop_assert!(together == 0 || (callers > 4 && span <= EPOCH_MAX));
        }
    }

    #[test]
    fn a_program_that_never_gains_loses_at_most_one_epoch_in_fifty(
        noise in prop::collection::vec(95u64..=105, 2_000), worth in 5u64..=100,
    ) {
        let settings = live(2_000, |n, combines| {
            epoch(16, INLINE_BYTES * noise[n] * if combines { worth } else { 100 } / 10_000)
        });
        let tried = settings.iter().filter(|&&together| together > 0).count();
        prop_assert!(tried <= 40, "{tried} of 2000 epochs");
    }

    #[test]
    fn a_gain_of_a_quarter_survives_much_noise(noise in prop::collection::vec(88u64..=112, 2_000)) {
        let settings =
            live(2_000, |n, combines| epoch(16, gains(125)(n, combines).bytes * noise[n] / 100));
        prop_assert!(percent_on(&settings) >= 85, "on in {} %", percent_on(&settings));
    }

    #[test]
    fn a_clear_gain_survives_noise(noise in prop::collection::vec(93u64..=107, 2_000), worth in 140u64..=600) {
        let settings = live(2_000, |n, combines| {
            epoch(16, INLINE_BYTES * noise[n] * if combines { worth } else { 100 } / 10_000)
        });
        prop_assert!(percent_on(&settings) >= 95);
    }
}
