//! No branch and no address of a kernel depends on a secret, as valgrind sees it: key and text are told to it as bytes that were never
//! written (Langley's ctgrind, 2010), and it complains where such a byte decides what is done or where.
//!
//! Valgrind 3.19 knows AES-NI, PCLMULQDQ and AVX2 and neither VAES, AVX-512 nor the SHA extensions, so that only the narrowest kernels run; those of other widths are
//! the same text (`src/vector/`, `src/hashes/words.rs`), and are timed (`constant_time`).
#![cfg(hash_kernels)]
#![allow(unsafe_code, reason = "valgrind is told things by instructions, kernels places by their addresses")]
#![allow(clippy::print_stdout, reason = "says what was left out")]

use std::arch::asm;
use std::env;
use std::hint::black_box;
use std::process::{Command, Output};

use evener_kernels::hashes::{Hash, Lanes, MacKey, Means, Running, Span, with_stack_wiped};
use evener_kernels::lanes::{Cbc, Key, Message};
use evener_kernels::modes::{BLOCK, Mode};
use evener_kernels::{Level, bitsliced, gcm, is_same_tag, modes};

mod random;
use random::bytes;

/// The requests of valgrind's `memcheck.h`, which begin with the tool's letters: bytes that were never written, bytes that were.
const UNDEFINED: usize = 0x4d43_0001;
const DEFINED: usize = 0x4d43_0002;
/// Of `valgrind.h`: how many of it are around this program.
const RUNNING: usize = 0x1001;

/// A request to valgrind (`valgrind.h`), and its answer; 0 without it.
fn tell(request: usize, bytes: &[u8]) -> usize {
    let words = [request, bytes.as_ptr().addr(), bytes.len(), 0, 0, 0];
    let mut answer = 0;
    // SAFETY: rotations by 128 bits in all and an exchange of a register with itself change nothing but flags.
    unsafe {
        asm!(
            "rol rdi, 3", "rol rdi, 13", "rol rdi, 61", "rol rdi, 51", "xchg rbx, rbx",
            in("rax") words.as_ptr(), inout("rdx") answer,
        );
    }
    answer
}

fn secret(count: usize, seed: u64) -> Vec<u8> {
    let bytes = bytes(count, seed);
    tell(UNDEFINED, &bytes);
    bytes
}

/// Both ways of AES-GCM, in pieces, and the comparison of tags, whose answer is no secret.
fn seal_and_open(level: Level, key_bytes: usize) {
    let mut key = gcm::Key::new(level);
    assert!(key.set(&secret(key_bytes, 1)));
    let mut text = secret(600, 2);
    let mut tags = [[0; BLOCK]; 2];
    for (encrypts, made) in [true, false].into_iter().zip(&mut tags) {
        let mut message = gcm::Message::new(&mut key, &bytes(12, 3));
        message.aad(&mut key, &secret(30, 4));
        for piece in text.chunks_mut(300) {
            if encrypts {
                message.encrypt(&mut key, piece);
            } else {
                message.decrypt(&mut key, piece);
            }
        }
        *made = message.tag(&key);
    }
    let is_same = [u8::from(is_same_tag(&tags[0], &tags[1], BLOCK))];
    tell(DEFINED, &is_same);
    assert_eq!(is_same, [1]);
}

/// A text in its place by a key of either kind.
macro_rules! crypt_text {
    ($key:ident, $mode:ident) => {
        let mut text = secret(37 * BLOCK + 5, 6);
        let at = text.as_mut_ptr();
        if matches!($mode, Mode::XtsEncryption | Mode::XtsDecryption) {
            // SAFETY: the text, in its place.
            unsafe { $key.crypt_unit(&[9; BLOCK], at, at, text.len()) };
        } else {
            // SAFETY: as above.
            unsafe { $key.crypt(&mut [9; BLOCK], at, at, text.len() / BLOCK) };
        }
        black_box(&text);
    };
}

fn crypt(level: Level, mode: Mode, key_bytes: usize) {
    let mut key = modes::Key::new(level);
    assert!(key.set(mode, &secret(key_bytes, 5)));
    crypt_text!(key, mode);
}

/// The same by planes.
fn crypt_planes(means: bitsliced::Means, mode: Mode, key_bytes: usize) {
    let mut key = bitsliced::modes::Key::new(means);
    assert!(key.set(mode, &secret(key_bytes, 5)));
    crypt_text!(key, mode);
}

/// Both ways of AES-GCM, in two stretches.
fn crypt_stretches(level: Level, key_bytes: usize) {
    let mut key = gcm::Key::new(level);
    assert!(key.set(&secret(key_bytes, 10)));
    let mut text = secret(75 * BLOCK, 11);
    for encrypts in [true, false] {
        let mut message = gcm::Message::new(&mut key, &bytes(12, 12));
        message.aad(&mut key, &secret(30, 13));
        assert!(message.begin_parts(&mut key));
        let (front, back) = text.split_at_mut(40 * BLOCK);
        let mut stretches = [message.stretch(0), message.stretch(40)];
        for (stretch, part) in stretches.iter_mut().zip([front, back]) {
            let (at, blocks) = (part.as_mut_ptr(), part.len() / BLOCK);
            if encrypts {
                // SAFETY: the part, in its place.
                unsafe { stretch.crypt::<true>(&key, at, at, blocks) };
            } else {
                // SAFETY: as above.
                unsafe { stretch.crypt::<false>(&key, at, at, blocks) };
            }
        }
        stretches.iter().for_each(|stretch| message.join(&key, stretch));
        black_box(message.tag(&key));
    }
    black_box(&text);
}

