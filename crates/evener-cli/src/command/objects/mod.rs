//! `evener plan` and `evener run-shard`: options become what `evener-objects` is asked for, which takes this process's place. It is a program by
//! itself because clients of stores would make every `evener encrypt` larger and later.

pub(crate) mod plan;
pub(crate) mod run_shard;

use std::ffi::OsStr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, anyhow};
use evener_shards::Ask;

use crate::terminal::{Exit, PathDisplay};

/// The program that knows stores.
const PROGRAM: &str = "evener-objects";

/// What the exit status says to who runs a shard by itself; the same text at the end of both helps.
macro_rules! again_or_never_help {
    ($($line:literal)*) => {
        concat!("Examples:\n", $("  ", $line, "\n",)* "\n", "\
Exit status:
  0    all was done, or had been
  1    something was not, and the same command again may do it: a store that is busy, an object that changed
  2    something was not, and never will be: wrong usage, a plan, key or right that does not fit, a damaged object, an output in the way
Every failure is named on standard error.")
    };
}
use again_or_never_help;

/// Has the program do it; returns only where it cannot be started.
fn hand_over(ask: &Ask) -> anyhow::Result<Exit> {
    let program = program()?;
    let error = Command::new(&program).arg(serde_json::to_string(ask)?).exec();
    Err(anyhow!(error)).with_context(|| format!("cannot start {}", PathDisplay(&program)))
}

/// Where the program is: beside this one, or where `./x install` and the package put it.
fn program() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("where this program lies is not known")?;
    let folder = own.parent().unwrap_or_else(|| Path::new("/"));
    let places = [folder.join(PROGRAM), folder.join("../lib/evener").join(PROGRAM)];
    let found = places.into_iter().find(|place| place.is_file());
    found.with_context(|| {
        format!("{PROGRAM} is neither beside evener nor in ../lib/evener (./x install puts it there)")
    })
}

/// A text of the command line that has to be one for the program too.
fn text<'t>(what: &str, text: &'t OsStr) -> anyhow::Result<&'t str> {
    text.to_str().with_context(|| format!("{what} is to be text"))
}
