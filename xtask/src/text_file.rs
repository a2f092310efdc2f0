//! A text of the workspace.

/// A file that is UTF-8.
pub(crate) struct TextFile {
    /// From the root of the workspace, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}
