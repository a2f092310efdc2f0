//! The guest's kernel: the distribution's own package, unpacked and never installed.
//!
//! Steps: the pinned version, else the newest of its flavour -> unpacked -> modules laid out as of Debian 12
//! and indexed by busybox's depmod -> the ELF kernel taken out of the compressed image. QEMU boots that through its PVH note at once, where the image
//! would first unpack itself, which takes six seconds under emulation (measured).

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, at};
use crate::packages::apt::{self, Apt};
use crate::packages::tools::Tools;
use crate::paths;
use crate::profile::{Facts, Profile};

/// Start of an xz stream (xz file format, 2.1.1.1), in which the kernel lies.
const XZ: &[u8] = b"\xfd7zXZ\0";

/// How names of kernels start that come before newer ones where there is none of a profile's own series: Debian 13's.
const NEXT_SERIES: &str = "linux-image-6.12.";

/// What of the package is unpacked for every profile; the rest is 300 MB of drivers for other hardware.
const PARTS: [&str; 11] = [
    "modules.*",
    "kernel/crypto/*",
    "kernel/arch/*/crypto/*",
    "kernel/drivers/crypto/virtio/*",
    "kernel/drivers/virtio/*",
    "kernel/drivers/net/*",
    "kernel/drivers/char/*",
    "kernel/fs/*",
    "kernel/net/*",
    "kernel/lib/*",
    "kernel/drivers/pci/*",
];

/// What was prepared.
#[derive(Serialize, Deserialize)]
struct Stamp {
    #[serde(flatten)]
    choice: Choice,
    /// The parts that were unpacked; what older versions of this crate prepared does not name them.
    #[serde(default)]
    parts: Vec<String>,
}

/// A kernel package by name and version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Choice {
    pub(crate) package: String,
    pub(crate) version: String,
    /// Whether it is the one that the test bed was tried with.
    pub(crate) pinned: bool,
}

/// The pinned kernel if the archives still have it; else the newest of its flavour, one of the same series before others.
///
/// # Errors
///
/// [`Error::Packages`] where there is none of that flavour.
pub(crate) fn choose(apt: &Apt, profile: Profile) -> Result<Choice, Error> {
    let facts = profile.facts();
    let (package, version) = facts.kernel;
    let package = format!("{package}{}", facts.architecture);
    if apt.versions(&package)?.iter().any(|known| known == version) {
        return Ok(Choice { package, version: version.to_owned(), pinned: true });
    }
    let newest = newest(&apt.names("linux-image-")?, facts.series, facts.flavour);
    let absent = || {
        let Facts { series, flavour, .. } = facts;
        Error::Packages(format!(
            "the archives have neither {package} {version} nor another {series}*-{flavour}"
        ))
    };
    let package = format!("{}{}", newest.ok_or_else(absent)?, facts.architecture);
    let version = apt.versions(&package)?.into_iter().next().unwrap_or_default();
    Ok(Choice { package, version, pinned: false })
}

fn newest(names: &[String], series: &str, flavour: &str) -> Option<String> {
    let numbered = names.iter().filter_map(|name| Some((numbers(name, flavour)?, name)));
    numbered
        .max_by_key(|(numbers, name)| {
            (name.starts_with(series), name.starts_with(NEXT_SERIES), numbers.clone())
        })
        .map(|(_, name)| name.clone())
}

/// The numbers in the name of a kernel package of just this flavour: 6, 1, 0, 56 of `linux-image-6.1.0-56-amd64`.
fn numbers(name: &str, flavour: &str) -> Option<Vec<u32>> {
    let middle = name.strip_prefix("linux-image-")?.strip_suffix(flavour)?.strip_suffix('-')?;
    let (middle, release) = middle.split_once('+').unwrap_or((middle, ""));
    let numbers = middle.split(['.', '-']).map(|number| number.parse().ok());
    let numbers: Vec<u32> = numbers.collect::<Option<_>>()?;
    // Packages like linux-image-6.12-amd64 only depend on others.
    (numbers.len() > 2 && !release.contains('-')).then_some(numbers)
}

/// The kernel that lies ready: none where it was prepared before more of the package was wanted.
pub(crate) fn prepared(profile: Profile) -> Option<Choice> {
    of_stamp(&fs::read(stamp(profile)).ok()?, &parts(profile))
}

/// The kernel that `stamp` names, if just these parts of it were unpacked.
fn of_stamp(stamp: &[u8], parts: &[String]) -> Option<Choice> {
    let stamp: Stamp = serde_json::from_slice(stamp).ok()?;
    (stamp.parts == parts).then_some(stamp.choice)
}

/// Patterns of what is unpacked, below the kernel's modules.
pub(crate) fn parts(profile: Profile) -> Vec<String> {
    PARTS.iter().chain(profile.facts().more_parts).map(|&part| part.to_owned()).collect()
}

/// Fetches, unpacks and prepares a kernel.
pub(crate) fn prepare(apt: &Apt, profile: Profile, choice: &Choice, tools: &Tools) -> Result<(), Error> {
    let folder = profile.folder().join("kernel");
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| at(&folder, error))?;
    }
    let package = apt.download(&[&format!("{}={}", choice.package, choice.version)])?.remove(0);
    let parts = parts(profile);
    // From Debian 13 on they lie below `usr/lib`.
    let patterns: Vec<String> = parts.iter().map(|part| format!("./*lib/modules/*/{part}")).collect();
    apt::unpack(&package, &folder, &[vec!["./boot/*".to_owned()], patterns].concat())?;
    lay_out_as_of_old(&folder, tools)?;
    let mut depmod = tools.busybox("depmod");
    depmod.arg("-b").arg(&folder).arg(release(profile)?);
    apt::succeed("busybox depmod", &mut depmod)?;
    if profile.facts().image_holds_elf {
        extract(profile, tools)?;
    }
    let stamp_of_it = Stamp { choice: choice.clone(), parts };
    let text = serde_json::to_vec(&stamp_of_it).map_err(std::io::Error::from)?;
    Ok(paths::write_whole(&stamp(profile), &text)?)
}

