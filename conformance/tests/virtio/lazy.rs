//! A device that is reserved first, and taken with the first request.

use std::fs;

use evener_core::driver::Unanswered;
use evener_core::{Algorithm, Direction, JobError, Padding};
use evener_driver_virtio::{LazyModule, Module};
use evener_testbed::USER_SPACE_MODULE;
use evener_testing::programs::is_right_in_child;
use evener_testing::requests::{JobSpec, in_place, judged, session};

use super::{SILENCE, TestGuest, is_here, name, works};

pub(super) fn is_reserved_and_taken(test_guest: &mut TestGuest) {
    test_guest.test("lazy::the_process_that_reserved_it_has_it_and_takes_it_with_the_first_request");
    test_guest.test("lazy::a_child_that_was_forked_before_that_leaves_it_to_its_parent");
}

/// The device, reserved; elsewhere than in the guest nothing and a printed line.
fn lazy_module() -> Option<LazyModule> {
    is_here().then(|| LazyModule::reserve(&name()).expect("it names a device").expect("no process has it"))
}

fn spec() -> JobSpec {
    JobSpec::noisy(&session(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None, 12), 4_096, 1)
}

/// Whether the system has switched the function on, which is the first that is done with it.
fn is_on() -> bool {
    let told = fs::read_to_string(format!("/sys/bus/pci/devices/{USER_SPACE_MODULE}/enable"));
    told.expect("Linux tells").trim() != "0"
}

#[test]
#[ignore = "a part of another one, which runs it in a guest"]
fn the_process_that_reserved_it_has_it_and_takes_it_with_the_first_request() {
    let Some(lazy_module) = lazy_module() else { return };
    let does = |algorithm| lazy_module.supports(algorithm, Direction::Encrypt);
    let error = Module::connect(&name()).expect_err("it is reserved");
    assert!(error.to_string().ends_with("another process has 0000:00:10.0"), "{error}");
    assert_eq!([Algorithm::Aes128Cbc, Algorithm::Sha256].map(does), [true; 2], "no request reached it yet");
    assert!(!is_on());
    let single = lazy_module.single();
    assert!(is_on());
    assert_eq!([Algorithm::Aes128Cbc, Algorithm::Sha256].map(does), [true, false]);
    assert_eq!(in_place(&*single, &spec(), SILENCE), Ok(judged(&spec()).output));
    drop((single, lazy_module));
    assert!(!is_on());
    works();
}

#[test]
#[ignore = "a part of another one, which runs it in a guest"]
fn a_child_that_was_forked_before_that_leaves_it_to_its_parent() {
    let Some(lazy_module) = lazy_module() else { return };
    let mut lazy_module = Some(lazy_module);
    let is_right = is_right_in_child(|| {
        let theirs = lazy_module.take().expect("a copy");
        assert!(!theirs.supports(Algorithm::Aes128Cbc, Direction::Encrypt));
        let refused = Err(Unanswered::Failed(JobError::ModuleFull));
        assert_eq!(in_place(&*theirs.single(), &spec(), SILENCE), refused);
        assert!(!is_on());
    });
    assert!(is_right, "see what the child said");
    let single = lazy_module.as_ref().expect("the parent's").single();
    assert_eq!(in_place(&*single, &spec(), SILENCE), Ok(judged(&spec()).output));
}
