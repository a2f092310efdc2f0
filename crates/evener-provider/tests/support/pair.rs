//! The same program by both providers, and what splits its buffers.

use std::env;

use evener_kernels::Level;
use evener_testing::programs::skipped;

use super::ffi::{Cipher, CipherCtx, DEFAULT, LibCtx, Provider, clear_errors, errors};
use super::{Random, in_program, usual};

/// Splits whatever has two parts.
pub const SPLIT: &[(&str, &str)] =
    &[("EVENER_THREADS", "3"), ("EVENER_SPLIT", "16"), ("EVENER_GUARD", "off")];

const KERNELS: &str = "EVENER_KERNELS";

/// Runs `body` in a program that splits whatever has two parts by contexts of libcrypto's, and in one that does so by kernels, where there are some.
pub fn in_both(name: &str, body: impl Fn()) {
    for kernels in ["off", "on"] {
        // The program that was started for one of them is none for the other.
        if env::var(KERNELS).is_ok_and(|set| set != kernels) {
            continue;
        }
        if kernels == "on" && Level::best().is_none() {
            skipped("this processor has no kernels");
            continue;
        }
        in_program(name, &usual(""), &[SPLIT, &[(KERNELS, kernels)]].concat(), || {
            assert_eq!(kernels_work(), kernels == "on");
            body();
        });
    }
}

/// Whether kernels do short messages of a stream and of GCM here.
fn kernels_work() -> bool {
    let evener = evener();
    ["AES-128-CTR", "AES-128-GCM"].iter().all(|name| {
        let before = evener.count(c"evener-native").unwrap();
        let cipher = DEFAULT.cipher(name, "provider=evener").unwrap();
        let context = CipherCtx::new();
        assert!(context.init(Some(&cipher), Some(&[1; 16]), Some(&[2; 16][..cipher.iv_bytes()]), Some(true)));
        context.update(&[3; 10]).unwrap();
        drop(context);
        evener.count(c"evener-native").unwrap() > before
    })
}

/// Whether kernels may work in this program.
pub fn has_kernels() -> bool {
    env::var(KERNELS).is_ok_and(|set| set != "off")
}

pub fn evener() -> Provider {
    DEFAULT.load("evener").unwrap()
}

pub fn split_count(evener: &Provider) -> u32 {
    evener.count(c"evener-split").unwrap()
}

/// So many messages with each cipher, of which more than half are split.
pub fn split_mostly(names: &[&str], count: u64, message: impl Fn(&str, u64)) {
    let evener = evener();
    for name in names {
        let before = split_count(&evener);
        (0..count).for_each(|run| message(name, run));
        let split = split_count(&evener) - before;
        assert!(u64::from(split) > count / 2, "{name}: {split}");
    }
}

/// The same program by both providers.
pub struct Pair {
    pub ciphers: [Cipher; 2],
    pub contexts: [CipherCtx; 2],
}

impl Pair {
    pub fn new(context: &LibCtx, name: &str) -> Self {
        let by = |provider| context.cipher(name, &format!("provider={provider}")).unwrap();
        Self { ciphers: ["evener", "default"].map(by), contexts: [CipherCtx::new(), CipherCtx::new()] }
    }

    /// Does `step` to both; panics with `what` where they do not agree, in what is left on the error queue either.
    pub fn both<T: PartialEq>(&self, what: &str, step: impl Fn(&CipherCtx, &Cipher) -> T) -> T {
        let [(evener, said), (judge, said_by_judge)] = [0, 1].map(|at| {
            clear_errors();
            (step(&self.contexts[at], &self.ciphers[at]), errors())
        });
        assert!(evener == judge, "{what}");
        assert_eq!(said, said_by_judge, "{what}");
        evener
    }

    pub fn duplicate(&mut self) {
        self.contexts = [self.contexts[0].duplicate(), self.contexts[1].duplicate()];
    }
}

/// Lengths about which a cut may go wrong: mostly of several parts, sometimes of a few bytes.
pub fn length(random: &mut Random) -> usize {
    match random.below(6) {
        0 => random.below(100),
        1 => 16 * random.below(100),
        2 => 16_384 * (1 + random.below(20)) + random.below(40),
        3 => 16 * random.below(20_000),
        _ => random.below(300_000),
    }
}
