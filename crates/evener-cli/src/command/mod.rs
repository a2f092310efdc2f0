//! The subcommands of `evener`: each turns typed arguments into ready objects, hands them to a library and reports what came of it.

pub(crate) mod bench;
pub(crate) mod completions;
pub(crate) mod cryptodev;
pub(crate) mod demo;
pub(crate) mod devices;
pub(crate) mod doctor;
pub(crate) mod encrypt;
pub(crate) mod explain;
pub(crate) mod host;
pub(crate) mod inspect;
pub(crate) mod keygen;
pub(crate) mod keyset;
pub(crate) mod man;
pub(crate) mod objects;
pub(crate) mod provider;
pub(crate) mod sim;
pub(crate) mod status;
pub(crate) mod sum;
pub(crate) mod top;
