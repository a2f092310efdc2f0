//! Every published case through every driver and method, in both directions, in bursts of all widths up to 33, in
//! place and apart, at addresses off every border.

use evener_conformance::{ByRuntime, Door};
use evener_core::plan::Policy;
use evener_core::{Direction, Family, Hash, InlineDriver};
use evener_driver_emulated::{Fault, When};
use evener_testing::drivers::{lanes, libcrypto, multibuffer};
use evener_testing::requests::{Direct, JobSpec, ask_all};

/// Jobs by which all cases are asked, each in place and apart: none is left out.
const ASKED: usize = 15_702;
/// Of these, what the multi-buffer library does: all but XTS and MD5.
const ASKED_OF_LANES: usize = 14_880;
/// Of these, what kernels of our own do: AES in all modes; and SHA-1, SHA-256 and HMAC of them, where the processor has what these need.
const ASKED_OF_KERNELS: usize = 13_842;
const ASKED_OF_HASHES: usize = 666;
/// And what they do where the processor has no instructions for AES: CBC encryption, bitsliced.
const ASKED_OF_BITSLICED: usize = 2_342;
/// Of these, what a core refuses before a module sees it: no text at all where padding must be, by key size.
const REFUSED_BEFORE: usize = 6;

#[test]
fn plain_gives_what_was_published() {
    assert_eq!(ask_all(&mut Direct(libcrypto()), |_| true), ASKED);
}

#[test]
fn multi_buffer_gives_what_was_published() {
    let Some(driver) = multibuffer() else { return };
    let wrong = driver.wrong_answers().to_vec();
    let takes = |driver: &dyn InlineDriver, spec: &JobSpec| {
        let (algorithm, direction) = (spec.session.algorithm(), spec.session.direction());
        driver.supports(algorithm, direction)
            && spec.input.len() <= driver.job_bytes_max(algorithm, direction)
    };
    let judge = multibuffer().expect("it was there a moment ago");
    let asked = ask_all(&mut Direct(driver), |spec| takes(&judge, spec));
    if wrong.is_empty() {
        assert_eq!(asked, ASKED_OF_LANES);
    } else {
        println!("skipped: {wrong:?}, which the library answers wrongly on this machine");
    }
}

#[test]
fn kernels_of_our_own_give_what_was_published() {
    let Some(driver) = lanes() else { return };
    // What is due is told by this list and by the processor, not by the driver.
    let is_due = |spec: &JobSpec| match (spec.session.algorithm().family(), spec.session.direction()) {
        (Family::Cbc, Direction::Encrypt) => true,
        (Family::Gcm | Family::Cbc | Family::Ecb | Family::Ctr | Family::Xts, _) => has_instructions_of_aes(),
        (Family::Digest(hash) | Family::Hmac(hash), _) => hash != Hash::Md5 && has_instructions_of_hashes(),
        _ => false,
    };
    let asked = ask_all(&mut Direct(driver), is_due);
    let hashes = if has_instructions_of_hashes() { ASKED_OF_HASHES } else { 0 };
    let ciphers = if has_instructions_of_aes() { ASKED_OF_KERNELS } else { ASKED_OF_BITSLICED };
    assert_eq!(asked, ciphers + hashes);
}

/// What kernels for AES need.
#[cfg(target_arch = "x86_64")]
fn has_instructions_of_aes() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("aes") && has!("pclmulqdq") && has!("sse4.1") && has!("ssse3")
}

#[cfg(target_arch = "aarch64")]
fn has_instructions_of_aes() -> bool {
    use std::arch::is_aarch64_feature_detected as has;
    has!("aes") && has!("pmull")
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn has_instructions_of_aes() -> bool {
    false
}

/// Words of messages side by side, or the SHA extensions.
#[cfg(target_arch = "x86_64")]
fn has_instructions_of_hashes() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx2") || (has!("sha") && has!("sse4.1") && has!("ssse3"))
}

#[cfg(not(target_arch = "x86_64"))]
fn has_instructions_of_hashes() -> bool {
    false
}

#[test]
fn an_emulated_module_gives_what_was_published_and_does_all_that_is_offered() {
    let route = ByRuntime::new(Policy::ModuleOnly, Door::Caller, 0);
    let mut route = route.with_module(Fault::None, When::ALWAYS);
    assert_eq!(ask_all(&mut route, |_| true), ASKED);
    let offloaded = route.report.modules();
    assert_eq!(offloaded.jobs + offloaded.failed, (ASKED - REFUSED_BEFORE) as u64);
}
