//! What was measured and kept: a report of the command in the guest, with how and where it came about.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::Value;

/// One file of the folder.
#[derive(Deserialize)]
pub(crate) struct StoredReport {
    /// Its name, without ending.
    #[serde(skip)]
    pub(crate) name: String,
    /// What was run in the guest.
    pub(crate) command: String,
    /// Date, machine and versions, a list in Markdown.
    pub(crate) circumstances: String,
    /// What the command wrote.
    pub(crate) report: Value,
}

/// All reports of a folder, by name.
pub(crate) fn read(folder: &Path) -> anyhow::Result<Vec<StoredReport>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("{}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_none_or(|ending| ending != "json") {
            continue;
        }
        let read = || format!("{}", path.display());
        let kept: StoredReport =
            serde_json::from_slice(&fs::read(&path).with_context(read)?).with_context(read)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        all.push(StoredReport { name, ..kept });
    }
    all.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(all)
}

/// The report of that name, where it was made.
pub(crate) fn find<'k>(all: &'k [StoredReport], name: &str) -> Option<&'k StoredReport> {
    all.iter().find(|kept| kept.name == name)
}

/// What was run, and where; once where several came about alike.
pub(crate) fn circumstances(all: &[StoredReport]) -> String {
    let mut text = "\n## Commands and circumstances\n".to_owned();
    let mut seen = Vec::new();
    for kept in all {
        if !seen.contains(&&kept.circumstances) {
            seen.push(&kept.circumstances);
        }
    }
    for circumstances in seen {
        text.push('\n');
        for kept in all.iter().filter(|kept| kept.circumstances == *circumstances) {
            writeln!(text, "- [{0}](guest/{0}.json): `{1}`", kept.name, kept.command).ok();
        }
        text += &format!("\n{circumstances}").replace("\n- ", "\n  - ");
    }
    text
}

/// The items of a list.
pub(crate) fn list<'v>(value: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    value[name].as_array().into_iter().flatten()
}

/// A contender of a cell, by its policy.
pub(crate) fn under<'v>(cell: &'v Value, policy: &str) -> Option<&'v Value> {
    list(cell, "contenders")
        .find(|one| one["contender"].as_str().is_some_and(|name| name.split(' ').nth(1) == Some(policy)))
}

/// The median of a spread.
pub(crate) fn median(value: &Value, name: &str) -> Option<f64> {
    value[name]["median"].as_f64()
}

/// Plaintext bytes of a cell's jobs.
pub(crate) fn bytes(cell: &Value) -> Option<f64> {
    cell["cell"].as_str()?.parse().ok()
}

/// A number with so many decimals, or a dash.
pub(crate) fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.decimals$}"))
}
