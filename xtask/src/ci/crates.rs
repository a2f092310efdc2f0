//! The crates that the command is built from: `docs/design/crates.md` says what each is for, and how many there may be.

use std::collections::BTreeSet;
use std::fs;

use super::tally::Tally;
use crate::tree::{cargo, root};

/// The page with a row for each crate of others.
const PAGE: &str = "docs/design/crates.md";

/// Most crates of the command, ours among them, each version counted.
const CRATES_MAX: usize = 155;

/// Compares the command's crates with the page.
pub(super) fn check(tally: &mut Tally) {
    tally.begin("crates of the command");
    let mut tree = cargo();
    tree.current_dir(root()).args(["tree", "-p", "evener-cli", "-e", "normal", "--prefix", "none"]);
    let output = tree.args(["--no-dedupe", "--offline", "--target", "x86_64-unknown-linux-gnu"]).output();
    let text = output.ok().filter(|output| output.status.success()).map(|output| output.stdout);
    let (Some(text), Ok(page)) = (text, fs::read_to_string(root().join(PAGE))) else {
        return tally.fail("crates of the command");
    };
    let found = differences(&String::from_utf8_lossy(&text), &page);
    found.iter().for_each(|line| tally.print(line));
    if !found.is_empty() {
        tally.fail("crates of the command");
    }
}

/// What is not as the page says, of the lines of `cargo tree`.
fn differences(tree: &str, page: &str) -> Vec<String> {
    let all: BTreeSet<(&str, &str)> = tree
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(name, rest)| (name, rest.split(' ').next().unwrap_or_default()))
        .collect();
    let used: BTreeSet<&str> =
        all.iter().map(|krate| krate.0).filter(|name| !name.starts_with("evener")).collect();
    let listed: BTreeSet<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .flat_map(|row| row.split(" |").next().unwrap_or_default().split('`'))
        .filter(|name| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        })
        .collect();
    let missing = used.difference(&listed).map(|name| format!("{PAGE} has no row for `{name}`"));
    let superfluous = listed
        .difference(&used)
        .map(|name| format!("{PAGE} has a row for `{name}`, which the command is not built from"));
    let many = (all.len() > CRATES_MAX).then(|| format!("{} crates, at most {CRATES_MAX}", all.len()));
    missing.chain(superfluous).chain(many).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_without_a_row_and_a_row_without_a_crate_are_found() {
        let tree = "evener-cli v0.1.0 (/x)\nclap v4.5.0\nage v0.12.0\nclap v4.5.0 (*)\n";
        let page = "| crates | for |\n|---|---|\n| `clap`, `roff` | arguments |\n";
        let found = differences(tree, page);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].ends_with("no row for `age`") && found[1].contains("`roff`"));
        assert!(differences("clap v4.5.0\nroff v1.0.0\n", page).is_empty());
    }

    #[test]
    fn too_many_crates_are_found() {
        let tree: String = (0..=CRATES_MAX).map(|number| format!("evener-{number} v1.0.0\n")).collect();
        assert_eq!(differences(&tree, ""), ["156 crates, at most 155"]);
    }
}
