//! What the administrator has set: `[evener_sect]` of openssl.cnf, and `EVENER_*` variables over it.
//!
//! A value that says nothing never stops a program: the key keeps its default, and the complaint goes onto OpenSSL's
//! queue and into the provider's build information. A process with more rights than its user ignores variables.

pub(crate) mod module_names;
mod typos;

use std::env;
use std::ffi::{CStr, OsStr};

use evener_arbiter::Participation;
use evener_kernels::Level;

use crate::core::Core;
use crate::core::errors::Reason;
use module_names::ModuleName;

/// From which size on a request may take another way than the inner one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Threshold {
    /// From none without a module, from where one may pay with one.
    #[default]
    Auto,
    /// From none.
    Off,
    /// From this many bytes.
    Bytes(usize),
}

/// Whether threads of this program encrypt CBC messages together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Combine {
    /// Never.
    #[default]
    Off,
    /// Where it pays.
    Auto,
}

/// From which size on one buffer is split between threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Split {
    /// From none.
    Off,
    /// From where it may pay, as was learned in this process.
    #[default]
    Auto,
    /// From this many bytes, as was learned.
    Bytes(usize),
}

/// Whether what was measured in this process decides over what leaves the direct path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Guard {
    /// It does: what cost more than it saved stays.
    #[default]
    On,
    /// Whatever may leave the direct path does, whatever that costs.
    Off,
}

/// Whether this provider's own kernels do what they are there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Kernels {
    /// OpenSSL's code does all.
    Off,
    /// They do where they were measured to be quicker.
    #[default]
    Auto,
    /// They do, by the widest registers that the processor has.
    On,
    /// They do, by registers of at most so many bits.
    Bits(usize),
}

/// Which thread sleeps in the kernel while a module behind it works on a request that its caller waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Wait {
    /// A thread of the driver's: a module that hangs keeps no caller.
    #[default]
    Apart,
    /// The caller, as with OpenSSL's own engine: sooner, and a module that hangs keeps it for good.
    Caller,
}

/// Whether others can see what this process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum StatisticsFile {
    /// In its statistics file.
    #[default]
    On,
    /// Nothing is counted for them, and no file is made.
    Off,
}

/// All settings.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Settings {
    pub(crate) threshold: Threshold,
    /// To be opened by `setup.rs`.
    pub(crate) modules: Vec<ModuleName>,
    pub(crate) combine: Combine,
    /// Threads that may work on one buffer, the caller included; 0 and 1: the caller alone.
    pub(crate) threads: usize,
    split: Split,
    pub(crate) guard: Guard,
    pub(crate) wait: Wait,
    pub(crate) kernels: Kernels,
    pub(crate) statistics: StatisticsFile,
    /// Whether this process takes turns at modules among those of its user.
    pub(crate) arbiter: Participation,
}

impl Settings {
    /// From how many bytes on a buffer may be split; `usize::MAX` where none is.
    pub(crate) fn split_from(&self) -> usize {
        let least = evener_core::splits::CALL_BYTES_MIN;
        match (self.split, self.guard) {
            _ if self.threads < 2 => usize::MAX,
            (Split::Off, _) => usize::MAX,
            (Split::Auto, _) => least,
            (Split::Bytes(bytes), Guard::On) => bytes.max(least),
            (Split::Bytes(bytes), Guard::Off) => bytes,
        }
    }

    /// When a buffer of that length is split.
    pub(crate) fn split_threshold(&self) -> evener::split::Threshold {
        match self.guard {
            Guard::Off => evener::split::Threshold::From(self.split_from()),
            Guard::On => evener::split::Threshold::Learned,
        }
    }

    /// The length in bytes from which on modules are considered.
    pub(crate) fn raw_from(&self) -> usize {
        match self.threshold {
            Threshold::Bytes(bytes) => bytes,
            Threshold::Auto if !self.modules.is_empty() => module_names::bytes_min(),
            Threshold::Auto | Threshold::Off => usize::MAX,
        }
    }

