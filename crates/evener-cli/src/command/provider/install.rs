//! `evener provider install`: a service, a user or a system gets the provider, by files that were not there before.
//!
//! Steps: for which programs ([`Whom`]) -> the configuration and the drop-in that names it ([`File`]) -> checks of all -> written one
//! after the other, each whole -> how to undo it.

use std::path::{Path, PathBuf};

use anyhow::bail;

use super::config::{ConfigOptions, check_module};
use super::dropin::{File, WRITER, open_ways, sets_openssl_conf};
use super::scope::{Scope, Whom, below};
use crate::openssl::system::System;
use crate::terminal::{Exit, PathDisplay, output};

/// Lets programs load Evener's provider: writes a configuration and a drop-in that sets OPENSSL_CONF, and says how to undo it.
///
/// Files that it did not write are never changed. Programs see it when they are started the next time.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  evener provider install --unit nginx.service
  evener provider install --unit bacula-fd.service --threads auto
  evener provider install --unit php-fpm.service --host /run/evener/host.sock
  evener provider install --user
  evener provider install --system --yes-system-wide")]
pub(crate) struct Install {
    #[command(flatten)]
    scope: Scope,

    /// Every service and session of the machine is meant.
    #[arg(long)]
    yes_system_wide: bool,

    /// Writes below this directory instead of /.
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,

    #[command(flatten)]
    options: ConfigOptions,
}

pub(crate) fn run(arguments: &Install) -> anyhow::Result<Exit> {
    let (whom, system) = (arguments.whom()?, System::below(&arguments.root));
    let there = below(&arguments.root, &arguments.options.file(system)?);
    if !there.is_file() {
        bail!("{} is not there: install it first, or name it with --file", PathDisplay(&there));
    }
    check_module(&there)?;
    let files = arguments.files(&whom, system)?;
    files.iter().try_for_each(File::check)?;
    files.iter().try_for_each(|file| file.write(&arguments.root))?;
    open_ways(&files, &arguments.root)?;
    let text = text(&whom, system, &files, &arguments.root);
    Ok(output::answer_after("the files are written", text.as_bytes()))
}

impl Install {
    fn whom(&self) -> anyhow::Result<Whom> {
        let whom = self.scope.whom()?;
        match &whom {
            None => bail!("for which programs? --unit NAME.service, --user or --system"),
            Some(Whom::System) if !self.yes_system_wide => {
                bail!("--system changes every service and session: say --yes-system-wide, or choose --unit")
            }
            Some(Whom::Unit(_) | Whom::User { .. }) if self.yes_system_wide => {
                bail!("--yes-system-wide goes with --system only")
            }
            Some(Whom::Unit(unit)) if !self.options.has_base() => {
                if let Some(file) = sets_openssl_conf(&self.root, unit) {
                    let file = PathDisplay(&file);
                    bail!("{file} sets OPENSSL_CONF for {unit}: name that configuration with --base");
                }
            }
            Some(_) => {}
        }
        Ok(whom.expect("it was looked at above"))
    }

    /// The configuration, then the drop-ins: what names a file comes after it.
    fn files(&self, whom: &Whom, system: System) -> anyhow::Result<Vec<File>> {
        let text = match system {
            System::OpenWrt if matches!(whom, Whom::Unit(_)) => {
                bail!(
                    "OpenWrt gives its services no environment: --system, whose openssl.cnf all of them read"
                )
            }
            System::OpenWrt if matches!(whom, Whom::System) => {
                self.options.fragment(WRITER, system, &self.root)?
            }
            _ => self.options.text(WRITER, system, &self.root)?,
        };
        let is_for_all = !matches!(whom, Whom::User { .. });
        let mut files = vec![File { path: below(&self.root, &whom.cnf(system)), text, is_for_all }];
        files.extend(whom.drop_ins(system)?.into_iter().map(|(path, text)| File {
            path: below(&self.root, &path),
            text: format!("# Written by `{WRITER}`.\n{text}"),
            is_for_all,
        }));
        Ok(files)
    }
}

/// What was done, what makes it work, how to see that it does, and how to undo it.
fn text(whom: &Whom, system: System, files: &[File], root: &Path) -> String {
    let root = if root == Path::new("/") { String::new() } else { format!(" --root '{}'", root.display()) };
    let undo = format!("evener provider uninstall {}{root}", whom.option());
    let paths = files.iter().map(|file| PathDisplay(&file.path).to_string()).collect();
    [
        paragraph("wrote", paths),
        paragraph("to make it work", [whom.afterwards(system), whom.elsewhere(system)].concat()),
        paragraph("to see that it works", vec!["evener doctor".into(), "evener status".into()]),
        paragraph("to undo it", vec![undo]),
    ]
    .concat()
}

/// A heading and lines below it; nothing where there are none.
pub(super) fn paragraph(heading: &str, lines: Vec<String>) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let lines: Vec<String> = lines.iter().map(|line| format!("  {line}\n")).collect();
    format!("{heading}\n{}", lines.concat())
}
