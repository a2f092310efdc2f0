//! Cores under a fair-share scheduler and crypto modules, in virtual time.
//!
//! Path of one run: a scenario (`scenario/`, a file or a preset) says machine, costs, workload and policy ->
//! a [`Setup`](lab::Setup) -> threads are laid out on an engine (`engine/`) -> workers claim at a
//! [`Chooser`](lab::Chooser) what to take from the backlog, which for the papers' policies is the same plan that
//! the live system runs -> a [`Report`](lab::Report). Beside the runs stand what they are judged by: costs fitted
//! on the papers' tables (`costs.rs`), closed forms and lower bounds (`bounds.rs`), the tables (`papers/`).
//! `scale.rs` is a grid of machines that do not exist; `crowd.rs` is many processes at one module; `live/` is a machine that does exist, by the costs that were measured there.
#![forbid(unsafe_code)]

pub mod adaptive;
pub mod bounds;
pub mod costs;
pub mod crowd;
pub mod engine;
pub mod lab;
pub mod live;
pub mod papers;
pub mod random;
pub mod report;
mod rounding;
pub mod scale;
pub mod scenario;
