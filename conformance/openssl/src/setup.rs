//! OpenSSL's configuration for a program under test.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use tempfile::TempDir;

/// A configuration in a folder of its own, which goes with it.
pub struct Setup {
    folder: TempDir,
    name: &'static str,
}

impl Setup {
    /// The default provider alone, and the old algorithms (`legacy`), which some suites ask for.
    #[must_use]
    pub fn plain() -> Self {
        Self::write("default", |_| PLAIN.to_owned())
    }

    /// The same with Evener's provider preferred; `keys` are lines of its section.
    ///
    /// # Panics
    ///
    /// Where cargo has not built the module.
    #[must_use]
    pub fn evener(keys: &str) -> Self {
        Self::write("evener", |module| {
            fs::copy(built("libevener_provider.so"), module).expect("the folder is ours");
            let text = PLAIN.replace("[init]", "[init]\nalg_section = properties\nrandom = random");
            let text = text.replace("legacy = ", "evener = evener_sect\nlegacy = ");
            format!("{text}{EVENER}module = {}\n{keys}\n", module.display())
        })
    }

    fn write(name: &'static str, text: impl FnOnce(&Path) -> String) -> Self {
        let folder = tempfile::tempdir().expect("there is a folder for temporary files");
        let made = Self { folder, name };
        fs::write(made.path(), text(&made.module())).expect("the folder is ours");
        made
    }

    /// The name by which a test tells the runs apart.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The configuration file.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("openssl.cnf")
    }

    /// Evener's module, where this configuration has one.
    #[must_use]
    pub fn module(&self) -> PathBuf {
        self.folder.path().join("evener.so")
    }

    /// `program`, to be run with this configuration.
    #[must_use]
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("OPENSSL_CONF", self.path()).env_remove("OPENSSL_MODULES");
        command
    }
}

// The section called `default` would be read in place of every other.
const PLAIN: &str = "openssl_conf = init\n\
    [init]\nproviders = providers\n\
    [providers]\ndefault = default_sect\nlegacy = legacy_sect\n\
    [default_sect]\nactivate = 1\n\
    [legacy_sect]\nactivate = 1\n";

const EVENER: &str = "[properties]\ndefault_properties = ?provider=evener\n\
    [random]\nproperties = provider=default\n\
    [evener_sect]\nidentity = evener\nactivate = 1\n";

/// A library that cargo builds because this crate depends on it, from the folders above our program.
fn built(name: &str) -> PathBuf {
    let program = env::current_exe().expect("a program runs from a file");
    let mut places =
        program.ancestors().skip(1).flat_map(|folder| [folder.join(name), folder.join("deps").join(name)]);
    places.find(|path| path.exists()).expect("cargo has built the module")
}
