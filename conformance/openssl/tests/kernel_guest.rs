//! Programs whose provider has a module behind the kernel (AF_ALG), in the test bed's guest, where there is one.

use std::time::Duration;

use evener_conformance_openssl::Setup;
use evener_conformance_openssl::program::Program;
use evener_testbed::Guest;

/// The provider in the guest, among the libraries, which come with what they need.
const PROVIDER: &str = "/lib/x86_64-linux-gnu/evener.so";
/// An emulated processor beside other work.
const GUEST_LIFE: Duration = Duration::from_secs(300);
const GENERATIONS: u32 = 100;
/// Of a request.
const SOCKETS: i64 = 2;
/// What a generation may leave to the next; measured were 5.
const LEFT_KIB: i64 = 8;

/// The provider with the module, which gets every request that is long enough.
fn configuration() -> String {
    format!(
        "openssl_conf = init\n[init]\nproviders = providers\nalg_section = algorithms\n\
         [providers]\ndefault = default_sect\nevener = evener_sect\n[default_sect]\nactivate = 1\n\
         [evener_sect]\nidentity = evener\nmodule = {PROVIDER}\nactivate = 1\n\
         modules = afalg:virtio_crypto_aes_cbc\nthreshold = 4096\nguard = off\n\
         [algorithms]\ndefault_properties = ?provider=evener\n"
    )
}

/// Descriptors, KiB that malloc has given out and KiB of memory of its own, of the generation at a third and of the last.
fn generations(guest: &mut Guest, variables: &str) -> [i64; 6] {
    let outcome =
        guest.run(&format!("{variables} generations {GENERATIONS} 65536")).expect("the guest answers");
    let said = outcome.expect_success();
    let numbers: Vec<i64> = said.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    numbers.try_into().expect("six numbers")
}

#[test]
fn a_hundred_generations_of_children_with_a_module_behind_the_kernel_leave_no_descriptor_and_little_memory() {
    let program = Program::build("generations");
    let setup = Setup::evener("");
    let builder = Guest::builder().program(program.path()).library(setup.module());
    let Some(mut guest) = builder.file("/etc/evener.cnf", configuration()).limit(GUEST_LIFE).boot_or_skip()
    else {
        return;
    };
    let plain = generations(&mut guest, "OPENSSL_CONF=/dev/null");
    let requests = |guest: &mut Guest| {
        let mut qmp = guest.qmp().ok()?;
        qmp.module_counts().ok().map(|counts| counts.encrypted_count)
    };
    let before = requests(&mut guest);
    let with_module = generations(&mut guest, "OPENSSL_CONF=/etc/evener.cnf");
    // QEMU 7 does not count.
    if let (Some(before), Some(after)) = (before, requests(&mut guest)) {
        assert!(
            after - before > u64::from(GENERATIONS),
            "each generation has asked the module: {before} {after}"
        );
    }
    let [descriptors, given, own] = [0, 1, 2].map(|at| with_module[at + 3] - with_module[at]);
    let [_, plain_given, plain_own] = [0, 1, 2].map(|at| plain[at + 3] - plain[at]);
    // A child cannot free what its parent's threads had, each a slot and its stack's first pages (docs/LIMITS.md).
    let more = i64::from(GENERATIONS * 2 / 3) * LEFT_KIB;
    let is_bounded = given <= plain_given + 8 + more && own <= plain_own + 64 + more;
    // A generation has the sockets of one request or of two at the moment in which it counts; what grew would be one in each.
    assert!(descriptors <= SOCKETS && is_bounded, "{with_module:?}, plain {plain:?}");
    assert!(with_module[0] > plain[0], "the module is open in each: {with_module:?}, plain {plain:?}");
    guest.shut_down().expect("the guest ends");
}
