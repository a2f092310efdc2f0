//! Modules as users name them, and what is found behind the names.

use std::fmt;
use std::str::FromStr;

use evener::Turns;
use evener::core::plan::adaptive::ModuleCapacity;
use evener::core::{Profile, QueuedDriver};
use evener_arbiter::Arbiter;
use evener_driver_emulated::{Emulated, Preset, PresetError};
use evener_driver_kernel as kernel;
use evener_driver_virtio as hosted;

use crate::error::MachineError;
use crate::libraries::{Operation, libcrypto};
use crate::observer::Observer;
use crate::sharing;

/// A module as the user names it: `--module`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModuleSpec {
    /// A module with programmed times.
    Emulated(Preset),
    /// A host's, or a device that is driven from here.
    Hosted(hosted::ModuleName),
    /// One behind the kernel.
    Kernel(kernel::ModuleName),
}

impl FromStr for ModuleSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Err(hosted::NameError::NotHosted(_)) => {}
            name => return name.map(Self::Hosted).map_err(|error| error.to_string()),
        }
        match text.parse() {
            Err(kernel::NameError::NotKernel(_)) => {}
            name => return name.map(Self::Kernel).map_err(|error| error.to_string()),
        }
        match text.parse::<Preset>() {
            Ok(preset) => Ok(Self::Emulated(preset)),
            Err(PresetError::NotEmulated(_)) => Err(format!(
                "{text:?} is no module: there are emulated:NAME, hosted:SOCKET, virtio:ADDRESS, afalg:DRIVER and devcrypto"
            )),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl fmt::Display for ModuleSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Emulated(preset) => f.write_str(preset.name()),
            Self::Hosted(name) => name.fmt(f),
            Self::Kernel(name) => name.fmt(f),
        }
    }
}

/// A module that is there and gave right answers.
pub enum OpenModule {
    /// A module with programmed times.
    Emulated(Preset),
    /// A host's, or a device that is driven from here.
    Hosted(Box<hosted::Module>),
    /// One behind the kernel.
    Kernel(kernel::Module),
}

impl OpenModule {
    /// Opens the module, known answers included.
    ///
    /// # Errors
    ///
    /// Where the module is not there, or gives wrong answers.
    pub fn new(named: &ModuleSpec) -> Result<Self, MachineError> {
        Ok(match named {
            ModuleSpec::Emulated(preset) => Self::Emulated(preset.clone()),
            ModuleSpec::Hosted(name) => Self::Hosted(Box::new(hosted::Module::open(name)?)),
            ModuleSpec::Kernel(name) => Self::Kernel(kernel::Module::open(name)?),
        })
    }

    /// What it calls itself, and what it is like.
    pub fn profile(&self) -> Profile {
        match self {
            Self::Emulated(preset) => preset.profile(),
            Self::Hosted(module) => module.profile().clone(),
            Self::Kernel(module) => module.profile().clone(),
        }
    }

    /// Whether its times are programmed.
    pub const fn is_emulated(&self) -> bool {
        matches!(self, Self::Emulated(_))
    }

    /// Whether the kernel works for its path where no thread's clock sees it: for requests, or for a device's interrupts.
    pub const fn is_behind_the_kernel(&self) -> bool {
        match self {
            Self::Emulated(_) => false,
            Self::Hosted(module) => module.is_device(),
            Self::Kernel(_) => true,
        }
    }

    /// It as a planner sees it.
    pub fn capacity(&self) -> ModuleCapacity {
        let count = |count| u32::try_from(count).unwrap_or(u32::MAX);
        match self {
            Self::Emulated(preset) => {
                ModuleCapacity { units: count(preset.units()), depth: count(preset.depth()) }
            }
            // How many lanes a host has it does not say; what it takes together is learned as time per request.
            Self::Hosted(_) => ModuleCapacity { units: 1, depth: hosted::DEPTH },
            Self::Kernel(module) => ModuleCapacity { units: module.units(), depth: module.depth() },
        }
    }

    /// How processes that share it call it; none where this process alone can have it.
    pub(crate) fn shared_name(&self) -> Option<String> {
        match self {
            Self::Emulated(_) => None,
            Self::Hosted(module) => module.shared_name(),
            Self::Kernel(module) => Some(module.profile().name.clone()),
        }
    }

    /// It as the processes know it that share it.
    pub(crate) fn shared(&self, arbiter: Option<&Arbiter>) -> Option<evener_arbiter::Module> {
        Some(arbiter?.module(&self.shared_name()?, self.permits()))
    }

    /// Turns of a process that has it for as long as it runs, among all that share it.
    pub fn turns(&self, observer: &dyn Observer) -> Turns {
        let arbiter = self.shared_name().and_then(|_| sharing::arbiter(observer));
        Turns::new(self.shared(arbiter.as_ref()))
    }

    /// Requests, or turns of runs, that it has at a time.
    fn permits(&self) -> u32 {
        match self {
            Self::Hosted(_) => hosted::PERMITS,
            Self::Emulated(_) | Self::Kernel(_) => self.capacity().depth,
        }
    }

    /// The threads of its driver, where that has some: how many, and for how many results together they wake who waits.
    #[must_use]
    pub const fn runners(&self) -> (u32, u32) {
        match self {
            Self::Emulated(_) | Self::Hosted(_) => (1, 1),
            Self::Kernel(module) => (module.runners(), module.together()),
        }
    }

    /// Whether it does such jobs.
    pub fn does(&self, (algorithm, direction): Operation) -> bool {
        match self {
            // Only its driver says more.
            Self::Emulated(_) | Self::Hosted(_) => self.driver().supports(algorithm, direction),
            Self::Kernel(module) => module.algorithms().contains(&algorithm),
        }
    }

    /// Requests of this process that it has answered, where its driver counts them.
    pub fn answered(&self) -> Option<u64> {
        match self {
            Self::Emulated(_) | Self::Hosted(_) => None,
            Self::Kernel(module) => module.answered(),
        }
    }

    /// A driver for one run.
    pub fn driver<'m>(&self) -> Box<dyn QueuedDriver<'m> + 'm> {
        match self {
            Self::Emulated(preset) => Box::new(Emulated::new(preset.clone(), Box::new(libcrypto()))),
            Self::Hosted(module) => module.driver(),
            Self::Kernel(module) => module.driver(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_named_by_its_kind_and_who_errs_is_told_the_kinds() {
        assert!(matches!("emulated:am3358".parse(), Ok(ModuleSpec::Emulated(_))));
        assert!(matches!("hosted:/run/evener.sock,offer=all".parse(), Ok(ModuleSpec::Hosted(_))));
        assert!(matches!("afalg:cryptd(cbc(aes-generic))".parse(), Ok(ModuleSpec::Kernel(_))));
        assert!(matches!("devcrypto:/dev/evener".parse(), Ok(ModuleSpec::Kernel(_))));
        let error_of = |text: &str| text.parse::<ModuleSpec>().unwrap_err();
        assert!(matches!("virtio:0000:00:10.0".parse(), Ok(ModuleSpec::Hosted(_))));
        assert!(error_of("qat0").contains("emulated:") && error_of("qat0").contains("hosted:"));
        assert!(error_of("afalg:").contains("/proc/crypto"));
        assert!(error_of("devcrypto:evener").contains("devcrypto:/dev/"));
        assert!(error_of("hosted:").contains("hosted:SOCKET"));
        assert!(error_of("emulated:nothing").contains("unknown preset"));
    }
}
