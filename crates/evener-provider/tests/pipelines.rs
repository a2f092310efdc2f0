//! Each message of a pipeline comes out as from a context of its own in the default provider, whatever is done with the
//! pieces; through EVP of a libcrypto that has pipelines, and through the provider's table in the system's.

#![allow(unsafe_code, reason = "room: its support calls libcrypto")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test that says what it skips")]

use std::env;
use std::ffi::OsStr;
use std::path::Path;

use evener_provider::{OSSL_provider_init, offer_pipelines_anyway};

mod support;

use support::ffi::pipe::{Kind, Library, PipelineContext};
use support::ffi::{Cipher, CipherCtx, DEFAULT, Provider, clear_errors};
use support::{Random, bytes, in_program};

/// Without the guard, which keeps the first requests of each size where they are: `guard.rs`.
const UNGUARDED: &[(&str, &str)] = &[("EVENER_GUARD", "off")];

/// A library of 3.5 or later.
fn later(path: &OsStr) -> Library {
    let library = Library::open(Path::new(path), OSSL_provider_init);
    assert!(library.has_pipelines(), "EVENER_LIBCRYPTO is older than 3.5");
    library
}

/// The system's, which judges too.
fn system() -> (Library, Provider) {
    offer_pipelines_anyway();
    Library::system(OSSL_provider_init)
}

fn aes_128(library: &Library) -> Option<Kind> {
    let kind = library.kind("AES-128-CBC");
    if kind.is_none() {
        println!("skipped: no pipelines here: this processor has no kernels");
    }
    kind
}

/// Runs `body` in a program of its own with AES-128-CBC of the system's libcrypto, a key and an IV.
fn with_aes_128(name: &str, body: impl FnOnce(&Kind, &[u8], &[u8])) {
    in_program(name, "", &[], || {
        let (library, _judge) = system();
        if let Some(kind) = aes_128(&library) {
            body(&kind, &bytes(1, 16), &bytes(2, 16));
        }
    });
}

/// A pipeline, and a context of its own by default for each of its messages.
struct Race<'k> {
    pipes: PipelineContext<'k>,
    judges: Vec<CipherCtx>,
}

impl Race<'_> {
    fn init(&mut self, judge: Option<&Cipher>, encrypts: bool, key: Option<&[u8]>, ivs: &[Option<Vec<u8>>]) {
        let given: Vec<Option<&[u8]>> = ivs.iter().map(Option::as_deref).collect();
        assert!(self.pipes.init(judge.is_some(), encrypts, key, &given));
        if judge.is_some() {
            self.judges.clear();
        }
        self.judges.resize_with(ivs.len(), CipherCtx::new);
        for (context, iv) in self.judges.iter().zip(&given) {
            assert!(context.init(judge, key, *iv, Some(encrypts)));
        }
    }

    /// A piece of each; false where both refused.
    fn update(&self, random: &mut Random, in_place: bool) {
        let lens: Vec<usize> = self.judges.iter().map(|_| length(random)).collect();
        let mut spaces: Vec<Vec<u8>> = lens.iter().map(|len| bytes(random.next(), len + 48)).collect();
        let pieces: Vec<Vec<u8>> =
            spaces.iter().zip(&lens).map(|(space, &len)| space[..len].to_vec()).collect();
        let judged = self.judges.iter().zip(&pieces).map(|(judge, piece)| judge.update(piece).unwrap());
        let expected: Vec<Vec<u8>> = judged.collect();
        let mut outs = spaces.clone();
        let written = self.pipes.update(&mut spaces, (!in_place).then_some(&mut outs), &lens).unwrap();
        let outs = if in_place { spaces } else { outs };
        for ((out, written), expected) in outs.iter().zip(written).zip(&expected) {
            assert!(out[..written] == expected[..], "{lens:?}");
        }
    }

    fn last(&self) {
        let expected: Option<Vec<Vec<u8>>> = self.judges.iter().map(CipherCtx::last).collect();
        assert!(self.pipes.last() == expected);
        clear_errors();
    }
}

fn length(random: &mut Random) -> usize {
    match random.below(6) {
        0 => 0,
        1 => random.below(50),
        2 => 16 * random.below(40),
        3 => 16_384,
        _ => random.below(5_000),
    }
}

/// Messages of random pieces, some of them through copies of the context.
fn messages(kind: &Kind, name: &str, seed: u64) {
    let judge = DEFAULT.cipher(name, "provider=default").unwrap();
    let mut random = Random::new(seed);
    let mut race = Race { pipes: PipelineContext::new(kind), judges: Vec::new() };
    let encrypts = seed % 3 > 0;
    for round in 0..6 {
        let count = 1 + random.below(20);
        let count = if round == 0 { count } else { race.judges.len() };
        let key = (round == 0 || random.below(2) == 0).then(|| bytes(random.next(), judge.key_bytes()));
        let is_given = |random: &mut Random| round == 0 || random.below(4) > 0;
        let ivs: Vec<Option<Vec<u8>>> =
            (0..count).map(|_| is_given(&mut random).then(|| bytes(random.next(), 16))).collect();
        race.init((round == 0).then_some(&judge), encrypts, key.as_deref(), &ivs);
        // Decryption of what was never encrypted ends in nothing but refusals with padding.
        let padding = encrypts && random.below(3) > 0;
        race.pipes.set_padding(padding);
        race.judges.iter().for_each(|judge| judge.set_padding(padding));
        for _ in 0..random.below(5) {
            // With bytes held back, output in place would overtake the input, in OpenSSL too.
            race.update(&mut random, false);
            if random.below(4) == 0 {
                race.pipes = race.pipes.duplicate();
            }
        }
        race.last();
    }
}

