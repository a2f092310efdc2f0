//! What in a configuration keeps Evener's provider from being used: one sentence and one cure each.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use evener_machine::modules::{ModuleSpec, OpenModule};

use super::Finding;
use super::probe::Probe;
use crate::device_paths::{DevicePath, Obstacle, obstacle_of};
use crate::openssl::config::Cnf;
use crate::openssl::system;
use crate::terminal::PathDisplay;

/// The configuration that OpenSSL reads here, and what is wrong with it.
pub(super) fn of_configuration(paths: &[DevicePath]) -> (PathBuf, Vec<Finding>) {
    let set = env::var_os("OPENSSL_CONF").filter(|path| !path.is_empty()).map(PathBuf::from);
    let file = set.or_else(|| system::configuration().ok()).unwrap_or_else(|| "openssl.cnf".into());
    let findings = match Cnf::read(&file) {
        Ok(cnf) => Reader { cnf: &cnf, file: &file, paths }.findings(),
        Err(error) => {
            let fact = format!(
                "OpenSSL's configuration {} cannot be read ({error}), so it loads nothing",
                PathDisplay(&file)
            );
            vec![Finding::new("no-configuration", fact, "let OPENSSL_CONF name a file, or unset it")]
        }
    };
    (file, findings)
}

struct Reader<'a> {
    cnf: &'a Cnf,
    file: &'a Path,
    /// Ways to crypto engines.
    paths: &'a [DevicePath],
}

impl Reader<'_> {
    fn findings(&self) -> Vec<Finding> {
        let Some((providers, evener)) = self.evener() else { return vec![self.not_configured()] };
        let start = self.cnf.start().unwrap_or_default();
        let mut found = Vec::new();
        found.extend(self.module(evener));
        if !self.is_activated(evener) {
            let fact = format!("the section [{evener}] does not activate the provider");
            found.push(Finding::new("not-activated", fact, format!("write `activate = 1` into [{evener}]")));
        }
        found.extend(self.default(providers, evener));
        found.extend(self.algorithms(start));
        found.extend(self.random(start));
        found.extend(self.fips(start, providers));
        found.extend(self.offload(evener));
        found
    }

    /// The section of providers, and that of Evener in it.
    fn evener(&self) -> Option<(&str, &str)> {
        let providers = self.cnf.value(self.cnf.start()?, "providers")?;
        let is_ours =
            |(name, section): &(&str, &str)| self.cnf.value(section, "identity").unwrap_or(name) == "evener";
        self.cnf.section(providers).find(is_ours).map(|(_, section)| (providers, section))
    }

    fn not_configured(&self) -> Finding {
        let fact =
            format!("{} does not name Evener's provider, so programs do not load it", PathDisplay(self.file));
        let cure = "`evener provider install` for a service, or OPENSSL_CONF with what `evener provider config` prints";
        Finding::new("not-configured", fact, cure)
    }

    fn is_activated(&self, section: &str) -> bool {
        let value = self.cnf.value(section, "activate").map(str::to_ascii_lowercase);
        value.is_some_and(|value| !["0", "no", "off", "false"].contains(&value.as_str()))
    }

    /// A module that is not there is passed over in silence.
    fn module(&self, evener: &str) -> Option<Finding> {
        let named = self.cnf.value(evener, "module").map(PathBuf::from);
        let relative = named.unwrap_or_else(|| "evener.so".into());
        let file = if relative.is_absolute() { relative } else { modules_directory()?.join(relative) };
        if !file.is_file() {
            let fact = format!("{} is not there, and OpenSSL says nothing about it", PathDisplay(&file));
            return Some(Finding::new("module-missing", fact, "install the package, or correct `module =`"));
        }
        if file.file_name().is_none_or(|name| name != "evener.so") {
            let fact = format!(
                "{} is not named evener.so, so who loads it by its name does not find it",
                PathDisplay(&file)
            );
            return Some(Finding::new("module-name", fact, "rename it to evener.so"));
        }
        None
    }

    /// The provider wraps `default`, which a configuration that names providers does not load by itself.
    fn default(&self, providers: &str, evener: &str) -> Option<Finding> {
        let at = |wanted: &dyn Fn(&str, &str) -> bool| {
            self.cnf.section(providers).position(|(name, section)| wanted(name, section))
        };
        let default = at(&|name, section| {
            self.cnf.value(section, "identity").unwrap_or(name) == "default" && self.is_activated(section)
        });
        let Some(default) = default else {
            let fact = "the default provider is not activated: what Evener lacks cannot be fetched at all";
            let cure = format!(
                "`default = default_sect` in [{providers}], before evener, and `activate = 1` in [default_sect]"
            );
            return Some(Finding::new("default-missing", fact, cure));
        };
        let evener = at(&|_, section| section == evener)?;
        (evener < default).then(|| {
            let fact = "evener stands before default, which it wraps and does not find yet";
            Finding::new("wrong-order", fact, format!("put default before evener in [{providers}]"))
        })
    }

    fn properties(&self, start: &str) -> Option<&str> {
        self.cnf.value(self.cnf.value(start, "alg_section")?, "default_properties")
    }

    fn algorithms(&self, start: &str) -> Option<Finding> {
        let properties = self.properties(start).unwrap_or_default();
        let mut parts = properties.split(',').map(str::trim);
        if parts.clone().any(|part| part == "?provider=evener") {
            return (!parts.any(|part| part == SERVES)).then(not_for_all);
        }
        if parts.any(|part| part == "provider=evener") {
            let fact = "default_properties demands provider=evener: nothing that Evener lacks can be fetched";
            return Some(Finding::new(
                "mandatory",
                fact,
                "write `?provider=evener,?evener.serves=yes`, with the question marks",
            ));
        }
        let fact = "no alg_section prefers Evener, so it is left to chance who serves what both have";
        let cure = format!(
            "`alg_section = evp_properties` in [{start}], `default_properties = ?provider=evener,?evener.serves=yes` in [evp_properties]"
        );
        Some(Finding::new("no-alg-section", fact, cure))
    }

    /// From 3.5 on the random generators prefer the default provider by themselves; what is read here cannot know the
    /// version, so the line is required everywhere.
    fn random(&self, start: &str) -> Option<Finding> {
        let section = self.cnf.value(start, "random");
        let properties =
            section.and_then(|section| self.cnf.value(section, "properties")).unwrap_or_default();
        if properties.contains("provider=default") {
            return None;
        }
        let fact = "no random section: OpenSSL before 3.5 draws its random numbers through Evener";
        let cure =
            format!("`random = random_sect` in [{start}], `properties = provider=default` in [random_sect]");
        Some(Finding::new("no-random-section", fact, cure))
    }

    /// Crypto modules that the configuration names and the provider cannot open: it goes on without them.
    fn offload(&self, evener: &str) -> Vec<Finding> {
        let set = env::var("EVENER_MODULES").ok();
        let names = set.as_deref().or_else(|| self.cnf.value(evener, "modules")).unwrap_or_default();
        let finding = |name: &str| {
            let named = match name.parse() {
                Ok(ModuleSpec::Emulated(_)) => Err("the provider has no emulated modules".to_owned()),
                other => other,
            };
            let named = match named {
                Ok(named) => named,
                Err(fact) => return Some(Finding::new("no-such-module", fact, "correct `modules =`")),
            };
            let error = OpenModule::new(&named).err()?;
            let more =
                format!("`evener devices --module {name}` says more; programs that run begin without it");
            let cure = match obstacle_of(self.paths, name) {
                Some(Obstacle { fact, cure, .. }) => format!("{cure} ({fact}); {more}"),
                None => more,
            };
            Some(Finding::new("module-closed", format!("the crypto module cannot be used: {error:#}"), cure))
        };
        names.split_whitespace().filter_map(finding).collect()
    }

    fn fips(&self, start: &str, providers: &str) -> Option<Finding> {
        let wants_fips = self.properties(start).is_some_and(|properties| properties.contains("fips=yes"));
        let loads =
            self.cnf.section(providers).any(|(name, section)| name == "fips" && self.is_activated(section));
        let kernel = fs::read_to_string("/proc/sys/crypto/fips_enabled").is_ok_and(|text| text.trim() == "1");
        (wants_fips || loads || kernel).then(fips)
    }
}

