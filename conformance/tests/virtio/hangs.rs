//! A device that hangs: a caller of a single request leaves it, a run redoes on a core what it holds, and a process that comes when it works again
//! is served.

use std::time::{Duration, Instant};

use evener::Quarantine;
use evener_core::driver::Unanswered;
use evener_core::{Algorithm, Direction, JobError, Nanos, Padding};
use evener_testing::requests::{JobSpec, in_place, judged, session};

use super::processes::ByRun;
use super::{SILENCE, TestGuest, are_right, device, wait_for_the_host, works};

pub(super) fn are_left(test_guest: &mut TestGuest) {
    if test_guest.qmp.is_none() {
        return;
    }
    test_guest.test_while_it_hangs("hangs::a_waiting_caller_leaves_with_its_text_as_it_was");
    test_guest.test_while_it_hangs("hangs::a_run_redoes_what_the_device_holds");
    test_guest.test("hangs::the_next_process_is_served");
}

const TIMEOUT: Nanos = Nanos::from_millis(200);
/// A device that is slowed down by its bytes lets a tenth of a second pass at once, which is one request.
const BEFORE_MAX: usize = 4;

const LOST: Result<Vec<u8>, Unanswered> = Err(Unanswered::Failed(JobError::ModuleLost));

fn specs(count: usize) -> Vec<JobSpec> {
    let key = session(Algorithm::Aes256Cbc, Direction::Encrypt, Padding::None, 11);
    (0..count).map(|seed| JobSpec::noisy(&key, 64, 2 * seed)).collect()
}

#[test]
#[ignore = "a part of another one, which runs it in a guest"]
fn a_waiting_caller_leaves_with_its_text_as_it_was() {
    let Some(module) = device() else { return };
    let (single, specs) = (module.single(), specs(BEFORE_MAX));
    let left = specs.iter().find_map(|spec| {
        let began = Instant::now();
        match in_place(&*single, spec, TIMEOUT) {
            Ok(output) => assert!(output == judged(spec).output, "{}", spec.what()),
            Err(Unanswered::Late) => return Some(began.elapsed()),
            Err(error) => panic!("{error:?}"),
        }
        None
    });
    let left = left.expect("it never hangs");
    assert!(left >= TIMEOUT.into() && left < Duration::from_secs(15), "{left:?}");
    // What it will do is not known yet.
    assert_eq!(in_place(&*single, &specs[0], SILENCE), LOST, "without waiting");
    drop((single, module));
    wait_for_the_host();
    works();
}

#[test]
#[ignore = "a part of another one, which runs it in a guest"]
fn a_run_redoes_what_the_device_holds() {
    let Some(module) = device() else { return };
    let (specs, mut route) = (specs(60), ByRun::new(&module, TIMEOUT));
    are_right(&mut route, &specs);
    assert_eq!(route.quarantine(), Some(Quarantine::Hung));
    let (by_module, redone) = (route.by_module(), route.report.total().redone);
    assert!(by_module <= BEFORE_MAX as u64, "{by_module} by a device that hangs");
    assert!(redone > 0, "what it held");
    // Reset, for it might write results that no caller waits for any more.
    assert_eq!(in_place(&*module.single(), &specs[0], SILENCE), LOST);
    wait_for_the_host();
}

#[test]
#[ignore = "a part of another one, which runs it in a guest"]
fn the_next_process_is_served() {
    if device().is_some() {
        works();
    }
}
