//! The ways to a crypto module on this machine, and what shuts each: a kernel option, a kernel module, a version, a restriction, a permission.
//!
//! Path: files of the system below a root ([`SystemRoot`]; tests plant one) -> what the kernel is like (`kernel.rs`) -> each way by itself
//! (`afalg.rs`, `engines.rs`, `node.rs`, `pci.rs`) -> [`DevicePath`], with one sentence and one cure. What only a system call tells is asked for
//! where the root is this machine's own ([`Calls`]).

mod afalg;
mod driver_list;
mod engines;
mod kernel;
mod node;
mod pci;
mod system_root;

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use serde::Serialize;

use self::driver_list::DriverList;
use self::kernel::Kernel;
pub(crate) use self::node::Caller;
pub(crate) use self::system_root::SystemRoot;

/// One way to a module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct DevicePath {
    /// As in `--module`, or the engine's name.
    pub(crate) name: String,
    /// What stands there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) what: Option<String>,
    /// Whether a device is there that the way leads to.
    pub(crate) has_device: bool,
    /// What shuts it; absent where it is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) obstacle: Option<Obstacle>,
}

/// What shuts a way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Obstacle {
    pub(crate) kind: Kind,
    pub(crate) fact: String,
    pub(crate) cure: String,
}

/// Of which kind it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// What this version of Linux does not do.
    KernelVersion,
    /// What the kernel was built without.
    KernelOption,
    /// A module of the kernel that is not there, not loaded, or may not be.
    KernelModule,
    /// What the system's owner has set.
    Restriction,
    /// Whose the node is.
    Permission,
    /// A filter of system calls.
    CallFilter,
    /// There is nothing to lead to.
    NoDevice,
    /// The IOMMU.
    Iommu,
    /// Another driver has it, or none took it.
    Driver,
    /// This processor, or system.
    Architecture,
}

impl Obstacle {
    fn new(kind: Kind, fact: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { kind, fact: fact.into(), cure: cure.into() }
    }
}

impl Kind {
    /// It in the JSON.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::KernelVersion => "kernel-version",
            Self::KernelOption => "kernel-option",
            Self::KernelModule => "kernel-module",
            Self::Restriction => "restriction",
            Self::Permission => "permission",
            Self::CallFilter => "call-filter",
            Self::NoDevice => "no-device",
            Self::Iommu => "iommu",
            Self::Driver => "driver",
            Self::Architecture => "architecture",
        }
    }
}

/// What only system calls tell.
pub(crate) trait Calls {
    /// Makes a socket of AF_ALG, and where a door and a driver are named binds it to these.
    fn afalg(&self, bound: Option<(&str, &str)>) -> io::Result<()>;
    /// Opens a node to read and write.
    fn open(&self, node: &Path) -> io::Result<()>;
}

/// This machine's kernel.
struct ThisMachine;

impl Calls for ThisMachine {
    fn afalg(&self, bound: Option<(&str, &str)>) -> io::Result<()> {
        evener_driver_kernel::try_afalg(bound)
    }

    fn open(&self, node: &Path) -> io::Result<()> {
        std::fs::OpenOptions::new().read(true).write(true).open(node).map(drop)
    }
}

/// Looks at all ways; below another root than this machine's files alone tell.
pub(crate) fn survey(root: Option<&Path>) -> Vec<DevicePath> {
    let root_of = |path: Option<&Path>| SystemRoot::new(path.unwrap_or_else(|| Path::new("/")));
    let calls = root.is_none().then_some(&ThisMachine as &dyn Calls);
    survey_of(&root_of(root), &Caller::this_process(), calls)
}

fn survey_of(root: &SystemRoot, caller: &Caller, calls: Option<&dyn Calls>) -> Vec<DevicePath> {
    let kernel = Kernel::read(root);
    let (listed, door) = (DriverList::read(root), afalg::family(&kernel, calls));
    let mut paths = vec![afalg::as_a_whole(&listed, door.as_ref())];
    paths.extend(afalg::drivers(&kernel, &listed, door.as_ref(), calls));
    paths.extend(engines::undriven(root, &kernel, &listed));
    paths.push(node::devcrypto(root, &kernel, caller, calls));
    paths.extend(pci::virtio(root, &kernel, caller, calls));
    paths
}

/// What shuts the way to a module that is named as in `--module`.
pub(crate) fn obstacle_of<'p>(paths: &'p [DevicePath], module: &str) -> Option<&'p Obstacle> {
    // A driver that the kernel does not list has no way of its own.
    let whole = module.split(':').next().filter(|kind| *kind == "afalg");
    let named = |name: &str| paths.iter().find(|path| path.name == name);
    named(module).or_else(|| named(whole?))?.obstacle.as_ref()
}

/// A line for each.
pub(crate) fn text(paths: &[DevicePath]) -> String {
    let mut text = String::new();
    for DevicePath { name, what, obstacle, .. } in paths {
        let what = what.as_ref().map_or_else(String::new, |what| format!(" ({what})"));
        let state = match obstacle {
            None => "open".to_owned(),
            Some(Obstacle { kind, fact, cure }) => {
                format!("shut ({}): {fact}\n    do: {cure}", kind.name())
            }
        };
        writeln!(text, "  {name}{what}: {state}").expect("a String takes everything");
    }
    text
}

#[cfg(test)]
mod tests;
