//! Test programs, as cargo builds and names them.

use std::path::PathBuf;
use std::process::Stdio;

use serde_json::Value;

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
pub(super) fn build() -> Option<Vec<Program>> {
    let mut command = cargo();
    // What has benches only is linted, and its libraries take as long to build as a dozen tests.
    command.args(["test", "--workspace", "--exclude", "evener-decisions", "--no-run"]);
    // All but the examples in comments.
    command.args(["--lib", "--bins", "--tests", "--examples", "--message-format=json-render-diagnostics"]);
    command.stderr(Stdio::inherit());
    let mut programs = Vec::new();
    listen(command, |line| programs.extend(Program::from_message(line))).then_some(programs)
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
