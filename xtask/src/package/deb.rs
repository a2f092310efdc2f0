//! The Debian package: what is installed, packed, with a control file, sums, a bill of materials, and what its removal takes back. The same
//! commit gives the same bytes, wherever it is built by the same compiler.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use super::layout::Layout;
use super::target::{Target, libc_of};
use super::{bill, files_below, installed, put, with_path};
use crate::programs::{answer, output_of, run};
use crate::tree::root;

/// Builds the package for `target` and says where it is.
pub(super) fn package(target: &Target) -> Result<PathBuf, String> {
    let (architecture, version) = (target.architecture()?, env!("CARGO_PKG_VERSION"));
    let (work, epoch) = (root().join("target/deb"), epoch()?);
    let tree = work.join("tree");
    if tree.exists() {
        fs::remove_dir_all(&tree).map_err(|error| with_path(&tree, &error))?;
    }
    let (modules, libraries) = (target.modules()?, target.libraries()?);
    let layout = Layout { destination: tree.clone(), prefix: "/usr".into(), modules, libraries };
    let binaries = installed(&layout, target)?;
    let mut pages = Command::new("gzip");
    let files =
        fs::read_dir(layout.manual_pages()).map_err(|error| with_path(&layout.manual_pages(), &error))?;
    pages.args(["-9", "-n"]).args(files.filter_map(Result::ok).map(|entry| entry.path()));
    pages.arg(layout.library_page());
    run(pages)?;
    put(&layout.file("share/doc/evener/copyright"), 0o644, copyright()?.as_bytes())?;
    put(
        &layout.file("share/doc/evener/changelog.gz"),
        0o644,
        &packed(changelog(version, epoch)?.as_bytes())?,
    )?;
    put(&layout.file("share/doc/evener/evener.spdx.json"), 0o644, bill(target, epoch)?.as_bytes())?;
    put(&layout.file("share/lintian/overrides/evener"), 0o644, OVERRIDES.as_bytes())?;
    let files = files_below(&tree)?;
    put(&tree.join("DEBIAN/md5sums"), 0o644, sums(&tree, &files)?.as_bytes())?;
    let facts = Facts {
        version,
        architecture: &architecture,
        libc: &libc_of(&binaries)?,
        installed_kib: kib(&files)?,
    };
    put(&tree.join("DEBIAN/control"), 0o644, facts.control().as_bytes())?;
    put(&tree.join("DEBIAN/prerm"), 0o755, PRERM.as_bytes())?;
    put(&tree.join("DEBIAN/triggers"), 0o644, TRIGGERS.as_bytes())?;
    put(&tree.join("DEBIAN/shlibs"), 0o644, format!("libevener 0 evener (>= {version})\n").as_bytes())?;
    let file = work.join(format!("evener_{version}_{architecture}.deb"));
    let mut build = Command::new("dpkg-deb");
    // Whatever is newer than the commit is as old as that.
    build.env("SOURCE_DATE_EPOCH", epoch.to_string());
    build.args(["--root-owner-group", "--build"]).arg(&tree).arg(&file);
    run(build)?;
    if target.is_this_machine() {
        check(&file, &work.join("check"), &layout)?;
    }
    Ok(file)
}

/// The second that a package is of: what the environment says, as reproducible builds have it, or the commit's.
pub(super) fn epoch() -> Result<u64, String> {
    let told = match env::var("SOURCE_DATE_EPOCH") {
        Ok(told) => told,
        Err(_) => {
            let root = root().display().to_string();
            output_of("git", &["-C", &root, "log", "-1", "--format=%ct"])?
        }
    };
    told.trim().parse().map_err(|_| format!("{told:?} is no second: set SOURCE_DATE_EPOCH"))
}

fn bill(target: &Target, epoch: u64) -> Result<String, String> {
    let created = output_of("date", &["-u", "-d", &format!("@{epoch}"), "+%Y-%m-%dT%H:%M:%SZ"])?;
    bill::of(&target.triple()?, &target.architecture()?, &created)
}

