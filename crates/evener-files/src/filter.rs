//! A filter: which names below a directory a run takes, by globs as in `.gitignore`.

use std::path::Path;

use ignore::overrides::{Override, OverrideBuilder};

/// Globs that leave files and directories out, or take some only. The matcher is that of the crate `ignore`; its walker is not used, for it
/// goes by paths.
#[derive(Clone, Debug)]
pub struct Filter(Override);

impl Default for Filter {
    /// Takes all.
    fn default() -> Self {
        Self(Override::empty())
    }
}

impl Filter {
    /// Takes what one of `include` matches, all where there is none, and leaves out what one of `exclude` matches.
    ///
    /// # Errors
    ///
    /// A sentence about a glob that is none.
    pub fn new(include: &[String], exclude: &[String]) -> Result<Self, String> {
        let mut builder = OverrideBuilder::new("");
        // The last that matches decides. To this matcher a glob takes, and one with ! leaves out.
        let all = include.iter().cloned().chain(exclude.iter().map(|glob| format!("!{glob}")));
        for glob in all {
            // In a .gitignore an empty line says nothing; to this matcher it stands for everything.
            if glob.trim_start_matches('!').trim().is_empty() {
                return Err("a glob is empty".to_owned());
            }
            builder.add(&glob).map_err(|error| error.to_string())?;
        }
        builder.build().map(Self).map_err(|error| error.to_string())
    }

    /// Whether nothing is left out.
    pub(crate) fn takes_all(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether what stands at `relative`, below a directory that was named, is left out, and all below it.
    #[must_use]
    pub fn leaves_out(&self, relative: &Path, is_directory: bool) -> bool {
        self.0.matched(relative, is_directory).is_ignore()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_are_those_of_gitignore_and_exclusion_stands_over_inclusion() {
        let globs = |globs: &[&str]| globs.iter().map(|&glob| glob.to_owned()).collect::<Vec<_>>();
        let filter =
            |include: &[&str], exclude: &[&str]| Filter::new(&globs(include), &globs(exclude)).unwrap();
        let leaves_out = |filter: &Filter, path: &str| {
            filter.leaves_out(Path::new(path.trim_end_matches('/')), path.ends_with('/'))
        };
        let exclude = filter(&[], &["*.tmp", "/cache/", "a/**/b"]);
        for (path, is_out) in [
            ("x.tmp", true),
            ("deep/x.tmp", true),
            ("cache/", true),
            ("deep/cache/", false),
            ("a/1/2/b", true),
            ("x.txt", false),
        ] {
            assert_eq!(leaves_out(&exclude, path), is_out, "{path}");
        }
        let include = filter(&["*.jpg"], &["small*"]);
        for (path, is_out) in [("d/", false), ("d/x.jpg", false), ("d/x.png", true), ("d/small.jpg", true)] {
            assert_eq!(leaves_out(&include, path), is_out, "{path}");
        }
        assert!(Filter::new(&[], &globs(&["a{b"])).is_err());
        for blank in ["", " ", "\t"] {
            assert!(
                Filter::new(&globs(&[blank]), &[]).is_err() && Filter::new(&[], &globs(&[blank])).is_err()
            );
        }
        assert!(!leaves_out(&Filter::default(), "anything"));
    }
}
