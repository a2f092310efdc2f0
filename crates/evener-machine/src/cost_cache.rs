//! What jobs cost, kept between runs in a small text file of this processor.
//!
//! [`load`] -> calibration of what is needed and not known -> a run -> [`save`]. Nothing here stops a run: a file that cannot be read counts as none and is replaced,
//! one that cannot be written is done without. Its format is `evener_core::estimate::text`'s.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use std::{env, fs};

use evener::core::Estimator;
use evener::core::estimate::text::{BadLine, CostFile, CostScope};
use evener_fd::text::PathDisplay;
use evener_fd::{atomic_file, open_named};
use rustix::fs::OFlags;

use crate::libraries::Operation;
use crate::observer::Observer;

/// Longest file that is read: twice what all classes in all ways of the CPU and a module would take.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// What earlier runs learned of these operations on this machine; nothing where there is none. A file that cannot be used is named.
pub(crate) fn load(
    scope: &CostScope,
    processor: &str,
    operations: &[Operation],
    observer: &dyn Observer,
) -> Estimator {
    let algorithms: Vec<_> = operations.iter().map(|operation| operation.0).collect();
    let parse = |text: &str| CostFile::parse_only(text, &algorithms);
    let file = file(processor);
    let cost_file = file.as_ref().map_or_else(|| Ok(CostFile::default()), |file| read_by(file, scope, parse));
    match cost_file {
        Ok(cost_file) => {
            if let (Some(line), Some(file)) = (cost_file.unknown_line(), &file) {
                observer
                    .warn(&format!("{}: line {line} is of another version and left out", PathDisplay(file)));
            }
            cost_file.estimator(scope)
        }
        Err(complaint) => {
            observer.warn(&format!("{complaint}; what jobs cost is learned again"));
            scope.no_costs()
        }
    }
}

/// Keeps what a run learned, beside what the file holds of other modules and libraries.
///
/// # Errors
///
/// Where there is a directory for caches and the file cannot be written into it.
pub(crate) fn save(scope: &CostScope, processor: &str, learned: &Estimator) -> io::Result<()> {
    let Some(file) = file(processor) else { return Ok(()) };
    let mut cost_file = read(&file, scope).unwrap_or_default();
    cost_file.renew(scope, learned, now_s());
    match cost_file.sources().next() {
        Some(_) => atomic_file::write(&file, &cost_file.text(), 0o600),
        None => Ok(()),
    }
}

/// Where the costs of a machine with this processor are kept; `None` where no directory for caches is known.
pub fn file(processor: &str) -> Option<PathBuf> {
    directory().map(|directory| directory.join(file_name("costs", processor)))
}

/// Where Evener keeps what it measured: `EVENER_CACHE_DIR`, or `evener` in the user's directory for caches.
fn directory() -> Option<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // As the XDG base directory specification has it: a relative path counts as unset.
    let home = || set("HOME").map(|home| home.join(".cache"));
    let caches = || set("XDG_CACHE_HOME").filter(|path| path.is_absolute()).or_else(home);
    set("EVENER_CACHE_DIR").or_else(|| caches().map(|caches| caches.join("evener")))
}

/// One file per machine, so that machines that share a home do not overwrite each other's.
fn file_name(kind: &str, machine: &str) -> String {
    // FNV-1a: a name that stays the same from release to release, which std's hasher does not promise.
    let hash = machine.bytes().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    });
    format!("{kind}-{hash:016x}.txt")
}

/// What the file holds; nothing where there is none.
///
/// # Errors
///
/// A sentence about a file that cannot be used.
pub fn read(file: &Path, scope: &CostScope) -> Result<CostFile, String> {
    read_by(file, scope, CostFile::parse)
}

fn read_by(
    file: &Path,
    scope: &CostScope,
    parse: impl FnOnce(&str) -> Result<CostFile, BadLine>,
) -> Result<CostFile, String> {
    let about = |fact: &dyn std::fmt::Display| format!("{}: {fact}", PathDisplay(file));
    // Not blocking: a pipe in its place would keep every command.
    let opened =
        match open_named(file, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY).map(fs::File::from) {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(CostFile::default()),
            Err(error) => return Err(about(&error)),
        };
    if !opened.metadata().map_err(|error| about(&error))?.is_file() {
        return Err(about(&"is no regular file"));
    }
    let mut text = String::new();
    opened.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(|error| about(&error))?;
    let cost_file = parse(&text).map_err(|error| about(&error))?;
    match cost_file.is_for(scope) {
        true => Ok(cost_file),
        false => Err(about(&"is for another processor")),
    }
}

/// Removes the file; whether there was one.
///
/// # Errors
///
/// Where it is there and stays.
pub fn remove(file: &Path) -> io::Result<bool> {
    match fs::remove_file(file) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Seconds since 1970.
pub fn now_s() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).as_ref().map_or(0, Duration::as_secs)
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn a_pipe_in_the_files_place_is_refused_and_keeps_nobody() {
        let place = env::temp_dir().join(format!("evener-costs-{}", std::process::id()));
        mknodat(CWD, &place, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let refused = read(&place, &CostScope::new("processor X", &[], &[])).err();
        fs::remove_file(&place).unwrap();
        assert!(refused.is_some_and(|why| why.ends_with("is no regular file")));
    }

    #[test]
    fn machines_that_share_a_home_have_files_of_their_own() {
        assert_ne!(file_name("methods", "processor X"), file_name("methods", "processor Y"));
    }
}
