//! Ciphers that this provider computes itself, by kernels for this processor (`evener-kernels`): `gcm.rs` does what OpenSSL's own cipher
//! does, with no inner context beside it; `kernel_choice.rs` says whether it does, by what `kernel_timing.rs` measured once and `choice_file.rs` keeps.

mod choice_file;
pub(crate) mod gcm;
pub(crate) mod kernel_choice;
mod kernel_timing;
