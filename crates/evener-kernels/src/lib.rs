//! Ciphers on one core, by the processor's own instructions: of one message, and CBC encryption and hashes of many side by side.
//!
//! Path of a message: [`Level::best`] looks at the processor -> [`gcm::Key`] takes a key apart once -> [`gcm::Message`] begins with a nonce,
//! takes associated data and text in pieces of any length, and ends with its tag. Whole blocks go to `gcm/blocks.rs`, which is written once over
//! `vector/`, a register of one, two or four blocks, and stands in the program once for each [`Level`]. ECB, CBC decryption, CTR and XTS ([`modes`]) are a
//! small file each over `turn.rs`, which walks over blocks eight registers at a time; what they carry from piece to piece is their caller's.
//!
//! What is one chain within a message, CBC encryption, goes side by side with that of other messages ([`lanes`]): as many blocks of all of them at a
//! time as the shortest has. So do hashes and HMAC ([`hashes`]), which have means of their own ([`hashes::Means`]): the SHA extensions, or a register with a word of
//! each message.
//!
//! Where the processor has no instructions for AES, or the compiler knows none, there are planes ([`bitsliced`]): the same modes of one message, and CBC encryption of many.
//!
//! No branch and no index depends on a key or on text. Keys and what is left of a key stream are wiped when their value goes; round keys are
//! read from the key, or the lanes' copy of it, where they are used, so that none of them lies on the stack, and no more does a power of the hash key or a tweak:
//! a kernel of one message stores no vector register there (`tests/disassembly.rs`). Kernels of hashes do, words of blocks and states, and those over planes, for registers
//! are too few: so the stack is wiped behind all that has a key of HMAC ([`hashes::with_stack_wiped`], `tests/stack.rs`), and behind planes. Vector registers are cleared by who calls ([`clear_registers`]), once for all that a call does.
#![allow(unsafe_code, reason = "room: the processor's instructions")]
#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "what a kernel rests on stands once, at `vector::Vector` and at `bitsliced/plane.rs`"
)]
#![cfg_attr(kernels, allow(clippy::incompatible_msrv, reason = "build.rs looks at the compiler"))]

mod level;
mod message;
mod mode;
mod place;
mod stack;
mod stealing;
mod tag;

pub mod bitsliced;

#[cfg(kernels)]
mod aes;
#[cfg(kernels)]
pub mod gcm;
#[cfg(not(kernels))]
#[path = "absent.rs"]
pub mod gcm;
pub mod hashes;
#[cfg(kernels)]
pub mod lanes;
#[cfg(not(kernels))]
#[path = "absent_lanes.rs"]
pub mod lanes;
#[cfg(kernels)]
pub mod modes;
#[cfg(not(kernels))]
#[path = "absent_modes.rs"]
pub mod modes;
#[cfg(kernels)]
mod turn;
#[cfg(kernels)]
mod vector;

pub use level::Level;
pub use stack::{clear_registers, with_registers_cleared, with_stack_wiped};
pub use tag::is_same_tag;
