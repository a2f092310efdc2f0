//! What OpenSSL calls: the module's one symbol, and the functions in the tables of each algorithm.

pub(crate) mod cipher;
pub(crate) mod digest;
mod digest_stats;
pub(crate) mod passthrough;
pub(crate) mod pipelines;
pub(crate) mod provider;
pub(crate) mod rand;
mod refusal;
pub(crate) mod skey;
