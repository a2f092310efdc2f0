//! Any calls in any order, sensible ones more often.

use super::context_pair::{Layout, Twins};
use super::{Dice, Pair};
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
struct Hero {
    name: &'static str,
    is_aead: bool,
    block_bytes: usize,
}

fn hero(dice: &mut Dice) -> Hero {
    let (list, is_aead, block_bytes) = match dice.below(20) {
        0..8 => (BLOCKS, false, 16),
        8..13 => (STREAMS, false, 1),
        13..15 => (FORWARDED, false, 16),
        15..19 => (AEADS, true, 1),
        _ => (RARE, false, 8),
    };
    Hero { name: dice.one_of(list), is_aead, block_bytes }
}

/// Tells a story of up to 40 calls; one in `fork_one_in` forks on the way, and its child tells the rest too.
pub(super) fn tell(pair: Pair, dice: &mut Dice, title: String, fork_one_in: u64) -> u64 {
    let hero = hero(dice);
    let (key, iv) = (dice.octets(), dice.octets());
    let Some(mut twins) = Twins::begin(pair, title, hero.name, &key, &iv, !dice.once_in(2)) else { return 0 };
    let calls = 3 + dice.below(38);
    let fork_at = dice.once_in(fork_one_in).then(|| dice.below(calls));
    let mut left_behind = None;
    for at in 0..calls {
        if fork_at == Some(at) {
            let mut lot = dice.clone();
            let rest = || (at..calls).for_each(|_| call(&hero, &mut twins, &mut left_behind, &mut lot));
            let ended = forked(rest);
            assert!(ended.is_ok(), "a child {ended:?} after: {:#?}", twins.told());
        }
        call(&hero, &mut twins, &mut left_behind, dice);
    }
    calls
}

/// One call; at times a copy takes the place of what was copied, and later the other way round.
fn call(hero: &Hero, twins: &mut Twins, left_behind: &mut Option<Twins>, dice: &mut Dice) {
    match dice.below(100) {
        0..52 => update(hero, twins, dice),
        52..64 => drop(twins.finish()),
        64..74 => begin_again(twins, dice),
        74..78 => set_padding(twins, dice),
        78..84 => {
            *left_behind = twins.copy();
        }
        84..88 => {
            if let Some(other) = left_behind {
                std::mem::swap(other, twins);
            }
        }
        88..93 => look(twins),
        _ if hero.is_aead => tag(twins, dice),
        _ => parameter(twins, dice),
    }
}

fn update(hero: &Hero, twins: &mut Twins, dice: &mut Dice) {
    let length = dice.length(hero.block_bytes);
    let input = dice.bytes(length);
    let layout = match dice.below(20) {
        0..9 => Layout::InPlace,
        9..17 => Layout::Apart,
        17 => Layout::Before(1 + dice.place(40)),
        18 => Layout::Behind(1 + dice.place(40)),
        _ if hero.is_aead => Layout::Nowhere,
        _ => Layout::Apart,
    };
    twins.update(&input, layout);
}

/// Another message, with or without another key; an AEAD that has no IV would draw one by lot, but these have.
fn begin_again(twins: &mut Twins, dice: &mut Dice) {
    let (key, iv) = (dice.octets(), dice.octets());
    let direction = (dice.once_in(4)).then(|| dice.once_in(2));
    match dice.below(10) {
        0..5 => drop(twins.both("init by iv", |context| context.init(None, None, Some(&iv), None))),
        5..7 => drop(
            twins.both("init by key and iv", |context| context.init(None, Some(&key), Some(&iv), direction)),
        ),
        7 => drop(twins.both("init by key", |context| context.init(None, Some(&key), None, direction))),
        8 => drop(twins.both("init by nothing", |context| context.init(None, None, None, None))),
        _ => drop(twins.both("init by direction", |context| context.init(None, None, None, direction))),
    }
}

fn set_padding(twins: &mut Twins, dice: &mut Dice) {
    let on = dice.once_in(2);
    twins.both(&format!("padding {on}"), |context| context.set_padding(on));
}

fn look(twins: &mut Twins) {
    twins.both("num", |context| context.num());
    twins.both("original iv", |context| context.original_iv());
    twins.both("updated iv", |context| context.updated_iv());
}

fn tag(twins: &mut Twins, dice: &mut Dice) {
    let bytes = [16, 16, 12, 4, 3][dice.place(5)];
    match dice.below(10) {
        0..3 => drop(twins.both("tag", |context| context.tag(bytes))),
        3..6 => {
            let tag = dice.octets();
            twins.both("set tag", |context| context.set_tag(&tag, bytes));
        }
        6 => {
            let length = dice.length(1);
            twins.record(&dice.bytes(length), true);
        }
        7 => {
            let aad = dice.octets();
            twins.both("associated data of a record", |context| context.set_tls_aad(&aad));
        }
        _ => {
            let (iv, bytes) = (dice.octets(), [12, 12, 8, 13, 16, 60, 128][dice.place(7)]);
            twins.both("length of iv, and iv", |context| {
                (context.set_iv_bytes(bytes), context.init(None, None, Some(&iv), None))
            });
        }
    }
}

fn parameter(twins: &mut Twins, dice: &mut Dice) {
    match dice.below(4) {
        0 => {
            let num = [0, 1, 5, 15][dice.place(4)];
            twins.both(&format!("num {num}"), |context| context.set_num(num));
        }
        1 => {
            let bytes = [16, 24, 32, 8][dice.place(4)];
            twins.both("length of key", |context| context.set_key_bytes(bytes));
        }
        2 => drop(twins.both("use-bits", |context| context.set_number(c"use-bits", 0))),
        _ => drop(twins.both("a parameter that nobody knows", |context| context.set_number(c"evener", 1))),
    }
}
