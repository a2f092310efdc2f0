//! What the finished file needs, shows and holds.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::env;
use std::process::Command;

/// Libraries that the module may need: C's own. A libcrypto here would be a second one in many a program; libm would be mapped into many a
/// short one for nothing.
const NEEDED: &[&str] = &["libc.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "libpthread.so.0"];

fn readelf(option: &str) -> Option<String> {
    let module = env::current_exe().unwrap().with_file_name("libevener_provider.so");
    let output = Command::new("readelf").args(["--wide", option]).arg(module).output().ok()?;
    assert!(output.status.success());
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn the_module_needs_no_libcrypto_and_is_never_unmapped() {
    let Some(dynamic) = readelf("--dynamic") else {
        return println!("skipped: no readelf (Debian: binutils)");
    };
    let needed = dynamic.lines().filter(|line| line.contains("(NEEDED)"));
    let needed: BTreeSet<&str> = needed.filter_map(|line| line.split(['[', ']']).nth(1)).collect();
    assert!(needed.contains("libc.so.6"), "{dynamic}");
    assert!(needed.iter().all(|name| NEEDED.contains(name)), "{needed:?}");
    assert!(dynamic.lines().any(|line| line.contains("FLAGS_1") && line.contains("NODELETE")), "{dynamic}");
}

#[test]
fn the_module_shows_one_symbol() {
    let Some(symbols) = readelf("--dyn-syms") else {
        return println!("skipped: no readelf (Debian: binutils)");
    };
    let own = symbols.lines().filter(|line| !line.contains(" UND ") && line.contains(" GLOBAL "));
    let own: Vec<&str> = own.filter_map(|line| line.split_whitespace().last()).collect();
    assert_eq!(own, ["OSSL_provider_init"]);
}

/// What threads count has space for hundreds of them; unless all of it begins as zeros, each program that loads the module reads
/// half a megabyte of nothing.
#[test]
fn space_for_threads_takes_none_in_the_file() {
    let Some(sections) = readelf("--section-headers") else {
        return println!("skipped: no readelf (Debian: binutils)");
    };
    let bytes = |name: &str| {
        let words = sections.lines().map(|line| line.split_whitespace().skip_while(|word| *word != name));
        let row: Vec<&str> =
            words.map(Iterator::collect).find(|row: &Vec<&str>| !row.is_empty()).unwrap_or_default();
        usize::from_str_radix(row.get(4).unwrap_or(&"0"), 16).unwrap()
    };
    let [data, zeros] = [".data", ".bss"].map(bytes);
    assert!(data < 64 << 10 && zeros > 256 << 10, "{data} and {zeros} bytes: {sections}");
}
