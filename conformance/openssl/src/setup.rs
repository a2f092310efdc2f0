//! OpenSSL's configuration for a program under test.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

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
        Self::write("default", "", "", "")
    }

    fn write(name: &'static str, providers: &str, sections: &str, algorithms: &str) -> Self {
        let folder = tempfile::tempdir().expect("there is a folder for temporary files");
        let text = format!(
            "openssl_conf = openssl_init\n\
             [openssl_init]\n\
             providers = provider_sect\n\
             {algorithms}\
             [provider_sect]\n\
             default = default_sect\n\
             legacy = legacy_sect\n\
             {providers}\
             [default_sect]\n\
             activate = 1\n\
             [legacy_sect]\n\
             activate = 1\n\
             {sections}"
        );
        fs::write(folder.path().join("openssl.cnf"), text).expect("the folder is ours");
        Self { folder, name }
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

    /// `program`, to be run with this configuration.
    #[must_use]
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("OPENSSL_CONF", self.path()).env_remove("OPENSSL_MODULES");
        command
    }
}
