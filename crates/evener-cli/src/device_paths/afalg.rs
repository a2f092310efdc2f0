//! AF_ALG: as a whole, and each driver with a device behind it.
//!
//! Since Linux 7.2 it takes software only, and nothing that can be set brings devices back; since 7.3 `af_alg_restrict` says which
//! software (Documentation/admin-guide/sysctl/crypto.rst). Distributions take both into older kernels, so the call has the last word.

use std::io;

use evener_driver_kernel::Listed;

use super::driver_list::DriverList;
use super::engines::Engine;
use super::kernel::{Kernel, Part};
use super::{Calls, DevicePath, Kind, Obstacle};

/// The first Linux whose AF_ALG takes no device.
const SOFTWARE_ONLY: (u32, u32) = (7, 2);

/// What is left where AF_ALG takes no device.
const ELSEWHERE: &str =
    "build cryptodev-linux for this kernel and name `devcrypto` instead, or keep a kernel below 7.2";

/// Kinds of algorithms, and the option and module of each.
const DOORS: [(&str, &str, &str); 3] = [
    ("skcipher", "CRYPTO_USER_API_SKCIPHER", "algif_skcipher"),
    ("hash", "CRYPTO_USER_API_HASH", "algif_hash"),
    ("aead", "CRYPTO_USER_API_AEAD", "algif_aead"),
];

/// What shuts AF_ALG for every device.
pub(super) fn family(kernel: &Kernel, calls: Option<&dyn Calls>) -> Option<Obstacle> {
    if kernel.is_from(SOFTWARE_ONLY) {
        return Some(Obstacle::new(kind_of(kernel), software_only(kernel), ELSEWHERE));
    }
    // In a kernel below 7.3 it is the distribution's.
    if let Some(level @ (1 | 2)) = kernel.af_alg_restrict {
        let what = if level == 1 {
            "so that a list of algorithms is admitted and no driver by its name"
        } else {
            "so that no program gets such a socket"
        };
        let fact = format!("/proc/sys/crypto/af_alg_restrict is {level}, {what}");
        let cure = "as root `sysctl crypto.af_alg_restrict=0`, and that line in /etc/sysctl.d/ to keep it";
        return Some(Obstacle::new(Kind::Restriction, fact, cure));
    }
    // What an option of one kind of algorithm selects cannot be set by itself.
    let has_none = DOORS.iter().all(|(_, option, _)| kernel.lacks(option));
    let option = if has_none { DOORS[0].1 } else { "CRYPTO_USER_API" };
    let is_for = "gives programs the kernel's ciphers";
    let part = Part { option, module: "af_alg", is_for, is_fetched: true };
    kernel.part(&part).or_else(|| calls?.afalg(None).err().map(|error| refused(&error)))
}

const fn kind_of(kernel: &Kernel) -> Kind {
    if kernel.af_alg_restrict.is_some() { Kind::Restriction } else { Kind::KernelVersion }
}

fn software_only(kernel: &Kernel) -> String {
    let Kernel { release, .. } = kernel;
    let fact = format!("since 7.2 Linux gives programs software alone by AF_ALG, and this is {release}");
    match kernel.af_alg_restrict {
        None => fact,
        Some(0) => format!("{fact}; af_alg_restrict is 0, which lets every algorithm through, but no device"),
        Some(1) => format!("{fact}; af_alg_restrict is 1, which lets a list of algorithms through besides"),
        Some(level) => format!("{fact}; af_alg_restrict is {level}, which ends AF_ALG for all"),
    }
}

/// What the kernel's refusal of a socket says.
fn refused(error: &io::Error) -> Obstacle {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            let fact = format!("this process may have no socket of AF_ALG ({error})");
            let cure = "start it outside of the container or sandbox, or with a filter that lets through socket family 38; \
                        container run times refuse it since April 2026";
            Obstacle::new(Kind::CallFilter, fact, cure)
        }
        _ => {
            let fact = format!("this kernel has no AF_ALG ({error})");
            let cure = "take a kernel below 7.2 with CONFIG_CRYPTO_USER_API_SKCIPHER, or build cryptodev-linux and name `devcrypto`";
            Obstacle::new(Kind::KernelOption, fact, cure)
        }
    }
}

/// The way as a whole.
pub(super) fn as_a_whole(listed: &DriverList, door: Option<&Obstacle>) -> DevicePath {
    let nothing = || {
        if !listed.is_readable {
            let fact = "/proc/crypto cannot be read, so what the kernel has is unknown";
            return Some(Obstacle::new(Kind::NoDevice, fact, "mount /proc, on Linux"));
        }
        let fact = format!(
            "behind AF_ALG stands no device, only the kernel's own software ({} drivers)",
            listed.software_count
        );
        let cure = "nothing where the machine has no engine; else load the engine's module and look into /proc/crypto";
        listed.hardware.is_empty().then(|| Obstacle::new(Kind::NoDevice, fact, cure))
    };
    // What is not there cannot be let through.
    let obstacle = nothing().or_else(|| door.cloned());
    DevicePath { name: "afalg".to_owned(), what: None, has_device: !listed.hardware.is_empty(), obstacle }
}

/// Each driver with a device.
pub(super) fn drivers(
    kernel: &Kernel,
    listed: &DriverList,
    door: Option<&Obstacle>,
    calls: Option<&dyn Calls>,
) -> Vec<DevicePath> {
    let path = |driver: &Listed| {
        let engine = Engine::of_driver(&driver.driver).map(|engine| format!("{}, ", engine.chips));
        let obstacle = door.cloned().or_else(|| of_driver(kernel, driver, calls));
        DevicePath {
            name: format!("afalg:{}", driver.driver),
            what: Some(format!("{}{}", engine.unwrap_or_default(), driver.does)),
            has_device: true,
            obstacle,
        }
    };
    listed.hardware.iter().map(path).collect()
}

fn of_driver(kernel: &Kernel, driver: &Listed, calls: Option<&dyn Calls>) -> Option<Obstacle> {
    let (_, option, module) = DOORS.iter().find(|row| row.0 == driver.door).unwrap_or(&DOORS[0]);
    let is_for = "opens AF_ALG to this kind of algorithm";
    let part = Part { option, module, is_for, is_fetched: true };
    let bound = || {
        let error = calls?.afalg(Some((driver.door, &driver.driver))).err()?;
        let fact = format!("AF_ALG of Linux {} does not admit {}: {error}", kernel.release, driver.driver);
        if error.kind() == io::ErrorKind::PermissionDenied {
            return Some(refused(&error));
        }
        // What 7.2 brought was taken into older kernels, too.
        let cure = format!("the kernel's maker took 7.2's change into it: {ELSEWHERE} without that change");
        Some(Obstacle::new(Kind::KernelVersion, fact, cure))
    };
    kernel.part(&part).or_else(bound)
}
