//! Test programs, as cargo builds and names them.

use std::path::PathBuf;
use std::process::Stdio;

use serde_json::Value;

use super::super::Depth;
use super::super::tally::listen;
use crate::tree::cargo;

/// One of them, built.
#[derive(Default)]
pub(super) struct Program {
    /// Of the target: the file in `tests/`, the library or the binary whose own tests these are.
    pub(super) name: String,
    pub(super) path: PathBuf,
    /// The folder of its package, where its tests expect to run.
    pub(super) package: PathBuf,
}

impl Program {
    /// For people: the package's folder, and the name in it.
    pub(super) fn title(&self) -> String {
        let package = self.package.file_name().unwrap_or_default().to_string_lossy();
        format!("{package}: {}", self.name)
    }

    /// From a line of cargo's, where it tells of a test program.
    fn from_message(line: &str) -> Option<Self> {
        let message: Value = serde_json::from_str(line).ok()?;
        let path = message["executable"].as_str()?;
        if message["profile"]["test"] != true {
            return None;
        }
        let package = PathBuf::from(message["manifest_path"].as_str()?).parent()?.to_owned();
        Some(Self { name: message["target"]["name"].as_str()?.to_owned(), path: path.into(), package })
    }
}

/// Builds those of the whole workspace; `None` where one cannot be built, which cargo has said.
///
/// `build`, not `test --no-run`: so the libraries are products as well, among them what Python loads, with the features that all have in
/// common. Examples are linted, and run by nothing here.
pub(super) fn build(depth: Depth) -> Option<Vec<Program>> {
    // What has benches only is linted, and its libraries take as long to build as a dozen tests. These checks themselves are built
    // already, by themselves: with the features of all, each of their crates would be built once more.
    let workspace = ["--workspace", "--exclude", "evener-decisions", "--exclude", "xtask"];
    let checks = ["-p", "xtask"];
    let mut builds = vec![(&workspace[..], &["--lib", "--tests"][..]), (&checks, &["--tests"])];
    if depth == Depth::Full {
        // In the manifest no test, for all in it is ignored, and the programs that it starts are a minute's work.
        builds.push((&workspace, &["--test", "guest"]));
    }
    let mut programs = Vec::new();
    builds
        .into_iter()
        .all(|(packages, targets)| add(&[packages, targets].concat(), &mut programs))
        .then_some(programs)
}

/// Adds those that a build makes and that are not there yet; returns whether it succeeded.
fn add(words: &[&str], programs: &mut Vec<Program>) -> bool {
    let mut command = cargo();
    command.arg("build").args(words).arg("--message-format=json-render-diagnostics");
    command.stderr(Stdio::inherit());
    listen(command, |line| {
        let new = Program::from_message(line).filter(|new| programs.iter().all(|old| old.path != new.path));
        programs.extend(new);
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_test_program_is_known_by_cargos_line_and_a_library_is_none() {
        let line = |profile: &str, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/a/b/Cargo.toml","target":{{"name":"guest"}},"profile":{{"test":{profile}}},"executable":{executable}}}"#
            )
        };
        let program = Program::from_message(&line("true", "\"/t/deps/guest-1\"")).unwrap();
        assert_eq!((program.title().as_str(), &*program.path), ("b: guest", Path::new("/t/deps/guest-1")));
        assert!(Program::from_message(&line("true", "null")).is_none());
        assert!(Program::from_message(&line("false", "\"/t/evener\"")).is_none());
        assert!(Program::from_message(r#"{"reason":"build-finished","success":true}"#).is_none());
    }
}
