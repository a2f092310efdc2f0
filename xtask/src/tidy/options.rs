//! Every option of the command is used in a test: one without a test is dead or broken.

use super::Finding;
use crate::rust::is_word;
use crate::tree::TextFile;

const COMMAND: &str = "crates/evener-cli/src/";
const TESTS: &[&str] = &["crates/evener-cli/tests/", "conformance/"];

/// Findings for long options that no test of the command uses, neither by name nor by letter.
pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    let tests = |file: &&TextFile| TESTS.iter().any(|folder| file.path.starts_with(folder));
    let tests: Vec<&str> = files.iter().filter(tests).map(|file| file.text.as_str()).collect();
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.path.starts_with(COMMAND) && file.path.ends_with(".rs")) {
        for (line, option) in options(&file.text) {
            if !tests.iter().any(|text| option.is_used_in(text)) {
                found.push(Finding::new(&file.path, line, format!("no test uses `--{}`", option.name)));
            }
        }
    }
    found
}

/// An option of clap's derive: `#[arg(long)]`, `#[arg(short = 'n', long = "name")]`.
struct LongOption {
    name: String,
    letter: Option<char>,
}

impl LongOption {
    /// Reads the inside of `#[arg(…)]` and what stands `after` it; `None` where it has no long name.
    fn read(attribute: &str, after: &str) -> Option<Self> {
        let field =
            after.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with(['#', '/']))?;
        let field = field.split(':').next()?.split_whitespace().last()?;
        let says = |word| attribute.split(',').any(|part| part.trim() == word);
        let named = attribute.split_once("long = \"").and_then(|(_, value)| value.split('"').next());
        let name = named.map(str::to_owned).or_else(|| says("long").then(|| field.replace('_', "-")))?;
        let lettered = attribute.split_once("short = '").and_then(|(_, value)| value.chars().next());
        let letter = lettered.or_else(|| field.chars().next().filter(|_| says("short")));
        Some(Self { name, letter })
    }

    fn is_used_in(&self, text: &str) -> bool {
        let long = format!("--{}", self.name);
        let ends = |rest: &str| rest.chars().next().is_none_or(|c| !is_word(c) && c != '-');
        text.match_indices(&long).any(|(at, _)| ends(&text[at + long.len()..]))
            || self.letter.is_some_and(|letter| text.contains(&format!("\"-{letter}\"")))
    }
}

/// Every option in a source text, with its line.
fn options(text: &str) -> Vec<(usize, LongOption)> {
    let starts = text.match_indices("#[arg(");
    let options = starts.filter_map(|(start, opening)| {
        let (attribute, after) = text[start + opening.len()..].split_once(")]")?;
        let line = text[..start].matches('\n').count() + 1;
        Some((line, LongOption::read(attribute, after)?))
    });
    options.collect()
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
