//! Rust's errors as Python's exceptions: classes stand in `evener/_exceptions.py`, one for each kind of fault; what the system refused is an `OSError` with its number.

use std::path::Path;

use evener_c::Error;
use evener_fd::SystemError;
use evener_fd::text::{PathDisplay, one_line};
use evener_files::{FileError, FormatError, RequestError};
use evener_machine::MachineError;
use pyo3::exceptions::{PyMemoryError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// The kinds that Evener adds to Python's own.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// Whatever has no kind of its own.
    Error,
    /// A key, keyset, recipient, identity or passphrase that cannot be one.
    InvalidKey,
    /// None of the keys at hand fits.
    WrongKey,
    /// Bytes that are in no form that was expected.
    Format,
    /// Bytes that are not authentic.
    Authentication,
    /// Understood, and not done.
    Unsupported,
    /// Something stands where the output belongs.
    OutputExists,
    /// It was stopped.
    Cancelled,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Error => "Error",
            Self::InvalidKey => "InvalidKeyError",
            Self::WrongKey => "WrongKeyError",
            Self::Format => "FormatError",
            Self::Authentication => "AuthenticationError",
            Self::Unsupported => "UnsupportedError",
            Self::OutputExists => "OutputExistsError",
            Self::Cancelled => "CancelledError",
        }
    }

    /// An exception of this kind with a text of one line.
    pub(crate) fn exception(self, text: &str) -> PyErr {
        let text = words(text);
        Python::attach(|py| match class(py, self.name()) {
            Ok(class) => PyErr::from_type(class, text),
            Err(error) => error,
        })
    }
}

fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyType>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module =
        MODULE.get_or_try_init(py, || PyModule::import(py, "evener._exceptions").map(Bound::unbind))?;
    Ok(module.bind(py).getattr(name)?.cast_into::<PyType>()?)
}

/// A text of one line in which the command's options are arguments: `--force` is `force=`.
fn words(text: &str) -> String {
    let argument = |word: &str| {
        let (open, word) = word.strip_prefix('(').map_or(("", word), |rest| ("(", rest));
        let name = match word {
            "-i" => Some("identity".to_owned()),
            "-o" => Some("output".to_owned()),
            _ => word.strip_prefix("--").map(|name| name.replace('-', "_")),
        };
        let Some(name) = name.filter(|name| !name.is_empty()) else { return format!("{open}{word}") };
        let end = name.trim_end_matches(|sign: char| !sign.is_ascii_alphanumeric());
        format!("{open}{end}={}", &name[end.len()..])
    };
    one_line(text).split(' ').map(argument).collect::<Vec<_>>().join(" ")
}

/// What is wrong with a format or a key.
pub(crate) fn of_format(error: &FormatError) -> PyErr {
    let kind = match error {
        FormatError::NoKeyFits { .. } => Kind::WrongKey,
        FormatError::Keyset(_)
        | FormatError::Recipient(_)
        | FormatError::Identity(_)
        | FormatError::Passphrase(_)
        | FormatError::ExcessiveWork { .. }
        | FormatError::TooMuchWork { .. }
        | FormatError::Plugin { .. } => Kind::InvalidKey,
        FormatError::Header { .. }
        | FormatError::Truncated { .. }
        | FormatError::EmptyLastSegment
        | FormatError::TooLong { .. } => Kind::Format,
        FormatError::NotAuthentic { .. } | FormatError::BadPadding => Kind::Authentication,
        FormatError::Unsupported(_) => Kind::Unsupported,
        _ => Kind::Error,
    };
    kind.exception(&error.to_string())
}

/// A format's or a key's fault with the place that it was found in.
pub(crate) fn at(place: &dyn std::fmt::Display, error: &FormatError) -> PyErr {
    let python = of_format(error);
    Python::attach(|py| PyErr::from_type(python.get_type(py), words(&format!("{place}: {error}"))))
}

/// Why one file was not done.
pub(crate) fn of_file(path: Option<&Path>, error: &FileError) -> PyErr {
    let text = match path {
        Some(path) => format!("{}: {error}", PathDisplay(path)),
        None => error.to_string(),
    };
    let kind = match error {
        FileError::Io(error) => return of_system(path, error),
        FileError::Format(error) => match path {
            Some(path) => return at(&PathDisplay(path), error),
            None => return of_format(error),
        },
        FileError::NoPlace { path, error } => return of_file(Some(path), error),
        FileError::Exists | FileError::Outdated | FileError::OtherKey | FileError::UnknownRecipients => {
            Kind::OutputExists
        }
        FileError::Stopped => Kind::Cancelled,
        _ => Kind::Error,
    };
    kind.exception(&text)
}

/// What the system refused, as Python says it: `PermissionError`, `FileNotFoundError` and so on, with the file's name.
pub(crate) fn of_system(path: Option<&Path>, error: &SystemError) -> PyErr {
    let answer = error.answer();
    // What a file object of Python's raised.
    if let Some(raised) = answer.get_ref().and_then(|cause| cause.downcast_ref::<PyErr>()) {
        return Python::attach(|py| raised.clone_ref(py));
    }
    let words = words(&format!("cannot {error}"));
    match (answer.raw_os_error(), path) {
        (Some(number), Some(path)) => PyOSError::new_err((number, words, path.as_os_str().to_owned())),
        (Some(number), None) => PyOSError::new_err((number, words)),
        (None, _) => PyOSError::new_err(words),
    }
}

/// Why nothing could be begun.
pub(crate) fn of_request(error: &RequestError) -> PyErr {
    match error {
        RequestError::Stdio(error) => of_system(None, error),
        RequestError::Output { path, error } => of_file(Some(path), error),
        RequestError::Exists(_) => Kind::OutputExists.exception(&error.to_string()),
        RequestError::NoMemory { .. } => PyMemoryError::new_err(words(&error.to_string())),
        RequestError::NoThread(_) => PyRuntimeError::new_err(words(&error.to_string())),
        _ => PyValueError::new_err(words(&error.to_string())),
    }
}

/// A module that was named and cannot be used.
pub(crate) fn of_machine(error: &MachineError) -> PyErr {
    Kind::Unsupported.exception(&error.to_string())
}

/// Why a job failed.
pub(crate) fn of_job(number: usize, error: Error) -> PyErr {
    let text = format!("job {number}: {}", error.meaning().trim_end_matches('\0'));
    match error {
        Error::BadMessage | Error::BadPadding => Kind::Authentication.exception(&text),
        Error::Invalid => {
            PyValueError::new_err(format!("job {number}: its length does not fit the algorithm"))
        }
        Error::Unsupported => Kind::Unsupported.exception(&text),
        Error::Canceled => Kind::Cancelled.exception(&text),
        _ => Kind::Error.exception(&text),
    }
}
