//! No kernel of one message stores a vector register to the stack, at any width: no round key, no power of the hash key, no tweak, and no sum or text that tells
//! of them; for those of hashes see `stack.rs`. What compilers make differs from release to release, so the instructions of this build are looked at.
//!
//! Each kernel of `gcm/entries.rs` and `modes/entries.rs` is disassembled by objdump. A finding is a store of a vector register by `rsp`, or by `rbp`
//! where that is the frame, and an address of the stack that is taken, by which anything could be stored. Builds with checks for debugging differ, so the
//! released ones count: `cargo test --release -p evener-kernels --test disassembly`.
#![cfg(all(kernels, target_arch = "x86_64"))]
#![allow(unsafe_code, reason = "a store to the stack is planted")]
#![allow(clippy::print_stdout, reason = "says what was left out")]

use std::arch::x86_64::{__m128i, _mm_loadu_si128};
use std::collections::BTreeMap;
use std::env;
use std::hint::black_box;
use std::process::Command;

use evener_kernels::modes::Mode;
use evener_kernels::{Level, bitsliced, gcm, modes};

/// Kernels of one width.
const KERNELS: [&str; 10] = [
    "gcm::entries::W::encrypt",
    "gcm::entries::W::decrypt",
    "gcm::entries::W::hash",
    "gcm::entries::W::make_powers",
    "modes::entries::W::ecb_encrypt",
    "modes::entries::W::ecb_decrypt",
    "modes::entries::W::cbc_decrypt",
    "modes::entries::W::ctr_crypt",
    "modes::entries::W::xts_encrypt",
    "modes::entries::W::xts_decrypt",
];

/// Kernels over planes, which put planes on the stack, and how much of it is wiped behind them (`src/stack.rs`).
const OF_PLANES: [&str; 4] = ["words", "sse2", "ssse3", "avx2"];
const WIPED_BYTES: usize = 4_096;
/// What calls them, and is on the stack before: assumed, not measured: 512 bytes.
const CALLERS_BYTES: usize = 512;

/// Instructions of this program by function; none where objdump is not there.
fn disassembled() -> Option<BTreeMap<String, Vec<String>>> {
    let this = env::current_exe().expect("a program knows its place");
    let output = Command::new("objdump").args(["-d", "-C", "--no-show-raw-insn"]).arg(this).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut functions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut name = String::new();
    for line in text.lines() {
        if let Some((_, said)) = line.strip_suffix(">:").and_then(|line| line.split_once(" <")) {
            name = said.into();
        } else if let Some((_, instruction)) = line.split_once(":\t") {
            let words: Vec<&str> = instruction.split_whitespace().collect();
            functions.entry(name.clone()).or_default().push(words.join(" "));
        }
    }
    Some(functions)
}

/// What of a function's instructions puts a vector register on the stack, or could.
fn stores(instructions: &[String]) -> Vec<&str> {
    let has_frame = instructions.iter().any(|instruction| instruction == "mov %rsp,%rbp");
    let is_on_stack = |place: &str| place.contains("(%rsp") || has_frame && place.contains("(%rbp");
    let is_store = |instruction: &&str| {
        let Some((name, operands)) = instruction.split_once(' ') else { return false };
        // What part of a register is stored stands before it.
        let part = operands.split_once(',').filter(|(first, _)| first.starts_with('$'));
        let operands = part.map_or(operands, |(_, rest)| rest);
        // A comma within a place stands behind its bracket.
        let Some((source, place)) = operands.split_once(',').filter(|(source, _)| !source.contains('('))
        else {
            return name == "lea" && is_on_stack(operands) && !operands.ends_with("%rsp");
        };
        ["%xmm", "%ymm", "%zmm"].iter().any(|kind| source.starts_with(kind)) && is_on_stack(place)
    };
    instructions.iter().map(String::as_str).filter(is_store).collect()
}

/// Bytes of the stack that a function takes for itself.
fn frame(instructions: &[String]) -> usize {
    let taken = instructions.iter().filter_map(|instruction| {
        let bytes = instruction.strip_prefix("sub $0x")?.strip_suffix(",%rsp")?;
        usize::from_str_radix(bytes, 16).ok()
    });
    let pushed = instructions.iter().filter(|instruction| instruction.starts_with("push ")).count();
    taken.sum::<usize>() + 8 * pushed
}

/// Planted: a key that is put on the stack.
#[inline(never)]
fn planted_spill(key: &[u8; 16]) {
    // SAFETY: as many bytes as a block has.
    let mut place: __m128i = unsafe { _mm_loadu_si128(key.as_ptr().cast()) };
    black_box(&mut place);
}

