//! Setting the test bed up, and proving that it is as it must be.
//!
//! Steps: lists -> QEMU -> busybox -> kernel -> base of the initramfs -> a first guest, in which AF_ALG must bind the
//! module's driver by name. Only then `ready` is written, which guests ask for.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::error::{Error, at};
use crate::guest::Guest;
use crate::image::{initramfs, kernel};
use crate::packages::apt::{self, Apt};
use crate::packages::tools::Tools;
use crate::paths;
use crate::profile::Profile;
use crate::qemu::{self, Qemu};
use crate::readiness::{Ready, check, mark, refusal};

/// A step that is done, and what it took.
pub struct Step {
    /// What was done.
    pub what: String,
    /// Milliseconds by the clock.
    pub took_ms: u128,
}

/// Sets up `profile`; `probe` is the program `testbed-probe` built for it, where it could be built. `report` is told of each
/// step.
///
/// # Errors
///
/// What could not be had or done. [`Error::Packages`] where the kernel does not offer the module's driver.
pub fn up(profile: Profile, probe: Option<&Path>, report: &mut dyn FnMut(&Step)) -> Result<Ready, Error> {
    let mut at = Instant::now();
    let mut step = |what: String| {
        report(&Step { what, took_ms: at.elapsed().as_millis() });
        at = Instant::now();
    };
    paths::folder(profile.facts().name)?;
    if let Ok(ready) = check(profile) {
        return Ok(ready);
    }
    let choice = match (Qemu::find(profile), kernel::prepared(profile)) {
        (Ok(_), Some(choice)) => choice,
        _ => fetch(profile, &mut step)?,
    };
    let tools = Tools::unpacked(profile);
    initramfs::make_base(profile, &tools)?;
    step("base of the initramfs".to_owned());
    remove(&refusal(profile))?;
    let boot_s = prove(profile, probe, &choice)?;
    step(format!("a guest, whose kernel ran {boot_s} s until the first command"));
    let ready = Ready {
        kernel: choice.package,
        kernel_version: choice.version,
        kernel_is_pinned: choice.pinned,
        recipe: initramfs::recipe(profile),
    };
    let text = serde_json::to_string_pretty(&ready).map_err(std::io::Error::from)?;
    paths::write_whole(&mark(profile), text.as_bytes())?;
    Ok(ready)
}

/// Stands in for the probe: weaker, because the engine asks for any driver of cbc(aes). The vector is the same.
const PROBE_BY_OPENSSL: &str = "#!/bin/sh
grep virtio_crypto_aes_cbc /proc/crypto && echo 6bc1bee22e409f96e93d7e117393172a | xxd -r -p |
openssl enc -engine afalg -aes-128-cbc -nopad -K 2b7e151628aed2a6abf7158809cf4f3c -iv 000102030405060708090a0b0c0d0e0f |
xxd -p | grep 7649abac8119b246cee98e9b12e9197d
";

/// Fetches what is fetched.
fn fetch(profile: Profile, step: &mut dyn FnMut(String)) -> Result<kernel::Choice, Error> {
    let apt = Apt::with_new_lists(profile.facts().architecture)?;
    step("lists of packages".to_owned());
    let qemu = qemu::prepare(&apt, profile)?;
    step(format!("QEMU {}.{}", qemu.version.0, qemu.version.1));
    let tools = Tools::fetch(&apt, profile)?;
    let choice = kernel::choose(&apt, profile)?;
    kernel::prepare(&apt, profile, &choice, &tools)?;
    step(format!("{} {}", choice.package, choice.version));
    Ok(choice)
}

/// Boots once; the driver must bind by its name and encrypt a published vector rightly.
fn prove(profile: Profile, probe: Option<&Path>, choice: &kernel::Choice) -> Result<String, Error> {
    let qemu = Qemu::find(profile)?;
    let builder = Guest::builder().profile(profile);
    let mut guest = match probe {
        Some(probe) => builder.program(probe).start(&qemu)?,
        None => builder.file("payload/testbed-probe", PROBE_BY_OPENSSL).start(&qemu)?,
    };
    let outcome = guest.run("testbed-probe")?;
    if outcome.status != 0 {
        let kernel::Choice { package, version, .. } = choice;
        let pinned = profile.facts().kernel;
        let reason = format!(
            "the kernel of {package} {version} does not do AES-CBC on the module through AF_ALG: {}{}. Tried and known to do: {} {}",
            outcome.stdout, outcome.stderr, pinned.0, pinned.1
        );
        paths::write_whole(&refusal(profile), reason.as_bytes())?;
        return Err(Error::Packages(reason));
    }
    Ok(format!("{:.1}", guest.boot_s))
}

/// A package of the guest's own, fetched and unpacked unless it is there: the folder that it lies in.
///
/// # Errors
///
/// [`Error::Packages`] or [`Error::Program`] where it cannot be had.
pub fn package(profile: Profile, name: &str) -> Result<PathBuf, Error> {
    let folder = profile.folder().join("packages").join(name);
    if !folder.exists() {
        let architecture = profile.facts().architecture;
        let file = Apt::with_new_lists(architecture)?.download(&[format!("{name}{architecture}")])?.remove(0);
        // Under its name only when it is whole.
        let unfinished = folder.with_extension("unfinished");
        apt::unpack(&file, &unfinished, &[])?;
        fs::rename(&unfinished, &folder).map_err(|error| at(&folder, error))?;
    }
    Ok(folder)
}

/// Removes all that was set up. Guests that still run keep what they have open.
///
/// # Errors
///
/// [`Error::Io`].
pub fn down() -> Result<(), Error> {
    let root = paths::root();
    match root.exists() {
        true => Ok(fs::remove_dir_all(&root).map_err(|error| at(&root, error))?),
        false => Ok(()),
    }
}

fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(at(path, error).into()),
        _ => Ok(()),
    }
}
