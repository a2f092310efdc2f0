//! The archives that this system uses, written down once more: its own release with updates, and its backports.
//!
//! Only files that the distribution itself writes are read, in both of their forms.

use std::collections::BTreeMap;
use std::fs;

use crate::error::Error;

/// Files in which Debian and Ubuntu name their own archives.
const FILES: [&str; 3] = [
    "/etc/apt/sources.list",
    "/etc/apt/sources.list.d/debian.sources",
    "/etc/apt/sources.list.d/ubuntu.sources",
];

/// An archive, as one line of a list says it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Archive {
    signed_by: Option<String>,
    uri: String,
    suite: String,
    components: String,
}

impl Archive {
    fn line(&self, architectures: &str) -> String {
        let key = self.signed_by.as_ref().map(|key| format!(" signed-by={key}")).unwrap_or_default();
        format!("deb [arch={architectures}{key}] {} {} {}\n", self.uri, self.suite, self.components)
    }
}

/// The name of this release, as in /etc/os-release.
pub(super) fn codename() -> Result<String, Error> {
    let text = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    name.map(|name| name.trim_matches('"').to_owned())
        .ok_or_else(|| Error::Packages("/etc/os-release names no release of Debian or Ubuntu".to_owned()))
}

/// A list for apt: the archives of `codename`, and of a `foreign` architecture, if one is named, the release itself.
pub(super) fn list(codename: &str, foreign: &str) -> Result<String, Error> {
    let texts = FILES.iter().filter_map(|file| Some((file, fs::read_to_string(file).ok()?)));
    let archives: Vec<Archive> = texts
        .flat_map(|(file, text)| if file.ends_with(".list") { one_liners(&text) } else { stanzas(&text) })
        .filter(|archive| archive.suite.split('-').next() == Some(codename))
        .collect();
    if archives.is_empty() {
        return Err(Error::Packages(format!("no archive of {codename} in {}", FILES.join(", "))));
    }
    let line = |archive: &Archive| match archive.suite == codename && !foreign.is_empty() {
        true => archive.line(&format!("amd64,{foreign}")),
        false => archive.line("amd64"),
    };
    Ok(with_backports(codename, archives).iter().map(line).collect())
}

/// Adds the backports, which lie beside the release itself.
fn with_backports(codename: &str, mut archives: Vec<Archive>) -> Vec<Archive> {
    let suite = format!("{codename}-backports");
    let release = archives.iter().find(|archive| archive.suite == codename).cloned();
    if let (Some(release), false) = (release, archives.iter().any(|archive| archive.suite == suite)) {
        archives.push(Archive { suite, ..release });
    }
    archives
}

/// Lines like `deb [signed-by=KEY] URI SUITE COMPONENT...`.
fn one_liners(text: &str) -> Vec<Archive> {
    text.lines().filter_map(one_liner).collect()
}

fn one_liner(line: &str) -> Option<Archive> {
    let rest = line.trim().strip_prefix("deb ")?.trim_start();
    let (options, rest) = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => ("", rest),
    };
    let signed_by = options.split_whitespace().find_map(|option| option.strip_prefix("signed-by="));
    let mut words = rest.split_whitespace();
    let (uri, suite) = (words.next()?.to_owned(), words.next()?.to_owned());
    let components = words.collect::<Vec<_>>().join(" ");
    Some(Archive { signed_by: signed_by.map(str::to_owned), uri, suite, components })
}

/// Paragraphs of `Field: value` (man 5 sources.list, "deb822").
fn stanzas(text: &str) -> Vec<Archive> {
    text.split("\n\n").flat_map(stanza).collect()
}

fn stanza(text: &str) -> Vec<Archive> {
    let fields: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once(':')).collect();
    let words = |name| fields.get(name).map_or("", |value| value.trim()).split_whitespace();
    let archive = |uri: &str, suite: &str| Archive {
        signed_by: words("Signed-By").next().map(str::to_owned),
        uri: uri.to_owned(),
        suite: suite.to_owned(),
        components: words("Components").collect::<Vec<_>>().join(" "),
    };
    words("URIs")
        .flat_map(|uri| words("Suites").map(move |suite| (uri, suite)))
        .map(|(uri, suite)| archive(uri, suite))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_one_archive_are_read_alike() {
        let line = "# a comment\ndeb [signed-by=/k.gpg] http://example.test/debian bookworm main contrib\n";
        let stanza = "Types: deb\n# a comment\nURIs: http://example.test/debian\nSuites: bookworm\nComponents: main contrib\nSigned-By: /k.gpg\n";
        assert_eq!(one_liners(line), stanzas(stanza));
        assert_eq!(
            one_liners(line)[0].line("amd64,armhf"),
            "deb [arch=amd64,armhf signed-by=/k.gpg] http://example.test/debian bookworm main contrib\n"
        );
    }

    #[test]
    fn backports_are_added_once_and_beside_the_release() {
        let archives =
            stanzas("URIs: http://example.test/debian\nSuites: bookworm bookworm-updates\nComponents: main");
        let suites =
            |archives: &[Archive]| archives.iter().map(|archive| archive.suite.clone()).collect::<Vec<_>>();
        let once = with_backports("bookworm", archives);
        assert_eq!(suites(&once), ["bookworm", "bookworm-updates", "bookworm-backports"]);
        assert_eq!(with_backports("bookworm", once.clone()), once);
    }
}