/// Modules where busybox's depmod and modprobe look for them, and not compressed, as packages had them until Debian 12.
fn lay_out_as_of_old(folder: &Path, tools: &Tools) -> Result<(), Error> {
    let merged = folder.join("usr/lib");
    if merged.exists() {
        let place = folder.join("lib");
        fs::rename(&merged, &place).map_err(|error| at(&place, error))?;
    }
    let packed = packed_modules(&folder.join("lib/modules"))?;
    if packed.is_empty() {
        return Ok(());
    }
    apt::succeed("xz", tools.unxz().args(&packed)).map(drop)
}

/// All files below `folder` whose names end as xz names them.
fn packed_modules(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| at(folder, error))? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(packed_modules(&path)?);
        } else if path.extension().is_some_and(|end| end == "xz") {
            found.push(path);
        }
    }
    Ok(found)
}

/// Written last, so that a kernel that was prepared in part is prepared again.
fn stamp(profile: Profile) -> PathBuf {
    profile.folder().join("kernel/choice")
}

/// The kernel's release, as in `6.1.0-56-amd64`.
pub(crate) fn release(profile: Profile) -> Result<String, Error> {
    let modules = profile.folder().join("kernel/lib/modules");
    let mut entries = fs::read_dir(&modules).map_err(|error| at(&modules, error))?;
    let entry =
        entries.next().ok_or_else(|| Error::Packages("the kernel's package holds no modules".to_owned()))?;
    Ok(entry?.file_name().to_string_lossy().into_owned())
}

/// What QEMU boots: the ELF kernel, or the package's image where that could not be taken apart.
pub(crate) fn image(profile: Profile) -> Result<PathBuf, Error> {
    let elf = profile.folder().join("vmlinux");
    if elf.exists() {
        return Ok(elf);
    }
    let boot = profile.folder().join("kernel/boot");
    Ok(boot.join(format!("vmlinuz-{}", release(profile)?)))
}

fn extract(profile: Profile, tools: &Tools) -> Result<(), Error> {
    let elf = profile.folder().join("vmlinux");
    if elf.exists() {
        fs::remove_file(&elf).map_err(|error| at(&elf, error))?;
    }
    let image = image(profile)?;
    let bytes = fs::read(&image).map_err(|error| at(&image, error))?;
    let Some(start) = bytes.windows(XZ.len()).position(|window| window == XZ) else { return Ok(()) };
    let packed = profile.folder().join("vmlinux.xz");
    paths::write_whole(&packed, &bytes[start..])?;
    let output = apt::succeed("xz", tools.xz().arg(&packed))?;
    fs::remove_file(&packed).map_err(|error| at(&packed, error))?;
    match output.stdout.starts_with(b"\x7fELF") {
        true => Ok(paths::write_whole(&elf, &output.stdout)?),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_kernels_of_the_flavour_itself_are_compared_and_by_number() {
        let number = |name: &str| numbers(name, "amd64");
        assert_eq!(number("linux-image-6.1.0-56-amd64"), Some(vec![6, 1, 0, 56]));
        assert!(number("linux-image-6.1.0-100-amd64") > number("linux-image-6.1.0-56-amd64"));
        assert_eq!(number("linux-image-6.12.111+deb12-amd64"), Some(vec![6, 12, 111]));
        for other in ["cloud-amd64", "rt-amd64", "amd64-dbg", "amd64-unsigned", "armmp"] {
            assert_eq!(number(&format!("linux-image-6.1.0-56-{other}")), None);
        }
        assert_eq!(number("linux-image-6.12.111+deb12-cloud-amd64"), None);
        assert_eq!(number("linux-image-6.12-amd64"), None);
    }

    #[test]
    fn a_kernel_of_which_other_parts_were_unpacked_is_prepared_again() {
        let choice = Choice { package: "linux-image".to_owned(), version: "6.1".to_owned(), pinned: true };
        let parts = parts(Profile::X86_64);
        let stamp = Stamp { choice: choice.clone(), parts: parts.clone() };
        let stamp = serde_json::to_vec(&stamp).unwrap();
        assert_eq!(of_stamp(&stamp, &parts), Some(choice.clone()));
        assert_eq!(of_stamp(&stamp, &parts[1..]), None);
        let older = serde_json::to_vec(&choice).unwrap();
        assert_eq!(of_stamp(&older, &parts), None, "older versions wrote the choice alone");
    }

    #[test]
    fn a_kernel_of_the_same_series_comes_before_newer_ones() {
        let names =
            ["linux-image-6.1.0-58-amd64", "linux-image-6.12.9+deb12-amd64", "linux-image-6.1.0-9-amd64"];
        let names = names.map(str::to_owned);
        assert_eq!(newest(&names, "linux-image-6.1.0-", "amd64").as_ref(), Some(&names[0]));
        assert_eq!(newest(&names, "linux-image-6.2.0-", "amd64").as_ref(), Some(&names[1]));
        assert_eq!(newest(&names, "linux-image-6.1.0-", "armmp"), None);
        let later =
            ["linux-image-6.19.14+deb13-amd64", "linux-image-6.12.118+deb13-amd64"].map(str::to_owned);
        assert_eq!(newest(&later, "linux-image-6.1.0-", "amd64").as_ref(), Some(&later[1]));
    }
}
