//! Ciphers that this provider computes itself, by kernels for this processor (`evener-kernels`), with no inner context beside them.

pub(crate) mod gcm;
