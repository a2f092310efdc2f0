//! The command `evener` as it is measured, and what other programs say.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::tree::cargo;

/// The command, built with optimisation.
///
/// # Errors
///
/// Where it does not build; cargo has then printed why.
pub(crate) fn built_evener() -> Result<PathBuf, String> {
    built_program(cargo(), "release", &["-p", "evener-cli"])
}

/// The command as tests have it: for what it says of itself.
///
/// # Errors
///
/// As of [`built_evener`].
pub(crate) fn built_quickly() -> Result<PathBuf, String> {
    built_program(cargo(), "dev", &["-p", "evener-cli"])
}

/// The program of a package, built by this `cargo`.
fn built_program(cargo: Command, profile: &str, what: &[&str]) -> Result<PathBuf, String> {
    executable(&messages(cargo, profile, what)?).ok_or_else(|| "cargo names no executable".to_owned())
}

/// What cargo says of what it builds.
fn messages(mut cargo: Command, profile: &str, what: &[&str]) -> Result<String, String> {
    let verb = if what.contains(&"--") { "rustc" } else { "build" };
    cargo.args([verb, "--profile", profile, "--message-format=json-render-diagnostics"]).args(what);
    answer(cargo).map_err(|_| format!("{} does not build", what.join(" ")))
}

/// The command, its program for stores, and the OpenSSL provider, built with optimisation.
pub(crate) struct Built {
    pub(crate) command: PathBuf,
    pub(crate) objects: PathBuf,
    pub(crate) module: PathBuf,
}

/// Builds all.
///
/// # Errors
///
/// Where one does not build; cargo has then printed why.
pub(crate) fn built() -> Result<Built, String> {
    built_by(&cargo)
}

/// The same by another `cargo`.
///
/// # Errors
///
/// As of [`built`].
pub(crate) fn built_by(cargo: &dyn Fn() -> Command) -> Result<Built, String> {
    let command = built_program(cargo(), "release", &["-p", "evener-cli"])?;
    let objects = built_program(cargo(), "release", &["-p", "evener-objects"])?;
    Ok(Built { command, objects, module: built_library(cargo(), "release", "evener-provider", MODULE)? })
}

/// The provider's module, as cargo calls it.
pub(crate) const MODULE: &str = "libevener_provider.so";

/// Builds the library of a package: its file of this name.
///
/// # Errors
///
/// Where it does not build; cargo has then printed why.
pub(crate) fn built_library(
    cargo: Command,
    profile: &str,
    package: &str,
    name: &str,
) -> Result<PathBuf, String> {
    built_linked(cargo, profile, package, name, &[])
}

/// The same with arguments to rustc for this library alone.
///
/// # Errors
///
/// As of [`built_library`].
pub(crate) fn built_linked(
    cargo: Command,
    profile: &str,
    package: &str,
    name: &str,
    arguments: &[String],
) -> Result<PathBuf, String> {
    let mut what = vec!["-p", package, "--lib"];
    if !arguments.is_empty() {
        what.push("--");
        what.extend(arguments.iter().map(String::as_str));
    }
    let messages = messages(cargo, profile, &what)?;
    file(&messages, name).ok_or_else(|| format!("cargo names no {name}"))
}

/// Builds a part of a package with optimisation: the folder that it is in.
///
/// # Errors
///
/// Where it does not build; cargo has then printed why.
pub(crate) fn built_of(package: &str, what: &[&str]) -> Result<PathBuf, String> {
    let mut build = cargo();
    build.args(["build", "-q", "--release", "-p", package]).args(what);
    if !build.status().is_ok_and(|status| status.success()) {
        return Err(format!("{package} does not build"));
    }
    Ok(target_folder()?.join("release"))
}

/// Where cargo puts what it builds: `target`, or what `CARGO_TARGET_DIR` or a configuration says.
fn target_folder() -> Result<PathBuf, String> {
    let mut metadata = cargo();
    metadata.args(["metadata", "--format-version", "1", "--no-deps", "--offline"]);
    let known: Value = serde_json::from_str(&answer(metadata)?).map_err(|error| error.to_string())?;
    known["target_directory"]
        .as_str()
        .map(PathBuf::from)
        .ok_or_else(|| "cargo names no target folder".to_owned())
}

