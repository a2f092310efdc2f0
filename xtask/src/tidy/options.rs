//! Every option of the command is used in a test: one that nobody tries is dead or broken.

use super::Finding;
use crate::rust::is_word;
use crate::tree::TextFile;

const COMMAND: &str = "crates/evener-cli/src/";
const TESTS: &[&str] = &["crates/evener-cli/tests/", "conformance/"];

/// Findings for long options that no test of the command mentions.
pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    let tests = |file: &&TextFile| TESTS.iter().any(|folder| file.path.starts_with(folder));
    let tests: Vec<&str> = files.iter().filter(tests).map(|file| file.text.as_str()).collect();
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.path.starts_with(COMMAND) && file.path.ends_with(".rs")) {
        for (line, option) in options(&file.text) {
            if !tests.iter().any(|text| mentions(text, &option)) {
                found.push(Finding::new(&file.path, line, format!("no test uses `--{option}`")));
            }
        }
    }
    found
}

/// Line and name of every `#[arg(long)]` and `#[arg(long = "name")]` of clap's derive.
fn options(text: &str) -> Vec<(usize, String)> {
    let mut options = Vec::new();
    for (start, _) in text.match_indices("#[arg(") {
        let Some((attribute, after)) = text[start..].split_once(")]") else { continue };
        if let Some(name) = long_name(attribute).or_else(|| long_field(attribute, after)) {
            options.push((text[..start].matches('\n').count() + 1, name));
        }
    }
    options
}

fn long_name(attribute: &str) -> Option<String> {
    let (_, value) = attribute.split_once("long = \"")?;
    value.split('"').next().map(str::to_owned)
}

/// The name that clap makes of the field's where the attribute says only `long`.
fn long_field(attribute: &str, after: &str) -> Option<String> {
    let says_long = attribute.trim_start_matches("#[arg(").split(',').any(|part| part.trim() == "long");
    let field =
        after.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with(['#', '/']))?;
    let name = field.split(':').next()?.split_whitespace().last()?;
    says_long.then(|| name.replace('_', "-"))
}

fn mentions(text: &str, option: &str) -> bool {
    let whole = format!("--{option}");
    text.match_indices(&whole).any(|(at, _)| {
        let next = text[at + whole.len()..].chars().next();
        next.is_none_or(|c| !is_word(c) && c != '-')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "struct A {\n    /// How many.\n    #[arg(short = 'n', long, default_value_t = 1)]\n    \
                          pub(crate) job_count: u32,\n    #[arg(long = \"no-sync\")]\n    sync: bool,\n    #[arg(short)]\n    \
                          quiet: bool,\n}\n";

    fn found_with(test: &str) -> Vec<String> {
        let file = |path: &str, text: &str| TextFile { path: path.into(), text: text.into() };
        let files = [file("crates/evener-cli/src/a.rs", SOURCE), file("crates/evener-cli/tests/a.rs", test)];
        check(&files).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn an_option_that_no_test_uses_is_found_with_its_line() {
        let found = found_with("run([\"--job-counts\", \"2\"]);");
        let at = |line, name| format!("crates/evener-cli/src/a.rs:{line}: no test uses `--{name}`");
        assert_eq!(found, [at(3, "job-count"), at(5, "no-sync")]);
    }

    #[test]
    fn options_that_tests_use_are_fine() {
        assert!(
            found_with("run([\"--job-count\", \"2\", \"--no-sync\"]); run([\"--job-count=2\"]);").is_empty()
        );
    }
}
