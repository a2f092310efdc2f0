//! The bodies of the fuzz targets over a few thousand spoilt seeds, the same ones in each run.
#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "../../../fuzz/src/lib.rs"]
#[allow(unreachable_pub, reason = "a crate of its own under the fuzzer")]
mod bodies;

/// Spoilt inputs per target.
const ROUNDS: usize = 10_000;

/// Marsaglia's xorshift, 64 bits (shifts 13, 7, 17).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit.max(1) as u64).unwrap()
    }

    fn byte(&mut self) -> u8 {
        self.next().to_be_bytes()[0]
    }
}

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = format!("{}/../../fuzz/seeds/{target}", env!("CARGO_MANIFEST_DIR"));
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut seeds: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
    seeds.push(Vec::new());
    seeds
}

/// One to four of: a bit turned, a byte replaced, a piece cut out, doubled, or taken from another seed.
fn spoil(random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(4) {
        let place = random.below(bytes.len());
        let piece = place..place + random.below((bytes.len() - place).min(64));
        match random.below(6) {
            0 if !bytes.is_empty() => bytes[place] ^= 1 << random.below(8),
            1 if !bytes.is_empty() => bytes[place] = random.byte(),
            2 => bytes.truncate(place),
            3 => drop(bytes.drain(piece)),
            4 => bytes.extend_from_within(piece),
            _ => {
                let other = &seeds[random.below(seeds.len())];
                let tail = other[random.below(other.len())..].to_vec();
                bytes.splice(place..place, tail);
            }
        }
    }
    bytes
}

fn run(target: &str, body: fn(&[u8])) {
    let seeds = seeds(target);
    seeds.iter().for_each(|seed| body(seed));
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for _ in 0..ROUNDS {
        body(&spoil(&mut random, &seeds));
    }
}

/// A test for each target: its seeds, spoilt, go into its body.
macro_rules! targets {
    ($($claim:ident: $target:ident;)*) => {$(
        #[test]
        fn $claim() {
            run(stringify!($target), bodies::$target);
        }
    )*};
}

targets! {
    a_spoilt_tink_header_is_an_error: tink_header;
    a_spoilt_keyset_is_an_error: keyset;
    a_spoilt_age_header_or_key_file_is_an_error: age_header;
    a_spoilt_openssl_header_is_an_error: openssl_header;
}
