//! Profiles: the machines that a guest may be.

use std::path::PathBuf;

use crate::paths;

/// A kind of guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Profile {
    /// A 64-bit PC without AES instructions (`qemu64`), which runs the host's programs.
    X86_64,
    /// A 32-bit ARM machine (`cortex-a7`), with programs of Debian's armhf packages, and ours as [`crate::Toolchain`] builds them.
    Armv7,
    /// A 64-bit ARM machine (`cortex-a53`, which has instructions for AES), with programs of Debian's arm64 packages, and ours as
    /// [`crate::Toolchain`] builds them.
    Aarch64,
}

/// What the parts of the test bed need to know of a profile.
pub(crate) struct Facts {
    /// Name of its folder below `target/testbed`.
    pub(crate) name: &'static str,
    /// The kernel's package and the version that everything was tried with. Later ones may bind no module driver.
    pub(crate) kernel: (&'static str, &'static str),
    /// How names of the kernels of the same series start.
    pub(crate) series: &'static str,
    /// How names of kernels for the same machines end.
    pub(crate) flavour: &'static str,
    /// Suffix of packages' names: the architecture, where it is not the host's.
    pub(crate) architecture: &'static str,
    /// QEMU's package and program.
    pub(crate) qemu: (&'static str, &'static str),
    /// Packages with the guest's openssl and all that it needs; none where the host's own serves.
    pub(crate) userland: &'static [&'static str],
    /// What builds programs for it; none where the host's own run there.
    pub(crate) cross: Option<&'static Cross>,
    /// QEMU's words for the machine.
    pub(crate) machine: &'static [&'static str],
    /// The machine that programs may drive a module of; none where it has not been tried.
    pub(crate) with_iommu: Option<&'static WithIommu>,
    /// Whether the package's image holds an ELF kernel that QEMU boots at once.
    pub(crate) image_holds_elf: bool,
    /// Device of the serial console.
    pub(crate) console: &'static str,
    /// More words for the kernel.
    pub(crate) kernel_words: &'static str,
    /// Folders with shared libraries, as the guest's loader searches them.
    pub(crate) library_folders: &'static [&'static str],
    /// Where OpenSSL opens its engine for AF_ALG, on the host and in the guest.
    pub(crate) afalg_engine: &'static str,
    /// Kernel modules that every guest loads, in this order.
    pub(crate) modules: &'static str,
    /// Kernel modules that are there to be loaded, besides all of `kernel/crypto`.
    pub(crate) more_modules: &'static [&'static str],
    /// What of the kernel's package is unpacked, besides what every profile needs, as patterns below its modules.
    pub(crate) more_parts: &'static [&'static str],
}

/// A machine of the same profile whose devices an IOMMU holds to the memory that they are given.
pub(crate) struct WithIommu {
    /// QEMU's words for it, instead of those of the usual one.
    pub(crate) machine: &'static [&'static str],
    /// More words for the kernel.
    pub(crate) kernel_words: &'static str,
}

/// What programs for a guest's processor are built with.
pub(crate) struct Cross {
    /// The folder of all that is for this processor.
    pub(crate) name: &'static str,
    /// As Debian's archives know it: `:armhf`.
    pub(crate) architecture: &'static str,
    /// Rust's name of the processor and its system.
    pub(crate) target: &'static str,
    /// GCC's.
    pub(crate) gnu: &'static str,
    /// The package of rustc and the version that everything was tried with.
    pub(crate) rustc: (&'static str, &'static str),
    /// Packages for the host: C compiler and linker, C library.
    pub(crate) compilers: &'static [&'static str],
    /// Packages for the guest that programs are linked to.
    pub(crate) libraries: &'static [&'static str],
}

/// Flavour `amd64`: the cloud flavour lacks virtio_crypto, crypto_engine and 9p.
const X86_64: Facts = Facts {
    name: "x86_64",
    kernel: ("linux-image-6.1.0-56-amd64", "6.1.192-2"),
    series: "linux-image-6.1.0-",
    flavour: "amd64",
    architecture: "",
    qemu: ("qemu-system-x86", "qemu-system-x86_64"),
    userland: &[],
    cross: None,
    machine: &["-machine", "pc", "-cpu", "qemu64"],
    with_iommu: Some(&X86_64_WITH_IOMMU),
    image_holds_elf: true,
    console: "ttyS0",
    // no_timer_check: on a busy host the kernel's test of its timer fails now and then, and it panics.
    // The watchdogs take a host that has no time for QEMU for a fault of the guest. amd_pstate: Linux 6.12 warns that this processor, AMD's by
    // its name, cannot change its frequency.
    kernel_words: "mitigations=off nokaslr 8250.nr_uarts=1 no_timer_check nowatchdog rcupdate.rcu_cpu_stall_suppress=1 amd_pstate=disable",
    library_folders: &[
        "/lib/x86_64-linux-gnu",
        "/usr/lib/x86_64-linux-gnu",
        "/lib64",
        "/usr/lib64",
        "/usr/local/lib",
    ],
    afalg_engine: "/usr/lib/x86_64-linux-gnu/engines-3/afalg.so",
    modules: "virtio_pci virtio_console virtio_crypto algif_skcipher algif_hash algif_aead",
    more_modules: &[
        "virtio_net",
        "9p",
        "9pnet_virtio",
        "cuse",
        "tls",
        "aesni-intel",
        "virtio_rng",
        "vfio-pci",
        "vfio_iommu_type1",
    ],
    more_parts: &["kernel/drivers/vfio/*", "kernel/virt/lib/*"],
};

