//! Computes in the field of 2^128 elements that GCM and XTS share.

pub mod ghash;
pub mod xts;
