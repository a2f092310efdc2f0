//! What xtask looks at: the texts of the workspace and what cargo says about its packages.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use serde_json::Value;

use crate::crate_graph::Room;
pub(crate) use crate::text_file::TextFile;

/// The workspace, read once.
pub(crate) struct Tree {
    pub(crate) files: Vec<TextFile>,
    pub(crate) packages: Vec<Package>,
}

/// A member of the workspace.
pub(crate) struct Package {
    pub(crate) name: String,
    /// Its folder, from the root of the workspace.
    pub(crate) folder: String,
    /// The members it uses: in its library, binaries and build script.
    pub(crate) uses: Vec<String>,
    /// The members its tests use besides.
    pub(crate) tests_use: Vec<String>,
    /// First files of library, binaries and build script, from the root of the workspace.
    pub(crate) roots: Vec<String>,
    /// What stands in its manifest of its rooms, from the top down.
    pub(crate) rooms: Vec<Room>,
}

impl Tree {
    /// Reads the workspace that xtask belongs to.
    ///
    /// # Errors
    ///
    /// What went wrong with a file or with `cargo metadata`, in words.
    pub(crate) fn read() -> Result<Self, String> {
        let root = root();
        let mut files = Vec::new();
        walk(&root, &root, &mut files).map_err(|error| error.to_string())?;
        files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(Self { files, packages: packages(&root)? })
    }

    /// Package and name of every mutant: a line that `--cfg mutant="name"` breaks on purpose.
    pub(crate) fn mutants(&self) -> BTreeSet<(String, String)> {
        let mut mutants = BTreeSet::new();
        for package in &self.packages {
            let sources = format!("{}/src/", package.folder);
            for file in self.files.iter().filter(|file| file.path.starts_with(&sources)) {
                let names =
                    file.text.split("cfg!(mutant = \"").skip(1).filter_map(|rest| rest.split('"').next());
                mutants.extend(names.map(|name| (package.name.clone(), name.to_owned())));
            }
        }
        mutants
    }
}

/// The folder of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace").to_owned()
}

/// The cargo that runs us; `cargo` where a test was started by hand.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

// A walk, not `git ls-files`: the checks also run where the sources came without git.
fn walk(root: &Path, folder: &Path, files: &mut Vec<TextFile>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_symlink() || is_product(root, &path) {
            continue;
        }
        if path.is_dir() {
            walk(root, &path, files)?;
        } else if path.extension().is_some_and(|ending| ending == "gz") {
            // Links may lead to what is no text.
            files.push(TextFile { path: relative(root, &path), text: String::new() });
        } else if let Ok(text) = fs::read_to_string(&path) {
            files.push(TextFile { path: relative(root, &path), text });
        }
    }
    Ok(())
}

/// What .gitignore names, and every folder that cargo marked as a cache.
fn is_product(root: &Path, path: &Path) -> bool {
    let is_output = [".git", "target", "demo"].iter().any(|name| path == root.join(name));
    is_output || path.ends_with("target") || path.join("CACHEDIR.TAG").exists()
}

fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().replace('\\', "/")
}

fn packages(root: &Path) -> Result<Vec<Package>, String> {
    let mut metadata = cargo();
    metadata.args(["metadata", "--format-version", "1", "--no-deps", "--offline"]);
    let output = metadata.output().map_err(|error| format!("cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let value: Value = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    let packages = value["packages"].as_array().ok_or("cargo metadata lists no packages")?;
    Ok(packages.iter().map(|package| read_package(root, package)).collect())
}

fn read_package(root: &Path, package: &Value) -> Package {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let from_root = |value: &Value| relative(root, Path::new(&text(value)));
    let manifest = from_root(&package["manifest_path"]);
    // Only members have a path; what comes from a registry is the business of deny.toml.
    let members: Vec<Value> =
        list(&package["dependencies"]).into_iter().filter(|edge| edge["path"].is_string()).collect();
    let edges = |for_tests: bool| {
        let of_kind = members.iter().filter(move |edge| (edge["kind"] == "dev") == for_tests);
        of_kind.map(|edge| text(&edge["name"])).collect()
    };
    let is_root = |target: &&Value| {
        list(&target["kind"]).iter().all(|kind| !["test", "bench", "example"].contains(&text(kind).as_str()))
    };
    Package {
        name: text(&package["name"]),
        folder: manifest.trim_end_matches("Cargo.toml").trim_end_matches('/').to_owned(),
        uses: edges(false),
        tests_use: edges(true),
        roots: list(&package["targets"])
            .iter()
            .filter(is_root)
            .map(|path| from_root(&path["src_path"]))
            .collect(),
        rooms: Room::read(package),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutants_are_found_by_package_and_only_once() {
        let text = |name: &str| format!("if {}mutant = \"{name}\") {{}}", concat!("cfg", "!("));
        let file = |path: &str, text: String| TextFile { path: path.into(), text };
        let ring = file("crates/r/src/a.rs", text("late") + &text("early") + &text("late"));
        let files = vec![ring, file("README.md", text("prose"))];
        let (name, folder) = ("r".to_owned(), "crates/r".to_owned());
        let packages =
            vec![Package { name, folder, uses: vec![], tests_use: vec![], roots: vec![], rooms: vec![] }];
        let found: Vec<_> = Tree { files, packages }.mutants().into_iter().map(|(_, name)| name).collect();
        assert_eq!(found, ["early", "late"]);
    }

    #[test]
    fn cargo_names_the_members_and_their_first_files() {
        let tree = Tree::read().unwrap();
        let package = |name: &str| tree.packages.iter().find(|package| package.name == name).unwrap();
        assert_eq!(package("xtask").roots, ["xtask/src/main.rs"]);
        assert_eq!(package("evener-core").folder, "crates/evener-core");
        assert!(package("evener").uses.contains(&"evener-core".to_owned()));
        assert!(tree.files.iter().any(|file| file.path == "Cargo.toml"));
        assert!(
            !tree.files.iter().any(|file| file.path.starts_with("target/") || file.path.starts_with(".git/"))
        );
    }
}