/// Builds the command without what small machines do without.
///
/// # Errors
///
/// Where it does not build; cargo has then printed why.
pub(crate) fn built_small_command(cargo: Command) -> Result<PathBuf, String> {
    built_program(cargo, "small", &["-p", "evener-cli", "--no-default-features"])
}

/// Builds the command for a C library that is linked in; without the measurements, of which some need a second program's libraries.
///
/// # Errors
///
/// Where it does not build; cargo has then printed why.
#[cfg(feature = "tarball")]
pub(crate) fn built_static_command(cargo: Command, triple: &str) -> Result<PathBuf, String> {
    let what =
        ["-p", "evener-cli", "--target", triple, "--no-default-features", "--features", "servers,manuals"];
    built_program(cargo, "release", &what)
}

/// The file of this name among those that cargo's messages name, one message a line.
fn file(messages: &str, name: &str) -> Option<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let files = messages.filter_map(|message| message["filenames"].as_array().cloned()).flatten();
    let mut files = files.filter_map(|file| file.as_str().map(PathBuf::from));
    files.rfind(|file| file.ends_with(name))
}

/// The executable that cargo's messages name, one message a line.
fn executable(messages: &str) -> Option<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages.filter_map(|message| message["executable"].as_str().map(PathBuf::from)).next_back()
}

/// Runs a program that talks to the user by itself.
///
/// # Errors
///
/// Where it cannot be started or fails; it has then printed why.
pub(crate) fn run(mut command: Command) -> Result<(), String> {
    let status = command.status().map_err(|error| failed(&command, error))?;
    if status.success() { Ok(()) } else { Err(failed(&command, status)) }
}

/// Runs a program and gives what it wrote to standard output.
///
/// # Errors
///
/// Where it cannot be started or fails.
pub(crate) fn answer(mut command: Command) -> Result<String, String> {
    let output = command.stderr(Stdio::inherit()).output().map_err(|error| failed(&command, error))?;
    if !output.status.success() {
        return Err(failed(&command, output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What a program prints, without the space around it.
///
/// # Errors
///
/// Where it cannot be started or fails.
pub(crate) fn output_of(program: &str, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new(program);
    command.args(arguments);
    answer(command).map(|text| text.trim().to_owned())
}

/// The first line that a program prints; `unknown` where the program is not there.
pub(crate) fn first_line_of<A: AsRef<OsStr>>(program: &str, arguments: &[A]) -> String {
    let output = Command::new(program).args(arguments).stderr(Stdio::null()).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let line = text.lines().next().unwrap_or_default().trim();
    if line.is_empty() { "unknown".to_owned() } else { line.to_owned() }
}

fn failed(command: &Command, reason: impl std::fmt::Display) -> String {
    format!("{}: {reason}", command.get_program().to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_executable_is_found_among_cargos_messages() {
        let messages = "not json\n{\"reason\":\"compiler-artifact\",\"executable\":null}\n\
                        {\"reason\":\"compiler-artifact\",\"executable\":\"/t/release/evener\"}\n\
                        {\"reason\":\"build-finished\",\"success\":true}\n";
        assert_eq!(executable(messages), Some(PathBuf::from("/t/release/evener")));
        assert_eq!(executable("{}"), None);
    }

    #[test]
    fn a_library_is_found_among_cargos_messages() {
        let messages = "{\"filenames\":[\"/t/release/libevener_provider.rlib\",\"/t/release/libevener_provider.so\"]}\n\
                        {\"filenames\":[\"/t/release/deps/libserde_derive.so\"]}\n";
        assert_eq!(file(messages, MODULE), Some(PathBuf::from("/t/release/libevener_provider.so")));
        assert_eq!(file("{}", MODULE), None);
    }

    #[test]
    fn a_program_that_is_not_there_says_unknown() {
        assert_eq!(first_line_of("no-such-program", &["--version"]), "unknown");
        assert_eq!(first_line_of("echo", &["two\nlines"]), "two");
    }
}
