//! Each situation is planted below a root of its own.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use tempfile::TempDir;

use super::*;

const OMAP: &str = "name : cbc(aes)\ndriver : cbc-aes-omap\nmodule : omap_aes_driver\ninternal : no\ntype : skcipher\n\
                    async : yes\nmin keysize : 16\nmax keysize : 32\n\n";
const SOFTWARE: &str = "name : cbc(aes)\ndriver : cbc-aes-neonbs\ninternal : no\ntype : skcipher\nasync : no\n\
                        min keysize : 16\nmax keysize : 32\n\n";
const OPTIONS: &str =
    "CONFIG_CRYPTO_USER_API=m\nCONFIG_CRYPTO_USER_API_SKCIPHER=m\nCONFIG_CRYPTO_USER_API_HASH=m\n";
const MODULES: &str = "kernel/crypto/af_alg.ko:\nkernel/crypto/algif_skcipher.ko.xz: kernel/crypto/af_alg.ko\n\
                       kernel/drivers/crypto/omap-aes-driver.ko:\nextra/cryptodev.ko:\nkernel/drivers/vfio/pci/vfio-pci.ko:\n";

/// A system's files.
struct Planted(TempDir);

impl Planted {
    /// A Linux `release` with these algorithms, its options and its modules.
    fn new(release: &str, crypto: &str) -> Self {
        let this = Self(tempfile::tempdir().unwrap());
        this.write("proc/sys/kernel/osrelease", &format!("{release}\n"));
        this.write("proc/crypto", crypto);
        this.write(&format!("boot/config-{release}"), OPTIONS);
        this.write(&format!("lib/modules/{release}/modules.dep"), MODULES);
        this
    }

