//! The ends of a stream: standard input and output, a descriptor that was named by its number, a pipe or device with a name of its own.
//!
//! What is such an end has no length beforehand, or no place beside it where a draft could stand.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd as _, OwnedFd, RawFd};
use std::path::Path;

use evener_fd::text::PathDisplay;
use evener_fd::{SystemError, open_named};
use rustix::fs::{self, FileType, OFlags};
use rustix::io::Errno;

use crate::request::{Request, RequestError, Source, Target};

/// Whether a request goes through a stream.
pub(crate) fn is_stream(request: &Request) -> bool {
    let from_stream = match request.sources.as_slice() {
        [Source::Path(path)] => is_source(path),
        sources => sources.contains(&Source::Stdin),
    };
    from_stream
        || match &request.target {
            Target::Stdout => true,
            Target::Beside | Target::Nowhere(_) => false,
            Target::Path(path) => matches!(request.sources.as_slice(), [_]) && is_sink(path),
        }
}

/// Whether `path` can only be read from front to back: a pipe, a device, a descriptor, a file of the kernel's own.
#[must_use]
pub fn is_source(path: &Path) -> bool {
    number_of(path).is_some()
        || match fs::stat(path) {
            Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => false,
                // The kernel's own files say that they are empty, whatever they hold.
                FileType::RegularFile => stat.st_size == 0 && has_bytes(path),
                _ => true,
            },
            // The walk says what is wrong.
            Err(_) => false,
        }
}

fn has_bytes(path: &Path) -> bool {
    File::open(path).and_then(|mut file| file.read(&mut [0])).is_ok_and(|bytes| bytes > 0)
}

/// Whether `path` is written to as it stands there.
pub(super) fn is_sink(path: &Path) -> bool {
    let is_special = |stat: fs::Stat| {
        !matches!(FileType::from_raw_mode(stat.st_mode), FileType::RegularFile | FileType::Directory)
    };
    number_of(path).is_some() || fs::stat(path).is_ok_and(is_special)
}

/// Where the output of a stream lies among files: that of a pipe, a terminal or a device lies nowhere, and standard output where a shell
/// has made a file of it.
pub(crate) fn place_of(target: &Target) -> Option<&Path> {
    let path = match target {
        Target::Path(path) => path.as_path(),
        Target::Stdout => Path::new(STDOUT),
        Target::Beside | Target::Nowhere(_) => return None,
    };
    let is_file = |stat: fs::Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    (!is_sink(path) || fs::stat(path).is_ok_and(is_file)).then_some(path)
}

const STDOUT: &str = "/dev/stdout";

/// Opens a source; `None` is standard input.
pub(super) fn open_source(path: Option<&Path>) -> Result<OwnedFd, RequestError> {
    let path = path.unwrap_or_else(|| Path::new("/dev/stdin"));
    if let Some(number) = number_of(path) {
        return descriptor(number, path);
    }
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY;
    open_named(path, flags).map_err(cannot("read", path))
}

/// Opens a sink; `None` is standard output. A disk is overwritten only where that is allowed.
pub(super) fn open_sink(path: Option<&Path>, overwrite: bool) -> Result<OwnedFd, RequestError> {
    let path = path.unwrap_or_else(|| Path::new(STDOUT));
    if let Some(number) = number_of(path) {
        return descriptor(number, path);
    }
    let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOCTTY;
    let fd = open_named(path, flags).map_err(cannot("write to", path))?;
    let stat = fs::fstat(&fd).map_err(|errno| cannot("write to", path)(errno.into()))?;
    match FileType::from_raw_mode(stat.st_mode) {
        // What was seen there is gone, or a disk would be overwritten.
        FileType::RegularFile | FileType::Directory => Err(RequestError::Exists(path.to_owned())),
        FileType::BlockDevice if !overwrite => Err(RequestError::Exists(path.to_owned())),
        _ => Ok(fd),
    }
}

/// Whether `path` names a descriptor, which has no name of its own.
pub(super) fn is_number(path: &Path) -> bool {
    number_of(path).is_some()
}

/// The number in `/dev/fd/3` and its like.
fn number_of(path: &Path) -> Option<RawFd> {
    match path.to_str()? {
        "/dev/stdin" => Some(0),
        STDOUT => Some(1),
        "/dev/stderr" => Some(2),
        path => {
            let number = path.strip_prefix("/dev/fd/").or_else(|| path.strip_prefix("/proc/self/fd/"))?;
            number.bytes().all(|digit| digit.is_ascii_digit()).then(|| number.parse().ok()).flatten()
        }
    }
}

/// Shares the open file at `number`, with its offset.
fn descriptor(number: RawFd, path: &Path) -> Result<OwnedFd, RequestError> {
    evener_startup::duplicate(number).map_err(|error| match (Errno::from_io_error(&error), number) {
        (Some(Errno::BADF), 0) => RequestError::Closed("standard input".to_owned()),
        (Some(Errno::BADF), 1) => RequestError::Closed("standard output".to_owned()),
        (Some(Errno::BADF), _) => RequestError::Closed(PathDisplay(path).to_string()),
        _ => RequestError::Stdio(SystemError::of(format!("open {}", PathDisplay(path)))(error)),
    })
}

fn cannot(verb: &str, path: &Path) -> impl FnOnce(std::io::Error) -> RequestError {
    let doing = format!("{verb} {}", PathDisplay(path));
    |error| RequestError::Stdio(SystemError::of(doing)(error))
}

/// Whether what is written there is shown to a person.
pub(super) fn is_terminal(fd: &OwnedFd) -> bool {
    rustix::termios::isatty(fd.as_fd())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_known_by_their_numbers_and_other_paths_are_files() {
        for (path, number) in
            [("/dev/stdin", 0), ("/dev/stdout", 1), ("/dev/fd/63", 63), ("/proc/self/fd/3", 3)]
        {
            assert_eq!(number_of(Path::new(path)), Some(number), "{path}");
        }
        for path in
            ["/dev/fd/", "/dev/fd/-1", "/dev/fd/3/x", "/dev/null", "dev/fd/3", "/dev/fd/99999999999999"]
        {
            assert_eq!(number_of(Path::new(path)), None, "{path}");
        }
    }
}
