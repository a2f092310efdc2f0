//! `cargo xtask install` and `cargo xtask deb`: the command, the provider's module, the library for programs in C, manual pages, completions and the units by
//! which systemd starts a host where they belong. `cargo xtask small`: command and module for boards, held to their sizes.
//!
//! Steps: an optimised build -> what goes where ([`Layout`]) -> each file under a temporary name, renamed -> for the
//! package also what dpkg wants to know ([`deb`](mod@deb)), and a look at what came of it: OpenSSL loads the module out of it.

mod bill;
mod deb;
mod layout;
mod library;
mod small;
#[cfg(feature = "tarball")]
mod tarball;
mod target;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::{env, fs, io};

use self::layout::Layout;
pub(crate) use self::library::libevener;
pub(crate) use self::small::{small, small_early};
use self::target::Target;
use crate::programs::{Built, answer, built_by, built_quickly, run};
use crate::tree::root;

pub(crate) fn install() -> ExitCode {
    let installed = here().and_then(|layout| {
        refuse_what_dpkg_has(&layout)?;
        installed(&layout, &Target::installed()).map(|_| layout)
    });
    finish("install", installed.map(|layout| summary(&layout)))
}

/// Takes away what `install` put there for the same destination and prefix, and first the configurations that name it.
pub(crate) fn uninstall() -> ExitCode {
    finish("uninstall", here().and_then(|layout| uninstalled(&layout)))
}

/// Builds the package of an architecture, or of this machine's.
pub(crate) fn deb(words: &[&str]) -> ExitCode {
    let target = match *words {
        [] => Ok(Target::like_this()),
        ["--arch", architecture] => Target::of(architecture),
        _ => Err("usage: cargo xtask deb [--arch amd64|arm64|armhf]".to_owned()),
    };
    let made = target.and_then(|target| deb::package(&target));
    finish("deb", made.map(|file| format!("{}\n", file.display())))
}

/// Builds the command with all that it asks for inside.
#[cfg(feature = "tarball")]
pub(crate) fn tarball() -> ExitCode {
    finish("tarball", tarball::tarball().map(|file| format!("{}\n", file.display())))
}

/// Where the environment says.
fn here() -> Result<Layout, String> {
    let destination = env::var_os("DESTDIR").map_or_else(|| "/".into(), PathBuf::from);
    let prefix = env::var_os("PREFIX").map_or_else(|| "/usr/local".into(), PathBuf::from);
    Ok(Layout { destination, libraries: prefix.join("lib"), prefix, modules: modules_directory()? })
}

fn summary(layout: &Layout) -> String {
    let paths = [
        layout.command(),
        layout.module(),
        layout.library(library::SONAME),
        layout.header(),
        layout.manual_pages(),
        layout.documents(),
    ];
    let paths = paths.into_iter().chain(layout.completions().map(|row| row.1));
    let paths = paths.chain(layout.units().map(|row| row.1));
    let lines: String = paths.map(|path| format!("  {}\n", path.display())).collect();
    format!(
        "installed\n{lines}next: evener provider install, evener doctor; ./x uninstall takes all of it back\n"
    )
}

/// A Debian package has the module where OpenSSL looks for it, too: what dpkg put there is dpkg's to change.
fn refuse_what_dpkg_has(layout: &Layout) -> Result<(), String> {
    let mut search = Command::new("dpkg-query");
    search.arg("--search").arg(layout.module()).stdout(Stdio::null()).stderr(Stdio::null());
    match search.status().is_ok_and(|status| status.success()) {
        true => Err("the package evener is installed: remove that first (apt remove evener)".to_owned()),
        false => Ok(()),
    }
}

