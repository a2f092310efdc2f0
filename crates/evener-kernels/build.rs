//! Sets `kernels` where the target has instructions that kernels are written for and this rustc knows them, and `hash_kernels` where those of hashes are.
//!
//! VAES, VPCLMULQDQ and AVX-512 are stable in rustc from 1.89 on. Where Debian 12 is all there is (arm64, armhf), 1.85 is the newest.

#![allow(unsafe_code, reason = "room: its crate is one; there is none here")]

use std::env;
use std::process::Command;

const LEAST_MINOR: u32 = 89;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(kernels, hash_kernels)");
    let target = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let is_little = env::var("CARGO_CFG_TARGET_ENDIAN").is_ok_and(|order| order == "little");
    let names: &[&str] = match target.as_str() {
        "x86_64" if minor().is_none_or(|minor| minor >= LEAST_MINOR) => &["kernels", "hash_kernels"],
        "aarch64" if is_little => &["kernels"],
        _ => &[],
    };
    for name in names {
        println!("cargo::rustc-cfg={name}");
    }
}

/// The second number of this rustc's version, as 89 of "rustc 1.89.0 (...)".
fn minor() -> Option<u32> {
    let told = Command::new(env::var_os("RUSTC")?).arg("--version").output().ok()?;
    let told = String::from_utf8(told.stdout).ok()?;
    told.split('.').nth(1)?.parse().ok()
}
