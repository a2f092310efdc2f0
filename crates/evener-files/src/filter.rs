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
        let include = include.iter().map(|glob| literal(glob)).collect::<Result<Vec<_>, _>>()?;
        let exclude = exclude.iter().map(|glob| literal(glob)).collect::<Result<Vec<_>, _>>()?;
        let all = include.into_iter().chain(exclude.iter().map(|glob| format!("!{glob}")));
        for glob in all {
            builder.add(&glob).map_err(|error| error.to_string())?;
        }
        builder.build().map(Self).map_err(|error| error.to_string())
    }

    /// Whether nothing is left out.
    pub(crate) fn takes_all(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether what stands at `relative`, below a directory that was named, is left out, by itself or with a directory above it.
    #[must_use]
    pub fn leaves_out(&self, relative: &Path, is_directory: bool) -> bool {
        let mut above = relative.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
        self.leaves_out_met(relative, is_directory)
            || (!self.takes_all() && above.any(|above| self.leaves_out_met(above, true)))
    }

    /// The same of what a walk meets that enters no directory that is left out: it is asked once of each name, however deep that lies.
    pub(crate) fn leaves_out_met(&self, relative: &Path, is_directory: bool) -> bool {
        !self.takes_all() && self.0.matched(relative, is_directory).is_ignore()
    }
}

/// A glob as a line of a `.gitignore` that means it: there an empty line and one with `#` say nothing, and spaces at the end do not count.
fn literal(glob: &str) -> Result<String, String> {
    if glob.trim().is_empty() {
        return Err("a glob is empty".to_owned());
    }
    if glob.starts_with('!') {
        return Err(format!(
            "the glob {glob:?} begins with !, which turns nothing round here: --include takes, --exclude leaves out, and \\! is the sign itself"
        ));
    }
    let start = if glob.starts_with('#') { "\\" } else { "" };
    Ok(match glob.char_indices().next_back() {
        Some((end, space)) if space.is_whitespace() && !glob[..end].ends_with('\\') => {
            format!("{start}{}[{space}]", &glob[..end])
        }
        _ => format!("{start}{glob}"),
    })
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
        let deep = filter(&[], &["cache", "/only/"]);
        for (path, is_out) in [
            ("cache/x", true),
            ("a/cache/b/x", true),
            ("only/x", true),
            ("a/only/x", false),
            ("a/cached/x", false),
        ] {
            assert_eq!(leaves_out(&deep, path), is_out, "{path}");
        }
        for blank in ["", " ", "\t"] {
            assert!(
                Filter::new(&globs(&[blank]), &[]).is_err() && Filter::new(&[], &globs(&[blank])).is_err()
            );
        }
        assert!(!leaves_out(&Filter::default(), "anything"));
    }

    /// Every path of at most three of these names, with those of directories ending in a slash.
    fn paths_below(above: &str, depth: usize, paths: &mut Vec<String>) {
        for name in ["a", "b", "cache", "x.tmp"] {
            paths.push(format!("{above}{name}"));
            if depth > 1 {
                paths.push(format!("{above}{name}/"));
                paths_below(&format!("{above}{name}/"), depth - 1, paths);
            }
        }
    }

    #[test]
    fn a_walk_that_enters_nothing_that_is_left_out_takes_what_bare_paths_are_taken() {
        let mut paths = Vec::new();
        paths_below("", 3, &mut paths);
        for (include, exclude) in [
            (&[][..], &["cache"][..]),
            (&[], &["cache/", "*.tmp"]),
            (&[], &["/a/b", "a/**/cache"]),
            (&["*.tmp"], &["/b"]),
            (&["a/*", "cache"], &["b/", "a/x.tmp"]),
            (&["a/"], &[]),
        ] {
            let [takes, leaves] =
                [include, exclude].map(|globs| globs.iter().map(ToString::to_string).collect::<Vec<_>>());
            let filter = Filter::new(&takes, &leaves).unwrap();
            // A directory comes before what lies below it.
            let mut left_out: Vec<&str> = Vec::new();
            for path in &paths {
                let (name, is_directory) = (Path::new(path.trim_end_matches('/')), path.ends_with('/'));
                let is_below = left_out.iter().any(|above| above.ends_with('/') && path.starts_with(above));
                let is_out = is_below || filter.leaves_out_met(name, is_directory);
                if is_out {
                    left_out.push(path);
                }
                assert_eq!(filter.leaves_out(name, is_directory), is_out, "{include:?} {exclude:?}: {path}");
            }
            assert!(!left_out.is_empty() && left_out.len() < paths.len(), "{include:?} {exclude:?}");
        }
    }

    /// Each glob is the name of one file, and of no other.
    #[test]
    fn signs_that_mean_something_in_a_line_of_gitignore_are_those_of_names() {
        let others = ["a", "b", "#", "!", " "];
        for (glob, name) in [
            ("#a", "#a"),
            ("\\#a", "#a"),
            ("\\!a", "!a"),
            ("a ", "a "),
            ("a\\ ", "a "),
            ("a  ", "a  "),
            ("a\t", "a\t"),
            (" a", " a"),
            ("#a ", "#a "),
            ("\\*", "*"),
            ("a\\\\b", "a\\b"),
        ] {
            let globs = [glob.to_owned()];
            let include = Filter::new(&globs, &[]).unwrap();
            let exclude = Filter::new(&[], &globs).unwrap();
            assert!(!include.leaves_out(Path::new(name), false), "{glob:?} takes {name:?}");
            assert!(exclude.leaves_out(Path::new(name), false), "{glob:?} leaves {name:?} out");
            for other in others {
                assert!(include.leaves_out(Path::new(other), false), "{glob:?} does not take {other:?}");
                assert!(!exclude.leaves_out(Path::new(other), false), "{glob:?} leaves {other:?}");
            }
        }
        for none in ["!a", "a\\", "["] {
            let globs = [none.to_owned()];
            assert!(Filter::new(&globs, &[]).is_err() && Filter::new(&[], &globs).is_err(), "{none}");
        }
    }
}
