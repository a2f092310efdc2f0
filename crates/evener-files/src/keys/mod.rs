//! Keys are read and made here: age recipients and identities, and Tink keysets.

pub mod age;
pub mod keyset;
mod text;