fn all_messages(library: &Library) {
    let _judge = DEFAULT.load("default").unwrap();
    drop(std::panic::take_hook());
    for (seed, name) in (0..24).zip(["AES-128-CBC", "AES-192-CBC", "AES-256-CBC"].into_iter().cycle()) {
        let Some(kind) = library.kind(name) else {
            println!("skipped: no pipelines here: this processor has no kernels");
            return;
        };
        messages(&kind, name, seed);
    }
    assert!(library.count(c"evener-pipelined") > 100);
}

#[test]
fn each_message_of_a_pipeline_comes_out_as_by_default() {
    let name = "each_message_of_a_pipeline_comes_out_as_by_default";
    in_program(name, "", UNGUARDED, || all_messages(&system().0));
}

#[test]
fn each_message_of_a_pipeline_through_evp_comes_out_as_by_default() {
    let Some(path) = env::var_os("EVENER_LIBCRYPTO") else {
        println!("skipped: EVENER_LIBCRYPTO names no libcrypto of OpenSSL 3.5 or later");
        return;
    };
    let name = "each_message_of_a_pipeline_through_evp_comes_out_as_by_default";
    in_program(name, "", UNGUARDED, || all_messages(&later(&path)));
}

#[test]
fn whole_blocks_go_in_place() {
    with_aes_128("whole_blocks_go_in_place", |kind, key, iv| {
        let by_default = DEFAULT.cipher("AES-128-CBC", "provider=default").unwrap();
        let mut pipes = PipelineContext::new(kind);
        assert!(pipes.init(true, true, Some(key), &[Some(iv); 16]));
        let mut spaces: Vec<Vec<u8>> = (0..16).map(|seed| bytes(seed, 16_384)).collect();
        let texts = spaces.clone();
        assert_eq!(pipes.update(&mut spaces, None, &[16_384; 16]), Some(vec![16_384; 16]));
        for (space, text) in spaces.iter().zip(&texts) {
            let judge = CipherCtx::new();
            assert!(judge.init(Some(&by_default), Some(key), Some(iv), Some(true)));
            assert!(judge.update(text).unwrap() == *space);
        }
    });
}

#[test]
fn pipes_that_share_memory_take_turns() {
    with_aes_128("pipes_that_share_memory_take_turns", |kind, key, iv| {
        // The second pipe encrypts, in place, what the first one made: one memory, which each names.
        let mut shared = bytes(3, 4096);
        let mut pipes = PipelineContext::new(kind);
        assert!(pipes.init(true, true, Some(key), &[Some(iv); 2]));
        let text = shared.clone();
        assert!(pipes.update_shared(&mut shared));
        let by_default = DEFAULT.cipher("AES-128-CBC", "provider=default").unwrap();
        let mut expected = text;
        for _ in 0..2 {
            let judge = CipherCtx::new();
            assert!(judge.init(Some(&by_default), Some(key), Some(iv), Some(true)));
            expected = judge.update(&expected).unwrap();
        }
        assert!(shared == expected);
    });
}

#[test]
fn a_call_that_does_not_fit_is_refused_whole() {
    with_aes_128("a_call_that_does_not_fit_is_refused_whole", |kind, key, iv| {
        let mut pipes = PipelineContext::new(kind);
        let mut spaces = vec![bytes(3, 64), bytes(4, 64)];
        let before = spaces.clone();
        assert!(pipes.update(&mut spaces, None, &[64, 64]).is_none(), "before any init");
        assert!(!pipes.init(true, true, None, &[Some(iv); 2]), "without a key");
        // Told the cipher once more, EVP forgets the number of pipes (3.5, 4.0: `numpipes` is set, then the context reset).
        assert!(!pipes.init(false, true, Some(&key[..5]), &[Some(iv); 2]), "a key of five bytes");
        assert!(pipes.init(false, true, Some(key), &[Some(iv); 2]));
        let mut outs = vec![vec![0; 64], vec![0; 63]];
        assert!(pipes.update(&mut spaces, Some(&mut outs), &[64, 64]).is_none(), "no space in the second");
        assert!(outs[0].iter().all(|&byte| byte == 0), "nothing of the first was done");
        assert!(pipes.update(&mut spaces, None, &[64, 33]).is_some());
        pipes.set_padding(false);
        assert!(pipes.last().is_none(), "a byte is left");
        assert!(spaces != before);
        clear_errors();
    });
}

#[test]
fn a_core_that_knows_of_no_pipelines_is_offered_none() {
    in_program("a_core_that_knows_of_no_pipelines_is_offered_none", "", &[], || {
        let (library, _judge) = Library::system(OSSL_provider_init);
        if library.has_pipelines() {
            println!("skipped: this libcrypto has pipelines");
            return;
        }
        assert!(library.kind("AES-128-CBC").is_none());
    });
}
