//! Functions that cannot be taken, of whatever machine this is: each is refused with its reason, and nothing of it is touched.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests, where both mean a failed test")]
#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;

use evener_vfio::{Address, Refused, Reserved};

const DEVICES: &str = "/sys/bus/pci/devices";

#[test]
fn a_function_that_is_not_there_is_named_as_that() {
    let nowhere: Address = "ffff:ff:1f.7".parse().unwrap();
    assert!(!Path::new(DEVICES).join(nowhere.to_string()).exists());
    assert!(matches!(Reserved::new(nowhere), Err(Refused::NoFunction(refused)) if refused == nowhere));
}

/// The driver of a function by its `uevent`, which has a line `DRIVER=e1000e`.
fn driver_of(folder: &Path) -> Option<String> {
    let uevent = fs::read_to_string(folder.join("uevent")).unwrap();
    uevent.lines().find_map(|line| line.strip_prefix("DRIVER=").map(str::to_owned))
}

#[test]
fn a_function_without_an_iommu_or_of_another_driver_is_refused_with_that() {
    let folders = fs::read_dir(DEVICES).into_iter().flatten().map(|folder| folder.unwrap().path());
    let mut functions = 0;
    for folder in folders {
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let address: Address = name.parse().unwrap();
        assert_eq!(address.to_string(), name, "as the system writes it");
        let driver = driver_of(&folder);
        if driver.as_deref() == Some("vfio-pci") {
            println!("skipped: {name} is for programs, and may be one's in use");
            continue;
        }
        functions += 1;
        let refused = Reserved::new(address).unwrap_err();
        match folder.join("iommu_group").exists() {
            false => assert!(matches!(&refused, Refused::NoIommu(of) if *of == address), "{refused}"),
            true => {
                let expected = driver.unwrap_or_else(|| "no driver".to_owned());
                let Refused::OtherDriver { address: of, driver } = &refused else { panic!("{refused}") };
                assert_eq!((*of, driver), (address, &expected));
            }
        }
        assert!(refused.to_string().contains(&name), "{refused}");
    }
    if functions == 0 {
        println!("skipped: this machine has no PCI function that is another driver's");
    }
}