    fn write(&self, name: &str, text: &str) -> &Self {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn link(&self, name: &str, to: &str) -> &Self {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(to, path).unwrap();
        self
    }

    fn mode(&self, name: &str, mode: u32) -> &Self {
        fs::set_permissions(self.0.path().join(name), fs::Permissions::from_mode(mode)).unwrap();
        self
    }

    /// A device of the platform, as the device tree names it.
    fn device(&self, name: &str, compatible: &str, driver: Option<&str>) -> &Self {
        let driver = driver.map_or_else(String::new, |driver| format!("DRIVER={driver}\n"));
        let about = format!("{driver}OF_NAME=crypto\nOF_COMPATIBLE_0={compatible}\nOF_COMPATIBLE_N=1\n");
        self.write(&format!("sys/bus/platform/devices/{name}/uevent"), &about)
    }

    fn by(&self, caller: &Caller, calls: Option<&dyn Calls>) -> Vec<DevicePath> {
        survey_of(&SystemRoot::new(self.0.path()), caller, calls)
    }

    /// What shuts a way, for a user without groups.
    fn shut(&self, name: &str) -> Option<Obstacle> {
        self.found(name).obstacle
    }

    fn found(&self, name: &str) -> DevicePath {
        found(self.by(&Caller::new(1_000, vec![1_000]), None), name)
    }
}

fn found(paths: Vec<DevicePath>, name: &str) -> DevicePath {
    let names: Vec<String> = paths.iter().map(|path| path.name.clone()).collect();
    paths.into_iter().find(|path| path.name == name).unwrap_or_else(|| panic!("{name} is not in {names:?}"))
}

/// Kind, fact and cure together.
fn said(obstacle: Option<Obstacle>) -> String {
    let Obstacle { kind, fact, cure } = obstacle.expect("something is in the way");
    format!("{}: {fact} | {cure}", kind.name())
}

#[track_caller]
fn says(obstacle: Option<Obstacle>, kind: Kind, parts: &[&str]) {
    let text = said(obstacle);
    assert!(text.starts_with(&format!("{}: ", kind.name())), "{text}");
    parts.iter().for_each(|part| assert!(text.contains(part), "{part:?} is not in: {text}"));
}

const ENGINE: &str = "afalg:cbc-aes-omap";

#[test]
fn on_a_kernel_that_lets_programs_have_its_engine_the_way_is_open() {
    let planted = Planted::new("6.1.0-18-armmp", OMAP);
    let path = planted.found(ENGINE);
    assert_eq!((path.obstacle, path.has_device), (None, true));
    assert_eq!(path.what.as_deref(), Some("TI AM335x, AM437x, DRA7, cbc(aes)"));
    assert_eq!(planted.shut("afalg"), None);
}

#[test]
fn from_linux_7_2_on_an_engine_is_shut_by_the_version_and_no_setting_helps() {
    for name in ["afalg", ENGINE] {
        let shut = Planted::new("7.2.0", OMAP).shut(name);
        says(shut, Kind::KernelVersion, &["since 7.2", "this is 7.2.0", "cryptodev-linux", "below 7.2"]);
    }
    assert_eq!(Planted::new("7.1.9", OMAP).shut(ENGINE), None);
    assert!(Planted::new("10.0.1", OMAP).shut(ENGINE).is_some());
}

#[test]
fn each_value_of_the_restriction_of_linux_7_3_is_explained() {
    let values = [
        ("0", "lets every algorithm through, but no device"),
        ("1", "lets a list of algorithms through"),
        ("2", "ends AF_ALG for all"),
    ];
    for (value, meaning) in values {
        let planted = Planted::new("7.3.2", OMAP);
        planted.write("proc/sys/crypto/af_alg_restrict", &format!("{value}\n"));
        let names = format!("af_alg_restrict is {value}");
        says(planted.shut(ENGINE), Kind::Restriction, &[&names, meaning, "devcrypto"]);
    }
}

#[test]
fn a_restriction_that_was_taken_into_an_older_kernel_can_be_set_back() {
    for (value, meaning) in [("1", "no driver by its name"), ("2", "no program gets such a socket")] {
        let planted = Planted::new("6.18.12", OMAP);
        planted.write("proc/sys/crypto/af_alg_restrict", value);
        says(planted.shut(ENGINE), Kind::Restriction, &[meaning, "sysctl crypto.af_alg_restrict=0"]);
    }
    let planted = Planted::new("6.18.12", OMAP);
    planted.write("proc/sys/crypto/af_alg_restrict", "0");
    assert_eq!(planted.shut(ENGINE), None);
}

#[test]
fn an_option_that_the_kernel_was_built_without_is_named() {
    let planted = Planted::new("6.6.0", OMAP);
    planted.write("boot/config-6.6.0", "# CONFIG_CRYPTO_USER_API_SKCIPHER is not set\nCONFIG_CRYPTO=y\n");
    let without = Planted::new("6.6.0", SOFTWARE);
    without.write("boot/config-6.6.0", "CONFIG_CRYPTO=y\n");
    says(without.shut("afalg"), Kind::NoDevice, &["no device"]);
    says(planted.shut("afalg"), Kind::KernelOption, &["CONFIG_CRYPTO_USER_API_SKCIPHER"]);
    // Hashes alone: the way is there, and not for this driver.
    planted.write("boot/config-6.6.0", "CONFIG_CRYPTO_USER_API=y\nCONFIG_CRYPTO_USER_API_HASH=y\n");
    assert_eq!(planted.shut("afalg"), None);
    says(planted.shut(ENGINE), Kind::KernelOption, &["CONFIG_CRYPTO_USER_API_SKCIPHER"]);
}

#[test]
fn the_options_are_read_from_the_kernel_s_own_packed_file_first() {
    let planted = Planted::new("6.6.0", OMAP);
    let packed = planted.0.path().join("proc/config.gz");
    let script = "printf 'CONFIG_CRYPTO=y\\n' | gzip -c > \"$0\"";
    let status = std::process::Command::new("sh").args(["-c", script]).arg(&packed).status().unwrap();
    assert!(status.success());
    says(planted.shut(ENGINE), Kind::KernelOption, &["CONFIG_CRYPTO_USER_API_SKCIPHER"]);
}

#[test]
fn a_module_that_is_kept_out_or_not_installed_is_named_with_the_file() {
    let planted = Planted::new("6.6.0", OMAP);
    planted.write("etc/modprobe.d/copy-fail.conf", "# no\ninstall algif_skcipher /bin/false\n");
    says(
        planted.shut(ENGINE),
        Kind::KernelModule,
        &["/etc/modprobe.d/copy-fail.conf", "algif_skcipher", "modprobe algif_skcipher"],
    );
    let planted = Planted::new("6.6.0", OMAP);
    planted.write("lib/modules/6.6.0/modules.dep", "kernel/crypto/af_alg.ko:\n");
    says(planted.shut(ENGINE), Kind::KernelModule, &["algif_skcipher", "is not installed for Linux 6.6.0"]);
    planted.write("sys/module/algif_skcipher/refcnt", "0");
    assert_eq!(planted.shut(ENGINE), None, "it is loaded, wherever it came from");
}

#[test]
fn where_no_engine_stands_behind_af_alg_that_is_said() {
    let path = Planted::new("6.6.0", SOFTWARE).found("afalg");
    assert!(!path.has_device);
    says(path.obstacle, Kind::NoDevice, &["only the kernel's own software (1 drivers)"]);
    let planted = Planted::new("6.6.0", SOFTWARE);
    fs::remove_file(planted.0.path().join("proc/crypto")).unwrap();
    says(planted.shut("afalg"), Kind::NoDevice, &["/proc/crypto cannot be read"]);
}

#[test]
fn an_engine_without_a_driver_is_named_with_what_its_driver_needs() {
    let planted = Planted::new("6.6.0", SOFTWARE);
    planted.device("53500000.aes", "ti,omap4-aes", None);
    let named = ["CONFIG_CRYPTO_DEV_OMAP_AES"];
    says(planted.shut("omap-aes"), Kind::KernelOption, &named);
    planted.write("boot/config-6.6.0", &format!("{OPTIONS}CONFIG_CRYPTO_DEV_OMAP_AES=m\n"));
    says(planted.shut("omap-aes"), Kind::KernelModule, &["is not loaded", "modprobe omap-aes-driver"]);
    planted.write("sys/module/omap_aes_driver/refcnt", "0");
    says(planted.shut("omap-aes"), Kind::Driver, &["no driver has taken 53500000.aes"]);
    planted.device("53500000.aes", "ti,omap4-aes", Some("omap-aes"));
    says(planted.shut("omap-aes"), Kind::Driver, &["the driver omap-aes has 53500000.aes", "dmesg"]);
    planted.write("proc/crypto", OMAP);
    let names: Vec<String> =
        planted.by(&Caller::new(1_000, vec![]), None).into_iter().map(|path| path.name).collect();
    assert!(!names.contains(&"omap-aes".to_owned()), "its driver stands there instead: {names:?}");
}

#[test]
fn a_virtual_engine_without_a_driver_is_found_on_its_bus() {
    let planted = Planted::new("6.6.0", SOFTWARE);
    planted.write("sys/bus/virtio/devices/virtio2/device", "0x0014\n");
    says(
        planted.shut("virtio-crypto"),
        Kind::KernelOption,
        &["CONFIG_CRYPTO_DEV_VIRTIO", "drives this engine"],
    );
}

#[test]
fn a_missing_node_says_how_to_get_one() {
    let planted = Planted::new("7.3.0", OMAP);
    says(planted.shut("devcrypto"), Kind::KernelModule, &["installed and not loaded", "modprobe cryptodev"]);
    planted.write("lib/modules/7.3.0/modules.dep", "kernel/crypto/af_alg.ko:\n");
    says(planted.shut("devcrypto"), Kind::KernelModule, &["outside of its tree", "for Linux 7.3.0"]);
    planted.write("sys/module/cryptodev/refcnt", "0");
    says(
        planted.shut("devcrypto"),
        Kind::Permission,
        &["is loaded, and there is no /dev/crypto here", "--device"],
    );
}

#[test]
fn a_node_without_permission_names_its_group() {
    let planted = Planted::new("7.3.0", OMAP);
    let gid = std::os::unix::fs::MetadataExt::gid(&fs::metadata(planted.0.path()).unwrap());
    planted.write("etc/group", &format!("users:x:100:\ncrypto:x:{gid}:\n")).write("dev/crypto", "");
    planted.mode("dev/crypto", 0o660);
    let other = Caller::new(65_533, vec![65_533]);
    let shut = |caller: &Caller| found(planted.by(caller, None), "devcrypto").obstacle;
    says(shut(&other), Kind::Permission, &["group crypto with mode 0660", "usermod -aG crypto"]);
    assert_eq!(shut(&Caller::new(65_533, vec![gid])), None);
    assert_eq!(shut(&Caller::new(0, vec![])), None);
    planted.mode("dev/crypto", 0o600);
    says(shut(&other), Kind::Permission, &["mode 0600", "KERNEL==\"crypto\""]);
}

/// A virtio-crypto device on the PCI bus, in a group of an IOMMU, bound to vfio-pci.
#[cfg(target_arch = "x86_64")]
fn with_device() -> Planted {
    let planted = Planted::new("6.6.0", SOFTWARE);
    let device = "sys/bus/pci/devices/0000:00:10.0";
    planted.write(&format!("{device}/vendor"), "0x1af4\n").write(&format!("{device}/device"), "0x1054\n");
    planted.write("boot/config-6.6.0", &format!("{OPTIONS}CONFIG_VFIO_PCI=m\n"));
    planted.write("sys/module/vfio_pci/refcnt", "0");
    planted.link(&format!("{device}/iommu_group"), "../../../kernel/iommu_groups/7");
    planted.link(&format!("{device}/driver"), "../../../bus/pci/drivers/vfio-pci");
    planted.write("dev/vfio/vfio", "").write("dev/vfio/7", "");
    planted.mode("dev/vfio/vfio", 0o666).mode("dev/vfio/7", 0o666);
    planted
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_device_that_a_program_could_drive_says_what_keeps_it_from_that() {
    const NAME: &str = "virtio:0000:00:10.0";
    let device = "sys/bus/pci/devices/0000:00:10.0";
    assert_eq!(with_device().shut(NAME), None);
    let changed = |change: &dyn Fn(&Planted)| {
        let planted = with_device();
        change(&planted);
        planted.shut(NAME)
    };
    let remove = |planted: &Planted, name: &str| fs::remove_file(planted.0.path().join(name)).unwrap();
    says(changed(&|it| remove(it, &format!("{device}/iommu_group"))), Kind::Iommu, &["intel_iommu=on"]);
    says(
        changed(&|it| {
            remove(it, &format!("{device}/driver"));
            it.link(&format!("{device}/driver"), "../../../bus/pci/drivers/virtio-pci");
        }),
        Kind::Driver,
        &["has the driver virtio-pci, not vfio-pci", "driver_override"],
    );
    says(
        changed(&|it| {
            it.write("boot/config-6.6.0", OPTIONS);
        }),
        Kind::KernelOption,
        &["CONFIG_VFIO_PCI"],
    );
    says(
        changed(&|it| fs::remove_dir_all(it.0.path().join("sys/module/vfio_pci")).unwrap()),
        Kind::KernelModule,
        &["vfio_pci", "is not loaded", "modprobe vfio_pci"],
    );
    says(changed(&|it| remove(it, "dev/vfio/7")), Kind::KernelModule, &["there is no /dev/vfio/7"]);
    says(
        changed(&|it| {
            it.mode("dev/vfio/7", 0o600);
            std::os::unix::fs::chown(it.0.path().join("dev/vfio/7"), Some(0), Some(0)).unwrap_or_default();
        }),
        Kind::Permission,
        &["/dev/vfio/7 is of group", "0600"],
    );
}

#[test]
fn without_such_a_device_one_line_says_so() {
    says(Planted::new("6.6.0", SOFTWARE).shut("virtio"), Kind::NoDevice, &["-device virtio-crypto-pci"]);
}

/// A kernel that refuses as told.
struct Refusing {
    socket: Option<i32>,
    bind: Option<i32>,
    open: Option<i32>,
}

impl Calls for Refusing {
    fn afalg(&self, bound: Option<(&str, &str)>) -> io::Result<()> {
        let errno = if bound.is_some() { self.bind } else { self.socket };
        errno.map_or(Ok(()), |errno| Err(io::Error::from_raw_os_error(errno)))
    }

    fn open(&self, _: &Path) -> io::Result<()> {
        self.open.map_or(Ok(()), |errno| Err(io::Error::from_raw_os_error(errno)))
    }
}

const EPERM: i32 = 1;
const ENOENT: i32 = 2;
const EACCES: i32 = 13;
const EAFNOSUPPORT: i32 = 97;

#[test]
fn what_the_kernel_refuses_without_a_file_that_says_so_is_explained_by_its_number() {
    let planted = Planted::new("6.12.3", OMAP);
    planted.write("dev/crypto", "").mode("dev/crypto", 0o666);
    let shut = |name: &str, calls: Refusing| {
        found(planted.by(&Caller::new(1_000, vec![]), Some(&calls)), name).obstacle
    };
    let none = || Refusing { socket: None, bind: None, open: None };
    assert_eq!(shut(ENGINE, none()), None);
    let filtered = || Refusing { socket: Some(EPERM), ..none() };
    says(shut("afalg", filtered()), Kind::CallFilter, &["socket family 38", "container"]);
    says(shut(ENGINE, filtered()), Kind::CallFilter, &[]);
    let absent = Refusing { socket: Some(EAFNOSUPPORT), ..none() };
    says(shut("afalg", absent), Kind::KernelOption, &["CONFIG_CRYPTO_USER_API_SKCIPHER"]);
    // A distribution's 6.12 with what 7.2 changed.
    let taken = Refusing { bind: Some(ENOENT), ..none() };
    says(
        shut(ENGINE, taken),
        Kind::KernelVersion,
        &["Linux 6.12.3 does not admit cbc-aes-omap", "7.2's change"],
    );
    let closed = Refusing { open: Some(EACCES), ..none() };
    says(shut("devcrypto", closed), Kind::Permission, &["mode 0666"]);
}

#[test]
fn a_line_says_what_stands_there_and_what_to_do() {
    let planted = Planted::new("7.2.0", OMAP);
    let text = text(&planted.by(&Caller::new(0, vec![]), None));
    assert!(text.starts_with("  afalg: shut (kernel-version): since 7.2 Linux "), "{text}");
    assert!(
        text.contains("\n  afalg:cbc-aes-omap (TI AM335x, AM437x, DRA7, cbc(aes)): shut (kernel-version): "),
        "{text}"
    );
    assert!(text.contains("\n    do: build cryptodev-linux"), "{text}");
    let open = super::text(&Planted::new("6.1.0", OMAP).by(&Caller::new(0, vec![]), None));
    assert!(open.starts_with("  afalg: open\n"), "{open}");
}

/// Rows of the page's first table of engines: cells without marks.
fn rows_of_the_page() -> Vec<Vec<String>> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/boards.md");
    let text = fs::read_to_string(page).unwrap();
    let table = text.split("## The engines").nth(1).unwrap().split("| module |").nth(1).unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect())
        .collect()
}

