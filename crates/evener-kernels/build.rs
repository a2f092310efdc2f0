//! Sets `kernels` where the target has instructions that kernels are written for and this rustc knows them.
//!
//! VAES, VPCLMULQDQ and AVX-512 are stable in rustc from 1.89 on. Where Debian 12 is all there is (armhf), 1.85 is the newest.

#![allow(unsafe_code, reason = "room: its crate is one; there is none here")]

use std::env;
use std::process::Command;

const LEAST_MINOR: u32 = 89;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(kernels)");
    if env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|name| name == "x86_64")
        && minor().is_none_or(|minor| minor >= LEAST_MINOR)
    {
        println!("cargo::rustc-cfg=kernels");
    }
}

/// The second number of this rustc's version, as 89 of "rustc 1.89.0 (...)".
fn minor() -> Option<u32> {
    let told = Command::new(env::var_os("RUSTC")?).arg("--version").output().ok()?;
    let told = String::from_utf8(told.stdout).ok()?;
    told.split('.').nth(1)?.parse().ok()
}
