//! The same burst by every way into the runtime gives the same bytes, also where a module fails in between.

use evener_conformance::{ByRuntime, Door};
use evener_core::plan::Policy;
use evener_core::{JobError, Method, Outcome};
use evener_driver_emulated::{Fault, When};
use evener_testing::drivers::multibuffer;
use evener_testing::requests::{Answer, JobSpec, OnCore, answers, kinds};

/// 400 jobs of every algorithm, direction and padding; every 19th of those that can be is forged.
fn burst() -> Vec<JobSpec> {
    let sessions: Vec<_> = kinds(20).collect();
    let one = |seed: usize| {
        let mut spec = JobSpec::noisy(&sessions[seed % sessions.len()], seed * 41 % 2500, seed);
        if seed % 19 == 0 && !spec.tag.is_empty() {
            spec.tag[seed % 16] ^= 0x10;
        }
        spec
    };
    (0..400).map(one).collect()
}

/// What a core alone makes of the burst, one job after the other.
fn right(specs: &[JobSpec]) -> Vec<Answer> {
    let right = answers(&mut OnCore::plain(), specs);
    let forged = Outcome::Failed(JobError::NotAuthentic);
    let refused = right.iter().filter(|answer| answer.outcome == forged).count();
    assert!(refused > 0 && refused < 40, "{refused} forged jobs");
    right
}

/// Fails unless `route` gives what is right, each job counted once.
fn compare(route: &mut ByRuntime, specs: &[JobSpec], right: &[Answer], what: &str) {
    for ((spec, answer), right) in specs.iter().zip(answers(route, specs)).zip(right) {
        assert_eq!(answer.outcome, right.outcome, "{what}: {}", spec.what());
        let is_right = answer.output == right.output && (answer.tag == right.tag || is_forged(right));
        assert!(is_right, "{what}: {}", spec.what());
    }
    let total = route.report.total();
    assert_eq!(total.jobs + total.failed, specs.len() as u64, "{what}");
}

/// The tag of a forged job means nothing.
fn is_forged(answer: &Answer) -> bool {
    answer.outcome == Outcome::Failed(JobError::NotAuthentic)
}

#[test]
fn multi_buffer_and_plain_are_one_path() {
    let Some(driver) = multibuffer() else { return };
    let specs = burst();
    let came = answers(&mut OnCore::multi_buffer(driver), &specs);
    for ((spec, answer), right) in specs.iter().zip(came).zip(right(&specs)) {
        assert_eq!(answer.outcome, right.outcome, "{}", spec.what());
        assert!(answer.output == right.output, "{}", spec.what());
    }
}

#[test]
fn a_caller_alone_a_caller_with_workers_and_a_stream_are_one_path() {
    let specs = burst();
    let right = right(&specs);
    for (door, workers) in [(Door::Caller, 0), (Door::Caller, 2), (Door::Stream, 1), (Door::Stream, 2)] {
        for policy in Policy::ALL {
            let mut route = ByRuntime::new(policy, door, workers);
            compare(&mut route, &specs, &right, &format!("{policy}, {door:?}, {workers} workers"));
            assert_eq!(route.report.modules().jobs, 0);
        }
    }
}

/// A fault, the jobs that meet it, and whether results must be checked to find it.
const FAULTS: [(Fault, When, bool); 5] = [
    (Fault::None, When::ALWAYS, false),
    (Fault::Error { code: 5 }, When { from: 2, every: 3 }, false),
    (Fault::WrongBytes, When { from: 7, every: 5 }, true),
    (Fault::Hang, When { from: 9, every: 0 }, false),
    (Fault::Gone, When { from: 12, every: 1 }, false),
];

#[test]
fn a_module_is_on_the_same_path_whatever_its_fault_under_every_policy() {
    let specs = burst();
    let right = right(&specs);
    // Cores wait here until the module has met its fault; the adaptive policy is told that it is worth it.
    for policy in Policy::ALL.into_iter().filter(|&policy| policy != Policy::CpuOnly) {
        for (door, workers) in [(Door::Caller, 0), (Door::Caller, 1), (Door::Stream, 2)] {
            for (fault, when, checked) in FAULTS {
                let what = format!("{policy}, {door:?}, {workers} workers, {fault:?}");
                let route = ByRuntime::new(policy, door, workers).with_module(fault, when);
                let mut route = if checked { route.checked() } else { route };
                compare(&mut route, &specs, &right, &what);
                if !matches!(fault, Fault::None | Fault::Gone) {
                    assert!(route.report.method(Method::Plain).redone > 0, "{what}: the fault did not show");
                }
                let offloaded = route.report.modules();
                assert!(offloaded.jobs + offloaded.failed > 0, "{what}: nothing was offloaded");
            }
        }
    }
}
