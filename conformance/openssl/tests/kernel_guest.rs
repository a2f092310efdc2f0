//! Programs whose provider has a module behind the kernel (AF_ALG), in the test bed's guest, where there is one.

use std::time::Duration;

use evener_conformance_openssl::Setup;
use evener_conformance_openssl::program::Program;
use evener_testbed::Guest;

/// The provider in the guest, among the libraries, which come with what they need.
const PROVIDER: &str = "/lib/x86_64-linux-gnu/evener.so";
/// Of a request.
const SOCKETS: i64 = 2;
/// What the line of processes with the module may come to beside OpenSSL alone, once and for all, in KiB that malloc has given out.
const MORE_KIB: i64 = 8;
/// The same in memory of its own, which is counted in pages.
const MORE_PAGES_KIB: i64 = 16;

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

/// What one run of the program says: descriptors, KiB that malloc has given out and KiB of memory of its own, of the generation at a third and of the last.
fn generations(guest: &mut Guest, variables: &str, arguments: &str) -> [i64; 6] {
    let outcome = guest.run(&format!("{variables} generations {arguments}")).expect("the guest answers");
    let said = outcome.expect_success();
    let numbers: Vec<i64> = said.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    numbers.try_into().expect("six numbers")
}

/// Requests that the module has answered; QEMU 7 does not count.
fn requests(guest: &Guest) -> Option<u64> {
    let mut qmp = guest.qmp().ok()?;
    qmp.module_counts().ok().map(|counts| counts.encrypted_count)
}

/// Longer lines of which one must not have grown.
const LONGER_LINES: usize = 3;

/// A line of so many, each of which encrypts by the module as `kinds` say: what a caller waits for at a reader, and what goes through the queue
/// because it is too long for that.
fn a_line_of_children_does_not_grow(generation_count: u32, kinds: &[&str], life: Duration) {
    let program = Program::build("generations");
    let setup = Setup::evener("");
    let builder = Guest::builder().program(program.path()).library(setup.module());
    let Some(mut guest) = builder.file("/etc/evener.cnf", configuration()).limit(life).boot_or_skip() else {
        return;
    };
    for kind in kinds {
        let growth = |guest: &mut Guest, generation_count: u32| {
            let arguments = format!("{generation_count} {kind}");
            let plain = generations(guest, "OPENSSL_CONF=/dev/null", &arguments);
            let before = requests(guest);
            let with_module = generations(guest, "OPENSSL_CONF=/etc/evener.cnf", &arguments);
            if let (Some(before), Some(after)) = (before, requests(guest)) {
                assert!(
                    after - before > generation_count.into(),
                    "each has asked the module: {before} {after}"
                );
            }
            assert!(
                with_module[0] > plain[0],
                "the module is open in each: {with_module:?}, plain {plain:?}"
            );
            let more = |all: [i64; 6]| [0, 1, 2].map(|at| all[at + 3] - all[at]);
            let [more, plain_more] = [more(with_module), more(plain)];
            [more[0], more[1] - plain_more[1], more[2] - plain_more[2]]
        };
        // A generation has the sockets of one request or of two at the moment in which it counts; what grew would be one in each.
        let is_bounded = |[descriptors, given, own]: [i64; 3]| {
            descriptors <= SOCKETS && given <= MORE_KIB && own <= MORE_PAGES_KIB
        };
        let grown = growth(&mut guest, generation_count);
        // What is made once, it is in whatever generation first needs it, as for two requests at a time, or when two threads want memory at one moment; a longer
        // line may have that, and no more. What each generation leaves grows in every line.
        let longer = |guest: &mut Guest| {
            let again = growth(guest, 4 * generation_count);
            let more = [0, 1, 2].map(|at| again[at] - grown[at]);
            (is_bounded(again) || is_bounded(more), again)
        };
        let mut lines: Vec<_> = Vec::new();
        while !is_bounded(grown) && lines.len() < LONGER_LINES && lines.last().is_none_or(|(is_so, _)| !is_so)
        {
            lines.push(longer(&mut guest));
        }
        let is_so = lines.last().is_none_or(|(is_so, _)| *is_so);
        assert!(is_so, "{kind}: {grown:?} and {lines:?} more than plain");
    }
    guest.shut_down().expect("the guest ends");
}

#[test]
fn a_hundred_generations_of_children_with_a_module_behind_the_kernel_leave_no_descriptor_and_no_memory() {
    // An emulated processor beside other work.
    a_line_of_children_does_not_grow(100, &["65536", "262144 cbc"], Duration::from_secs(300));
}

#[test]
#[ignore = "takes a minute or more; for test-full"]
fn a_thousand_generations_of_children_with_a_module_behind_the_kernel_leave_no_descriptor_and_no_memory() {
    a_line_of_children_does_not_grow(1_000, &["65536"], Duration::from_secs(900));
}
