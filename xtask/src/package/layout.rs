//! Where everything goes, below a destination and a prefix.

use std::path::{Path, PathBuf};

use super::library::{ARCHIVE, LINK_NAME, SONAME};

/// Where everything goes.
pub(super) struct Layout {
    pub(super) destination: PathBuf,
    pub(super) prefix: PathBuf,
    pub(super) modules: PathBuf,
    /// Where the linker looks for libraries.
    pub(super) libraries: PathBuf,
}

impl Layout {
    pub(super) fn file(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = self.prefix.join(path);
        self.destination.join(path.strip_prefix("/").unwrap_or(&path))
    }

    pub(super) fn command(&self) -> PathBuf {
        self.file("bin/evener")
    }

    /// The program behind `evener plan` and `evener run-shard`.
    pub(super) fn objects(&self) -> PathBuf {
        self.programs().join("evener-objects")
    }

    /// Programs that the command starts.
    fn programs(&self) -> PathBuf {
        self.file("lib/evener")
    }

    pub(super) fn module(&self) -> PathBuf {
        self.file(self.modules.join("evener.so"))
    }

    pub(super) fn manual_pages(&self) -> PathBuf {
        self.file("share/man/man1")
    }

    pub(super) fn completions(&self) -> [(&'static str, PathBuf); 3] {
        [
            ("bash", self.file("share/bash-completion/completions/evener")),
            ("zsh", self.file("share/zsh/vendor-completions/_evener")),
            ("fish", self.file("share/fish/vendor_completions.d/evener.fish")),
        ]
    }

    /// Units of a user's own systemd.
    pub(super) fn units(&self) -> [(&'static str, PathBuf); 2] {
        ["evener-host.socket", "evener-host.service"]
            .map(|name| (name, self.file(Path::new("lib/systemd/user").join(name))))
    }

    /// Pages and schemas that helps and manual pages name by their path.
    pub(super) fn documents(&self) -> PathBuf {
        self.file("share/doc/evener")
    }

    pub(super) fn header(&self) -> PathBuf {
        self.file("include/evener.h")
    }

    /// A file where the linker looks for libraries.
    pub(super) fn library(&self, name: &str) -> PathBuf {
        self.file(self.libraries.join(name))
    }

    pub(super) fn pkg_config(&self) -> PathBuf {
        self.library("pkgconfig/evener.pc")
    }

    pub(super) fn library_page(&self) -> PathBuf {
        self.file("share/man/man3/libevener.3")
    }

    /// What there is for programs in C; a link before what it points to.
    fn for_programs(&self) -> Vec<PathBuf> {
        let libraries = [LINK_NAME, SONAME, ARCHIVE].map(|name| self.library(name));
        let pages = [self.library_page(), self.library_page().with_extension("3.gz")];
        [self.header(), self.pkg_config()].into_iter().chain(libraries).chain(pages).collect()
    }

    /// Every file and directory that is Evener's alone.
    pub(super) fn all(&self) -> Vec<PathBuf> {
        let mut all = vec![self.command(), self.programs(), self.module(), self.documents()];
        all.extend(self.for_programs());
        all.extend(self.completions().map(|row| row.1));
        all.extend(self.units().map(|row| row.1));
        let pages = std::fs::read_dir(self.manual_pages()).into_iter().flatten().flatten();
        all.extend(pages.map(|page| page.path()).filter(|page| is_manual_page(page)));
        all
    }
}

/// Whether a page is one of `evener man`, packed or not.
fn is_manual_page(page: &Path) -> bool {
    let name = page.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.trim_end_matches(".gz").strip_suffix(".1");
    stem.is_some_and(|stem| stem == "evener" || stem.starts_with("evener-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_stays_below_the_destination() {
        let layout = Layout {
            destination: "/stage".into(),
            prefix: "/usr".into(),
            modules: "/usr/lib/ossl-modules".into(),
            libraries: "/usr/lib/x86_64-linux-gnu".into(),
        };
        assert_eq!(layout.command(), Path::new("/stage/usr/bin/evener"));
        assert_eq!(layout.module(), Path::new("/stage/usr/lib/ossl-modules/evener.so"));
        assert_eq!(layout.manual_pages(), Path::new("/stage/usr/share/man/man1"));
        assert!(layout.completions().iter().all(|row| row.1.starts_with("/stage/usr/share")));
        assert_eq!(layout.library(SONAME), Path::new("/stage/usr/lib/x86_64-linux-gnu/libevener.so.0"));
        assert!(layout.units().iter().all(|row| row.1.starts_with("/stage/usr/lib/systemd/user")));
        assert!(layout.all().iter().all(|path| path.starts_with("/stage/usr")));
    }

    #[test]
    fn manual_pages_of_others_are_not_taken_for_eveners() {
        for page in ["evener.1", "evener-bench-crypt.1", "evener.1.gz"] {
            assert!(is_manual_page(Path::new(page)), "{page}");
        }
        for page in ["evenerd.1", "age.1", "evener.8", "notevener-x.1"] {
            assert!(!is_manual_page(Path::new(page)), "{page}");
        }
    }
}
