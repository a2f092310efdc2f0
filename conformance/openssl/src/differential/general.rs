//! Any calls in any order, sensible ones more often.

use super::context_pair::{ContextPair, Layout};
use super::{SeededRandom, Series};
use crate::ffi::forked;

/// What the provider may route, by block.
const BLOCKS: &[&str] =
    &["AES-128-ECB", "AES-192-ECB", "AES-256-ECB", "AES-128-CBC", "AES-192-CBC", "AES-256-CBC"];
/// And by byte.
const STREAMS: &[&str] = &["AES-128-CTR", "AES-192-CTR", "AES-256-CTR", "AES-128-XTS", "AES-256-XTS"];
const FORWARDED: &[&str] = &[
    "AES-128-CBC-CTS",
    "AES-256-CBC-CTS",
    "AES-128-CBC-HMAC-SHA1",
    "AES-256-CBC-HMAC-SHA256",
    "AES-128-CFB",
    "AES-256-CFB8",
    "AES-192-CFB1",
    "AES-256-OFB",
];
const AEADS: &[&str] = &["AES-128-GCM", "AES-192-GCM", "AES-256-GCM", "AES-128-CCM", "AES-256-CCM"];
const RARE: &[&str] = &["AES-128-WRAP", "AES-256-WRAP-PAD", "DES-EDE3-CBC", "CAMELLIA-128-CBC", "ChaCha20"];

/// What decides which calls make sense.
struct CipherTraits {
    name: &'static str,
    is_aead: bool,
    block_bytes: usize,
    destroys_input: bool,
}

fn cipher_traits(series: Series, random: &mut SeededRandom) -> CipherTraits {
    let (list, is_aead, block_bytes) = match random.below(20) {
        0..8 => (BLOCKS, false, 16),
        8..13 => (STREAMS, false, 1),
        13..15 => (FORWARDED, false, 16),
        15..19 => (AEADS, true, 1),
        _ => (RARE, false, 8),
    };
    let name = random.one_of(list);
    CipherTraits {
        name,
        is_aead,
        block_bytes,
        destroys_input: series.destroys_input
            || !(name.ends_with("-GCM") || BLOCKS.contains(&name) || STREAMS.contains(&name)),
    }
}

/// Runs a sequence of up to 40 calls; one in [`Series::fork_one_in`] forks on the way, and its child runs the rest too.
pub(super) fn run_sequence(series: Series, random: &mut SeededRandom, title: String) -> u64 {
    let Series { libraries, fork_one_in, .. } = series;
    let cipher_traits = cipher_traits(series, random);
    let (key, iv) = (random.octets(), random.octets());
    let Some(mut pair) =
        ContextPair::begin(libraries, title, cipher_traits.name, &key, &iv, !random.once_in(2))
    else {
        return 0;
    };
    let calls = 3 + random.below(38);
    let fork_at = random.once_in(fork_one_in).then(|| random.below(calls));
    let mut left_behind = None;
    for at in 0..calls {
        if fork_at == Some(at) {
            let mut lot = random.clone();
            let rest =
                || (at..calls).for_each(|_| call(&cipher_traits, &mut pair, &mut left_behind, &mut lot));
            let ended = forked(rest);
            assert!(ended.is_ok(), "a child {ended:?} after: {:#?}", pair.calls_so_far());
        }
        call(&cipher_traits, &mut pair, &mut left_behind, random);
    }
    calls
}

/// One call; at times a copy takes the place of what was copied, and later the other way round.
fn call(
    cipher_traits: &CipherTraits,
    pair: &mut ContextPair,
    left_behind: &mut Option<ContextPair>,
    random: &mut SeededRandom,
) {
    match random.below(100) {
        0..52 => update(cipher_traits, pair, random),
        52..64 => drop(pair.finish()),
        64..74 => begin_again(pair, random),
        74..78 => set_padding(pair, random),
        78..84 => {
            *left_behind = pair.copy();
        }
        84..88 => {
            if let Some(other) = left_behind {
                std::mem::swap(other, pair);
            }
        }
        88..93 => look(pair),
        _ if cipher_traits.is_aead => tag(pair, random),
        _ => parameter(pair, random),
    }
}

fn update(cipher_traits: &CipherTraits, pair: &mut ContextPair, random: &mut SeededRandom) {
    let length = random.length(cipher_traits.block_bytes);
    let input = random.bytes(length);
    let layout = match random.below(20) {
        0..9 => Layout::InPlace,
        9..17 => Layout::Apart,
        17 => Layout::Before(1 + random.place(40)),
        18 => Layout::Behind(1 + random.place(40)),
        _ if cipher_traits.is_aead => Layout::Nowhere,
        _ => Layout::Apart,
    };
    let is_fit = cipher_traits.destroys_input || !pair.destroys(layout, cipher_traits.block_bytes);
    pair.update(&input, if is_fit { layout } else { Layout::Apart });
}

/// Another message, with or without another key; an AEAD that has no IV would draw one by lot, but these have.
fn begin_again(pair: &mut ContextPair, random: &mut SeededRandom) {
    pair.begins();
    let (key, iv) = (random.octets(), random.octets());
    let direction = (random.once_in(4)).then(|| random.once_in(2));
    match random.below(10) {
        0..5 => drop(pair.both("init by iv", |context| context.init(None, None, Some(&iv), None))),
        5..7 => drop(
            pair.both("init by key and iv", |context| context.init(None, Some(&key), Some(&iv), direction)),
        ),
        7 => drop(pair.both("init by key", |context| context.init(None, Some(&key), None, direction))),
        8 => drop(pair.both("init by nothing", |context| context.init(None, None, None, None))),
        _ => drop(pair.both("init by direction", |context| context.init(None, None, None, direction))),
    }
}

fn set_padding(pair: &mut ContextPair, random: &mut SeededRandom) {
    let on = random.once_in(2);
    pair.both(&format!("padding {on}"), |context| context.set_padding(on));
}

fn look(pair: &mut ContextPair) {
    pair.both("num", |context| context.num());
    pair.both("original iv", |context| context.original_iv());
    pair.both("updated iv", |context| context.updated_iv());
}

fn tag(pair: &mut ContextPair, random: &mut SeededRandom) {
    let bytes = [16, 16, 12, 4, 3][random.place(5)];
    match random.below(10) {
        0..3 => drop(pair.both("tag", |context| context.tag(bytes))),
        3..6 => {
            let tag = random.octets();
            pair.both("set tag", |context| context.set_tag(&tag, bytes));
        }
        6 => {
            let length = random.length(1);
            pair.record(&random.bytes(length), true);
        }
        7 => {
            let aad = random.octets();
            pair.both("associated data of a record", |context| context.set_tls_aad(&aad));
        }
        _ => {
            let (iv, bytes) = (random.octets(), [12, 12, 8, 13, 16, 60, 128][random.place(7)]);
            pair.both("length of iv, and iv", |context| {
                (context.set_iv_bytes(bytes), context.init(None, None, Some(&iv), None))
            });
        }
    }
}

fn parameter(pair: &mut ContextPair, random: &mut SeededRandom) {
    match random.below(4) {
        0 => {
            let num = [0, 1, 5, 15][random.place(4)];
            pair.both(&format!("num {num}"), |context| context.set_num(num));
        }
        1 => {
            let bytes = [16, 24, 32, 8][random.place(4)];
            pair.both("length of key", |context| context.set_key_bytes(bytes));
        }
        2 => drop(pair.both("use-bits", |context| context.set_number(c"use-bits", 0))),
        _ => drop(pair.both("a parameter that no cipher knows", |context| context.set_number(c"evener", 1))),
    }
}
