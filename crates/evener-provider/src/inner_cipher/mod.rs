//! The default provider's own ciphers behind safe functions: the arguments of one call, and contexts that this provider owns.

pub(crate) mod call;
pub(crate) mod context;
