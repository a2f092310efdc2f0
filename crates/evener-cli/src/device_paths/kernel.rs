//! The kernel as its files show it: its version, the options that it was built with, and its modules.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use super::system_root::SystemRoot;
use super::{Kind, Obstacle};

/// A kernel.
pub(super) struct Kernel {
    /// As `uname -r` says it.
    pub(super) release: String,
    /// Major and minor number.
    version: Option<(u32, u32)>,
    /// Set options by name, without `CONFIG_`; none where no file tells.
    options: Option<HashMap<String, char>>,
    /// Names of modules that lie on the disk or in the kernel; none where no list is there.
    installed: Option<Vec<String>>,
    /// Modules that are loaded, or built in and shown as loaded.
    loaded: Vec<String>,
    /// Modules that files of modprobe keep from being loaded, with the file.
    blocked: Vec<(String, String)>,
    /// What `/proc/sys/crypto/af_alg_restrict` says.
    pub(super) af_alg_restrict: Option<u32>,
}

impl Kernel {
    pub(super) fn read(root: &SystemRoot) -> Self {
        let release = root.text("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned();
        let restrict = root.text("/proc/sys/crypto/af_alg_restrict");
        Self {
            version: version(&release),
            options: options(root, &release),
            installed: installed(root, &release),
            loaded: root.names("/sys/module").iter().map(|name| plain(name)).collect(),
            blocked: blocked(root),
            af_alg_restrict: restrict.and_then(|text| text.trim().parse().ok()),
            release,
        }
    }

    /// Whether it is of this version or a later one; not where it is unknown.
    pub(super) fn is_from(&self, version: (u32, u32)) -> bool {
        self.version.is_some_and(|own| own >= version)
    }

    /// Whether it is known to be built without an option.
    pub(super) fn lacks(&self, option: &str) -> bool {
        self.options.as_ref().is_some_and(|options| !options.contains_key(option))
    }

    fn is_built_in(&self, option: &str) -> bool {
        self.options.as_ref().is_some_and(|options| options.get(option) == Some(&'y'))
    }

    pub(super) fn is_loaded(&self, module: &str) -> bool {
        self.loaded.contains(&plain(module))
    }

    /// Whether a module lies on the disk; not where no list tells.
    pub(super) fn is_installed(&self, module: &str) -> bool {
        self.installed.as_ref().is_some_and(|all| all.contains(&plain(module)))
    }

    /// What keeps a part from use that an option brings as a module, as far as files show. A module that the kernel fetches by itself when it is
    /// first asked for need not be loaded.
    pub(super) fn part(&self, part: &Part<'_>) -> Option<Obstacle> {
        let Part { option, module, is_for, is_fetched } = part;
        let release = &self.release;
        if self.lacks(option) {
            let fact = format!("Linux {release} is built without CONFIG_{option}, which {is_for}");
            let cure = format!(
                "take a kernel with CONFIG_{option}=m (a distribution's package of modules has it often)"
            );
            return Some(Obstacle::new(Kind::KernelOption, fact, cure));
        }
        if self.is_built_in(option) || self.is_loaded(module) {
            return None;
        }
        if let Some((_, file)) = self.blocked.iter().find(|(name, _)| *name == plain(module)) {
            let fact = format!("{file} keeps the kernel's module {module} from being loaded, which {is_for}");
            let cure = format!("take its line out of {file}, then `modprobe {module}` as root");
            return Some(Obstacle::new(Kind::KernelModule, fact, cure));
        }
        if self.installed.is_some() && !self.is_installed(module) {
            let fact =
                format!("the kernel's module {module}, which {is_for}, is not installed for Linux {release}");
            let cure =
                format!("install this kernel's package of modules, or build it with CONFIG_{option}=m");
            return Some(Obstacle::new(Kind::KernelModule, fact, cure));
        }
        let is_known = self.installed.is_some();
        (is_known && !is_fetched).then(|| {
            let fact = format!("the kernel's module {module}, which {is_for}, is not loaded");
            let cure = format!("`modprobe {module}` as root; its name in /etc/modules-load.d/ keeps it so");
            Obstacle::new(Kind::KernelModule, fact, cure)
        })
    }
}

/// A part of the kernel that an option brings.
pub(super) struct Part<'a> {
    /// Without `CONFIG_`.
    pub(super) option: &'a str,
    /// Where it is no part of the kernel itself.
    pub(super) module: &'a str,
    /// What it does, behind "which".
    pub(super) is_for: &'a str,
    /// Whether the kernel loads it when it is first asked for.
    pub(super) is_fetched: bool,
}

