//! The module for ARMv7 with the C library musl, as OpenWrt and Alpine have it: its size alone, for no OpenSSL for it can be had here to load it.
//!
//! Path: zig, which brings musl and a linker, from PyPI into `target/zig` -> a program in the linker's place ([`STAND_IN`]) -> the standard library and the module
//! for musl, by the sources and the compiler of the board's tool chain.

use std::path::{Path, PathBuf};
use std::process::Command;

use evener_testbed::{Toolchain, write_program};

use super::{for_board, stripped_size, with_path};
use crate::programs::{MODULE, built_library, run};
use crate::tree::root;

const TARGET: &str = "armv7-unknown-linux-musleabihf";

/// The version that it was tried with.
const ZIG: &str = "ziglang==0.17.1";

/// What rustc says to GNU's linker and zig's does not know is left out; the unwinder has another name there.
const STAND_IN: &str = r#"#!/bin/sh
for word in "$@"; do
    shift
    case $word in
        -lgcc_s | -lgcc) set -- "$@" -lunwind ;;
        *pack-relative-relocs) ;;
        *) set -- "$@" "$word" ;;
    esac
done
exec 'PYTHON' -m ziglang cc -target arm-linux-musleabihf -mcpu=cortex_a7 "$@"
"#;

/// Bytes of the module without symbols; a reason where zig cannot be had.
pub(super) fn module_bytes(toolchain: &Toolchain) -> Result<u64, Reason> {
    let python = zig().map_err(Reason::NotHere)?;
    module(toolchain, &python)
        .and_then(|path| stripped_size(&path, toolchain.tool("strip")))
        .map_err(Reason::Fault)
}

pub(super) enum Reason {
    /// This machine cannot.
    NotHere(String),
    Fault(String),
}

/// A Python that has zig.
fn zig() -> Result<PathBuf, String> {
    let folder = root().join("target/zig");
    let python = folder.join("bin/python");
    let has_zig = || {
        let asked = Command::new(&python).args(["-m", "ziglang", "version"]).output();
        asked.is_ok_and(|output| output.status.success())
    };
    if !has_zig() {
        let mut venv = Command::new("python3");
        venv.args(["-m", "venv"]).arg(&folder);
        run(venv)?;
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "-q", "install", ZIG]);
        run(pip)?;
    }
    Ok(python)
}

fn module(toolchain: &Toolchain, python: &Path) -> Result<PathBuf, String> {
    let linker = root().join("target/zig/cc");
    let text = STAND_IN.replace("PYTHON", &python.display().to_string());
    write_program(&linker, text.as_bytes()).map_err(|error| with_path(&linker, &error))?;
    let mut cargo = for_board(toolchain, "+thumb-mode,-crt-static");
    cargo.env("CARGO_BUILD_TARGET", TARGET);
    cargo.env(format!("CARGO_TARGET_{}_LINKER", TARGET.replace('-', "_").to_uppercase()), &linker);
    built_library(cargo, "small", "evener-provider", MODULE)
}