/// Unpacks the package and lets OpenSSL load the module out of it.
fn check(file: &Path, folder: &Path, layout: &Layout) -> Result<(), String> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|error| with_path(folder, &error))?;
    }
    let mut unpack = Command::new("dpkg-deb");
    unpack.arg("-x").arg(file).arg(folder);
    run(unpack)?;
    let modules = folder.join(layout.modules.strip_prefix("/").unwrap_or(&layout.modules));
    let mut list = Command::new("openssl");
    list.args(["list", "-providers", "-provider-path"]).arg(modules);
    list.args(["-provider", "default", "-provider", "evener"]);
    let providers = answer(list)?;
    if providers.lines().any(|line| line.trim() == "evener") {
        return Ok(());
    }
    Err(format!("OpenSSL does not load the module of the package:\n{providers}"))
}

/// The text of the MIT licence; that of the other is on every Debian system.
fn copyright() -> Result<String, String> {
    let path = root().join("LICENSE-MIT");
    let mit = fs::read_to_string(&path).map_err(|error| with_path(&path, &error))?;
    Ok(format!(
        "Evener is licensed under Apache-2.0 or MIT, at your choice.\n\n\
         Apache-2.0: /usr/share/common-licenses/Apache-2.0\n\nMIT:\n\n{mit}"
    ))
}

/// Programs whose configuration names a module that is gone would go on without it and without a word: what was installed for them
/// goes with the package.
const PRERM: &str = "\
#!/bin/sh
set -e
if [ \"$1\" = remove ]; then
    /usr/bin/evener provider uninstall --all >&2 || echo 'evener: its files below /etc/evener stay: see evener-provider-uninstall(1)' >&2
    if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
fi
";

/// The linker is told of the library when the package is there, and when it is gone.
const TRIGGERS: &str = "activate-noawait ldconfig\n";

/// Findings of lintian's that stay, each with its reason.
const OVERRIDES: &str = "\
# Who builds a package for oneself answers for it alone.
evener: bogus-mail-host *
evener: bogus-mail-host-in-debian-changelog *
# After `./x install` another evener may come first in PATH, of another version.
evener: command-with-path-in-maintainer-script *
# One package has the command, the provider, the library and what programs are built with.
evener: package-name-doesnt-match-sonames *
evener: link-to-shared-library-in-wrong-package *
evener: no-symbols-control-file *
# It belongs to no archive with a list of wanted packages.
evener: initial-upload-closes-no-bugs *
";

/// What a control file says of this package and no other.
struct Facts<'a> {
    version: &'a str,
    architecture: &'a str,
    /// The version of the C library of which the files ask for a function; an older one lacks it.
    libc: &'a str,
    installed_kib: u64,
}

impl Facts<'_> {
    fn control(&self) -> String {
        let Self { version, architecture, libc, installed_kib } = self;
        format!(
            "Package: evener\n\
             Version: {version}\n\
             Architecture: {architecture}\n\
             Maintainer: Evener's maintainers <evener@localhost>\n\
             Installed-Size: {installed_kib}\n\
             Section: utils\n\
             Priority: optional\n\
             Depends: libc6 (>= {libc}), libgcc-s1, libssl3t64 | libssl3\n\
             Recommends: openssl\n\
             Description: symmetric cryptography on all cores and on crypto modules\n \
             The command evener encrypts and decrypts files on every core. The OpenSSL\n \
             provider evener.so serves programs that are configured for it, one by one:\n \
             see evener-provider-install(1) and evener-doctor(1). The library libevener\n \
             is for programs in C: see libevener(3). Installing the package\n \
             changes no program.\n"
        )
    }
}

/// As `md5sum` writes them, by names below the root; of files alone, for a link has what it points to.
fn sums(tree: &Path, files: &[PathBuf]) -> Result<String, String> {
    let names =
        files.iter().filter(|file| !file.is_symlink()).map(|file| file.strip_prefix(tree).unwrap_or(file));
    let mut command = Command::new("md5sum");
    command.current_dir(tree).arg("--").args(names);
    answer(command)
}

