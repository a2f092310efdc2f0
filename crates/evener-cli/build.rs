//! Which commit the command is built from: what `EVENER_COMMIT` says, or git where there is one.
//!
//! Only of builds for use: those for tests would be linked again for every commit.
#![forbid(unsafe_code)]

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=EVENER_COMMIT");
    if env::var_os("EVENER_COMMIT").is_some() || env::var("PROFILE").as_deref() != Ok("release") {
        return;
    }
    // Where HEAD and what it points to lie, in a worktree elsewhere than in .git.
    for name in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", name]).filter(|path| Path::new(path).exists()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    if let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) {
        println!("cargo::rustc-env=EVENER_COMMIT={commit}");
    }
}

/// What git answers, if anything: sources without history have no commit.
fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    let answer = String::from_utf8(output.stdout).ok()?;
    Some(answer.trim().to_owned()).filter(|answer| !answer.is_empty())
}
