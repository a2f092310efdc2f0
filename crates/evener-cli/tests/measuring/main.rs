//! `evener bench` and `evener sim`: what they print and keep holds together.

#[path = "../common/mod.rs"]
mod common;

mod bench_crypt;
mod bench_files;
mod bench_programs;
mod bench_tls;
mod sim_live;
mod sim_papers;
mod sim_run;
mod sim_scale;
