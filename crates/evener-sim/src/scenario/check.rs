//! Ranges of values, and errors with file, line and key.

use std::fmt::Display;
use std::ops::{Range, RangeInclusive};

use toml::Spanned;

/// What is wrong with a scenario, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {key}: {reason}")]
pub struct ScenarioError {
    /// The file's name.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The key, as far as it is known; else the text of the line.
    pub key: String,
    /// What is wrong with it.
    pub reason: String,
}

/// A text with its name.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) file: &'a str,
    pub(super) text: &'a str,
}

impl Source<'_> {
    pub(super) fn error(&self, span: &Range<usize>, key: &str, reason: impl Into<String>) -> ScenarioError {
        let before = &self.text.as_bytes()[..span.start.min(self.text.len())];
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        ScenarioError { file: self.file.to_owned(), line, key: key.to_owned(), reason: reason.into() }
    }

    /// An error of the TOML reader.
    pub(super) fn reading_error(&self, error: &toml::de::Error) -> ScenarioError {
        let span = error.span().unwrap_or(0..0);
        let mut found = self.error(&span, "", error.message());
        let text = self.text.lines().nth(found.line - 1).unwrap_or_default();
        found.key = text.split('=').next().unwrap_or_default().trim().to_owned();
        found
    }

    /// A value that lies in its range.
    pub(super) fn within<T: PartialOrd + Display + Copy>(
        &self,
        key: &str,
        value: &Spanned<T>,
        range: RangeInclusive<T>,
    ) -> Result<T, ScenarioError> {
        let number = *value.get_ref();
        if range.contains(&number) {
            return Ok(number);
        }
        let reason = format!("{number} is not within {} to {}", range.start(), range.end());
        Err(self.error(&value.span(), key, reason))
    }

    /// As [`Source::within`], for a `u32`.
    pub(super) fn small(
        &self,
        key: &str,
        value: &Spanned<u64>,
        range: RangeInclusive<u32>,
    ) -> Result<u32, ScenarioError> {
        let wide = u64::from(*range.start())..=u64::from(*range.end());
        let number = self.within(key, value, wide)?;
        Ok(u32::try_from(number).expect("the range's end is a u32"))
    }
}
