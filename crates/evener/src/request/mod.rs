//! Single requests of a program's own threads (OpenSSL's calls): each runs at once, together with others, on a module, or split.
//!
//! `policy` decides by itself what goes to a module: its table and guard are not those of a run (`adaptive`), for a request's time counts, not
//! only its core time. `regret` judges what left the direct path by other ways.

pub mod combine;
pub mod in_flight;
pub mod offload;
pub mod policy;
pub mod regret;
mod shared_module;
pub mod split;
