//! Test programs, built to be run in a guest.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::error::Error;
use crate::packages::apt;
use crate::paths;

/// A test program that cargo has built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestProgram {
    /// Its file, whose name has a hash at its end.
    pub path: PathBuf,
    /// The source that it begins with, below the folder of the workspace: programs of several packages have one name.
    pub source: String,
}

/// Builds test programs by `cargo`, all that `words` of `cargo test` choose in this workspace.
///
/// # Errors
///
/// [`Error::Program`] where cargo does not build them.
pub fn build_tests(mut cargo: Command, words: &[&str]) -> Result<Vec<TestProgram>, Error> {
    cargo.current_dir(paths::workspace());
    cargo.args(["test", "--no-run", "--message-format", "json-render-diagnostics"]).args(words);
    let output = apt::succeed("cargo", &mut cargo)?;
    let lines = output.stdout.split(|&byte| byte == b'\n');
    Ok(lines.filter_map(|line| built(line, &paths::workspace())).collect())
}

/// The test program that a line of cargo's names, if any.
fn built(line: &[u8], workspace: &Path) -> Option<TestProgram> {
    let message: Value = serde_json::from_slice(line).ok()?;
    let is_test = message["profile"]["test"] == true;
    let path = message["executable"].as_str().filter(|_| is_test)?;
    let source = Path::new(message["target"]["src_path"].as_str()?);
    let source = source.strip_prefix(workspace).unwrap_or(source).to_string_lossy().into_owned();
    Some(TestProgram { path: path.into(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_cargo_tells_the_test_programs_are_found_and_nothing_else() {
        let line = |is_test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","target":{{"src_path":"/tree/drivers/virtio/tests/fork.rs"}},
                "profile":{{"test":{is_test}}},"executable":{executable}}}"#
            )
        };
        let found = |line: &str| built(line.as_bytes(), Path::new("/tree"));
        let program = TestProgram {
            path: "/tree/target/debug/deps/fork-0123456789abcdef".into(),
            source: "drivers/virtio/tests/fork.rs".to_owned(),
        };
        let path = r#""/tree/target/debug/deps/fork-0123456789abcdef""#;
        assert_eq!(found(&line(true, path)), Some(program));
        assert_eq!(found(&line(false, path)), None, "a program that is no test");
        assert_eq!(found(&line(true, "null")), None, "a library");
        assert_eq!(found(r#"{"reason":"build-finished","success":true}"#), None);
        assert_eq!(found(""), None);
    }
}
