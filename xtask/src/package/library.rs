//! `cargo xtask libevener`: the shared library for programs in C, linked of the static one.
//!
//! rustc gives a shared library a script of its own for its symbols' versions, which the linker does not join with another; so the library is
//! linked here, by the C compiler, with `crates/evener-c/libevener.map`.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use super::{finish, put, read, with_path};
use crate::programs::{built_library, run};
use crate::tree::{cargo, root};

/// The name by which programs ask for it.
pub(super) const SONAME: &str = "libevener.so.0";

/// The same as the linker looks for it.
pub(super) const LINK_NAME: &str = "libevener.so";

/// What programs link that want no shared one.
pub(super) const ARCHIVE: &str = "libevener.a";

/// The crate.
const FOLDER: &str = "crates/evener-c";

/// Links the library of a given archive into a folder, or of one that is built.
pub(crate) fn libevener(words: &[&str]) -> ExitCode {
    let linked = match *words {
        [] => built(cargo(), Command::new("cc")).map(|library| library.shared),
        [archive, folder] => link(Command::new("cc"), Path::new(archive), Path::new(folder)),
        _ => Err("usage: cargo xtask libevener [ARCHIVE FOLDER]".to_owned()),
    };
    finish("libevener", linked.map(|shared| format!("{}\n", shared.display())))
}

/// What is installed of it.
pub(super) struct Library {
    pub(super) shared: PathBuf,
    pub(super) archive: PathBuf,
    pub(super) header: PathBuf,
    pub(super) examples: PathBuf,
}

/// Builds it with optimisation, by this cargo and this C compiler.
pub(super) fn built(cargo: Command, compiler: Command) -> Result<Library, String> {
    let archive = built_library(cargo, "release", "evener-c", "libevener_c.a")?;
    let folder = archive.parent().unwrap_or_else(|| Path::new("."));
    let shared = link(compiler, &archive, folder)?;
    let of_crate = |name: &str| root().join(FOLDER).join(name);
    Ok(Library { shared, archive, header: of_crate("include/evener.h"), examples: of_crate("examples") })
}

/// Links `libevener.so.0`, and beside it the link by which the linker finds it.
fn link(mut compiler: Command, archive: &Path, folder: &Path) -> Result<PathBuf, String> {
    let shared = folder.join(SONAME);
    compiler.args(["-shared", "-static-libgcc", "-o"]).arg(&shared);
    compiler.arg("-Wl,--whole-archive").arg(archive).arg("-Wl,--no-whole-archive");
    compiler.arg(format!("-Wl,-soname,{SONAME}"));
    compiler.arg(format!("-Wl,--version-script={}", root().join(FOLDER).join("libevener.map").display()));
    // Nothing that no symbol of the interface needs; every symbol that is needed is there; and code that a thread may still run stays.
    compiler.args(["-Wl,--gc-sections", "-Wl,-z,defs", "-Wl,-z,nodelete", "-Wl,-z,relro,-z,now"]);
    compiler.args(["-lcrypto", "-lpthread", "-ldl", "-lm"]);
    run(compiler)?;
    let name = folder.join(LINK_NAME);
    point(&name, SONAME)?;
    Ok(shared)
}

/// Makes a symbolic link, in the place of another one.
pub(super) fn point(link: &Path, to: &str) -> Result<(), String> {
    if link.is_symlink() {
        std::fs::remove_file(link).map_err(|error| with_path(link, &error))?;
    }
    std::os::unix::fs::symlink(to, link).map_err(|error| with_path(link, &error))
}

/// Writes the file by which `pkg-config` finds it.
pub(super) fn put_pkg_config(path: &Path, prefix: &Path, libraries: &Path) -> Result<(), String> {
    let source = read(&root().join("packaging/libevener/evener.pc.in"))?;
    put(path, 0o644, filled_in(&String::from_utf8_lossy(&source), prefix, libraries).as_bytes())
}

fn filled_in(source: &str, prefix: &Path, libraries: &Path) -> String {
    let within = libraries.strip_prefix(prefix).ok();
    let libraries = within.map_or_else(
        || libraries.display().to_string(),
        |within| format!("${{prefix}}/{}", within.display()),
    );
    let source = source.replace("@prefix@", &prefix.display().to_string());
    source.replace("@libdir@", &libraries).replace("@version@", env!("CARGO_PKG_VERSION"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pkg_config_file_names_where_it_was_installed_and_nothing_is_left_to_fill_in() {
        let source = read(&root().join("packaging/libevener/evener.pc.in")).unwrap();
        let text = filled_in(&String::from_utf8_lossy(&source), Path::new("/usr"), Path::new("/usr/lib/x"));
        assert!(text.contains("prefix=/usr\nlibdir=${prefix}/lib/x\n") && !text.contains('@'), "{text}");
    }

    #[test]
    fn every_function_of_the_header_has_a_version_and_no_other() {
        let folder = root().join(FOLDER);
        let text = |name: &str| String::from_utf8_lossy(&read(&folder.join(name)).unwrap()).into_owned();
        let (header, map) = (text("include/evener.h"), text("libevener.map"));
        let declared = header.lines().filter(|line| !line.trim_start().starts_with(['*', '/']));
        let mut declared: Vec<&str> = declared
            .filter_map(|line| line.split('(').next()?.split([' ', '*']).next_back())
            .filter(|name| name.starts_with("evener_"))
            .collect();
        declared.retain(|name| header.contains(&format!("{name}(")));
        // Comments name some of them too.
        declared.sort_unstable();
        declared.dedup();
        let versioned: Vec<&str> = map
            .lines()
            .filter_map(|line| line.trim().strip_suffix(';'))
            .filter(|name| name.starts_with("evener_"))
            .collect();
        assert_eq!(declared, versioned);
    }
}
