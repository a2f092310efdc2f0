//! How the module is linked: never unmapped again, and with every symbol that it needs named.

#![allow(unsafe_code, reason = "room: its crate is one; there is none here")]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // OpenSSL closes a provider at exit and at unload; code that a thread or a fork handler may still run must stay.
    println!("cargo::rustc-link-arg-cdylib=-Wl,-z,nodelete");
    // The core hands over every function that we use: an undefined symbol is a mistake.
    // But for those of a sanitizer, which are in the program (xtask/src/ci/sanitizers.rs).
    if std::env::var_os("CARGO_CFG_SANITIZE").is_none() {
        println!("cargo::rustc-link-arg-cdylib=-Wl,-z,defs");
    }
}