/// What prefers Evener also in a program that asks with a `provider` of its own; configurations of before 27 November 2026 lack it.
const SERVES: &str = "?evener.serves=yes";

fn not_for_all() -> Finding {
    let fact = "default_properties lacks `?evener.serves=yes`: a program that asks with a provider of its own (stunnel: `provider!=fips`) takes \
                `?provider=evener` away and is served by others";
    let cure =
        "write `default_properties = ?provider=evener,?evener.serves=yes`, as `evener provider config` does";
    Finding { certain: false, ..Finding::new("not-for-all", fact, cure) }
}

fn fips() -> Finding {
    let fact = "FIPS is on: Evener never claims fips=yes and stands aside";
    Finding::new("fips", fact, "none: where only validated modules may work, Evener does nothing")
}

/// What the provider says of a value or a key; of what it wanted to use and has not found here it is only said.
fn setting(complaint: &str) -> Finding {
    let is_wrong = complaint.contains(": wants ") || complaint.contains(": unknown key");
    let cure =
        "docs/reference/configuration.md has the keys and their values; until then the key is as by default";
    Finding { certain: is_wrong, ..Finding::new("setting", format!("the provider says: {complaint}"), cure) }
}

fn modules_directory() -> Option<PathBuf> {
    let set = env::var_os("OPENSSL_MODULES").map(PathBuf::from);
    set.or_else(|| system::modules_directory().ok())
}

/// Adds what only a process that fetched can know, where the configuration does not explain it.
pub(super) fn after_probe(findings: &mut Vec<Finding>, probe: &anyhow::Result<Probe>) {
    let probe = match probe {
        Ok(probe) => probe,
        Err(error) => {
            let fact = format!("{error:#}");
            return findings.push(Finding::new("no-answer", fact, "`openssl list -providers` says more"));
        }
    };
    let is_old =
        |version: &str| ["3.0", "3.1", "3.2", "3.3", "3.4"].iter().any(|old| version.starts_with(old));
    findings.retain(|finding| finding.trap != "no-random-section" || is_old(&probe.version));
    if probe.fips && findings.iter().all(|finding| finding.trap != "fips") {
        findings.push(fips());
    }
    let is_explained = findings.iter().any(|finding| finding.certain);
    let names_modules =
        findings.iter().any(|finding| ["no-such-module", "module-closed"].contains(&finding.trap));
    let is_of_modules = |text: &str| text.starts_with("modules = ") || text.starts_with("EVENER_MODULES = ");
    let complaints = probe.complaints.iter().filter(|text| !names_modules || !is_of_modules(text));
    findings.extend(complaints.map(|text| setting(text)));
    if is_explained {
        return;
    }
    if !probe.evener_active {
        let fact = "the configuration is right, but OpenSSL did not load the module";
        findings.push(Finding::new(
            "not-loaded",
            fact,
            "`openssl list -providers -provider evener` says why",
        ));
    } else if !probe.missed().is_empty() {
        let fact = format!("others serve {}, which Evener has", probe.missed().join(", "));
        findings.push(Finding::new(
            "not-asked",
            fact,
            "look for another default_properties, or a program that sets its own",
        ));
    }
}
