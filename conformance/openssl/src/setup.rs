//! OpenSSL's configuration for a program under test.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use tempfile::TempDir;

use crate::openssl_build;

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
        Self::with_module("evener", "libevener_provider.so", keys)
    }

    /// As [`Setup::evener`], by the build that has an emulated module, to which requests of a block and more are routed.
    ///
    /// # Panics
    ///
    /// Where cargo has not built it.
    #[must_use]
    pub fn routed() -> Self {
        Self::with_module(ROUTED, "libevener_provider_test.so", "threshold = 16\nguard = off")
    }

    fn with_module(name: &'static str, file: &str, keys: &str) -> Self {
        Self::write(name, |module| {
            fs::copy(built(file), module).expect("the folder is ours");
            let text = PLAIN.replace("[init]", "[init]\nalg_section = properties\nrandom = random");
            let text = text.replace("legacy = ", "evener = evener_sect\nlegacy = ");
            // Who does AES-GCM is not left to what this run happens to measure.
            let kernels = if keys.contains("kernels") { "" } else { "kernels = off\n" };
            format!("{text}{EVENER}module = {}\n{kernels}{keys}\n", module.display())
        })
    }

    fn write(name: &'static str, text: impl FnOnce(&Path) -> String) -> Self {
        let folder = tempfile::tempdir().expect("there is a folder for temporary files");
        let made = Self { folder, name };
        fs::write(made.path(), text(&made.module())).expect("the folder is ours");
        fs::create_dir(made.counts()).expect("the folder is ours");
        made
    }

    /// The same without the old algorithms, whose module has faults of its own.
    ///
    /// # Panics
    ///
    /// Where the file cannot be written again.
    #[must_use]
    pub fn without_legacy(self) -> Self {
        let text = fs::read_to_string(self.path()).expect("it was just written");
        fs::write(self.path(), text.replace("legacy = legacy_sect\n", "")).expect("the folder is ours");
        self
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
        self.folder.path().join(if self.name == ROUTED { "evener_test.so" } else { "evener.so" })
    }

    /// `program`, to be run with this configuration.
    #[must_use]
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        self.applied_to(&mut command);
        command
    }

    /// Has a program that is yet to be started use this configuration.
    ///
    /// # Panics
    ///
    /// Where the folder for temporary files has a colon in its name.
    pub fn applied_to(&self, command: &mut Command) {
        command.env("OPENSSL_CONF", self.path());
        // `legacy` of the system's library would load another libcrypto.
        match openssl_build() {
            Some(build) => command.env("OPENSSL_MODULES", build.join("providers")),
            None => command.env_remove("OPENSSL_MODULES"),
        };
        command.env("PROVIDER_TEST_COUNTS", self.counts());
        let commands = self.checked_commands();
        if commands.exists() {
            let others = env::var_os("PATH").unwrap_or_default();
            let all = [commands].into_iter().chain(env::split_paths(&others));
            command.env("PATH", env::join_paths(all).expect("the folder's name has no colon"));
        }
    }

    /// Where commands lie that run under valgrind, if any.
    pub(crate) fn checked_commands(&self) -> PathBuf {
        self.folder.path().join("checked")
    }

    /// Requests that programs with this configuration have routed so far ([`Setup::routed`]), children included.
    ///
    /// # Panics
    ///
    /// Where a count cannot be read.
    #[must_use]
    pub fn routed_count(&self) -> u64 {
        let files = fs::read_dir(self.counts()).expect("the folder is ours");
        // A byte each.
        files.map(|file| file.and_then(|file| file.metadata()).expect("it is there").len()).sum()
    }

    fn counts(&self) -> PathBuf {
        self.folder.path().join("counts")
    }
}

const ROUTED: &str = "evener, routed";

// The section called `default` would be read in place of every other.
const PLAIN: &str = "openssl_conf = init\n\
    [init]\nproviders = providers\n\
    [providers]\ndefault = default_sect\nlegacy = legacy_sect\n\
    [default_sect]\nactivate = 1\n\
    [legacy_sect]\nactivate = 1\n";

const EVENER: &str = "[properties]\ndefault_properties = ?provider=evener,?evener.serves=yes\n\
    [random]\nproperties = provider=default\n\
    [evener_sect]\nidentity = evener\nactivate = 1\n";

/// A library that cargo builds because this crate depends on it, from the folders above our program: the newest, for cargo renews
/// what is asked for by name and what is depended on in different folders.
///
/// # Panics
///
/// Where it is not there.
#[must_use]
pub fn built(name: &str) -> PathBuf {
    let program = env::current_exe().expect("a program runs from a file");
    let places =
        program.ancestors().skip(1).flat_map(|folder| [folder.join(name), folder.join("deps").join(name)]);
    let built = |path: &PathBuf| path.metadata().and_then(|metadata| metadata.modified()).ok();
    places.filter(|path| path.exists()).max_by_key(built).expect("cargo has built the module")
}