    /// The instructions of this provider's own kernels, where they are wanted and there, and whether they are to be used without being measured.
    ///
    /// Where buffers are split, kernels on wide registers are: they share a key between threads, where each thread of libcrypto's takes a context, and no
    /// libcrypto so far is faster than they are on one core (docs/results/kernels.md).
    pub(crate) fn kernel(&self) -> Option<(Level, bool)> {
        let splits = self.split_from() != usize::MAX;
        let level = match self.kernels {
            Kernels::Off => None,
            Kernels::Auto if splits => Level::best().filter(|level| level.bits() > 128),
            Kernels::Auto | Kernels::On => Level::best(),
            Kernels::Bits(bits) => Level::up_to(bits),
        };
        Some((level?, splits || self.kernels != Kernels::Auto))
    }

    /// Whether anything may leave the direct path.
    pub(crate) fn has_ways(&self) -> bool {
        self.raw_from() != usize::MAX || self.combine != Combine::Off || self.split_from() != usize::MAX
    }
}

/// What was wrong with a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Complaint {
    pub(crate) reason: Reason,
    /// The key, the value, what would be right.
    pub(crate) text: String,
}

/// A key: its name in the section, the variable over it, how its value is taken.
struct Key {
    name: &'static CStr,
    variable: &'static str,
    wants: &'static str,
    take: fn(&mut Settings, &str) -> Option<()>,
}

const KEYS: &[Key] = &[
    Key {
        name: c"threshold",
        variable: "EVENER_THRESHOLD",
        wants: "auto, off or a number of bytes",
        take: threshold,
    },
    Key {
        name: c"modules",
        variable: "EVENER_MODULES",
        wants: "names with spaces between them: hosted:SOCKET, afalg:DRIVER, devcrypto",
        take: modules,
    },
    Key { name: c"combine", variable: "EVENER_COMBINE", wants: "off or auto", take: combine },
    Key {
        name: c"threads",
        variable: "EVENER_THREADS",
        wants: "auto or a number up to 33, 0 for none",
        take: threads,
    },
    Key { name: c"split", variable: "EVENER_SPLIT", wants: "off, auto or a number of bytes", take: split },
    Key { name: c"guard", variable: "EVENER_GUARD", wants: "on or off", take: guard },
    Key {
        name: c"kernels",
        variable: "EVENER_KERNELS",
        wants: "auto, on, off or the bits of a register",
        take: kernels,
    },
    Key { name: c"wait", variable: "EVENER_WAIT", wants: "apart or caller", take: wait },
    Key {
        name: c"arbiter",
        variable: "EVENER_ARBITER",
        wants: "on, off or a weight from 1 to 64",
        take: arbiter,
    },
    Key { name: c"statistics", variable: "EVENER_STATISTICS", wants: "on or off", take: statistics },
];

/// Settings of which a few words can be asked for, and behind an `else` so many bytes, one at least.
macro_rules! choices {
    ($($field:ident: $type:ident { $($word:literal => $variant:ident),* $(, else $bytes:ident)? })*) => {
        $(
            fn $field(settings: &mut Settings, value: &str) -> Option<()> {
                settings.$field = match value {
                    $($word => $type::$variant,)*
                    $(number => $type::$bytes(number.parse().ok().filter(|&bytes| bytes > 0)?),)?
                    #[allow(unreachable_patterns, reason = "where it may be so many bytes")]
                    _ => return None,
                };
                Some(())
            }
        )*
    };
}

choices! {
    guard: Guard { "on" => On, "off" => Off }
    kernels: Kernels { "auto" => Auto, "on" => On, "off" => Off, else Bits }
    wait: Wait { "apart" => Apart, "caller" => Caller }
    statistics: StatisticsFile { "on" => On, "off" => Off }
    combine: Combine { "off" => Off, "auto" => Auto }
    split: Split { "off" => Off, "auto" => Auto, else Bytes }
    threshold: Threshold { "off" => Off, "auto" => Auto, else Bytes }
}

fn arbiter(settings: &mut Settings, value: &str) -> Option<()> {
    settings.arbiter = value.parse().ok()?;
    Some(())
}

const _: () = assert!(evener::split::THREADS_MAX == 33, "what `threads` wants says it");

fn threads(settings: &mut Settings, value: &str) -> Option<()> {
    settings.threads = match value {
        "auto" => evener::core_budget().workers(),
        number => number.parse().ok().filter(|&count| count <= evener::split::THREADS_MAX)?,
    };
    Some(())
}

fn modules(settings: &mut Settings, value: &str) -> Option<()> {
    settings.modules = module_names::names(value)?;
    Some(())
}