#[test]
fn the_page_about_boards_names_drivers_options_and_modules_as_the_command_does() {
    let rows = rows_of_the_page();
    assert!(rows.len() >= 15, "{rows:?}");
    for row in rows {
        let [name, _, driver, option, module] = &row[..] else { panic!("{row:?}") };
        let engine = engines::Engine::of_driver(driver).unwrap_or_else(|| panic!("{driver} is nobody's"));
        let known = (engine.name, format!("CONFIG_{}", engine.option), engine.module);
        assert_eq!((name.as_str(), option.clone(), module.as_str()), known);
    }
}

#[test]
fn a_module_s_obstacle_is_its_own_or_that_of_its_kind() {
    let paths = Planted::new("7.2.0", OMAP).by(&Caller::new(0, vec![]), None);
    let kind = |name: &str| obstacle_of(&paths, name).map(|obstacle| obstacle.kind);
    assert_eq!(kind("afalg:cbc-aes-omap"), Some(Kind::KernelVersion));
    assert_eq!(kind("afalg:nobodys"), Some(Kind::KernelVersion));
    assert_eq!(kind("devcrypto"), Some(Kind::KernelModule));
    assert_eq!(kind("devcrypto:/dev/other"), None);
    assert_eq!(kind("hosted:/run/evener.sock"), None);
}

