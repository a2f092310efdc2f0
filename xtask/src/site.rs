//! Pages that are made: the reference of the command line from the command itself, and the site of `docs/` by mdBook.
//!
//! Path of the site: mdBook is looked for -> pages of `docs/` and those that they lead to beside it are laid out with their contents
//! ([`lay_out`]) -> it builds `book.toml` -> links of the pages it made are followed ([`dead_links`]).

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{fs, io};

use crate::programs::{answer, run};
use crate::tree::{cargo, root};

const REFERENCE: &str = "docs/reference/command-line.md";
const CONTENTS: &str = "docs/SUMMARY.md";

/// Where `book.toml` says that the site's sources lie, and where it goes.
const SOURCES: &str = "target/site-sources";
const SITE: &str = "target/site";

/// The first page.
const FIRST: &str = "README.md";

/// Pages beside `docs/` that its pages lead to, with their titles in the contents.
const BESIDE: [(&str, &str); 3] = [
    ("CHANGELOG.md", "Changes"),
    ("CONTRIBUTING.md", "Contributing"),
    ("vectors/papers/README.md", "The papers' tables"),
];

/// Makes the page of all commands anew.
pub(crate) fn write_reference() -> ExitCode {
    let mut command = cargo();
    command.args(["run", "-q", "-p", "evener-cli", "--", "man", "--reference"]);
    let made = answer(command).and_then(|page| {
        fs::write(root().join(REFERENCE), page).map_err(|error| format!("{REFERENCE}: {error}"))
    });
    finish("reference", made)
}

/// Builds the site of `docs/` and follows its links.
pub(crate) fn build() -> ExitCode {
    finish("docs", site())
}

fn finish(what: &str, outcome: Result<(), String>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{what}: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn site() -> Result<(), String> {
    let mut mdbook = Command::new("mdbook");
    if mdbook.arg("--version").output().is_err() {
        return Err(
            "there is no mdbook in PATH; `cargo install mdbook` brings it, or a package of your distribution"
                .to_owned(),
        );
    }
    lay_out(&root(), &root().join(SOURCES)).map_err(|error| format!("{SOURCES}: {error}"))?;
    let mut build = Command::new("mdbook");
    build.arg("build").arg(root());
    run(build)?;
    let site = root().join(SITE);
    name_readmes(&site).map_err(|error| format!("{SITE}: {error}"))?;
    let dead = dead_links(&site).map_err(|error| format!("{SITE}: {error}"))?;
    for link in &dead {
        eprintln!("docs: {link}");
    }
    if !dead.is_empty() {
        return Err(format!("{} links of the site lead nowhere", dead.len()));
    }
    println!("{SITE}/index.html");
    Ok(())
}

/// Copies what the site is made from to `sources`, and writes its contents there.
fn lay_out(root: &Path, sources: &Path) -> io::Result<()> {
    if sources.exists() {
        fs::remove_dir_all(sources)?;
    }
    copy_below(&root.join("docs"), &sources.join("docs"))?;
    fs::copy(root.join(FIRST), sources.join(FIRST))?;
    let contents = fs::read_to_string(root.join(CONTENTS))?.replace("](", "](docs/");
    let mut contents = contents.replacen("\n[", &format!("\n[Evener]({FIRST})\n\n["), 1);
    contents += "\n# Beside the pages\n\n";
    for (page, title) in BESIDE {
        let target = sources.join(page);
        fs::create_dir_all(target.parent().unwrap_or(sources))?;
        fs::copy(root.join(page), target)?;
        contents += &format!("- [{title}]({page})\n");
    }
    fs::write(sources.join("SUMMARY.md"), contents)
}

fn copy_below(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy_below(&path, &target)?;
        } else {
            fs::copy(&path, target)?;
        }
    }
    Ok(())
}

/// mdBook makes `index.html` of a `README.md`, and leaves links to the latter's name as they are.
fn name_readmes(site: &Path) -> io::Result<()> {
    let mut pages = Vec::new();
    add_pages(site, &mut pages)?;
    for index in pages.iter().filter(|page| page.ends_with("index.html")) {
        fs::copy(index, index.with_file_name("README.html"))?;
    }
    Ok(())
}

/// Links between pages of the site to files or headings that are not there.
fn dead_links(site: &Path) -> io::Result<Vec<String>> {
    let mut dead = Vec::new();
    let mut pages = Vec::new();
    add_pages(site, &mut pages)?;
    for page in pages.iter().filter(|page| !page.ends_with("print.html") && !page.ends_with("404.html")) {
        let text = fs::read_to_string(page)?;
        let links = text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
        for link in links.filter(|link| !link.contains(':') && !leads_somewhere(page, &text, link)) {
            dead.push(format!("{}: {link}", page.strip_prefix(site).unwrap_or(page).display()));
        }
    }
    Ok(dead)
}

fn add_pages(folder: &Path, pages: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            add_pages(&path, pages)?;
        } else if path.extension().is_some_and(|end| end == "html") {
            pages.push(path);
        }
    }
    Ok(())
}

fn leads_somewhere(page: &Path, text: &str, link: &str) -> bool {
    let (path, heading) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() { page.to_owned() } else { page.with_file_name(path) };
    let has_heading = |text: &str| heading.is_empty() || text.contains(&format!("id=\"{heading}\""));
    if path.is_empty() {
        return has_heading(text);
    }
    target.exists() && (heading.is_empty() || fs::read_to_string(target).is_ok_and(|text| has_heading(&text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contents_of_the_site_begin_with_the_readme_and_lead_to_each_page_where_it_was_laid() {
        let root = std::env::temp_dir().join(format!("evener-site-pages-{}", std::process::id()));
        for page in BESIDE.map(|(page, _)| page).into_iter().chain([FIRST, "docs/guide/a.md"]) {
            fs::create_dir_all(root.join(page).parent().unwrap()).unwrap();
            fs::write(root.join(page), "# Page\n").unwrap();
        }
        fs::write(root.join(CONTENTS), "# Contents\n\n[Pages](guide/a.md)\n").unwrap();
        lay_out(&root, &root.join("sources")).unwrap();
        let contents = fs::read_to_string(root.join("sources/SUMMARY.md")).unwrap();
        let links = contents.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let links: Vec<&str> = links.collect();
        assert_eq!(links[..2], ["README.md", "docs/guide/a.md"]);
        assert!(links.len() == 5 && links.iter().all(|link| root.join("sources").join(link).is_file()));
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn links_of_the_site_to_what_is_not_there_are_found() {
        let site = std::env::temp_dir().join(format!("evener-site-{}", std::process::id()));
        fs::create_dir_all(site.join("b")).unwrap();
        let one = "<a href=\"b/c.html#x\"> <a href=\"#y\"> <a href=\"https://gone.org\"><p id=\"y\">";
        fs::write(site.join("a.html"), one).unwrap();
        let other = "<a href=\"../a.html#z\"> <a href=\"gone.html\"> <p id=\"x\">";
        fs::write(site.join("b/c.html"), other).unwrap();
        let found = dead_links(&site).unwrap();
        fs::remove_dir_all(&site).unwrap();
        assert_eq!(found, ["b/c.html: ../a.html#z", "b/c.html: gone.html"]);
    }
}