/// Each file rounded up to whole KiB, as dpkg counts.
fn kib(files: &[PathBuf]) -> Result<u64, String> {
    let size =
        |file: &PathBuf| fs::metadata(file).map(|stat| stat.len()).map_err(|error| with_path(file, &error));
    files.iter().map(|file| Ok(size(file)?.div_ceil(1024))).sum()
}

/// The changes of this version, in Debian's form: the changelog's own headings and items, indented.
fn changelog(version: &str, epoch: u64) -> Result<String, String> {
    let path = root().join("CHANGELOG.md");
    let text = fs::read_to_string(&path).map_err(|error| with_path(&path, &error))?;
    let date = output_of("date", &["-R", "-u", "-d", &format!("@{epoch}")])?;
    let section = text.split("\n## ").nth(1).ok_or("CHANGELOG.md has no section")?;
    let lines: String = section.lines().skip(1).map(changelog_line).collect();
    Ok(format!(
        "evener ({version}) unstable; urgency=medium\n\n{lines}\n -- Evener's maintainers <evener@localhost>  {date}\n"
    ))
}

/// A line of ours in Debian's form, and within its 80 columns.
fn changelog_line(line: &str) -> String {
    let (mark, words) = match line.strip_prefix("- ") {
        _ if line.is_empty() => return String::new(),
        Some(item) => ("  * ", item),
        None => ("  ", line.trim_start_matches('#').trim()),
    };
    let mut text = mark.to_owned();
    let mut columns = mark.len();
    for (at, word) in words.split_whitespace().enumerate() {
        let length = word.chars().count();
        if at > 0 && columns + 1 + length > 78 {
            text.push_str("\n    ");
            columns = 4;
        } else if at > 0 {
            text.push(' ');
            columns += 1;
        }
        text.push_str(word);
        columns += length;
    }
    text + "\n"
}

fn packed(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut gzip = Command::new("gzip");
    let gzip = gzip.args(["-9", "-n"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = gzip.spawn().map_err(|error| format!("gzip: {error}"))?;
    let input = child.stdin.take();
    // All of it fits into the pipe or is read at once; gzip writes when it has read all.
    let written = input.map_or(Ok(()), |mut input| input.write_all(bytes));
    let output = written.and_then(|()| child.wait_with_output()).map_err(|error| format!("gzip: {error}"))?;
    if output.status.success() { Ok(output.stdout) } else { Err("gzip failed".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_changelog_fit_80_columns_and_lose_no_word() {
        let long = format!("- {}", "word of a line ".repeat(20));
        for (line, mark) in [(&*long, "  * "), ("### Added", "  Added"), ("- short", "  * short")] {
            let text = changelog_line(line);
            assert!(text.starts_with(mark) && text.lines().all(|line| line.chars().count() <= 80), "{text}");
            let words = |text: &str| text.split_whitespace().filter(|word| !"*-###".contains(word)).count();
            assert_eq!(words(&text), words(line));
        }
        assert_eq!(changelog_line(""), "");
    }

    #[test]
    fn a_control_file_has_every_field_that_dpkg_demands() {
        let facts = Facts { version: "1.2.3", architecture: "amd64", libc: "2.36", installed_kib: 7 };
        let text = facts.control();
        for field in
            ["Package: evener", "Version: 1.2.3", "Architecture: amd64", "Maintainer: ", "Description: "]
        {
            assert!(text.lines().any(|line| line.starts_with(field)), "{field} in {text}");
        }
        assert!(text.contains("libc6 (>= 2.36),") && text.ends_with("changes no program.\n"));
        let description = text.split("Description: ").nth(1).unwrap();
        assert!(description.lines().skip(1).all(|line| line.starts_with(' ')), "{description}");
    }
}
