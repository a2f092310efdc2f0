//! Programs as they are installed: the command `evener`, which says in a sentence why there is no device, and `openssl`, which encrypts
//! by one though it knows of none.

use std::env;
use std::path::PathBuf;

use evener_testbed::{Builder, USER_SPACE_MODULE};
use serde_json::Value;

use super::TestGuest;

/// What cargo has built beside this program: the provider, because this package asks for it, and the command where all of the workspace's tests
/// are built.
pub(super) struct Built {
    evener: Option<PathBuf>,
    provider: PathBuf,
}

impl Built {
    pub(super) fn find() -> Self {
        let evener = newest("evener");
        if evener.is_none() {
            println!("skipped: what the command says, which is built with the tests of its own package");
        }
        Self { evener, provider: newest("libevener_provider.so").expect("cargo has built it") }
    }

    pub(super) fn bring(&self, builder: Builder) -> Builder {
        let builder = builder.library(&self.provider).file(CONFIGURATION, CONFIGURED).memory_mib(1_024);
        self.evener.iter().fold(builder, Builder::program)
    }

    pub(super) const fn has_command(&self) -> bool {
        self.evener.is_some()
    }
}

/// A file from the folders above our program.
fn newest(name: &str) -> Option<PathBuf> {
    let program = env::current_exe().expect("a program runs from a file");
    let folders = program.ancestors().skip(1).take(2);
    let places = folders.flat_map(|folder| [folder.join(name), folder.join("deps").join(name)]);
    let built = |path: &PathBuf| path.metadata().and_then(|metadata| metadata.modified()).ok();
    places.filter(|path| path.is_file()).max_by_key(built)
}

/// An address at which there is nothing.
const NOWHERE: &str = "0000:00:0f.0";

pub(super) fn say_why_there_is_no_device(test_guest: &mut TestGuest) {
    let kernels = kernels_device(test_guest);
    let absent = format!("there is no PCI function {NOWHERE}");
    let taken = format!("{kernels} is bound to virtio-pci, not to vfio-pci");
    for (address, why) in [(NOWHERE, &absent), (&*kernels, &taken)] {
        let name = format!("virtio:{address}");
        let outcome =
            test_guest.guest.run(&format!("evener bench crypt --module {name}")).expect("the guest answers");
        assert!(outcome.status != 0, "{}", outcome.stdout);
        let sentence = format!("{name} cannot be used: {why}");
        assert!(outcome.stderr.contains(&sentence), "{}", outcome.stderr);
        assert_eq!(outcome.stderr.trim_end().lines().count(), 1, "{}", outcome.stderr);
    }
    let names =
        [NOWHERE, &kernels, USER_SPACE_MODULE].map(|address| format!(" --module virtio:{address}")).concat();
    let told = test_guest.run(&format!("evener devices --json{names}")).stdout;
    let told: Value = serde_json::from_str(&told).expect("JSON");
    let refused = |at: usize| told["asked"][at]["refused"].as_str().unwrap_or_default();
    assert!(refused(0).ends_with(&absent) && refused(1).ends_with(&taken), "{told:#}");
    assert_eq!(told["asked"][2]["does"].as_array().map(Vec::len), Some(6), "{told:#}");
}

/// The address of the device that the guest's kernel drives.
fn kernels_device(test_guest: &mut TestGuest) -> String {
    let look = "for device in /sys/bus/pci/devices/*; do
        [ $(cat $device/device) != 0x1054 ] || [ $(basename $(readlink $device/driver)) != virtio-pci ] || basename $device
    done";
    let found = test_guest.run(look).stdout;
    found.trim_end().to_owned()
}

const CONFIGURATION: &str = "/etc/evener.cnf";
const CONFIGURED: &str = "openssl_conf = init\n[init]\nproviders = providers\nalg_section = algorithms\nrandom = random\n\
    [providers]\ndefault = default_sect\nevener = evener_sect\n[default_sect]\nactivate = 1\n\
    [evener_sect]\nidentity = evener\nmodule = /lib/x86_64-linux-gnu/libevener_provider.so\nactivate = 1\n\
    [algorithms]\ndefault_properties = ?provider=evener\n[random]\nproperties = provider=default\n";

const MIB: u64 = 4;

pub(super) fn encrypt_by_it_unmodified(test_guest: &mut TestGuest) {
    let enc = "openssl enc -aes-128-cbc -K 000102030405060708090a0b0c0d0e0f -iv 101112131415161718191a1b1c1d1e1f -in /tmp/text";
    test_guest.run(&format!(
        "dd if=/dev/urandom of=/tmp/text bs=1M count={MIB} 2>/dev/null && {enc} -out /tmp/plain"
    ));
    let before = test_guest.counts();
    let by_module = format!(
        "OPENSSL_CONF={CONFIGURATION} EVENER_MODULES=virtio:{USER_SPACE_MODULE} {enc} -out /tmp/by-module"
    );
    let outcome =
        test_guest.run(&format!("{by_module} && cmp /tmp/plain /tmp/by-module && stat -c %s /tmp/by-module"));
    assert_eq!(outcome.stdout.trim_end(), ((MIB << 20) + 16).to_string());
    assert_eq!(outcome.stderr, "");
    let Some((before, after)) = before.zip(test_guest.counts()) else { return };
    let count = after.encrypted_count - before.encrypted_count;
    assert!(count > 0, "the module was never asked");
    println!("openssl enc: {count} requests");
}
