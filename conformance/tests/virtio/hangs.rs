//! A device that hangs: who waits for a single request leaves it, a run redoes on a core what it holds, and who comes when it works again
//! is served.

use std::time::{Duration, Instant};

use evener::Quarantine;
use evener_core::driver::Unanswered;
use evener_core::{Algorithm, Direction, JobError, Nanos, Padding};
use evener_testing::requests::{Ask, in_place, judged, session};

use super::processes::ByRun;
use super::{SILENCE, Scene, are_right, device, wait_for_the_host, works};

pub(super) fn are_left(scene: &mut Scene) {
    if scene.qmp.is_none() {
        return;
    }
    scene.test_while_it_hangs("hangs::who_waits_leaves_with_his_text_as_it_was");
    scene.test_while_it_hangs("hangs::a_run_redoes_what_the_device_holds");
    scene.test("hangs::the_next_process_is_served");
}

const PATIENCE: Nanos = Nanos::from_millis(200);
/// A device that is slowed down by its bytes lets a tenth of a second pass at once, which is one request.
const BEFORE_MAX: usize = 4;

const LOST: Result<Vec<u8>, Unanswered> = Err(Unanswered::Failed(JobError::ModuleLost));

fn asks(count: usize) -> Vec<Ask> {
    let key = session(Algorithm::Aes256Cbc, Direction::Encrypt, Padding::None, 11);
    (0..count).map(|seed| Ask::noisy(&key, 64, 2 * seed)).collect()
}

#[test]
#[ignore = "a part of another one, which runs it in a guest"]
fn who_waits_leaves_with_his_text_as_it_was() {
    let Some(module) = device() else { return };
    let (single, asks) = (module.single(), asks(BEFORE_MAX));
    let left = asks.iter().find_map(|ask| {
        let began = Instant::now();
        match in_place(&*single, ask, PATIENCE) {
            Ok(output) => assert!(output == judged(ask).output, "{}", ask.what()),
            Err(Unanswered::Late) => return Some(began.elapsed()),
            Err(error) => panic!("{error:?}"),
        }
        None
    });
    let left = left.expect("it never hangs");
    assert!(left >= PATIENCE.into() && left < Duration::from_secs(15), "{left:?}");
    // Of it nobody knows what it will do yet.
    assert_eq!(in_place(&*single, &asks[0], SILENCE), LOST, "without waiting");
    drop((single, module));
    wait_for_the_host();
    works();
}

#[test]
#[ignore = "a part of another one, which runs it in a guest"]
fn a_run_redoes_what_the_device_holds() {
    let Some(module) = device() else { return };
    let (asks, mut way) = (asks(60), ByRun::new(&module, PATIENCE));
    are_right(&mut way, &asks);
    assert_eq!(way.quarantine(), Some(Quarantine::Hung));
    let (by_module, redone) = (way.by_module(), way.report.total().redone);
    assert!(by_module <= BEFORE_MAX as u64, "{by_module} by a device that hangs");
    assert!(redone > 0, "what it held");
    // Reset, for it might write what nobody waits for any more.
    assert_eq!(in_place(&*module.single(), &asks[0], SILENCE), LOST);
    wait_for_the_host();
}

#[test]
#[ignore = "a part of another one, which runs it in a guest"]
fn the_next_process_is_served() {
    if device().is_some() {
        works();
    }
}
