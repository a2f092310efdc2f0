//! How many requests were routed, where another process can read it after this one has ended in any way.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::{env, process};

/// Names a folder; each process writes its count to a file there that is called like its id.
const VARIABLE: &str = "PROVIDER_TEST_COUNTS";

/// What it named when the module was loaded: nginx takes its workers' environment away.
static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();

/// Reads where to count.
pub(crate) fn read_folder() {
    FOLDER.get_or_init(|| env::var_os(VARIABLE).map(PathBuf::from));
}

/// The count of one process. A child of a fork begins its own.
struct Count {
    process: u32,
    file: File,
    routed: u64,
}

static COUNT: Mutex<Option<Count>> = Mutex::new(None);

/// Counts one request more and returns how many they are; 0 where nobody asked for a count.
pub(crate) fn one_more() -> u64 {
    let mut count = COUNT.lock().unwrap_or_else(PoisonError::into_inner);
    if count.as_ref().is_none_or(|count| count.process != process::id()) {
        *count = Count::open();
    }
    let Some(count) = count.as_mut() else { return 0 };
    count.routed += 1;
    // A count that cannot be written is missed by the test that reads it.
    count.file.write_all_at(format!("{}\n", count.routed).as_bytes(), 0).unwrap_or_default();
    count.routed
}

impl Count {
    fn open() -> Option<Self> {
        let process = process::id();
        let path = FOLDER.get()?.as_ref()?.join(process.to_string());
        Some(Self { process, file: File::create(path).ok()?, routed: 0 })
    }
}
