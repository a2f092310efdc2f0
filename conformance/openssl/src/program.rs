//! Programs in C that show what a program may do to OpenSSL, built when they are needed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use tempfile::TempDir;

use crate::openssl_build;

/// A program of `programs/`, in a folder that goes with this.
pub struct Program {
    folder: TempDir,
    name: &'static str,
}

impl Program {
    /// Builds it against the OpenSSL that is tested.
    ///
    /// # Panics
    ///
    /// Where it does not compile: the compiler that links the tests is there.
    #[must_use]
    pub fn build(name: &'static str) -> Self {
        Self::compiled(name, &[])
    }

    /// As [`Program::build`], a program whose functions are looked up when they are called for the first time, or all when it is started.
    ///
    /// # Panics
    ///
    /// As there.
    #[must_use]
    pub fn bound(name: &'static str, when: &'static str) -> Self {
        Self::compiled(name, &[&format!("-Wl,-z,{when}")])
    }

    /// Builds a library, which a program loads first where `LD_PRELOAD` names it.
    ///
    /// # Panics
    ///
    /// As [`Program::build`].
    #[must_use]
    pub fn library(name: &'static str) -> Self {
        Self::compiled(name, &["-shared", "-fPIC"])
    }

    fn compiled(name: &'static str, options: &[&str]) -> Self {
        let made = Self { folder: tempfile::tempdir().expect("there is a folder for temporary files"), name };
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").join(name).with_extension("c");
        let mut compiler = Command::new(env::var_os("CC").unwrap_or_else(|| "cc".into()));
        compiler.args(["-Wall", "-Werror", "-O1"]).args(options).arg("-o").arg(made.path()).arg(source);
        if let Some(build) = openssl_build() {
            compiler.arg("-I").arg(build.join("include")).arg("-L").arg(build);
        }
        let output = compiler.args(["-lssl", "-lcrypto"]).output().expect("there is a C compiler");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(fs::exists(made.path()).is_ok_and(|exists| exists), "the compiler says that it is there");
        made
    }

    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.path().join(self.name)
    }
}
