//! The ways in which a program has its ciphers, and the order in which they take turns.

use std::path::Path;

use crate::programs::openssl_conf::Providers;

evener_core::named! {
    /// How a program has its ciphers.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Configuration {
        /// OpenSSL's default provider alone.
        Plain = "plain",
        /// The same with two thresholds of glibc's malloc set: what a program with buffers from 128 KiB gains without a provider.
        MallocSet = "malloc set",
        /// The provider loaded, and nothing of it used.
        Off = "off",
        /// The provider as it is installed.
        Default = "default",
        /// What a user who knows the program would write.
        Hand = "by hand",
    }
}

/// Above all buffers of these programs, so that none is mapped and given back for each request.
pub(super) const MALLOC: [(&str, &str); 2] =
    [("MALLOC_TRIM_THRESHOLD_", "1073741824"), ("MALLOC_MMAP_THRESHOLD_", "1073741824")];

impl Configuration {
    /// A word for names of files.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::MallocSet => "malloc",
            Self::Off => "off",
            Self::Default => "default",
            Self::Hand => "hand",
        }
    }

    /// The text of its `openssl.cnf`; `hand` are lines of the provider's section.
    #[must_use]
    pub fn text(self, module: &Path, hand: &[&str]) -> String {
        let settings: Vec<String> = match self {
            Self::Plain | Self::MallocSet => return Providers::Default.configuration(module, &[]),
            Self::Off => vec!["kernels = off".to_owned()],
            Self::Default => Vec::new(),
            Self::Hand => hand.iter().map(|&line| line.to_owned()).collect(),
        };
        Providers::Evener.configuration(module, &settings)
    }

    /// Variables that malloc reads when the program starts.
    #[must_use]
    pub const fn variables(self) -> &'static [(&'static str, &'static str)] {
        if matches!(self, Self::MallocSet) { &MALLOC } else { &[] }
    }
}

/// All configurations in the order of a round: the one that was first goes last in the next.
#[must_use]
pub fn turns(round: usize) -> Vec<Configuration> {
    let mut order = Configuration::ALL.to_vec();
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_rounds_each_configuration_stands_as_often_before_each_other_as_behind_it() {
        for (at, one) in Configuration::ALL.into_iter().enumerate() {
            for other in Configuration::ALL.into_iter().skip(at + 1) {
                let place = |round: usize, who| turns(round).iter().position(|it| *it == who).unwrap();
                let first = (4..6).filter(|&round| place(round, one) < place(round, other)).count();
                assert_eq!(first, 1, "{} and {}", one.name(), other.name());
            }
        }
    }

    #[test]
    fn plain_and_its_control_load_no_module_and_the_control_alone_sets_mallocs_thresholds() {
        let module = Path::new("/m/evener.so");
        let loads =
            Configuration::ALL.map(|it| it.text(module, &["threads = auto"]).contains("/m/evener.so"));
        assert_eq!(loads, [false, false, true, true, true]);
        assert!(Configuration::Hand.text(module, &["threads = auto"]).contains("\nthreads = auto\n"));
        assert!(Configuration::Off.text(module, &[]).contains("\nkernels = off\n"));
        assert!(!Configuration::Default.text(module, &["threads = auto"]).contains("kernels"));
        let sets: Vec<_> = Configuration::ALL.into_iter().filter(|it| !it.variables().is_empty()).collect();
        assert_eq!(sets, [Configuration::MallocSet]);
    }
}
