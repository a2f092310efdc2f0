//! The house rules that no compiler checks, each a pure function from texts to findings.
//!
//! Path of one finding: the tree is read once ([`Tree::read`]) -> every check looks at it -> findings are
//! printed with file and line. The checks' own tests plant a violation each; one test holds this tree to them.

use std::process::ExitCode;
use std::{fmt, fs};

use self::table::{DOCUMENT, with_tables};
use crate::tree::{Tree, root};

mod directions;
mod let_chains;
mod lock;
mod options;
mod pages;
mod passages;
mod places;
mod provider_keys;
mod room_order;
mod sentences;
mod table;
mod test_files;
mod unsafe_code;
mod variables;
mod words;

/// Something that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    path: String,
    line: usize,
    message: String,
}

impl Finding {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// Prints what is not tidy in this workspace; fails if there is anything, or if it cannot be read.
pub(crate) fn run() -> ExitCode {
    match Tree::read() {
        Ok(tree) => report(&findings(&tree)),
        Err(reason) => {
            eprintln!("tidy: {reason}");
            ExitCode::FAILURE
        }
    }
}

/// Prints what is not in order inside one crate.
pub(crate) fn inside(name: &str) -> ExitCode {
    let tree = match Tree::read() {
        Ok(tree) => tree,
        Err(reason) => {
            eprintln!("tidy: {reason}");
            return ExitCode::FAILURE;
        }
    };
    match tree.packages.iter().find(|package| package.name == name) {
        Some(package) => report(&room_order::check_package(package, &tree.files)),
        None => {
            eprintln!("tidy: no crate is called {name}");
            ExitCode::FAILURE
        }
    }
}

/// Makes the tables of crates and rooms in the documents anew.
pub(crate) fn write_rooms() -> ExitCode {
    let made = Tree::read().and_then(|tree| {
        let document = tree.files.iter().find(|file| file.path == DOCUMENT);
        let text = document.and_then(|file| with_tables(&file.text, &tree.packages, &tree.files));
        let text =
            text.ok_or_else(|| format!("{DOCUMENT} has no place for the tables of crates and rooms"))?;
        fs::write(root().join(DOCUMENT), text).map_err(|error| error.to_string())
    });
    match made {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("rooms: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn report(findings: &[Finding]) -> ExitCode {
    for finding in findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => ExitCode::SUCCESS,
        count => {
            println!("tidy: {count} findings");
            ExitCode::FAILURE
        }
    }
}

fn findings(tree: &Tree) -> Vec<Finding> {
    let mut all = directions::check(&tree.packages);
    all.extend(room_order::check(&tree.packages, &tree.files));
    all.extend(unsafe_code::check(&tree.packages, &tree.files));
    all.extend(sentences::check(&tree.packages, &tree.files));
    all.extend(let_chains::check(&tree.files));
    all.extend(passages::check(&tree.files));
    all.extend(pages::check(&tree.files));
    all.extend(places::check(&tree.files));
    all.extend(provider_keys::check(&tree.files));
    all.extend(words::check(&tree.files));
    all.extend(variables::check(&tree.files));
    all.extend(options::check(&tree.files));
    all.extend(lock::check(&tree.files));
    all.extend(test_files::check(&tree.files));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_workspace_is_tidy() {
        let found: Vec<String> = findings(&Tree::read().unwrap()).iter().map(Finding::to_string).collect();
        assert!(found.is_empty(), "\n{}\n", found.join("\n"));
    }
}