#[test]
fn each_driver_s_name_leads_to_its_engine_and_software_to_none() {
    let drivers = [
        ("cbc-aes-omap", "omap-aes"),
        ("omap-sha256", "omap-sham"),
        ("mv-cbc-aes", "cesa"),
        ("cbc-aes-qce", "qce"),
        ("cbc-aes-rk", "rk"),
        ("cbc-aes-caam", "caam"),
        ("cbc-aes-sun8i-ce", "sun8i-ce"),
        ("cbc-aes-sun8i-ss", "sun8i-ss"),
        ("safexcel-cbc-aes", "safexcel"),
        ("atmel-cbc-aes", "atmel-aes"),
        ("stm32-cbc-aes", "stm32-cryp"),
        ("cbc-aes-ccree", "ccree"),
        ("cbc(aes-eip93)", "eip93"),
        ("cbc-aes-gxl", "gxl"),
        ("cbc-aes-sa2ul", "sa2ul"),
        ("virtio_crypto_aes_cbc", "virtio-crypto"),
    ];
    for (driver, engine) in drivers {
        assert_eq!(engines::Engine::of_driver(driver).map(|it| it.name), Some(engine), "{driver}");
    }
    for software in ["cbc-aes-aesni", "cbc(aes-generic)", "cbc-aes-ce", "cbc-aes-neonbs", "sha256-ce"] {
        assert!(engines::Engine::of_driver(software).is_none(), "{software}");
    }
}