fn uninstalled(layout: &Layout) -> Result<String, String> {
    refuse_what_dpkg_has(layout)?;
    if layout.command().is_file() {
        let mut configurations = Command::new(layout.command());
        configurations.args(["provider", "uninstall", "--all", "--root"]).arg(&layout.destination);
        if let Err(reason) = run(configurations) {
            eprintln!("uninstall: configurations below {} stay: {reason}", layout.destination.display());
        }
    }
    let mut lines = String::new();
    for path in layout.all().into_iter().filter(|path| path.exists()) {
        let gone = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        gone.map_err(|error| with_path(&path, &error))?;
        lines.push_str(&format!("  {}\n", path.display()));
    }
    Ok(format!("removed\n{lines}"))
}

fn finish(what: &str, outcome: Result<String, String>) -> ExitCode {
    match outcome {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(reason) => {
            eprintln!("{what}: {reason}");
            ExitCode::FAILURE
        }
    }
}

/// Builds it and puts it there; returns the files that ask for the C library.
fn installed(layout: &Layout, target: &Target) -> Result<Vec<PathBuf>, String> {
    let Built { command, objects, module } = built_by(&|| target.cargo())?;
    put(&layout.command(), 0o755, &stripped(&command, target)?)?;
    put(&layout.objects(), 0o755, &stripped(&objects, target)?)?;
    put(&layout.module(), 0o644, &stripped(&module, target)?)?;
    // What it says of itself is the same on every machine.
    let command = if target.is_this_machine() { command } else { built_quickly()? };
    fs::create_dir_all(layout.manual_pages()).map_err(|error| with_path(&layout.manual_pages(), &error))?;
    let mut manual = Command::new(&command);
    manual.arg("man").arg(layout.manual_pages());
    run(manual)?;
    for (shell, path) in layout.completions() {
        let mut completions = Command::new(&command);
        completions.args(["completions", shell]);
        put(&path, 0o644, answer(completions)?.as_bytes())?;
    }
    for (name, path) in layout.units() {
        let source = root().join("packaging/systemd").join(name);
        put(&path, 0o644, unit(&read(&source)?, &layout.prefix).as_bytes())?;
    }
    put_library(layout, target)?;
    let docs = root().join("docs");
    for page in [files_below(&docs.join("guide"))?, files_below(&docs.join("reference"))?].concat() {
        put(&layout.documents().join(page.strip_prefix(&docs).unwrap_or(&page)), 0o644, &read(&page)?)?;
    }
    Ok(vec![layout.command(), layout.objects(), layout.module(), layout.library(library::SONAME)])
}

/// What there is for programs in C.
fn put_library(layout: &Layout, target: &Target) -> Result<(), String> {
    let library = library::built(target.cargo(), target.cc())?;
    put(&layout.library(library::SONAME), 0o644, &stripped(&library.shared, target)?)?;
    library::point(&layout.library(library::LINK_NAME), library::SONAME)?;
    put(&layout.library(library::ARCHIVE), 0o644, &stripped(&library.archive, target)?)?;
    put(&layout.header(), 0o644, &read(&library.header)?)?;
    library::put_pkg_config(&layout.pkg_config(), &layout.prefix, &layout.libraries)?;
    let page = read(&root().join("packaging/libevener/libevener.3"))?;
    let documents = layout.prefix.join("share/doc/evener");
    let page = String::from_utf8_lossy(&page).replace("@version@", env!("CARGO_PKG_VERSION"));
    let page = page.replace("@documents@", &documents.display().to_string());
    put(&layout.library_page(), 0o644, page.as_bytes())?;
    for example in files_below(&library.examples)? {
        put(
            &layout.documents().join("examples").join(example.file_name().unwrap_or_default()),
            0o644,
            &read(&example)?,
        )?;
    }
    refresh_linker(&layout.destination);
    Ok(())
}

/// Lets the linker know of a library that is no longer where it was, or new, where that is this system's own linker.
fn refresh_linker(destination: &Path) {
    if destination == Path::new("/") {
        // Who may not do it installs where only who asks for it looks.
        Command::new("ldconfig").stderr(Stdio::null()).status().ok();
    }
}

