//! Naming: what the output of a file is called, by the name of its source, and the other way round.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use crate::error::FileError;

/// How names of files become those of their outputs. Directories and links keep theirs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Naming {
    /// As they are.
    #[default]
    Kept,
    /// A suffix is added.
    Added(OsString),
    /// A suffix is taken away; a name that has none is an error.
    Taken(OsString),
}

impl Naming {
    /// The name of the output of the file `source`.
    ///
    /// # Errors
    ///
    /// [`FileError::NoSuffix`] where a suffix is to be taken away that is not there.
    pub fn output<'n>(&self, source: &'n OsStr) -> Result<Cow<'n, OsStr>, FileError> {
        match self {
            Self::Kept => Ok(Cow::Borrowed(source)),
            Self::Added(suffix) => Ok(with(source, suffix)),
            Self::Taken(suffix) => without(source, suffix).ok_or_else(|| FileError::NoSuffix(suffix.clone())),
        }
    }

    /// The name of the file whose output is called `output`; `None` where no file's is.
    #[must_use]
    pub fn source<'n>(&self, output: &'n OsStr) -> Option<Cow<'n, OsStr>> {
        match self {
            Self::Kept => Some(Cow::Borrowed(output)),
            Self::Added(suffix) => without(output, suffix),
            Self::Taken(suffix) => Some(with(output, suffix)),
        }
    }

    /// As [`Naming::output`] of a file whose output lies beside it. One that has its suffix already was encrypted before.
    pub(crate) fn beside<'n>(&self, source: &'n OsStr) -> Result<Cow<'n, OsStr>, FileError> {
        match self {
            Self::Added(suffix) if without(source, suffix).is_some() => {
                Err(FileError::HasSuffix(suffix.clone()))
            }
            _ => self.output(source),
        }
    }

    /// The name of the file beside the directory or link `name` whose output would have the name that this one keeps.
    pub(crate) fn rival<'n>(&self, name: &'n OsStr) -> Option<Cow<'n, OsStr>> {
        match self {
            Self::Kept => None,
            _ => self.source(name),
        }
    }
}

fn with<'n>(name: &OsStr, suffix: &OsStr) -> Cow<'n, OsStr> {
    let mut name = name.to_owned();
    name.push(suffix);
    Cow::Owned(name)
}

fn without<'n>(name: &'n OsStr, suffix: &OsStr) -> Option<Cow<'n, OsStr>> {
    let stem = name.as_bytes().strip_suffix(suffix.as_bytes())?;
    // What would be left is no name, or that of a directory.
    let is_name = !matches!(stem, b"" | b"." | b"..");
    is_name.then(|| Cow::Borrowed(OsStr::from_bytes(stem)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Bytes that a name may have.
    fn name() -> impl Strategy<Value = OsString> {
        let byte = any::<u8>().prop_filter("no name has it", |byte| !matches!(byte, 0 | b'/'));
        prop::collection::vec(prop_oneof![byte, Just(b'.'), Just(b'a')], 1..12)
            .prop_map(|bytes| OsStr::from_bytes(&bytes).to_owned())
            .prop_filter("it is a directory's", |name| !matches!(name.as_bytes(), b"." | b".."))
    }

    proptest! {
        #[test]
        fn what_is_added_is_taken_away_again_and_each_way_leads_back(name in name(), suffix in name()) {
            let (added, taken) = (Naming::Added(suffix.clone()), Naming::Taken(suffix.clone()));
            let output = added.output(&name).unwrap();
            prop_assert_eq!(output.as_bytes(), [name.as_bytes(), suffix.as_bytes()].concat());
            prop_assert_eq!(taken.output(&output).unwrap(), &*name);
            for naming in [Naming::Kept, added, taken] {
                if let Ok(output) = naming.output(&name) {
                    prop_assert_eq!(naming.source(&output).unwrap(), &*name, "{:?}", naming);
                }
                if let Some(source) = naming.source(&name) {
                    prop_assert_eq!(naming.output(&source).unwrap(), &*name, "{:?}", naming);
                }
            }
        }
    }

    #[test]
    fn what_has_no_suffix_or_nothing_else_is_an_error() {
        let taken = Naming::Taken(".age".into());
        for name in ["f", ".age", "..age", "...age", "f.AGE", "f.age~"] {
            assert!(matches!(taken.output(name.as_ref()), Err(FileError::NoSuffix(_))), "{name}");
        }
        assert_eq!(&*taken.output("....age".as_ref()).unwrap(), "...");
        assert!(matches!(
            Naming::Added(".age".into()).beside("f.age".as_ref()),
            Err(FileError::HasSuffix(_))
        ));
    }
}
