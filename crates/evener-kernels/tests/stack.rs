//! Nothing of a key of HMAC is left on the stack, neither by making one nor by a burst of MACs that has it wiped: kernels of hashes put words of blocks and states
//! there where registers are too few, and values are moved. Kernels that put nothing there are those of `disassembly.rs`.
//!
//! What lies beneath a call that is over is read and searched for words of the key, of the two blocks that are made of it and of the states behind these. How much of
//! the stack is used depends on the build, so the released one counts: `cargo test --release -p evener-kernels --test stack`.
#![cfg(all(hash_kernels, target_arch = "x86_64"))]
#![allow(unsafe_code, reason = "the stack beneath a call is read")]
#![allow(clippy::print_stdout, reason = "says what was left out")]

use std::arch::asm;
use std::collections::HashSet;
use std::hint::black_box;
use std::thread;

use evener_kernels::hashes::{Hash, Lanes, MacKey, Means, Running, Span, with_stack_wiped};

mod random;
use random::bytes;

/// Four bytes as they lie in memory: a word of 32 bits or half of one of 64, in either order.
type Word = [u8; 4];

/// What is looked at, several times of what any of this uses.
const BENEATH: usize = 64 << 10;

/// Does something, and counts which of these words lie beneath it then.
#[inline(never)]
fn left(words: &HashSet<Word>, work: impl FnOnce()) -> usize {
    let mut seen = vec![0_u8; BENEATH];
    apart(work);
    // SAFETY: a thread's stack goes on beneath the pointer for more than that, and is only read; the vector has as many bytes.
    unsafe {
        asm!(
            "lea rsi, [rsp - {beneath}]", "rep movsb", beneath = const BENEATH,
            out("rsi") _, inout("rdi") seen.as_mut_ptr() => _, inout("rcx") BENEATH => _,
            options(nostack, preserves_flags),
        );
    }
    let found: HashSet<&[u8]> = seen.windows(4).filter(|four| words.contains(*four)).collect();
    found.len()
}

#[inline(never)]
fn apart(work: impl FnOnce()) {
    work();
}

/// Words that tell of a key, found on a thread of its own, whose stack is another.
fn words_of(hash: Hash, means: Means, key: &[u8]) -> HashSet<Word> {
    let block_of = |pad: u8| {
        let mut block = vec![0; hash.block_bytes()];
        if key.len() > block.len() {
            let mut running = Running::new(hash);
            Lanes::new(means).run(&mut [Span::last(&mut running, key)]);
            running.digest(&mut block);
        } else {
            block[..key.len()].copy_from_slice(key);
        }
        block.iter_mut().for_each(|byte| *byte ^= pad);
        block
    };
    let state_behind = |block: &[u8]| {
        let mut running = Running::new(hash);
        Lanes::new(means).run(&mut [Span::more(&mut running, block)]);
        let mut state = vec![0; hash.digest_bytes()];
        running.digest(&mut state);
        state
    };
    let bytes = || {
        let blocks = [0, 0x36, 0x5c].map(block_of);
        let states = [state_behind(&blocks[1]), state_behind(&blocks[2])];
        [key.to_vec()].into_iter().chain(blocks).chain(states).collect::<Vec<_>>()
    };
    let all = thread::scope(|scope| scope.spawn(bytes).join().expect("words"));
    let fours = all.iter().flat_map(|bytes| bytes.chunks_exact(4));
    let both =
        fours.flat_map(|four| [[four[0], four[1], four[2], four[3]], [four[3], four[2], four[1], four[0]]]);
    // What a key shorter than a block is filled up with is no secret.
    both.filter(|word| word[1..].iter().any(|byte| *byte != word[0])).collect()
}

/// A burst of MACs of one key.
#[inline(never)]
fn macs(lanes: &mut Lanes, key: &MacKey, text: &[u8]) {
    let mut running: Vec<Running> = Vec::with_capacity(11);
    running.extend((0..11).map(|_| key.inner()));
    let spans = running.iter_mut().zip(0..).map(|(running, it)| Span::last(running, &text[it * 17..]));
    lanes.run(&mut spans.collect::<Vec<_>>());
    let mut places = [[0; Hash::DIGEST_BYTES_MAX]; 11];
    let spans = running.iter_mut().zip(&mut places).map(|(running, place)| key.outer(running, place));
    lanes.run(&mut spans.collect::<Vec<_>>());
    running.iter().for_each(|running| _ = black_box(running.digest(&mut [0; Hash::DIGEST_BYTES_MAX])));
}

#[test]
fn nothing_of_a_key_of_hmac_is_left_on_the_stack() {
    let text = bytes(400, 1);
    let mut unwiped = 0;
    for (hash, means) in Hash::ALL.into_iter().flat_map(|hash| Means::all().map(move |means| (hash, means))) {
        if Lanes::count(hash, means) == 0 {
            continue;
        }
        for key_bytes in [20, 64, 200] {
            let what = format!("{hash:?} by {}, a key of {key_bytes}", means.name());
            let secret = bytes(key_bytes, 2);
            let words = words_of(hash, means, &secret);
            let (mut lanes, mut key) = (Lanes::new(means), None);
            // One may be there by chance.
            let found = left(&words, || key = Some(MacKey::new(&mut lanes, hash, &secret)));
            assert!(found <= 1, "{what} that is made leaves {found} words");
            let key = key.expect("it was made");
            let found = left(&words, || with_stack_wiped(|| macs(&mut lanes, &key, &text)));
            assert!(found <= 1, "{what} leaves {found} words of MACs");
            unwiped = unwiped.max(left(&words, || macs(&mut lanes, &key, &text)));
        }
    }
    assert!(Means::best().is_none() || unwiped > 1, "what is not wiped is found");
}
