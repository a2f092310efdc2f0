//! AES for cores without its instructions: as many blocks at once as registers have bits for, bit by bit, so that no byte of a key or of text becomes an address.
//!
//! Path of blocks: eight planes are made of them (`plane.rs`, by the registers of `words.rs`, `registers.rs` or `neon.rs`) -> `rounds.rs`, whose S-box is a circuit
//! (`sbox.rs`) -> blocks again. That is one [kernel](entries) for each [`Means`]. Who calls it: many messages side by side in CBC encryption ([`Cbc`], each lane with its own round
//! keys, `key.rs`), and one message in the other modes ([`modes`]).
//!
//! A kernel takes as long for one block as for all that it has room for.

mod cbc;
mod entries;
mod key;
mod means;
pub mod modes;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;
mod plane;
#[cfg(target_arch = "x86_64")]
mod registers;
mod rounds;
mod sbox;
mod words;

pub use self::cbc::{Cbc, Key};
pub use self::means::Means;
