//! How many requests were routed, where another process can read it after this one has ended in any way.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::{env, process};

/// Names a folder; each process appends a byte for each request to a file there that is called like its id.
const VARIABLE: &str = "PROVIDER_TEST_COUNTS";

/// What it named when the module was loaded: nginx takes its workers' environment away.
static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();

/// Reads where to count.
pub(crate) fn read_folder() {
    FOLDER.get_or_init(|| env::var_os(VARIABLE).map(PathBuf::from));
}

/// Counts one request more, where a count is wanted. Nothing is held between two requests and no lock in one: a child
/// that is forked while another thread counts would wait for it for ever.
pub(crate) fn one_more() {
    let Some(Some(folder)) = FOLDER.get() else { return };
    let file = File::options().append(true).create(true).open(folder.join(process::id().to_string()));
    // A count that cannot be written is missed by the test that reads it.
    file.and_then(|mut file| file.write_all(b".")).unwrap_or_default();
}
