//! The guest's first and only file system.
//!
//! It is two archives behind each other: a base with busybox, our init and kernel modules, made once by `up`; and a
//! payload with the programs of one boot and their libraries, made anew each time, so that a guest never has older
//! programs than the host.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use crate::error::{Error, at};
use crate::image::cpio::{self, Writer};
use crate::image::kernel;
use crate::image::libraries::Needed;
use crate::packages::tools::Tools;
use crate::paths;
use crate::profile::Profile;

/// PID 1 of the guest.
const INIT: &str = include_str!("init.sh");

/// Folders that init mounts on or that programs expect.
const FOLDERS: [&str; 10] = ["proc", "sys", "dev", "tmp", "run", "etc", "bin", "usr/bin", "payload", "lib"];

/// Where the base lies.
pub(crate) fn base(profile: Profile) -> PathBuf {
    profile.folder().join("base.cpio")
}

/// All by which one version of this crate makes another base than another one: init, the modules, and what is unpacked for them.
pub(crate) fn recipe(profile: Profile) -> String {
    let facts = profile.facts();
    let lists = [facts.modules, &facts.more_modules.join(" "), &kernel::parts(profile).join(" ")];
    format!("{INIT}\n{}\n", lists.join("\n"))
}

/// Makes the base from the unpacked kernel and busybox.
pub(crate) fn make_base(profile: Profile, tools: &Tools) -> Result<(), Error> {
    let mut archive = Writer::new(Vec::new());
    for folder in FOLDERS {
        archive.folder(folder)?;
    }
    cpio::copy(&mut archive, "bin/busybox", &tools.busybox)?;
    for applet in tools.applets()? {
        archive.link(&format!("bin/{applet}"), "busybox")?;
    }
    archive.file("init", INIT.as_bytes())?;
    // What a command leaves here comes back to the host.
    archive.link("out", "run/answer/out")?;
    add_modules(&mut archive, profile)?;
    paths::write_whole(&base(profile), &archive.finish()?)?;
    Ok(())
}

/// Adds the kernel modules that guests may load, and the indexes by which modprobe finds them.
fn add_modules(archive: &mut Writer<Vec<u8>>, profile: Profile) -> Result<(), Error> {
    let release = kernel::release(profile)?;
    let below = format!("lib/modules/{release}");
    let folder = profile.folder().join("kernel").join(&below);
    let read =
        |name: &str| fs::read_to_string(folder.join(name)).map_err(|error| at(&folder.join(name), error));
    let dependencies = read("modules.dep")?;
    let wanted = wanted(&dependencies, profile);
    for module in &wanted {
        cpio::copy(archive, &format!("{below}/{module}"), &folder.join(module))?;
    }
    // Only lines about what is there: modprobe reads these files from their start each time.
    let path_of = |line: &str| line.split(':').next().is_some_and(|path| wanted.contains(path));
    let lines: String =
        dependencies.lines().filter(|line| path_of(line)).map(|line| format!("{line}\n")).collect();
    archive.file(&format!("{below}/modules.dep"), lines.as_bytes())?;
    let names: BTreeSet<&str> = wanted.iter().map(|path| module_name(path)).collect();
    for index in ["modules.alias", "modules.symbols"] {
        let of_ours = |line: &&str| line.split_whitespace().last().is_some_and(|name| names.contains(name));
        let lines: String = read(index)?.lines().filter(of_ours).map(|line| format!("{line}\n")).collect();
        archive.file(&format!("{below}/{index}"), lines.as_bytes())?;
    }
    for index in ["modules.builtin", "modules.order"] {
        cpio::copy(archive, &format!("{below}/{index}"), &folder.join(index))?;
    }
    Ok(())
}

/// Paths in `dependencies` (lines `MODULE: MODULE...`) of all that guests may load, with what it depends on.
fn wanted(dependencies: &str, profile: Profile) -> BTreeSet<String> {
    let facts = profile.facts();
    let named: BTreeSet<&str> = facts.modules.split(' ').chain(facts.more_modules.iter().copied()).collect();
    let lines = dependencies.lines().filter_map(|line| line.split_once(':'));
    let chosen = lines.filter(|(path, _)| {
        // tcrypt is the kernel's own benchmark and refuses to stay loaded.
        let of_crypto = path.starts_with("kernel/crypto/") && !path.ends_with("/tcrypt.ko");
        of_crypto || named.iter().any(|name| name.replace('-', "_") == module_name(path).replace('-', "_"))
    });
    chosen.flat_map(|(path, needs)| needs.split_whitespace().chain([path])).map(str::to_owned).collect()
}

fn module_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path).split('.').next().unwrap_or(path)
}

/// What one boot adds to the base.
#[derive(Debug, Default)]
pub(crate) struct Payload {
    /// Programs, which go into a folder on the guest's search path.
    pub(crate) programs: Vec<PathBuf>,
    /// Libraries that programs open at run time.
    pub(crate) libraries: Vec<PathBuf>,
    /// Guest paths and contents.
    pub(crate) files: Vec<(String, Vec<u8>)>,
}

impl Payload {
    /// Where its programs and files lie in the guest; libraries may be others' too.
    pub(crate) fn paths(&self) -> Vec<String> {
        let programs = self.programs.iter().map(|program| format!("/payload/{}", file_name(program)));
        let files = self.files.iter().map(|(path, _)| format!("/{}", path.trim_start_matches('/')));
        programs.chain(files).collect()
    }

    /// Writes base and payload to `path`.
    pub(crate) fn write(&self, profile: Profile, root: &Path, path: &Path) -> Result<(), Error> {
        let base = base(profile);
        let base_bytes = fs::read(&base).map_err(|error| at(&base, error))?;
        self.write_behind(&base_bytes, profile, root, path)
    }

    /// Writes the payload alone to `path`, for a guest that runs.
    pub(crate) fn write_alone(&self, profile: Profile, root: &Path, path: &Path) -> Result<(), Error> {
        self.write_behind(&[], profile, root, path)
    }

    fn write_behind(&self, first: &[u8], profile: Profile, root: &Path, path: &Path) -> Result<(), Error> {
        let mut out = BufWriter::new(File::create(path).map_err(|error| at(path, error))?);
        out.write_all(first)?;
        let mut archive = Writer::new(out);
        let folders = profile.facts().library_folders;
        let mut needed = Needed::default();
        for program in &self.programs {
            needed.add(program, root, folders)?;
            cpio::copy(&mut archive, &format!("payload/{}", file_name(program)), program)?;
        }
        for library in &self.libraries {
            needed.add(library, root, folders)?;
            needed.0.insert(format!("{}/{}", folders[0], file_name(library)), library.clone());
        }
        for (path, source) in &needed.0 {
            cpio::copy(&mut archive, path, source)?;
        }
        for (path, bytes) in &self.files {
            archive.file(path, bytes)?;
        }
        archive.finish()?;
        Ok(())
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_come_with_what_they_depend_on_and_no_others() {
        let dependencies = "kernel/crypto/ctr.ko:\nkernel/fs/fuse/cuse.ko: kernel/fs/fuse/fuse.ko\nkernel/fs/fuse/fuse.ko:\nkernel/crypto/tcrypt.ko:\nkernel/fs/xfs/xfs.ko:\n";
        let expected = ["kernel/crypto/ctr.ko", "kernel/fs/fuse/cuse.ko", "kernel/fs/fuse/fuse.ko"];
        assert_eq!(wanted(dependencies, Profile::X86_64), expected.map(str::to_owned).into());
    }
}
