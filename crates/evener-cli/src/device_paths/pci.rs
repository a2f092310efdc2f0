//! virtio-crypto devices on the PCI bus, which a program drives itself by VFIO.

use super::kernel::{Kernel, Part};
use super::node::{Caller, permission};
use super::system_root::SystemRoot;
use super::{Calls, DevicePath, Kind, Obstacle};

const DEVICES: &str = "/sys/bus/pci/devices";
/// virtio's vendor, and 0x1040 plus the number of a crypto device.
const IDENTITY: (&str, &str) = ("0x1af4", "0x1054");

/// Each device; where there is none, one line that says so.
pub(super) fn virtio(
    root: &SystemRoot,
    kernel: &Kernel,
    caller: &Caller,
    calls: Option<&dyn Calls>,
) -> Vec<DevicePath> {
    let is_one = |address: &String| {
        let read = |name: &str| root.text(&format!("{DEVICES}/{address}/{name}"));
        let is = |name, wanted: &str| read(name).is_some_and(|text| text.trim() == wanted);
        is("vendor", IDENTITY.0) && is("device", IDENTITY.1)
    };
    let path = |address: String| DevicePath {
        name: format!("virtio:{address}"),
        what: Some("virtio-crypto by VFIO".to_owned()),
        has_device: true,
        obstacle: obstacle(root, kernel, &address, caller, calls),
    };
    let found: Vec<DevicePath> = root.names(DEVICES).into_iter().filter(is_one).map(path).collect();
    if !found.is_empty() {
        return found;
    }
    let fact = "the PCI bus has no virtio-crypto device";
    let cure = "nothing on a machine of its own; in QEMU `-device virtio-crypto-pci`";
    let obstacle = Some(Obstacle::new(Kind::NoDevice, fact, cure));
    vec![DevicePath { name: "virtio".to_owned(), what: None, has_device: false, obstacle }]
}

fn obstacle(
    root: &SystemRoot,
    kernel: &Kernel,
    address: &str,
    caller: &Caller,
    calls: Option<&dyn Calls>,
) -> Option<Obstacle> {
    if !cfg!(target_arch = "x86_64") {
        let fact = "programs drive such a device on x86-64 alone";
        return Some(Obstacle::new(
            Kind::Architecture,
            fact,
            "name the kernel's driver, `afalg:virtio_crypto_aes_cbc`",
        ));
    }
    let Some(group) = root.target(&format!("{DEVICES}/{address}/iommu_group")) else {
        let fact =
            format!("{address} is in no IOMMU group: there is no IOMMU, or the kernel does not use it");
        let cure =
            "start Linux with intel_iommu=on or amd_iommu=on, a guest of QEMU with `-device intel-iommu`";
        return Some(Obstacle::new(Kind::Iommu, fact, cure));
    };
    let is_for = "hands devices to programs";
    let part = Part { option: "VFIO_PCI", module: "vfio_pci", is_for, is_fetched: false };
    if let Some(obstacle) = kernel.part(&part) {
        return Some(obstacle);
    }
    let driver = root.target(&format!("{DEVICES}/{address}/driver"));
    if driver.as_deref() != Some("vfio-pci") {
        let has = driver.map_or_else(|| "no driver".to_owned(), |driver| format!("the driver {driver}"));
        let fact = format!("{address} has {has}, not vfio-pci");
        let cure = format!(
            "as root `echo vfio-pci > {DEVICES}/{address}/driver_override`, then `echo {address}` into its driver's unbind \
             and into /sys/bus/pci/drivers_probe"
        );
        return Some(Obstacle::new(Kind::Driver, fact, cure));
    }
    ["/dev/vfio/vfio".to_owned(), format!("/dev/vfio/{group}")].iter().find_map(|node| {
        if !root.exists(node) {
            let fact = format!("there is no {node}");
            let cure = "`modprobe vfio-pci` as root; a container gets the node by `--device`";
            return Some(Obstacle::new(Kind::KernelModule, fact, cure));
        }
        permission(root, node, caller, calls)
    })
}
