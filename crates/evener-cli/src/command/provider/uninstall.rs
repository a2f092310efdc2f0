//! `evener provider uninstall`: takes back what `evener provider install` did, and nothing else.
//!
//! Steps: whose files ([`Whom`], or all of the system) -> those that are Evener's -> removed, what names a file before it, and with them
//! the directories that were made for them.

use std::path::PathBuf;

use anyhow::bail;

use super::dropin::{self, Standing, standing};
use super::install::paragraph;
use super::scope::{Scope, Whom, below};
use crate::openssl::system::System;
use crate::terminal::{Exit, PathDisplay, output};

/// Takes back what `evener provider install` wrote; programs that run keep the provider until they end.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  evener provider uninstall --unit nginx.service
  evener provider uninstall --all")]
pub(crate) struct Uninstall {
    #[command(flatten)]
    scope: Scope,

    /// All that was installed for services and the system; users' own stays.
    #[arg(long, conflicts_with_all = ["unit", "user", "system"])]
    all: bool,

    /// Looks below this directory instead of /.
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,
}

pub(crate) fn run(arguments: &Uninstall) -> anyhow::Result<Exit> {
    let (whom, system) = (arguments.scope.whom()?, System::below(&arguments.root));
    let found = match &whom {
        Some(whom) => arguments.files_of(whom, system)?,
        None if arguments.all => dropin::all(&arguments.root)?,
        None => bail!("for which programs? --unit NAME.service, --user, --system or --all"),
    };
    if found.is_empty() {
        return output::answer(b"nothing to undo: no file of `evener provider install` is there\n");
    }
    dropin::remove(&found, &arguments.root)?;
    let paths = found.iter().map(|path| PathDisplay(path).to_string()).collect();
    let afterwards = match &whom {
        Some(Whom::System) | None => Whom::System.undone(system),
        Some(whom) => whom.afterwards(system),
    };
    let text = [paragraph("removed", paths), paragraph("programs see it after", afterwards)].concat();
    Ok(output::answer_after("the files are removed", text.as_bytes()))
}

impl Uninstall {
    /// What is there, drop-ins before the configuration that they name. A file of another's in such a place is left, and said.
    fn files_of(&self, whom: &Whom, system: System) -> anyhow::Result<Vec<PathBuf>> {
        let drop_ins = whom.drop_ins(system)?.into_iter().map(|(path, _)| path);
        let mut found = Vec::new();
        for path in drop_ins.chain([whom.cnf(system)]).map(|path| below(&self.root, &path)) {
            match standing(&path)? {
                Standing::Ours => found.push(path),
                Standing::Others => {
                    output::warning(format_args!("{} is not Evener's: it is left", PathDisplay(&path)));
                }
                Standing::Nothing => {}
            }
        }
        Ok(found)
    }
}
