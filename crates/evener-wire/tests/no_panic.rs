//! The body of the fuzz target over spoilt seeds.
#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "../../../fuzz/src/wire.rs"]
#[allow(unreachable_pub, reason = "a crate of its own under the fuzzer")]
mod wire;

use proptest::prelude::*;

fn seeds() -> Vec<Vec<u8>> {
    let folder = format!("{}/../../fuzz/seeds/host_wire", env!("CARGO_MANIFEST_DIR"));
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn no_bytes_make_a_parser_panic_and_what_is_accepted_is_read_again(
        seed in any::<prop::sample::Index>(),
        spoilt in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..5),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let seeds = seeds();
        let mut bytes = seeds[seed.index(seeds.len())].clone();
        for (place, byte) in spoilt {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        wire::host_wire(&bytes);
    }
}
