//! `evener provider install`: a service, a user or a system gets the provider, by files that were not there before.
//!
//! Steps: for which programs ([`Scope`]) -> the configuration and the drop-in that names it ([`File`]) -> checks of all -> written one
//! after the other, each whole -> how to undo it.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use super::config::ConfigOptions;
use super::dropin::{File, WRITER, sets_openssl_conf};
use crate::terminal::{Exit, PathDisplay, output};

/// Lets programs load Evener's provider: writes a configuration and a drop-in that sets OPENSSL_CONF, and says how to undo it.
///
/// Files that it did not write are never changed. Programs see it when they are started the next time.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  evener provider install --unit nginx.service
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

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct Scope {
    /// One service of the system.
    #[arg(long, value_name = "NAME.service")]
    unit: Option<String>,

    /// Services and sessions of this user.
    #[arg(long)]
    user: bool,

    /// All services and sessions; needs --yes-system-wide.
    #[arg(long)]
    system: bool,
}

/// What is to be written, and what makes it work.
struct Plan {
    files: Vec<File>,
    /// Commands that make it seen, and unseen after it was undone.
    afterwards: Vec<String>,
}

pub(crate) fn run(arguments: &Install) -> anyhow::Result<Exit> {
    let module = arguments.options.module()?;
    let there = below(&arguments.root, &module);
    if !there.is_file() {
        bail!("{} is not there: install it first, or name it with --module", PathDisplay(&there));
    }
    let plan = arguments.plan()?;
    plan.files.iter().try_for_each(File::check)?;
    plan.files.iter().try_for_each(File::write)?;
    output::answer(plan.text().as_bytes())
}

impl Install {
    fn plan(&self) -> anyhow::Result<Plan> {
        if self.yes_system_wide && !self.scope.system {
            bail!("--yes-system-wide goes with --system only");
        }
        if let Some(unit) = &self.scope.unit {
            return self.for_unit(unit);
        }
        if self.scope.user {
            return self.for_user();
        }
        if !self.yes_system_wide {
            bail!("--system changes every service and session: say --yes-system-wide, or choose --unit");
        }
        self.for_system()
    }

    fn for_unit(&self, unit: &str) -> anyhow::Result<Plan> {
        check_unit(unit)?;
        if let Some(file) = sets_openssl_conf(&self.root, unit).filter(|_| !self.options.has_base()) {
            bail!("{} sets OPENSSL_CONF for {unit}: name that configuration with --base", PathDisplay(&file));
        }
        let cnf = PathBuf::from(format!("/etc/evener/{unit}.cnf"));
        let drop_in = PathBuf::from(format!("/etc/systemd/system/{unit}.d/60-evener.conf"));
        let text = format!(
            "[Service]\nEnvironment=\"OPENSSL_CONF={}\"\n",
            cnf.display().to_string().replace('%', "%%")
        );
        let afterwards = vec!["systemctl daemon-reload".to_owned(), format!("systemctl restart {unit}")];
        Ok(Plan { files: self.files(&cnf, vec![(drop_in, text)])?, afterwards })
    }

    fn for_user(&self) -> anyhow::Result<Plan> {
        let set = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let config = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")));
        let config =
            config.context("neither XDG_CONFIG_HOME nor HOME says where this user's configuration is")?;
        let cnf = config.join("evener/openssl.cnf");
        let text = environment_d(&cnf)?;
        let drop_in = (config.join("environment.d/60-evener.conf"), text);
        let afterwards = vec!["log out and in again".to_owned()];
        Ok(Plan { files: self.files(&cnf, vec![drop_in])?, afterwards })
    }

    fn for_system(&self) -> anyhow::Result<Plan> {
        let cnf = PathBuf::from("/etc/evener/openssl.cnf");
        let manager = format!("[Manager]\nDefaultEnvironment=\"OPENSSL_CONF={}\"\n", cnf.display());
        let session = environment_d(&cnf)?;
        let drop_ins = vec![
            (PathBuf::from("/etc/systemd/system.conf.d/60-evener.conf"), manager),
            (PathBuf::from("/etc/environment.d/60-evener.conf"), session),
        ];
        let afterwards =
            vec!["systemctl daemon-reexec".to_owned(), "restart services, log out and in again".to_owned()];
        Ok(Plan { files: self.files(&cnf, drop_ins)?, afterwards })
    }

    /// The configuration at `cnf`, then the drop-ins: what names a file comes after it.
    fn files(&self, cnf: &Path, drop_ins: Vec<(PathBuf, String)>) -> anyhow::Result<Vec<File>> {
        let mut files = vec![File { path: below(&self.root, cnf), text: self.options.text(WRITER)? }];
        files.extend(drop_ins.into_iter().map(|(path, text)| File {
            path: below(&self.root, &path),
            text: format!("# Written by `{WRITER}`.\n{text}"),
        }));
        Ok(files)
    }
}

impl Plan {
    fn text(&self) -> String {
        let lines = |heading: &str, lines: &mut dyn Iterator<Item = String>| {
            let lines: Vec<String> = lines.map(|line| format!("  {line}\n")).collect();
            format!("{heading}\n{}", lines.concat())
        };
        let paths = || self.files.iter().map(|file| PathDisplay(&file.path).to_string());
        let after = || self.afterwards.iter().cloned();
        // What names a file goes before it.
        let removals = paths().rev().map(|path| format!("rm '{path}'"));
        [
            lines("wrote", &mut paths()),
            lines("to make it work", &mut after()),
            lines("to undo it", &mut removals.chain(after())),
        ]
        .concat()
    }
}

/// A line of environment.d(5), where dollars and quotes would mean something.
fn environment_d(cnf: &Path) -> anyhow::Result<String> {
    match cnf.to_str().filter(|text| !text.contains(['$', '"', '\'', '\\', '\n'])) {
        Some(text) => Ok(format!("OPENSSL_CONF=\"{text}\"\n")),
        None => bail!("{}: a session's environment cannot hold this path", PathDisplay(cnf)),
    }
}

/// Names as systemd has them: no path, nothing that a shell or a unit file reads otherwise.
fn check_unit(unit: &str) -> anyhow::Result<()> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ":-_.@".contains(c);
    let name = unit.strip_suffix(".service").unwrap_or_default();
    if name.is_empty() || name.starts_with(['.', '-']) || !name.chars().all(is_plain) {
        bail!("{unit:?} is no service; write its whole name, such as nginx.service");
    }
    Ok(())
}

fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}