/// What the core knows itself or finds in each provider's section. It stands first in the question, because the core looks for
/// each key that it has from the beginning. Not `module-filename`, about which a provider that is linked in raises an error.
const OPENSSLS: &[&CStr] = &[c"openssl-version", c"provider-name", c"identity", c"module", c"activate"];

/// Reads section and variables. The core is queried once, for all keys and all usual misspellings of them.
pub(crate) fn read(core: &Core) -> (Settings, Vec<Complaint>) {
    let mut names = Vec::with_capacity(OPENSSLS.len() + KEYS.len() + typos::COUNT);
    names.extend_from_slice(OPENSSLS);
    names.extend(KEYS.iter().map(|key| key.name));
    names.extend(typos::all());
    let said = core.settings(&names).into_iter().filter(|(name, _)| !OPENSSLS.contains(name));
    let section: Vec<_> = said.map(|(name, value)| (name, value.to_string_lossy().into_owned())).collect();
    let variable = |name: &str| env::var_os(name).as_deref().map(OsStr::to_string_lossy).map(Into::into);
    settings(&section, variable, crate::ffi::has_raised_rights())
}

fn settings(
    section: &[(&CStr, String)],
    environment: impl Fn(&str) -> Option<String>,
    raised: bool,
) -> (Settings, Vec<Complaint>) {
    let mut settings = Settings::default();
    let mut complaints = Vec::new();
    for key in KEYS {
        let over = (!raised).then(|| environment(key.variable)).flatten();
        let name = key.name.to_string_lossy();
        let written = section.iter().find(|(name, _)| *name == key.name).map(|(_, value)| value.clone());
        // The section first, so that it stands where the variable over it says nothing.
        for (place, value) in [(&*name, written), (key.variable, over)] {
            let Some(value) = value else { continue };
            if (key.take)(&mut settings, &value).is_none() {
                let text = format!("{place} = {value}: wants {}", key.wants);
                complaints.push(Complaint { reason: Reason::BadValue, text });
            }
        }
    }
    complaints.extend(section.iter().filter_map(|(name, _)| unknown(name)));
    (settings, complaints)
}