/// All regular files below a folder, by name.
fn files_below(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(|error| with_path(&folder, &error))?.flatten() {
            let path = entry.path();
            match path.is_dir() {
                true => folders.push(path),
                false => files.push(path),
            }
        }
    }
    files.sort();
    Ok(files)
}

/// A unit as it is installed: it names the command by its place.
fn unit(source: &[u8], prefix: &Path) -> String {
    String::from_utf8_lossy(source).replace("@bin@", &prefix.join("bin").display().to_string())
}

/// Writes a file under a temporary name and renames it: programs may have the old module mapped.
fn put(path: &Path, mode: u32, bytes: &[u8]) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = path.parent().unwrap_or_else(|| Path::new("/"));
    let draft = folder.join(format!(".evener-{}.draft", std::process::id()));
    let written = fs::create_dir_all(folder)
        .and_then(|()| fs::write(&draft, bytes))
        .and_then(|()| fs::set_permissions(&draft, fs::Permissions::from_mode(mode)))
        .and_then(|()| fs::rename(&draft, path));
    written.map_err(|error| with_path(path, &error))
}

/// A program without what only a debugger reads, five parts in six of it; as it is where there is no `strip`.
fn stripped(path: &Path, target: &Target) -> Result<Vec<u8>, String> {
    let draft = path.with_extension("stripped");
    let mut strip = target.strip();
    strip.args(["--strip-unneeded", "-o"]).arg(&draft).arg(path);
    if run(strip).is_err() {
        return read(path);
    }
    let bytes = read(&draft);
    fs::remove_file(&draft).map_err(|error| with_path(&draft, &error))?;
    bytes
}

/// How many bytes of it are left.
fn stripped_size(path: &Path, mut strip: Command) -> Result<u64, String> {
    let draft = path.with_extension("stripped");
    strip.args(["--strip-unneeded", "-o"]).arg(&draft).arg(path);
    run(strip)?;
    let size = fs::metadata(&draft).map(|metadata| metadata.len());
    fs::remove_file(&draft).map_err(|error| with_path(&draft, &error))?;
    size.map_err(|error| with_path(&draft, &error))
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| with_path(path, &error))
}

fn with_path(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}

/// Where the system's OpenSSL looks for providers.
fn modules_directory() -> Result<PathBuf, String> {
    let mut openssl = Command::new("openssl");
    openssl.args(["version", "-m"]);
    let printed = answer(openssl)?;
    let path = printed.split('"').nth(1).filter(|path| path.starts_with('/'));
    path.map(PathBuf::from).ok_or_else(|| format!("`openssl version -m` named no directory: {printed}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_names_the_installed_command_and_nothing_is_left_to_fill_in() {
        for name in ["evener-host.socket", "evener-host.service"] {
            let source = read(&root().join("packaging/systemd").join(name)).unwrap();
            let text = unit(&source, Path::new("/usr/local"));
            assert!(!text.contains('@'), "{text}");
            assert_eq!(text.contains("ExecStart=/usr/local/bin/evener host "), name.ends_with("service"));
        }
    }

    #[test]
    fn a_file_is_replaced_by_another_and_not_written_into() {
        use std::os::unix::fs::MetadataExt as _;
        let folder = env::temp_dir().join(format!("evener-package-{}", std::process::id()));
        let path = folder.join("lib/evener.so");
        put(&path, 0o644, b"old").unwrap();
        let old = fs::metadata(&path).unwrap();
        put(&path, 0o755, b"new").unwrap();
        let new = fs::metadata(&path).unwrap();
        assert_eq!((fs::read(&path).unwrap().as_slice(), new.mode() & 0o777), (&b"new"[..], 0o755));
        assert_ne!(old.ino(), new.ino());
        assert_eq!(fs::read_dir(folder.join("lib")).unwrap().count(), 1);
        fs::remove_dir_all(folder).unwrap();
    }
}