/// Messages of all lanes and some more, of unlike lengths, each under one of two keys, with a last block that lies apart.
fn crypt_lanes(level: Level, key_bytes: usize) {
    let keys = [14, 15].map(|seed| Key::new(level, &secret(key_bytes, seed)).expect("a length of AES"));
    let mut cbc = Cbc::new(level);
    encrypt_lanes(|messages| cbc.encrypt(&keys, messages));
}

/// The same by planes.
fn crypt_lanes_of_planes(means: bitsliced::Means, key_bytes: usize) {
    let key = |seed| bitsliced::Key::new(&secret(key_bytes, seed)).expect("a length of AES");
    let (keys, mut cbc) = ([14, 15].map(key), bitsliced::Cbc::new(means));
    encrypt_lanes(|messages| cbc.encrypt(&keys, messages));
}

fn encrypt_lanes(encrypt: impl FnOnce(&mut [Message<'_>])) {
    let mut text = secret(200 * BLOCK, 16);
    let mut last = [0; BLOCK];
    last.copy_from_slice(&secret(BLOCK, 17));
    let (mut messages, mut rest) = (Vec::new(), &mut text[..]);
    for number in 0..21 {
        let (place, behind) = rest.split_at_mut((number % 5 * 3 + 2) * BLOCK);
        rest = behind;
        let bytes = place.len() - BLOCK;
        messages.push(Message::in_place(number % 2, &[9; BLOCK], place, bytes).ending_with(last));
    }
    encrypt(&mut messages);
    drop(messages);
    black_box(&text);
}

/// HMAC of messages of unlike lengths, more than there are lanes, under a key of a block or a longer one.
fn hash(means: Means, hash: Hash, key_bytes: usize) {
    let (key, text) = (secret(key_bytes, 18), secret(400, 19));
    let mut lanes = Lanes::new(means);
    let key = MacKey::new(&mut lanes, hash, &key);
    with_stack_wiped(|| {
        let mut running: Vec<Running> = (0..19).map(|_| key.inner()).collect();
        let spans = running.iter_mut().zip(0..).map(|(running, it)| Span::last(running, &text[it * 20..]));
        lanes.run(&mut spans.collect::<Vec<_>>());
        let mut places = [[0; Hash::DIGEST_BYTES_MAX]; 19];
        let spans = running.iter_mut().zip(&mut places).map(|(running, place)| key.outer(running, place));
        lanes.run(&mut spans.collect::<Vec<_>>());
        running.iter().for_each(|running| _ = black_box(running.digest(&mut [0; Hash::DIGEST_BYTES_MAX])));
    });
}

fn hash_all() {
    assert!(Means::best().is_some() || tell(RUNNING, &[]) == 0, "valgrind has the instructions of hashes");
    for (hash, means) in Hash::ALL.into_iter().flat_map(|hash| Means::all().map(move |means| (hash, means))) {
        if Lanes::count(hash, means) > 0 {
            [20, 200].into_iter().for_each(|key_bytes| self::hash(means, hash, key_bytes));
        }
    }
}

#[test]
#[ignore = "a part that another test starts under valgrind"]
fn kernels_with_secrets() {
    hash_all();
    // Without a level nothing would have been looked at.
    assert!(Level::best().is_some() || tell(RUNNING, &[]) == 0, "valgrind has the instructions of a level");
    let single = [Mode::EcbEncryption, Mode::EcbDecryption, Mode::CbcDecryption, Mode::Ctr];
    let double = [Mode::XtsEncryption, Mode::XtsDecryption];
    for means in bitsliced::Means::all() {
        for key_bytes in [16, 24, 32] {
            crypt_lanes_of_planes(means, key_bytes);
            single.into_iter().for_each(|mode| crypt_planes(means, mode, key_bytes));
        }
        double.into_iter().for_each(|mode| [32, 64].into_iter().for_each(|it| crypt_planes(means, mode, it)));
    }
    for level in Level::all() {
        for key_bytes in [16, 24, 32] {
            seal_and_open(level, key_bytes);
            crypt_stretches(level, key_bytes);
            crypt_lanes(level, key_bytes);
            single.into_iter().for_each(|mode| crypt(level, mode, key_bytes));
        }
        for mode in double {
            [32, 64].into_iter().for_each(|key_bytes| crypt(level, mode, key_bytes));
        }
    }
}

#[test]
#[ignore = "a part that another test starts under valgrind"]
fn a_branch_on_a_secret() {
    let secret = secret(1, 7);
    if black_box(secret[0]) & 1 == 1 {
        println!("odd");
    }
}

#[test]
#[ignore = "a part that another test starts under valgrind"]
fn an_index_by_a_secret() {
    let (secret, table) = (secret(1, 8), bytes(256, 9));
    black_box(table[usize::from(secret[0])]);
}

/// A test of this program under valgrind, whose status is 9 where it finds something; none where valgrind is not there.
fn watched(part: &str) -> Option<Output> {
    let this = env::current_exe().expect("a program knows its place");
    let mut command = Command::new("valgrind");
    command.args(["--quiet", "--error-exitcode=9", "--leak-check=no"]).arg(this);
    command.args(["--exact", part, "--include-ignored", "--test-threads=1"]);
    command.output().ok()
}

#[test]
fn no_branch_and_no_address_depends_on_a_secret_and_valgrind_would_see_it() {
    let Some(output) = watched("kernels_with_secrets") else {
        return println!("skipped: kernels under valgrind (Debian: valgrind)");
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {said}", output.status);
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
    for planted in ["a_branch_on_a_secret", "an_index_by_a_secret"] {
        let output = watched(planted).expect("it was there before");
        assert_eq!(output.status.code(), Some(9), "{planted}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