fn unknown(name: &CStr) -> Option<Complaint> {
    let meant = typos::intended_key(name)?.to_string_lossy();
    let text = format!("{}: unknown key, did you mean {meant}?", name.to_string_lossy());
    Some(Complaint { reason: Reason::UnknownKey, text })
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;

    use super::*;

    const VARIABLE: &str = KEYS[0].variable;

    fn read(
        section: &[(&str, &str)],
        environment: &[(&str, &str)],
        raised: bool,
    ) -> (Settings, Vec<Complaint>) {
        let variable = |name: &str| {
            environment.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_owned())
        };
        let keys: Vec<_> = section.iter().map(|(key, _)| CString::new(*key).unwrap()).collect();
        let values = section.iter().map(|(_, value)| (*value).to_owned());
        let section: Vec<_> = keys.iter().map(CString::as_c_str).zip(values).collect();
        settings(&section, variable, raised)
    }

    #[test]
    fn a_variable_stands_over_the_section() {
        let (settings, complaints) = read(&[("threshold", "4096")], &[(VARIABLE, "16")], false);
        assert_eq!(settings.threshold, Threshold::Bytes(16));
        assert!(complaints.is_empty());
    }

    #[test]
    fn a_process_with_raised_rights_ignores_variables() {
        let (settings, complaints) = read(&[("threshold", "4096")], &[(VARIABLE, "nonsense")], true);
        assert_eq!(settings.threshold, Threshold::Bytes(4096));
        assert!(complaints.is_empty());
    }

    #[test]
    fn a_bad_value_is_named_and_changes_nothing() {
        for value in ["0", "-1", "many", ""] {
            let (settings, complaints) = read(&[("threshold", "4096")], &[(VARIABLE, value)], false);
            assert_eq!(settings.threshold, Threshold::Bytes(4096), "{value}");
            assert_eq!(complaints[0].reason, Reason::BadValue);
            assert!(complaints[0].text.starts_with(VARIABLE), "{complaints:?}");
        }
    }

    #[test]
    fn modules_are_asked_from_where_one_may_pay_unless_something_else_is_written() {
        let from = |keys: &[(&str, &str)]| read(keys, &[], false).0.raw_from();
        let one = ("modules", "hosted:/run/evener.sock");
        assert_eq!([from(&[]), from(&[one])], [usize::MAX, module_names::bytes_min()]);
        assert_eq!([from(&[one, ("threshold", "off")]), from(&[one, ("threshold", "16")])], [usize::MAX, 16]);
        let (settings, complaints) = read(&[one], &[("EVENER_MODULES", "qat")], false);
        assert_eq!((settings.modules.len(), complaints.len()), (1, 1));
        assert_eq!(read(&[one], &[("EVENER_MODULES", "")], false).0.modules, []);
    }

    /// What `field` is where nothing is written, where `other` is, where the variable says `usual` over it, and where a word is written that is none.
    fn chosen<T>(
        (key, variable): (&str, &str),
        [usual, other, none]: [&str; 3],
        field: fn(Settings) -> T,
    ) -> [T; 4] {
        let over = read(&[(key, other)], &[(variable, usual)], false).0;
        let (kept, complaints) = read(&[(key, none)], &[], false);
        assert_eq!(complaints.len(), 1);
        [read(&[], &[], false).0, read(&[(key, other)], &[], false).0, over, kept].map(field)
    }

    #[test]
    fn callers_combine_only_where_somebody_asks_for_it() {
        let found = chosen(("combine", "EVENER_COMBINE"), ["off", "auto", "on"], |read| read.combine);
        assert_eq!(found, [Combine::Off, Combine::Auto, Combine::Off, Combine::Off]);
    }

    #[test]
    fn a_caller_waits_in_the_kernel_only_where_somebody_asks_for_it() {
        let found = chosen(("wait", "EVENER_WAIT"), ["apart", "caller", "here"], |read| read.wait);
        assert_eq!(found, [Wait::Apart, Wait::Caller, Wait::Apart, Wait::Apart]);
    }

    #[test]
    fn a_process_takes_its_turns_as_one_of_all_unless_something_else_is_written() {
        let of = |value| read(&[("arbiter", value)], &[], false);
        assert_eq!(read(&[], &[], false).0.arbiter, Participation::Weight(1));
        assert_eq!([of("off").0.arbiter, of("3").0.arbiter], [Participation::Off, Participation::Weight(3)]);
        assert_eq!((of("0").0.arbiter, of("0").1.len()), (Participation::Weight(1), 1));
    }

    #[test]
    fn buffers_are_split_only_where_there_are_threads() {
        let from = |keys: &[(&str, &str)]| read(keys, &[], false).0.split_from();
        assert_eq!(from(&[]), usize::MAX);
        assert_eq!(from(&[("split", "4096")]), usize::MAX);
        assert_eq!(from(&[("threads", "1"), ("split", "4096")]), usize::MAX);
        assert_eq!(from(&[("threads", "2"), ("split", "4096"), ("guard", "off")]), 4096);
        assert_eq!(from(&[("threads", "2"), ("split", "4096")]), evener_core::splits::CALL_BYTES_MIN);
        assert_eq!(from(&[("threads", "2"), ("split", "1000000")]), 1_000_000);
        assert_eq!(from(&[("threads", "2")]), evener_core::splits::CALL_BYTES_MIN);
        assert_eq!(from(&[("threads", "2"), ("split", "off")]), usize::MAX);
        let (settings, complaints) = read(&[("threads", "many")], &[("EVENER_SPLIT", "0")], false);
        assert_eq!((settings, complaints.len()), (Settings::default(), 2));
        let (settings, _) = read(&[], &[("EVENER_THREADS", "auto")], false);
        assert!(settings.threads >= 1);
    }

    #[test]
    fn a_misspelt_key_is_named_with_the_one_that_was_meant() {
        for miss in ["threshhold", "treshold", "thershold", "thresholds", "THRESHOLD"] {
            let (settings, complaints) = read(&[(miss, "4096")], &[], false);
            assert_eq!(settings, Settings::default());
            assert_eq!(complaints.len(), 1, "{miss}: {complaints:?}");
            assert!(complaints[0].text.contains(miss) && complaints[0].text.ends_with("threshold?"));
        }
        // OpenSSL's own key beside ours.
        assert_eq!(read(&[("module", "/usr/lib/evener.so")], &[], false).1, []);
        assert_eq!(read(&[("moduls", "afalg:x")], &[], false).1.len(), 1);
    }
}
