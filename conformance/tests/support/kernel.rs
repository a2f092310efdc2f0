//! The suite of modules behind the kernel (tests/kernel) in a guest: what it finds there, and what it must have met.

use evener_testbed::{Builder, KernelLog};

/// Its source.
pub(crate) const SOURCE: &str = "conformance/tests/kernel/main.rs";
/// Its test that is not for a guest.
pub(crate) const IN_THE_GUEST: &str = "all_of_this_holds_in_the_guest_where_a_module_stands_behind_af_alg";

/// Loads what it asks for. Named by all its parts, GCM finds no module that is not there yet.
pub(crate) fn with_modules(builder: Builder) -> Builder {
    ["ctr", "gcm", "ghash-generic", "cuse"].into_iter().fold(builder, Builder::kernel_module)
}

/// Holds what it said in a guest against what is there to be met: the device's module, nodes of our own, the kernel's software.
///
/// # Panics
///
/// Where it did not meet one of them.
pub(crate) fn expect_modules(told: &str) {
    assert!(!told.contains("no node can be made"), "{told}");
    assert!(told.contains("what cannot be opened was told apart"), "{told}");
    let says = |name: &str, claim: &str| {
        let is_so = told.lines().any(|line| line.contains(name) && line.ends_with(claim));
        assert!(is_so, "nothing of {name} {claim}: {told}");
    };
    ["devcrypto:", "afalg:virtio_crypto_aes_cbc: "]
        .iter()
        .for_each(|name| says(name, "requests of a host's client"));
    [": out while it hung", ": out when it was killed"].iter().for_each(|claim| says("devcrypto:", claim));
    for name in MET {
        ["published cases", "requests of all lengths"].iter().for_each(|claim| says(name, claim));
    }
}

/// What goes through the suite's tests of all requests. What is not there is skipped, and these are there.
const MET: [&str; 5] = [
    "afalg:virtio_crypto_aes_cbc: ",
    "devcrypto:",
    "afalg:gcm_base(ctr(aes-generic),ghash-generic): ",
    "afalg:sha256-generic: ",
    "afalg:hmac(sha256-generic): ",
];

/// What the kernel warns of, but for what the suite makes it say: so virtio_crypto calls the module full, which one of its tests fills.
pub(crate) fn warnings(log: &KernelLog) -> Vec<&str> {
    let is_full = |line: &&str| line.contains("virtio_crypto: Create session failed status: 1");
    log.warnings().into_iter().filter(|line| !is_full(line)).collect()
}
