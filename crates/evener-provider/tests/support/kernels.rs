//! Messages that kernels of ours may do, judged by the default provider, and what a process says of who did them.

#![allow(clippy::print_stdout, reason = "it says what is skipped")]

use std::env;
use std::process::id;

use evener::counts_file::{Directories, of_process};
use evener_core::counts::{Count, Row};
use evener_kernels::Level;
use evener_provider::OSSL_provider_init;

use super::ffi::{CipherCtx, DEFAULT, has_function};
use super::{both_providers, bytes, in_program};

pub const GCM: [&str; 3] = ["AES-128-GCM", "AES-192-GCM", "AES-256-GCM"];
/// The others, and how many of their two directions kernels do.
pub const OTHERS: [(&str, u32); 11] = [
    ("AES-128-CTR", 2),
    ("AES-192-CTR", 2),
    ("AES-256-CTR", 2),
    ("AES-128-CBC", 1),
    ("AES-192-CBC", 1),
    ("AES-256-CBC", 1),
    ("AES-128-ECB", 2),
    ("AES-192-ECB", 2),
    ("AES-256-ECB", 2),
    ("AES-128-XTS", 2),
    ("AES-256-XTS", 2),
];
/// Bytes of a message of whole blocks.
pub const WHOLE: usize = 4_096;

/// A message of `text`, in two pieces where the mode takes any: of whole blocks without padding, or not so.
pub fn message(name: &str, provider: &str, encrypts: bool, text: &[u8]) -> Vec<u8> {
    let cipher = DEFAULT.cipher(name, &format!("provider={provider}")).unwrap();
    let context = CipherCtx::new();
    let iv = bytes(2, if name.ends_with("-GCM") { 12 } else { 16 });
    assert!(context.init(Some(&cipher), Some(&bytes(1, cipher.key_bytes())), Some(&iv), Some(encrypts)));
    let is_whole = text.len() == WHOLE;
    context.set_padding(!is_whole);
    let first = if is_whole { 1_008 } else { 1_001 };
    let (one, other) = text.split_at(if name.ends_with("-XTS") { 0 } else { first.min(text.len()) });
    let mut out = if one.is_empty() { Vec::new() } else { context.update(one).unwrap() };
    out.extend(context.update(other).unwrap());
    out.extend(context.last().unwrap());
    if name.ends_with("-GCM") {
        out.extend(context.octets(c"tag", 16).unwrap());
    }
    out
}

/// A message with each length of key, in each direction, is what the default provider makes of it; returns how many a kernel has done, and how many kernels
/// were found wrong.
pub fn messages() -> (u32, u32) {
    messages_of(5_000)
}

pub fn messages_of(length: usize) -> (u32, u32) {
    let (_default, evener) = both_providers(OSSL_provider_init);
    let text = bytes(3, length);
    for name in GCM.into_iter().chain(OTHERS.map(|(name, _)| name)) {
        let [ours, theirs] = ["evener", "default"].map(|provider| message(name, provider, true, &text));
        assert!(ours == theirs, "{name}");
        if !GCM.contains(&name) {
            assert!(message(name, "evener", false, &theirs) == text, "{name}, decrypted");
        }
    }
    [c"evener-native", c"evener-wrong-kernels"].map(|key| evener.count(key).unwrap()).into()
}

/// Messages of [`messages`] that kernels do where all of them work.
pub fn all() -> u32 {
    let is_done = |name: &str| !(name.ends_with("-CBC") && has_pipelines());
    3 + OTHERS.iter().filter(|(name, _)| is_done(name)).map(|(_, directions)| directions).sum::<u32>()
}

/// Whether this OpenSSL knows pipelines, as from 3.5 on: other ways stand before CBC's kernel then, which gets a context at its first long decryption only.
pub fn has_pipelines() -> bool {
    has_function(c"EVP_CipherPipelineEncryptInit")
}

/// Those of them that kernels do unless told: ECB not.
pub fn by_default() -> u32 {
    let of_ecb = OTHERS.iter().filter(|(name, _)| name.ends_with("-ECB"));
    all() - of_ecb.map(|(_, directions)| directions).sum::<u32>()
}

/// Requests of this process that kernels did, and that the inner cipher did, as others see them.
pub fn counted() -> [u64; 2] {
    let places = Directories::only(env::var_os("EVENER_STATISTICS_DIR").unwrap().into());
    let Some(Ok(record)) = of_process(&places, u32::MAX, id()) else { return [0, 0] };
    [Count::Kernel, Count::Direct].map(|way| Row::all().map(|row| record.count(row, way)).sum())
}

pub fn has_kernels() -> bool {
    let has = Level::best().is_some();
    if !has {
        println!("skipped: no kernels for this processor, or by this compiler");
    }
    has
}

/// Runs `body` in a program of its own in which kernels are told to work.
pub fn with_kernels(name: &str, body: impl FnOnce()) {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("counts").display().to_string();
    if has_kernels() {
        in_program(name, "", &[("EVENER_KERNELS", "on"), ("EVENER_STATISTICS_DIR", &directory)], body);
    }
}
