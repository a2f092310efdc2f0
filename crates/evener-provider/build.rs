//! How the module is linked: never unmapped again, with every symbol that it needs named, and with an unwinder of its own.

#![allow(unsafe_code, reason = "room: its crate is one; there is none here")]

use std::path::PathBuf;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    link_unwinder();
    // OpenSSL closes a provider at exit and at unload; code that a thread or a fork handler may still run must stay.
    println!("cargo::rustc-link-arg-cdylib=-Wl,-z,nodelete");
    // The core hands over every function that we use: an undefined symbol is a mistake.
    // But for those of a sanitizer, which are in the program (xtask/src/ci/sanitizers.rs).
    if env::var_os("CARGO_CFG_SANITIZE").is_none() {
        println!("cargo::rustc-link-arg-cdylib=-Wl,-z,defs");
    }
}

/// Has the unwinder come from `libgcc_eh.a` where `libgcc_s.so` would be asked for, by a linker script of that name, as the compiler's own is one.
///
/// As a library it asks the processor what it is thirteen times while it is loaded, and a virtual machine leaves the guest for each of these: 0.14 ms of
/// the start of every program, and as much again to find, map and relocate it (docs/results/hosted.md). C programs have no use for it otherwise.
fn link_unwinder() {
    let target = |name: &str| env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    let [system, library, processor] = ["OS", "ENV", "ARCH"].map(target);
    if [&*system, &library, &processor] != ["linux", "gnu", "x86_64"] {
        return;
    }
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo says where to"));
    fs::write(folder.join("libgcc_s.so"), "GROUP ( -lgcc_eh -lgcc )\n").expect("it is ours to write to");
    println!("cargo::rustc-link-arg-cdylib=-L{}", folder.display());
}
