//! `./x tarball`: the command alone, with its C library and libcrypto inside, for any Linux of this machine's processor: to copy to where
//! no package fits and nothing is to be installed. No provider: programs load that into their own libcrypto.
//!
//! Steps: libcrypto by the crate `openssl-src` for musl -> the command against it -> a look whether it asks for any library, and encrypts in a root
//! where there is nothing else -> packed with its manual pages and completions, so that the same commit gives the same bytes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use super::deb::epoch;
use super::target::without_paths;
use super::{put, read, with_path};
use crate::programs::{answer, built_quickly, built_static_command, run};
use crate::tree::{cargo, root};

/// Builds it and says where it is.
pub(super) fn tarball() -> Result<PathBuf, String> {
    let (version, processor) = (env!("CARGO_PKG_VERSION"), env::consts::ARCH);
    let triple = format!("{processor}-unknown-linux-musl");
    let name = format!("evener-{version}-{processor}-linux-musl");
    let work = root().join("target/tarball");
    let libraries = built_libcrypto(&work.join("openssl"), &triple)?;
    let command = built_static_command(for_musl(&work, &libraries), &triple)?;
    let tree = work.join(&name);
    if tree.exists() {
        fs::remove_dir_all(&tree).map_err(|error| with_path(&tree, &error))?;
    }
    let stripped = work.join("evener");
    let mut strip = Command::new("strip");
    strip.args(["--strip-all", "-o"]).arg(&stripped).arg(&command);
    run(strip)?;
    put(&tree.join("evener"), 0o755, &read(&stripped)?)?;
    check(&tree.join("evener"), &work.join("root"))?;
    put_texts(&tree)?;
    let file = work.join(format!("{name}.tar.gz"));
    pack(&tree, &file)?;
    Ok(file)
}

/// OpenSSL's libraries for musl, built once for each version of the crate; the folder that they are in.
fn built_libcrypto(folder: &Path, triple: &str) -> Result<PathBuf, String> {
    let done = folder.join(format!("{}.done", openssl_src::version()));
    let libraries = folder.join("install/lib");
    if done.is_file() {
        return Ok(libraries);
    }
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|error| with_path(folder, &error))?;
    }
    let host = format!("{}-unknown-linux-gnu", env::consts::ARCH);
    let mut build = openssl_src::Build::new();
    build.out_dir(folder).target(triple).host(&host);
    let built = build.try_build().map_err(|error| format!("OpenSSL does not build for musl: {error}"))?;
    put(&done, 0o644, b"")?;
    Ok(built.lib_dir().to_owned())
}

/// Cargo, for a command that finds libcrypto there and nowhere else.
fn for_musl(work: &Path, libraries: &Path) -> Command {
    let mut command = cargo();
    let flags = format!("{} -L native={}", without_paths(), libraries.display());
    command.env("RUSTFLAGS", flags).env("CARGO_INCREMENTAL", "0");
    command.env("CARGO_TARGET_DIR", work.join("build"));
    command
}

/// Asks for no library, and does its work in a folder where there is nothing but itself.
fn check(command: &Path, folder: &Path) -> Result<(), String> {
    let mut readelf = Command::new("readelf");
    readelf.args(["--wide", "--dynamic", "--program-headers"]).arg(command).env("LC_ALL", "C");
    let report = answer(readelf)?;
    if report.contains("(NEEDED)") || report.contains("INTERP") {
        return Err(format!("{} asks for libraries:\n{report}", command.display()));
    }
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|error| with_path(folder, &error))?;
    }
    put(&folder.join("evener"), 0o755, &read(command)?)?;
    let text = b"nothing else is here".repeat(10_000);
    put(&folder.join("plain"), 0o600, &text)?;
    // A namespace of one's own, where changing the root needs no right; /proc and /dev are not there either.
    for words in [
        &["keygen", "--age", "/key"][..],
        &["encrypt", "-i", "/key", "/plain"],
        &["decrypt", "-i", "/key", "-o", "/again", "/plain.age"],
    ] {
        let mut inside = Command::new("unshare");
        inside.args(["--map-root-user", "--root"]).arg(folder).arg("/evener").args(words);
        run(inside).map_err(|reason| format!("alone in a root, evener {}: {reason}", words.join(" ")))?;
    }
    if read(&folder.join("again"))? == text {
        Ok(())
    } else {
        Err("what came back is another file".to_owned())
    }
}

/// Pages, completions and licences; what the command says of itself is the same on every machine.
fn put_texts(tree: &Path) -> Result<(), String> {
    let command = built_quickly()?;
    let pages = tree.join("man/man1");
    fs::create_dir_all(&pages).map_err(|error| with_path(&pages, &error))?;
    let mut manual = Command::new(&command);
    manual.arg("man").arg(&pages);
    run(manual)?;
    for shell in ["bash", "zsh", "fish"] {
        let mut completions = Command::new(&command);
        completions.args(["completions", shell]);
        put(&tree.join("completions").join(shell), 0o644, answer(completions)?.as_bytes())?;
    }
    for name in ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "CHANGELOG.md"] {
        put(&tree.join(name), 0o644, &read(&root().join(name))?)?;
    }
    Ok(())
}

fn pack(tree: &Path, file: &Path) -> Result<(), String> {
    let date = format!("--mtime=@{}", epoch()?);
    let (Some(folder), Some(name)) = (tree.parent(), tree.file_name()) else {
        return Err("no folder".to_owned());
    };
    let archive = file.with_extension("");
    let mut tar = Command::new("tar");
    tar.args([
        "--create",
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--format=ustar",
        &date,
    ]);
    tar.arg("--file").arg(&archive).arg("--directory").arg(folder).arg(name);
    run(tar)?;
    let mut gzip = Command::new("gzip");
    gzip.args(["-9", "-n", "--force"]).arg(&archive);
    run(gzip)
}
