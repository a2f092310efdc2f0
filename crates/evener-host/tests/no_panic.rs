//! The bodies of the fuzz targets of the host over spoilt seeds: chains of descriptors, and messages at a live host.
#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "../../../fuzz/src/chains.rs"]
#[allow(unreachable_pub, reason = "a crate of its own under the fuzzer")]
mod chains;
#[path = "../../../fuzz/src/control.rs"]
#[allow(unreachable_pub, reason = "a crate of its own under the fuzzer")]
mod control;

use std::path::Path;

use proptest::prelude::*;

/// The seeds of a target, spoilt: some bytes replaced, the end cut off.
fn spoilt(target: &str) -> impl Strategy<Value = Vec<u8>> + use<> {
    // By its name alone: in a guest the seeds lie there, and nothing of this package does.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let folder = root.join("fuzz/seeds").join(target);
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let seeds: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
    let places = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..5);
    let cut = prop::option::of(any::<prop::sample::Index>());
    (prop::sample::select(seeds), places, cut).prop_map(|(mut bytes, places, cut)| {
        for (place, byte) in places {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn whatever_a_ring_says_its_chains_are_those_that_the_specification_sees(bytes in spoilt("host_chains")) {
        chains::host_chains(&bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn whatever_a_client_sends_the_host_goes_on_serving_another(bytes in spoilt("host_control")) {
        control::host_control(&bytes);
    }
}