/// `pc` takes no intel-iommu (QEMU refuses it). The IOMMU stands before the devices that it is for. Interrupts are
/// remapped, because VFIO gives no device away that could send one to wherever it likes.
const X86_64_WITH_IOMMU: WithIommu = WithIommu {
    machine: &["-machine", "q35", "-cpu", "qemu64", "-device", "intel-iommu,intremap=on"],
    kernel_words: "intel_iommu=on",
};

/// highmem=off: this kernel knows no LPAE, so it cannot reach what lies above 4 GiB. The kernel is the newest that armhf's
/// archives had when this was tried. NEON's AES is left out: as a CPU-only driver it would take `cbc(aes)`.
const ARMV7: Facts = Facts {
    name: ARMHF.name,
    kernel: ("linux-image-6.1.0-50-armmp", "6.1.176-1"),
    series: "linux-image-6.1.0-",
    flavour: "armmp",
    architecture: ARMHF.architecture,
    qemu: ("qemu-system-arm", "qemu-system-arm"),
    userland: &["openssl:armhf", "libssl3:armhf", "libc6:armhf", "libgcc-s1:armhf"],
    cross: Some(&ARMHF),
    machine: &["-machine", "virt,highmem=off", "-cpu", "cortex-a7"],
    with_iommu: None,
    image_holds_elf: false,
    console: "ttyAMA0",
    kernel_words: "nowatchdog rcupdate.rcu_cpu_stall_suppress=1",
    library_folders: &["/lib/arm-linux-gnueabihf", "/usr/lib/arm-linux-gnueabihf"],
    afalg_engine: "/usr/lib/arm-linux-gnueabihf/engines-3/afalg.so",
    modules: "pci-host-generic virtio_pci virtio_console virtio_crypto algif_skcipher algif_hash algif_aead",
    more_modules: &["virtio_net", "9p", "9pnet_virtio", "cuse", "tls", "virtio_rng"],
    more_parts: &[],
};

/// Debian names its archive's architecture so; the standard library is for ARMv7, as all of armhf.
const ARMHF: Cross = Cross {
    name: "armv7",
    architecture: ":armhf",
    target: "armv7-unknown-linux-gnueabihf",
    gnu: "arm-linux-gnueabihf",
    rustc: ("rustc-web", "1.85.0+dfsg3-1~deb12u3"),
    compilers: &["gcc-arm-linux-gnueabihf", "libc6-dev-armhf-cross"],
    libraries: &["libssl-dev:armhf", "libssl3:armhf"],
};

/// The kernel's AES by the processor's instructions is left out: as a CPU-only driver it would take `cbc(aes)`. The image of Debian's
/// package is not compressed, and QEMU boots it as it is.
const AARCH64: Facts = Facts {
    name: ARM64.name,
    kernel: ("linux-image-6.1.0-50-arm64", "6.1.176-1"),
    series: "linux-image-6.1.0-",
    flavour: "arm64",
    architecture: ARM64.architecture,
    qemu: ("qemu-system-arm", "qemu-system-aarch64"),
    userland: &["openssl:arm64", "libssl3:arm64", "libc6:arm64", "libgcc-s1:arm64"],
    cross: Some(&ARM64),
    machine: &["-machine", "virt,highmem=off", "-cpu", "cortex-a53"],
    with_iommu: None,
    image_holds_elf: false,
    console: "ttyAMA0",
    kernel_words: "nowatchdog rcupdate.rcu_cpu_stall_suppress=1",
    library_folders: &["/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu"],
    afalg_engine: "/usr/lib/aarch64-linux-gnu/engines-3/afalg.so",
    modules: "virtio_pci virtio_console virtio_crypto algif_skcipher algif_hash algif_aead",
    more_modules: &["virtio_net", "9p", "9pnet_virtio", "cuse", "tls", "virtio_rng"],
    more_parts: &[],
};

const ARM64: Cross = Cross {
    name: "aarch64",
    architecture: ":arm64",
    target: "aarch64-unknown-linux-gnu",
    gnu: "aarch64-linux-gnu",
    rustc: ("rustc-web", "1.85.0+dfsg3-1~deb12u3"),
    compilers: &["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"],
    libraries: &["libssl-dev:arm64", "libssl3:arm64"],
};

impl Profile {
    pub(crate) fn facts(self) -> &'static Facts {
        match self {
            Self::X86_64 => &X86_64,
            Self::Armv7 => &ARMV7,
            Self::Aarch64 => &AARCH64,
        }
    }

    /// The folder with all that belongs to this profile.
    pub(crate) fn folder(self) -> PathBuf {
        paths::root().join(self.facts().name)
    }

    /// The folder that is the root for programs of this profile and their libraries.
    pub(crate) fn userland(self) -> PathBuf {
        if self.facts().userland.is_empty() { PathBuf::from("/") } else { self.folder().join("userland") }
    }
}
