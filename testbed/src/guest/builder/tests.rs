//! What a guest cannot be: a test of it is skipped where QEMU lacks it, and fails where the test is wrong.

use super::*;
use crate::qemu::tests::qemu_that_says;

#[test]
fn a_test_whose_guest_this_qemu_cannot_be_is_skipped_and_another_fails() {
    let folder = tempfile::tempdir().unwrap();
    let old = qemu_that_says(folder.path(), "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)");
    let throttle = Throttle { bytes_per_s: 1, ops_per_s: 0 };
    let socket = folder.path().join("socket");
    for module in [Module::BuiltIn(throttle), Module::VhostUser { socket, event_idx: true }] {
        assert!(or_skip(Guest::builder().module(module).start(&old)).is_none());
    }
    let starts = Guest::builder().module(Module::BuiltIn(Throttle::default())).check(&old);
    assert!(starts.is_ok(), "it has the module itself");
    let ended = || Err(Error::Ended { status: "1".into(), reason: String::new(), console: String::new() });
    assert!(std::panic::catch_unwind(|| or_skip(ended())).is_err(), "only what is not there is skipped");
}

#[test]
fn a_module_for_user_space_is_refused_where_no_guest_of_the_profile_can_have_one() {
    let refused = Guest::builder().profile(Profile::Armv7).user_space_module().boot();
    assert!(matches!(refused, Err(Error::NotOfProfile { profile: "armv7", .. })), "{refused:?}");
    assert!(refused.is_err_and(|error| !error.is_absence()), "no package would make it possible");
}
