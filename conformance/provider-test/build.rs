//! How the module is linked: as `evener.so`, never unmapped again.

#![allow(unsafe_code, reason = "room: its crate is one; there is none here")]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-link-arg-cdylib=-Wl,-z,nodelete");
}
