//! Rooms: the folders and files right below a crate's `src`, and which of them may use which.
//!
//! A crate says so in its manifest, from the top down: `[[package.metadata.rooms]]` with `room = "submit"` and
//! `may-use = ["queue"]`. The first file (lib.rs, main.rs) is no room and may use all.

use serde_json::Value;

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) name: String,
    pub(crate) may_use: Vec<String>,
}

impl Room {
    /// The rows of a package, of what cargo says of it.
    pub(crate) fn read(package: &Value) -> Vec<Self> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let rows = list(&package["metadata"]["rooms"]);
        let row = |row: &Value| Self {
            name: text(&row["room"]),
            may_use: list(&row["may-use"]).iter().map(text).collect(),
        };
        rows.iter().map(row).collect()
    }
}

/// The room that a file lies in, of a crate whose first file is `root`; nothing for that itself.
pub(crate) fn room_of(root: &str, file: &str) -> Option<String> {
    let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
    let rest = file.strip_prefix(folder)?.strip_prefix('/')?;
    if file == root {
        return None;
    }
    let first = rest.split('/').next()?;
    Some(first.trim_end_matches(".rs").to_owned())
}
