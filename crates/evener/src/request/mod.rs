//! Single requests of a program's own threads: they run at once where they stand, together with others, on a module, or split.

pub mod combine;
pub mod in_flight;
pub mod offload;
pub mod policy;
pub mod regret;
pub mod split;
