//! Why a call of the system's failed, told with what was asked of it.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::sync::Arc;

/// A call of the system's that failed: what was asked of it, and its answer. Its text is `what: answer`.
#[derive(Clone, Debug)]
pub struct SystemError {
    what: Cow<'static, str>,
    answer: Arc<io::Error>,
}

impl SystemError {
    /// To be mapped over the answer to what was asked: `map_err(SystemError::of("an event"))`.
    pub fn of<E: Into<io::Error>>(what: impl Into<Cow<'static, str>>) -> impl FnOnce(E) -> Self {
        let what = what.into();
        |answer| Self { what, answer: Arc::new(answer.into()) }
    }

    /// Returns what was asked.
    #[must_use]
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Returns what the system answered.
    #[must_use]
    pub fn answer(&self) -> &io::Error {
        &self.answer
    }
}

impl fmt::Display for SystemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.answer)
    }
}

impl std::error::Error for SystemError {}

/// Alike are two where the same was asked and the answer has the same number, or is of the same kind where it has none.
impl PartialEq for SystemError {
    fn eq(&self, other: &Self) -> bool {
        let key = |error: &Self| (error.answer.raw_os_error(), error.answer.kind());
        self.what == other.what && key(self) == key(other)
    }
}

impl Eq for SystemError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_text_says_what_was_asked_and_what_was_answered() {
        let error = SystemError::of("an event")(io::Error::from_raw_os_error(libc::EMFILE));
        let answer = io::Error::from_raw_os_error(libc::EMFILE);
        assert_eq!(error.to_string(), format!("an event: {answer}"));
        assert_eq!(error.answer().raw_os_error(), Some(libc::EMFILE));
    }

    #[test]
    fn two_are_alike_where_the_same_was_asked_and_answered() {
        let of = |what: &'static str, number| SystemError::of(what)(io::Error::from_raw_os_error(number));
        assert_eq!(of("a", libc::EIO), of("a", libc::EIO));
        assert_ne!(of("a", libc::EIO), of("b", libc::EIO));
        assert_ne!(of("a", libc::EIO), of("a", libc::EPERM));
        let none = SystemError::of("a")(io::Error::from(io::ErrorKind::Other));
        assert_ne!(none, of("a", libc::EIO));
    }
}
