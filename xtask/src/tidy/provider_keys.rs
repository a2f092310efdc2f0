//! Each key of the provider's section has a row in the reference, with the variable that stands over it, and nothing else has one.

use std::collections::BTreeMap;

use super::Finding;
use crate::tree::TextFile;

const TABLE: &str = "docs/reference/configuration.md";
const SOURCE: &str = "crates/evener-provider/src/config/mod.rs";

/// Findings for keys without a row, rows without a key, and rows that name another variable.
pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    let text = |path| files.iter().find(|file| file.path == path).map(|file| file.text.as_str());
    let (Some(source), Some(table)) = (text(SOURCE), text(TABLE)) else { return Vec::new() };
    let keys = keys(source);
    let rows = rows(table);
    let missing = keys.iter().filter(|(key, _)| !rows.contains_key(*key));
    let missing = missing.map(|(key, _)| Finding::new(TABLE, 1, format!("the key `{key}` has no row")));
    let wrong = rows.iter().filter_map(|(key, (line, variable))| match keys.get(key) {
        None => Some(Finding::new(TABLE, *line, format!("the provider reads no key `{key}`"))),
        Some(read) if read != variable => {
            Some(Finding::new(TABLE, *line, format!("over `{key}` stands `{read}`")))
        }
        Some(_) => None,
    });
    missing.chain(wrong).collect()
}

/// Key and variable of each entry of the provider's own list.
fn keys(source: &str) -> BTreeMap<&str, &str> {
    let entries = source.split("name: c\"").skip(1);
    entries
        .filter_map(|entry| {
            let key = entry.split('"').next()?;
            let variable = entry.split_once("variable: \"")?.1.split('"').next()?;
            Some((key, variable))
        })
        .collect()
}

/// Key, line and variable of each row whose second cell is a variable.
fn rows(table: &str) -> BTreeMap<&str, (usize, &str)> {
    let rows = table.lines().enumerate().filter(|(_, line)| line.starts_with("| `"));
    rows.filter_map(|(number, line)| {
        let mut cells = line.split('|').skip(1).map(|cell| cell.trim().trim_matches('`'));
        Some((cells.next()?, (number + 1, cells.next()?)))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_without_rows_rows_without_keys_and_wrong_variables_are_found() {
        let source = "const KEYS: &[Key] = &[Key { name: c\"one\", variable: \"V_ONE\", wants: \"\" },\n\
                      Key {\n name: c\"two\",\n variable: \"V_TWO\" },\n Key { name: c\"new\", variable: \"V_NEW\" }];";
        let table = "| key | variable |\n|---|---|\n| `one` | `V_ONE` | on |\n| `two` | `V_ONE` |\n| `old` | `V_OLD` |\n";
        let file = |path: &str, text: &str| TextFile { path: path.to_owned(), text: text.to_owned() };
        let found = check(&[file(SOURCE, source), file(TABLE, table)]);
        let found: Vec<String> = found.iter().map(Finding::to_string).collect();
        let at = |line, text| format!("{TABLE}:{line}: {text}");
        let expected = [
            at(1, "the key `new` has no row"),
            at(5, "the provider reads no key `old`"),
            at(4, "over `two` stands `V_TWO`"),
        ];
        assert_eq!(found, expected);
    }
}