/// Names everything that is looked for: what is not named is not linked.
fn link_all() {
    for level in Level::all() {
        let mut key = gcm::Key::new(level);
        assert!(key.set(&[0; 16]));
        let mut message = gcm::Message::new(&mut key, &[0; 12]);
        message.aad(&mut key, &[0; 64]);
        message.encrypt(&mut key, &mut [0; 64]);
        black_box(message.tag(&key));
        gcm::Message::new(&mut key, &[0; 12]).decrypt(&mut key, &mut [0; 64]);
        let mut key = modes::Key::new(level);
        assert!(key.set(black_box(Mode::Ctr), &[0; 16]));
        let mut text = [0; 64];
        let at = text.as_mut_ptr();
        // SAFETY: the text, in its place.
        unsafe { key.crypt(&mut [0; 16], at, at, 4) };
    }
    for means in bitsliced::Means::all() {
        let mut key = bitsliced::modes::Key::new(means);
        assert!(key.set(black_box(Mode::Ctr), &[0; 16]));
        let mut text = [0; 64];
        let at = text.as_mut_ptr();
        // SAFETY: as above.
        unsafe { key.crypt(&mut [0; 16], at, at, 4) };
    }
    planted_spill(&[1; 16]);
}

#[test]
fn no_kernel_stores_a_vector_register_to_the_stack() {
    if cfg!(debug_assertions) {
        return println!("skipped: the disassembly of kernels (only of a release)");
    }
    link_all();
    let Some(functions) = disassembled() else {
        return println!("skipped: the disassembly of kernels (Debian: binutils)");
    };
    let found = |end: &str| stores(named(&functions, end).expect("it is in this program"));
    assert!(!found("planted_spill").is_empty(), "what is planted is found");
    for width in ["one", "two", "four"] {
        for kernel in KERNELS {
            let name = kernel.replace('W', width);
            assert!(found(&name).is_empty(), "{name} stores {:?}", found(&name));
        }
    }
}

/// The instructions of the function whose name ends so; none where it is not in this program.
fn named<'f>(functions: &'f BTreeMap<String, Vec<String>>, end: &str) -> Option<&'f [String]> {
    let mut named =
        functions.iter().filter(|(name, _)| name.ends_with(end) || name.contains(&format!("{end}::h")));
    named.next().map(|(_, instructions)| &instructions[..])
}

#[test]
fn what_kernels_of_planes_leave_on_the_stack_is_wiped() {
    if cfg!(debug_assertions) {
        return println!("skipped: the disassembly of kernels (only of a release)");
    }
    link_all();
    let Some(functions) = disassembled() else {
        return println!("skipped: the disassembly of kernels (Debian: binutils)");
    };
    for means in OF_PLANES {
        for kernel in ["encrypt", "decrypt"] {
            let name = format!("bitsliced::entries::{means}::{kernel}");
            let frame = frame(named(&functions, &name).expect("it is in this program"));
            assert!((1..=WIPED_BYTES - CALLERS_BYTES).contains(&frame), "{name} takes {frame} bytes");
            println!("{name}: {frame} bytes");
        }
    }
    let wiped = frame(named(&functions, "stack::wipe").expect("it is in this program"));
    assert!(wiped >= WIPED_BYTES, "{wiped} bytes are wiped");
}

#[test]
fn stores_are_told_from_what_is_none() {
    let told = |lines: &[&str]| stores(&lines.iter().map(|&line| line.into()).collect::<Vec<String>>()).len();
    for store in [
        "movdqa %xmm0,-0x18(%rsp)",
        "movaps %xmm12,(%rsp)",
        "vmovdqu64 %zmm31,0x40(%rsp,%rax,1)",
        "vmovups %ymm1,0x30(%rsp)",
        "vextracti128 $0x1,%ymm0,(%rsp)",
        "vextracti64x4 $0x1,%zmm2,0x20(%rsp)",
        "pextrq $0x1,%xmm3,-0x8(%rsp)",
        "lea 0x20(%rsp),%r14",
    ] {
        assert_eq!(told(&[store]), 1, "{store}");
    }
    for other in [
        "movdqa -0x18(%rsp),%xmm0",
        "movdqu %xmm3,0x70(%rcx)",
        "vextracti128 $0x1,%ymm0,(%rcx)",
        "vinserti128 $0x1,(%rsp),%ymm0,%ymm1",
        "movq $0x0,0x8(%rsp)",
        "aesenc %xmm0,%xmm3",
        "lea -0x8(%rsp),%rsp",
    ] {
        assert_eq!(told(&[other]), 0, "{other}");
    }
    // A register like any other, unless it is the frame.
    assert_eq!(told(&["vmovdqa %xmm0,0x0(%rbp)"]), 0);
    assert_eq!(told(&["mov %rsp,%rbp", "vmovdqa %xmm0,-0x20(%rbp)"]), 1);
}
