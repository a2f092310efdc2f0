//! Where libcrypto has no memory for another way, the direct one does it.

#![allow(unsafe_code, reason = "room: its support calls libcrypto")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use support::ffi::clear_errors;
use support::ffi::memory::{by_helpers, fail_from, intercept, spare};
use support::pair::{SPLIT, evener, split_count};
use support::{bytes, in_program, started, usual};

const NAMES: &[&str] = &["AES-128-CBC", "AES-256-CTR", "AES-192-ECB", "AES-256-XTS", "AES-128-GCM"];

/// Two updates and an end, the first update without memory from the allocation with this number on.
fn message(name: &str, provider: &str, encrypts: bool, number: Option<u32>) -> (Vec<Vec<u8>>, u32) {
    let ctx = started(name, provider, encrypts, false);
    let mut out = Vec::new();
    let mut refused = 0;
    for len in [200_000, 65_536] {
        let mut space = bytes(3, len + 16);
        fail_from(number.unwrap_or(u32::MAX));
        let answer = ctx.update_within(&mut space, 0, 0, len);
        refused += spare();
        assert_eq!(answer, (true, len), "{name} {provider} {number:?}");
        out.push(space);
    }
    if name.ends_with("GCM") && encrypts {
        out.push(ctx.last().unwrap());
        out.push(ctx.octets(c"tag", 16).unwrap());
    }
    clear_errors();
    (out, refused)
}

fn compare() {
    let mut refused = 0;
    for name in NAMES {
        for encrypts in [true, false] {
            let (plain, _) = message(name, "default", encrypts, None);
            for number in 0..8 {
                let (evener, count) = message(name, "evener", encrypts, Some(number));
                assert!(evener == plain, "{name}, encrypts {encrypts}, none from {number}");
                refused += count;
            }
        }
    }
    assert!(refused > 10, "{refused}");
}

#[test]
fn without_memory_for_parts_the_direct_path_does_it() {
    // Kernels have libcrypto take none.
    let variables = [SPLIT, &[("EVENER_KERNELS", "off")]].concat();
    in_program("without_memory_for_parts_the_direct_path_does_it", &usual(""), &variables, || {
        intercept();
        compare();
    });
}

#[test]
fn without_memory_for_raw_work_the_direct_path_does_it() {
    let variables = [("EVENER_THRESHOLD", "16")];
    in_program("without_memory_for_raw_work_the_direct_path_does_it", &usual(""), &variables, || {
        intercept();
        compare();
    });
}

/// In 4.0 a thread whose first allocation fails does not live on: the error is put where there is no memory for it yet, which
/// is an error, without end (`CRYPTO_THREAD_set_local_ex`, crypto/threads_common.c).
#[test]
fn a_helper_never_asks_libcrypto_for_memory() {
    let two = [("EVENER_THREADS", "2"), SPLIT[1], SPLIT[2], ("EVENER_KERNELS", "off")];
    in_program("a_helper_never_asks_libcrypto_for_memory", &usual(""), &two, || {
        intercept();
        for name in NAMES {
            for _ in 0..200 {
                message(name, "evener", false, None);
            }
        }
        assert!(split_count(&evener()) > 500, "nothing was split");
        compare();
        // Nor do they give back any: who called them made what they work with.
        assert_eq!(by_helpers(), (0, 0));
    });
}
