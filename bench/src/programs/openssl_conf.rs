//! Configurations of OpenSSL for programs that are measured with and without Evener's provider.

use std::path::Path;

/// Which providers a program has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Providers {
    /// OpenSSL's default provider alone.
    Default,
    /// Evener's before it.
    Evener,
}

impl Providers {
    /// Both, the plain one first.
    pub const BOTH: [Self; 2] = [Self::Default, Self::Evener];

    /// A short name, for files and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Evener => "evener",
        }
    }

    /// In words.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Default => "without Evener's provider",
            Self::Evener => "with Evener's provider",
        }
    }

    /// The text of an `openssl.cnf`; `module` is the provider's file, `settings` are lines of its section.
    #[must_use]
    pub fn configuration(self, module: &Path, settings: &[String]) -> String {
        let module = module.display().to_string();
        match self {
            Self::Default => DEFAULT.to_owned(),
            Self::Evener => WITH_MODULE.replace("MODULE", &module).replace("SETTINGS", &settings.join("\n")),
        }
    }
}

const DEFAULT: &str = "\
openssl_conf = openssl_init
[openssl_init]
providers = provider_sect
[provider_sect]
default = default_sect
[default_sect]
activate = 1
";

const WITH_MODULE: &str = "\
openssl_conf = openssl_init
[openssl_init]
providers = provider_sect
alg_section = evp_properties
random = random_sect
[provider_sect]
default = default_sect
evener = evener_sect
[default_sect]
activate = 1
[evener_sect]
identity = evener
module = MODULE
SETTINGS
activate = 1
[evp_properties]
default_properties = ?provider=evener
[random_sect]
properties = provider=default
";
