//! Every file of a test program that has a folder is a part of it: one that its `main.rs` does not name is never built, and fails nothing.

use super::Finding;
use crate::tree::TextFile;

/// Findings for files below `tests/PROGRAM/` that its first file does not name.
pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    let programs = files.iter().filter_map(|file| Some((file.path.strip_suffix("main.rs")?, &file.text)));
    let programs = programs.filter(|(folder, _)| folder.rsplit('/').nth(2) == Some("tests"));
    let lost = programs.flat_map(|(folder, text)| {
        let parts = files.iter().filter_map(move |file| {
            let name = file.path.strip_prefix(folder)?.strip_suffix(".rs")?;
            let is_lost = name != "main" && !name.contains('/') && !names(text, name);
            is_lost.then(|| Finding::new(&file.path, 1, format!("{folder}main.rs has no `mod {name};`")))
        });
        parts.collect::<Vec<_>>()
    });
    lost.collect()
}

fn names(text: &str, module: &str) -> bool {
    text.lines().any(|line| line.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';')) == Some(module))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_no_test_program_names_is_found() {
        let file = |path: &str, text: &str| TextFile { path: path.into(), text: text.into() };
        let files = [
            file("c/tests/files/main.rs", "mod sum;\n"),
            file("c/tests/files/sum.rs", ""),
            file("c/tests/files/lost.rs", ""),
            file("c/tests/common/mod.rs", ""),
            file("c/tests/alone.rs", ""),
            file("c/src/bin/b/main.rs", ""),
            file("c/src/bin/b/other.rs", ""),
        ];
        let found: Vec<String> = check(&files).iter().map(|finding| finding.path.clone()).collect();
        assert_eq!(found, ["c/tests/files/lost.rs"]);
    }
}