/// `6.1` of `6.1.0-18-armmp`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// The options of the kernel that runs, by the first file that tells them.
fn options(root: &SystemRoot, release: &str) -> Option<HashMap<String, char>> {
    let packed = || unpacked(&root.path("/proc/config.gz"));
    let places = [
        format!("/boot/config-{release}"),
        format!("/lib/modules/{release}/config"),
        format!("/usr/lib/modules/{release}/config"),
    ];
    let text = packed().or_else(|| places.iter().find_map(|place| root.text(place)))?;
    let option = |line: &str| {
        let (name, value) = line.strip_prefix("CONFIG_")?.split_once('=')?;
        Some((name.to_owned(), value.chars().next()?))
    };
    Some(text.lines().filter_map(option).collect())
}

/// What a packed file holds. By the program gzip, which each system has: for one file of one subcommand no library has to be in each copy of the command.
fn unpacked(path: &Path) -> Option<String> {
    let file = File::open(path).ok()?;
    let output = Command::new("gzip").arg("-dc").stdin(file).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Modules of the release, by the lists that depmod makes.
fn installed(root: &SystemRoot, release: &str) -> Option<Vec<String>> {
    let folders = ["/lib/modules", "/usr/lib/modules"];
    let lists = ["modules.dep", "modules.builtin"];
    let texts: Vec<String> = folders
        .iter()
        .flat_map(|folder| lists.map(|list| format!("{folder}/{release}/{list}")))
        .filter_map(|name| root.text(&name))
        .collect();
    let named = |line: &str| {
        let path = line.split(':').next()?;
        let file = path.rsplit('/').next()?;
        Some(plain(file.split(".ko").next()?))
    };
    // OpenWrt has no such list: its modules lie in one folder.
    let flat = root.names(&format!("/lib/modules/{release}"));
    let flat: Vec<String> = flat.iter().filter_map(|name| Some(plain(name.split_once(".ko")?.0))).collect();
    if texts.is_empty() && flat.is_empty() {
        return None;
    }
    Some(texts.iter().flat_map(|text| text.lines()).filter_map(named).chain(flat).collect())
}

/// Modules that `blacklist`, or `install` with a program that does nothing, keeps out.
fn blocked(root: &SystemRoot) -> Vec<(String, String)> {
    let folders = ["/etc/modprobe.d", "/run/modprobe.d", "/usr/lib/modprobe.d", "/lib/modprobe.d"];
    let files = folders.iter().flat_map(|folder| {
        let conf = root.names(folder).into_iter().filter(|name| name.ends_with(".conf"));
        conf.map(move |name| format!("{folder}/{name}"))
    });
    let of_file = |file: String| {
        let text = root.text(&file).unwrap_or_default();
        let named = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                ["blacklist", module] => Some(plain(module)),
                ["install", module, program, ..] if NOTHING.contains(&program) => Some(plain(module)),
                _ => None,
            }
        };
        let names: Vec<String> = text.lines().filter_map(named).collect();
        names.into_iter().map(move |name| (name, file.clone())).collect::<Vec<_>>()
    };
    files.flat_map(of_file).collect()
}

/// Programs that load nothing.
const NOTHING: [&str; 4] = ["/bin/false", "/bin/true", "/usr/bin/false", "/usr/bin/true"];

/// A module's name as the kernel has it.
fn plain(module: &str) -> String {
    module.replace('-', "_")
}
