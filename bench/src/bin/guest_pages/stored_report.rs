//! What was measured and kept: a report of the command in the guest, with how and where it came about.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;
use evener_bench::programs::stopwatch;
use serde::Deserialize;
use serde_json::Value;

/// What ends the names of reports, which gzip packed.
const ENDING: &str = ".json.gz";

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
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let Some(name) = file.strip_suffix(ENDING).map(str::to_owned) else { continue };
        let read = || format!("{}", path.display());
        let kept: StoredReport = serde_json::from_slice(&unpacked(&path)?).with_context(read)?;
        all.push(StoredReport { name, ..kept });
    }
    all.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(all)
}

fn unpacked(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut gzip = Command::new("gzip");
    gzip.arg("-dc").arg(path);
    Ok(stopwatch::run(gzip)?)
}

/// The report of that name, where it was made.
pub(crate) fn find<'k>(all: &'k [StoredReport], name: &str) -> Option<&'k StoredReport> {
    all.iter().find(|kept| kept.name == name)
}

/// What was run, and where: what all came about by, then a row for each with the rest.
pub(crate) fn circumstances(all: &[StoredReport]) -> String {
    let mut text = "\n## Commands and circumstances\n\n".to_owned();
    let is_common = |line: &&str| all.iter().all(|kept| kept.lines().any(|other| other == *line));
    let common: Vec<&str> = all.first().into_iter().flat_map(StoredReport::lines).filter(is_common).collect();
    common.iter().for_each(|line| _ = writeln!(text, "- {line}"));
    text += "\n| report | command | of this one |\n|---|---|---|\n";
    for kept in all {
        let rest: Vec<&str> = kept.lines().filter(|line| !common.contains(line)).collect();
        let StoredReport { name, command, .. } = kept;
        writeln!(text, "| [{name}](guest/{name}{ENDING}) | `{command}` | {} |", rest.join("; ")).ok();
    }
    text
}

impl StoredReport {
    /// The items of its circumstances.
    fn lines(&self) -> impl Iterator<Item = &str> {
        self.circumstances.lines().filter_map(|line| line.strip_prefix("- "))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_reports_are_read_by_their_names_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in
            [("b", "{\"command\":\"x\",\"circumstances\":\"\",\"report\":[2]}"), ("a.svg", "no")]
        {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let mut gzip = Command::new("gzip");
        gzip.arg("-9nS").arg(ENDING).arg(folder.path().join("b"));
        stopwatch::run(gzip).unwrap();
        let all = read(folder.path()).unwrap();
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].name.as_str(), all[0].report[0].as_u64()), ("b", Some(2)));
    }

    #[test]
    fn what_all_reports_came_about_by_is_told_once() {
        let kept = |name: &str, circumstances: &str| StoredReport {
            name: name.to_owned(),
            command: format!("run {name}"),
            circumstances: circumstances.to_owned(),
            report: Value::Null,
        };
        let all = [kept("a", "- date: 1\n- system: S\n- load: 2\n"), kept("b", "- date: 3\n- system: S\n")];
        let text = circumstances(&all);
        assert_eq!(text.matches("system: S").count(), 1, "{text}");
        for row in [
            "| [a](guest/a.json.gz) | `run a` | date: 1; load: 2 |",
            "| [b](guest/b.json.gz) | `run b` | date: 3 |",
        ] {
            assert!(text.lines().any(|line| line == row), "{row} in\n{text}");
        }
    }
}
