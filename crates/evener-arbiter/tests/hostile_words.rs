//! The body of the fuzz target `arbiter_words`, on bytes at random: also where no fuzzer is at hand.
#![cfg(not(loom))]
#![allow(unreachable_pub, reason = "the body is the fuzz crate's")]

#[path = "../../../fuzz/src/arbiter.rs"]
mod arbiter;

use proptest::prelude::*;

proptest! {
    #[test]
    fn whatever_the_words_say_and_become_every_request_ends_within_its_time(
        bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0..4_u8], 2..6_000),
    ) {
        arbiter::arbiter_words(&bytes);
    }
}
