//! `cargo xtask install` and `cargo xtask deb`: the command, the provider's module, manual pages, completions and the units by which systemd
//! starts a host where they belong.
//!
//! Steps: an optimised build -> what goes where ([`Layout`]) -> each file under a temporary name, renamed -> for the
//! package also a control file, `dpkg-deb`, and a look at what came of it: OpenSSL loads the module out of it.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs, io};

use crate::programs::{Built, answer, built, run};
use crate::tree::root;

pub(crate) fn install() -> ExitCode {
    let destination = env::var_os("DESTDIR").map_or_else(|| "/".into(), PathBuf::from);
    let prefix = env::var_os("PREFIX").map_or_else(|| "/usr/local".into(), PathBuf::from);
    finish("install", installed(&destination, &prefix).map(|layout| layout.summary()))
}

pub(crate) fn deb() -> ExitCode {
    finish("deb", package().map(|file| format!("{}\n", file.display())))
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

/// Where everything goes.
struct Layout {
    destination: PathBuf,
    prefix: PathBuf,
    modules: PathBuf,
}

impl Layout {
    fn file(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = self.prefix.join(path);
        self.destination.join(path.strip_prefix("/").unwrap_or(&path))
    }

    fn command(&self) -> PathBuf {
        self.file("bin/evener")
    }

    fn module(&self) -> PathBuf {
        self.file(self.modules.join("evener.so"))
    }

    fn manual_pages(&self) -> PathBuf {
        self.file("share/man/man1")
    }

    fn completions(&self) -> [(&'static str, PathBuf); 3] {
        [
            ("bash", self.file("share/bash-completion/completions/evener")),
            ("zsh", self.file("share/zsh/vendor-completions/_evener")),
            ("fish", self.file("share/fish/vendor_completions.d/evener.fish")),
        ]
    }

    /// Units of a user's own systemd.
    fn units(&self) -> [(&'static str, PathBuf); 2] {
        ["evener-host.socket", "evener-host.service"]
            .map(|name| (name, self.file(Path::new("lib/systemd/user").join(name))))
    }

    fn summary(&self) -> String {
        let paths = [self.command(), self.module(), self.manual_pages()];
        let paths = paths.into_iter().chain(self.completions().map(|row| row.1));
        let paths = paths.chain(self.units().map(|row| row.1));
        let lines: String = paths.map(|path| format!("  {}\n", path.display())).collect();
        format!("installed\n{lines}next: evener provider config, evener provider install, evener doctor\n")
    }
}

fn installed(destination: &Path, prefix: &Path) -> Result<Layout, String> {
    let modules = modules_directory()?;
    let layout = Layout { destination: destination.into(), prefix: prefix.into(), modules };
    let Built { command, module } = built()?;
    put(&layout.command(), 0o755, &stripped(&command)?)?;
    put(&layout.module(), 0o644, &stripped(&module)?)?;
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
    Ok(layout)
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
fn stripped(path: &Path) -> Result<Vec<u8>, String> {
    let draft = path.with_extension("stripped");
    let mut strip = Command::new("strip");
    strip.args(["--strip-unneeded", "-o"]).arg(&draft).arg(path);
    if run(strip).is_err() {
        return read(path);
    }
    let bytes = read(&draft);
    fs::remove_file(&draft).map_err(|error| with_path(&draft, &error))?;
    bytes
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

/// Builds the package and says where it is.
fn package() -> Result<PathBuf, String> {
    let architecture = output_of("dpkg", &["--print-architecture"])?;
    let version = env!("CARGO_PKG_VERSION");
    let work = root().join("target/deb");
    let tree = work.join("tree");
    if tree.exists() {
        fs::remove_dir_all(&tree).map_err(|error| with_path(&tree, &error))?;
    }
    let layout = installed(&tree, Path::new("/usr"))?;
    let mut pages = Command::new("gzip");
    let files =
        fs::read_dir(layout.manual_pages()).map_err(|error| with_path(&layout.manual_pages(), &error))?;
    pages.args(["-9", "-n"]).args(files.filter_map(Result::ok).map(|entry| entry.path()));
    run(pages)?;
    put(&layout.file("share/doc/evener/copyright"), 0o644, copyright()?.as_bytes())?;
    let libc = output_of("dpkg-query", &["-W", "-f", "${Version}", "libc6"])?;
    put(&tree.join("DEBIAN/control"), 0o644, control(version, &architecture, &libc).as_bytes())?;
    let file = work.join(format!("evener_{version}_{architecture}.deb"));
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "--build"]).arg(&tree).arg(&file);
    run(build)?;
    check(&file, &work.join("check"), &layout)?;
    Ok(file)
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

fn output_of(program: &str, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new(program);
    command.args(arguments);
    answer(command).map(|text| text.trim().to_owned())
}

fn copyright() -> Result<String, String> {
    let licences = ["LICENSE-APACHE", "LICENSE-MIT"].map(|name| root().join(name));
    let texts = licences.map(|path| fs::read_to_string(&path).map_err(|error| with_path(&path, &error)));
    let [apache, mit] = texts;
    Ok(format!("Evener is licensed under Apache-2.0 or MIT, at your choice.\n\n{}\n{}", apache?, mit?))
}

/// `libc` is the version of the C library that the files were linked with; an older one may lack a function.
fn control(version: &str, architecture: &str, libc: &str) -> String {
    let libc = libc.split('-').next().unwrap_or(libc);
    format!(
        "Package: evener\n\
         Version: {version}\n\
         Architecture: {architecture}\n\
         Maintainer: Evener's maintainers <evener@localhost>\n\
         Section: utils\n\
         Priority: optional\n\
         Depends: libc6 (>= {libc}), libgcc-s1, libssl3t64 | libssl3\n\
         Recommends: openssl\n\
         Description: symmetric cryptography on all cores and on crypto modules\n \
         The command evener encrypts and decrypts files on every core. The OpenSSL provider\n \
         evener.so serves programs that are configured for it, one by one: see\n \
         evener-provider-install(1) and evener-doctor(1). Installing the package changes no program.\n"
    )
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
        };
        assert_eq!(layout.command(), Path::new("/stage/usr/bin/evener"));
        assert_eq!(layout.module(), Path::new("/stage/usr/lib/ossl-modules/evener.so"));
        assert_eq!(layout.manual_pages(), Path::new("/stage/usr/share/man/man1"));
        assert!(layout.completions().iter().all(|row| row.1.starts_with("/stage/usr/share")));
        assert!(layout.units().iter().all(|row| row.1.starts_with("/stage/usr/lib/systemd/user")));
    }

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
    fn a_control_file_has_every_field_that_dpkg_demands() {
        let text = control("1.2.3", "amd64", "2.36-9+deb12u13");
        for field in
            ["Package: evener", "Version: 1.2.3", "Architecture: amd64", "Maintainer: ", "Description: "]
        {
            assert!(text.lines().any(|line| line.starts_with(field)), "{field} in {text}");
        }
        assert!(text.contains("libc6 (>= 2.36),") && text.ends_with("no program.\n"));
        let description = text.split("Description: ").nth(1).unwrap();
        assert!(description.lines().skip(1).all(|line| line.starts_with(' ')), "{description}");
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
