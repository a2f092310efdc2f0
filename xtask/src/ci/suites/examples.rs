//! Which packages have examples in their comments: rustdoc takes three seconds to find none in one.

use crate::tree::Tree;

/// Names of packages with at least one.
///
/// # Errors
///
/// What could not be read.
pub(super) fn packages() -> Result<Vec<String>, String> {
    let tree = Tree::read()?;
    let has_examples = |folder: &str| {
        let sources = format!("{folder}/src/");
        tree.files.iter().any(|file| file.path.starts_with(&sources) && has_example(&file.text))
    };
    let packages = tree.packages.iter().filter(|package| has_examples(&package.folder));
    Ok(packages.map(|package| package.name.clone()).collect())
}

/// Whether a block in its comments is one that rustdoc builds: of Rust, by word or by silence.
fn has_example(text: &str) -> bool {
    let comments = text.lines().map(str::trim_start).filter_map(|line| {
        line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).map(str::trim_start)
    });
    let mut is_inside = false;
    for kind in comments.filter_map(|line| line.strip_prefix("```")) {
        is_inside = !is_inside;
        if is_inside && (kind.is_empty() || KINDS.iter().any(|built| kind.starts_with(built))) {
            return true;
        }
    }
    false
}

const KINDS: [&str; 4] = ["rust", "no_run", "should_panic", "compile_fail"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_of_rust_is_an_example_and_one_of_text_is_none() {
        let comment = |kind: &str| format!("//! Says.\n//!\n//! ```{kind}\n//! a\n//! ```\nfn a() {{}}\n");
        for kind in ["", "no_run", "compile_fail,E0277"] {
            assert!(has_example(&comment(kind)), "{kind}");
        }
        assert!(!has_example(&comment("text")) && !has_example(&comment("text").repeat(2)));
        assert!(has_example(&format!("{}{}", comment("text"), comment("").replace("//!", "    ///"))));
    }

    #[test]
    fn the_ring_shows_what_does_not_compile_and_these_checks_show_nothing() {
        let packages = packages().unwrap();
        assert!(packages.iter().any(|name| name == "evener-ring"), "{packages:?}");
        assert!(!packages.iter().any(|name| name == "xtask"), "{packages:?}");
    }
}
