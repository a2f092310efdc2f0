//! The subcommands of `evener`: each turns typed arguments into ready objects, hands them to a library and reports what came of it.

#[cfg(feature = "experiments")]
pub(crate) mod bench;
#[cfg(feature = "manuals")]
pub(crate) mod completions;
#[cfg(feature = "servers")]
pub(crate) mod cryptodev;
#[cfg(feature = "experiments")]
pub(crate) mod demo;
pub(crate) mod devices;
pub(crate) mod doctor;
pub(crate) mod encrypt;
pub(crate) mod explain;
#[cfg(feature = "servers")]
pub(crate) mod host;
pub(crate) mod inspect;
pub(crate) mod keygen;
pub(crate) mod keyset;
#[cfg(feature = "manuals")]
pub(crate) mod man;
pub(crate) mod objects;
pub(crate) mod provider;
#[cfg(feature = "experiments")]
pub(crate) mod sim;
pub(crate) mod status;
pub(crate) mod sum;
pub(crate) mod top;
