//! Dependencies as cargo-deny judges them: licences, sources, bans, and where it can, known faults.
//!
//! What it says of a lock file depends on no machine, and cargo-deny takes four minutes of a core to build. So what it found
//! nothing in is recorded ([`SUMS`]), and a commit that leaves those files alone does not ask again; a full run always does.

use std::path::Path;
use std::process::{Command, ExitCode};
use std::{fs, io};

use super::Depth;
use super::tally::Tally;
use crate::tree::{cargo, root};

/// SHA-256 of each file that its answer depends on, as `sha256sum` writes it.
const SUMS: &str = "deny.sums";
/// Whether known faults are among them is not recorded: they are found while nothing here changes.
const CHECK: [&str; 7] = ["deny", "--log-level", "error", "check", "bans", "licenses", "sources"];

/// Has cargo-deny judge, where what it judges is not as recorded or where there is time.
pub(super) fn check(tally: &mut Tally, depth: Depth) {
    let is_recorded =
        sums(&root()).is_ok_and(|sums| fs::read(root().join(SUMS)).is_ok_and(|kept| kept == sums));
    if is_recorded && depth == Depth::Commit {
        return tally.begin("dependencies, as cargo-deny saw them (deny.sums)");
    }
    if !is_recorded {
        tally.print("deny.sums is not of these dependencies: `cargo xtask deny` judges them and writes it");
        tally.fail(SUMS);
    }
    let installed = ["deny", "--version"];
    tally.check("cargo deny, without advisories", &installed, &CHECK);
    let version = cargo().args(installed).output().map(|output| output.stdout).unwrap_or_default();
    match knows_todays_advisories(&String::from_utf8_lossy(&version)) {
        Some(true) => {
            tally.check("cargo deny, advisories", &["deny", "fetch", "db"], &["deny", "check", "advisories"]);
        }
        Some(false) => tally.print("skipped: cargo deny, advisories (below 0.18.6 it cannot read CVSS 4.0)"),
        None => {}
    }
}

/// `cargo xtask deny`: judges, and records what nothing was found in.
pub(crate) fn record() -> ExitCode {
    let judged = cargo().args(CHECK).status();
    if !judged.is_ok_and(|status| status.success()) {
        eprintln!(
            "xtask: cargo-deny is missing (`cargo install --locked cargo-deny`) or found what it says above"
        );
        return ExitCode::FAILURE;
    }
    match sums(&root()).and_then(|sums| fs::write(root().join(SUMS), sums)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {SUMS}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The sums of the lock file, of what cargo-deny goes by, and of the manifests of all packages below `root`.
fn sums(root: &Path) -> io::Result<Vec<u8>> {
    let mut files = vec!["Cargo.lock".into(), "deny.toml".into()];
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let (path, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
            let is_hidden = name.as_encoded_bytes().starts_with(b".") || name == "target";
            match path.is_dir() {
                true if !is_hidden => folders.push(path),
                false if name == "Cargo.toml" => files.extend(path.strip_prefix(root).map(Path::to_path_buf)),
                _ => {}
            }
        }
    }
    files.sort();
    let output = Command::new("sha256sum").arg("--").args(files).current_dir(root).output()?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
    }
}

/// Whether this cargo-deny reads what the database of advisories holds since CVSS 4.0; `None` where there is none.
fn knows_todays_advisories(version: &str) -> Option<bool> {
    let mut numbers =
        version.trim().strip_prefix("cargo-deny ")?.split('.').map(|number| number.parse::<u32>());
    let mut next = || numbers.next()?.ok();
    Some((next()?, next()?, next()?) >= (0, 18, 6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cargo_deny_that_cannot_read_the_advisories_is_known_by_its_version() {
        assert_eq!(knows_todays_advisories("cargo-deny 0.18.3\n"), Some(false));
        assert_eq!(knows_todays_advisories("cargo-deny 0.18.6\n"), Some(true));
        assert_eq!(knows_todays_advisories("cargo-deny 0.19.0\n"), Some(true));
        assert_eq!(knows_todays_advisories(""), None);
    }

    #[test]
    fn a_change_of_the_lock_file_the_rules_or_any_manifest_and_a_new_package_are_seen_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = place.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for name in ["Cargo.lock", "deny.toml", "Cargo.toml", "crates/one/Cargo.toml"] {
            write(name, "");
        }
        let sums = || sums(place.path()).unwrap();
        let mut before = sums();
        for name in
            ["Cargo.lock", "deny.toml", "Cargo.toml", "crates/one/Cargo.toml", "crates/two/Cargo.toml"]
        {
            write(name, "changed");
            let after = sums();
            assert_ne!(std::mem::replace(&mut before, after), sums(), "{name}");
        }
        for name in ["crates/one/src/lib.rs", "target/package/Cargo.toml", ".git/Cargo.toml"] {
            write(name, "changed");
            assert_eq!(sums(), before, "{name}");
        }
        fs::remove_file(place.path().join("deny.toml")).unwrap();
        super::sums(place.path()).unwrap_err();
    }
}
