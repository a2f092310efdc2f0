//! `./x` on a bare system that is made of stubs: what it has installed, how often apt is asked, and what it says of what is refused.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A system with apt and next to nothing else.
struct Bare(TempDir);

impl Bare {
    /// apt refuses a transaction with one of `refused`.
    fn refusing(refused: &str) -> Self {
        let bare = Self(tempfile::tempdir().unwrap());
        for name in ["sh", "env", "sort", "sed", "grep", "dirname", "tail", "sleep", "cat", "rm", "mkdir"] {
            let folders = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(name));
            symlink(folders.iter().find(|path| path.exists()).unwrap(), bare.0.path().join(name)).unwrap();
        }
        bare.program("id", "echo 0");
        bare.program("uname", "[ \"$1\" = -m ] && echo x86_64 || echo Linux");
        bare.program("apt-cache", "[ \"$1\" = policy ] && echo '  Candidate: 1.85.0-1'; exit 0");
        let log = bare.log();
        let log = log.display();
        let refuse = format!("for word; do case \" {refused} \" in *\" $word \"*) exit 100 ;; esac; done");
        // What installs Rust makes it be there.
        let rust = format!(
            "case \"$*\" in *cargo*) for tool in cargo rustc; do printf '#!/bin/sh\\necho \"tool 1.85.0 $*\"\\n' >{0}/$tool; chmod +x {0}/$tool; done ;; esac",
            bare.0.path().display()
        );
        symlink("/bin/chmod", bare.0.path().join("chmod")).unwrap();
        bare.program("apt-get", &format!("echo \"$*\" >>{log}\n{refuse}\n{rust}"));
        bare
    }

    fn program(&self, name: &str, script: &str) {
        let path = self.0.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn log(&self) -> PathBuf {
        self.0.path().join("log")
    }

    /// Transactions that apt was asked for, and what was said.
    fn demo(&self) -> (Vec<String>, String) {
        let release = self.0.path().join("target/release");
        fs::create_dir_all(&release).unwrap();
        self.program("target/release/evener", "echo ran evener \"$@\"");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("x");
        let mut run = Command::new("/bin/sh");
        run.arg(script).args(["demo", "--size", "8M"]).env_clear().env("PATH", self.0.path());
        let ran = run.env("CARGO_TARGET_DIR", self.0.path().join("target")).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{said}");
        let log = fs::read_to_string(self.log()).unwrap();
        let asked =
            log.lines().filter_map(|line| line.split_once(" install ")).map(|(_, names)| names.to_owned());
        (asked.collect(), said)
    }
}

#[test]
fn all_that_is_missing_comes_in_one_transaction_and_the_demo_runs_with_its_arguments() {
    let (asked, said) = Bare::refusing("").demo();
    assert_eq!(asked.len(), 1, "{asked:?}");
    for package in ["gcc", "libc6-dev", "pkg-config", "libssl-dev", "openssl", "rustc", "cargo", "age"] {
        assert!(asked[0].split(' ').any(|name| name == package), "{package}: {asked:?}");
    }
    assert!(said.contains("build --release -p evener-cli -p evener-provider"), "{said}");
    let last = said.lines().last().unwrap();
    assert!(last.starts_with("ran evener demo --module ") && last.ends_with(" --size 8M"), "{said}");
}

#[test]
fn a_package_that_apt_refuses_loses_no_other_and_is_said() {
    let (asked, said) = Bare::refusing("age").demo();
    assert!(asked[1..].iter().any(|names| names.contains("gcc") && !names.contains("age")), "{asked:?}");
    assert!(said.contains("going on without age: no comparison with age"), "{said}");
    assert!(said.contains("ran evener demo"), "{said}");
}

#[test]
fn what_takes_long_is_said_before_anything_is_installed() {
    let (_, said) = Bare::refusing("").demo();
    let (plan, _) = said.split_once("tool 1.85.0 build").unwrap();
    for words in ["to download", "6 minutes on two cores", "40 s", "Afterwards"] {
        assert!(plan.contains(words), "{words}: {said}");
    }
}
