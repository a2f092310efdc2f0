//! For which programs: a service, a user or a system, each with the files that lead its programs to a configuration.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use crate::openssl::system::{OPENWRT_FRAGMENTS, System};

/// Programs that are meant.
#[derive(clap::Args)]
#[group(multiple = false)]
pub(super) struct Scope {
    /// One service of the system.
    #[arg(long, value_name = "NAME.service")]
    unit: Option<String>,

    /// Services and sessions of this user.
    #[arg(long)]
    user: bool,

    /// All services and sessions.
    #[arg(long)]
    system: bool,
}

/// The same, chosen.
pub(super) enum Whom {
    Unit(String),
    User { config: PathBuf },
    System,
}

impl Scope {
    /// Who is meant; `None` where it was not said.
    pub(super) fn whom(&self) -> anyhow::Result<Option<Whom>> {
        if let Some(unit) = &self.unit {
            check_unit(unit)?;
            return Ok(Some(Whom::Unit(unit.clone())));
        }
        if self.user {
            return Ok(Some(Whom::User { config: users_configuration()? }));
        }
        Ok(self.system.then_some(Whom::System))
    }
}

impl Whom {
    /// The option that names it.
    pub(super) fn option(&self) -> String {
        match self {
            Self::Unit(unit) => format!("--unit {}", shell_word(unit)),
            Self::User { .. } => "--user".to_owned(),
            Self::System => "--system".to_owned(),
        }
    }

    /// The configuration that its programs get.
    pub(super) fn cnf(&self, system: System) -> PathBuf {
        match self {
            Self::Unit(unit) => format!("/etc/evener/{unit}.cnf").into(),
            Self::User { config } => config.join("evener/openssl.cnf"),
            Self::System if system == System::OpenWrt => Path::new(OPENWRT_FRAGMENTS).join(FRAGMENT),
            Self::System => "/etc/evener/openssl.cnf".into(),
        }
    }

    /// Files that set OPENSSL_CONF, with what each says.
    pub(super) fn drop_ins(&self, system: System) -> anyhow::Result<Vec<(PathBuf, String)>> {
        match system {
            System::Systemd => self.systemd_drop_ins(),
            System::Alpine if matches!(self, Self::System) => {
                Ok(vec![(PROFILE.into(), format!("export {}", environment_d(&self.cnf(system))?))])
            }
            System::Alpine | System::OpenWrt => Ok(Vec::new()),
        }
    }

    fn systemd_drop_ins(&self) -> anyhow::Result<Vec<(PathBuf, String)>> {
        let cnf = self.cnf(System::Systemd);
        let path = cnf.display();
        Ok(match self {
            Self::Unit(unit) => {
                let path = path.to_string().replace('%', "%%").replace('\\', r"\\");
                let text = format!("[Service]\nEnvironment=\"OPENSSL_CONF={path}\"\n");
                vec![(format!("/etc/systemd/system/{unit}.d/{DROP_IN}").into(), text)]
            }
            Self::User { config } => {
                vec![(config.join("environment.d").join(DROP_IN), environment_d(&cnf)?)]
            }
            Self::System => {
                let manager = format!("[Manager]\nDefaultEnvironment=\"OPENSSL_CONF={path}\"\n");
                vec![
                    (format!("/etc/systemd/system.conf.d/{DROP_IN}").into(), manager),
                    (format!("/etc/environment.d/{DROP_IN}").into(), environment_d(&cnf)?),
                ]
            }
        })
    }

    /// What makes programs see it.
    pub(super) fn afterwards(&self, system: System) -> Vec<String> {
        let cnf = self.cnf(system);
        let line = format!("export OPENSSL_CONF=\"{}\"", cnf.display());
        match (self, system) {
            (Self::Unit(unit), System::Alpine) => {
                let name = shell_word(unit.trim_end_matches(".service"));
                vec![format!("add to /etc/conf.d/{name}: {line}"), format!("rc-service {name} restart")]
            }
            (Self::Unit(unit), _) => {
                vec!["systemctl daemon-reload".into(), format!("systemctl restart {}", shell_word(unit))]
            }
            (Self::User { .. }, System::Systemd) => vec!["log out of the desktop and in again".into()],
            (Self::User { .. }, _) => vec![format!("in the profile of a shell: {line}")],
            (Self::System, System::Systemd) => {
                vec!["systemctl daemon-reexec".into(), "restart services, log out and in again".into()]
            }
            (Self::System, System::Alpine) => vec![
                "log in again".into(),
                format!("for a service, add to its file in /etc/conf.d: {line}"),
                "rc-service NAME restart".into(),
            ],
            (Self::System, System::OpenWrt) => vec![
                "uci set openssl.evener=provider".into(),
                "uci set openssl.evener.enabled=1".into(),
                "uci commit openssl".into(),
                "/etc/init.d/openssl reload".into(),
                "restart services".into(),
            ],
        }
    }

    /// What makes programs see that it is gone.
    pub(super) fn undone(&self, system: System) -> Vec<String> {
        match (self, system) {
            (Self::System, System::OpenWrt) => vec![
                "uci delete openssl.evener".into(),
                "uci commit openssl".into(),
                "/etc/init.d/openssl reload".into(),
                "restart services".into(),
            ],
            (Self::System, System::Alpine) => {
                vec!["log in again".into(), "take OPENSSL_CONF out of files in /etc/conf.d".into()]
            }
            _ => self.afterwards(system),
        }
    }

    /// Where that is not enough, and what helps.
    pub(super) fn elsewhere(&self, system: System) -> Vec<String> {
        match self {
            Self::User { .. } if system == System::Systemd => vec![
                "shells of a login by ssh or on a console read no environment.d; there, or in their profile:"
                    .into(),
                format!("export OPENSSL_CONF='{}'", self.cnf(system).display()),
            ],
            _ => Vec::new(),
        }
    }
}

/// Evener's lines in OpenWrt's folder.
pub(super) const FRAGMENT: &str = "evener.cnf";

/// What shells of Alpine's sessions read.
pub(super) const PROFILE: &str = "/etc/profile.d/60-evener.sh";

/// The name of every drop-in of Evener's.
pub(super) const DROP_IN: &str = "60-evener.conf";

fn users_configuration() -> anyhow::Result<PathBuf> {
    let set = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")));
    config.context("neither XDG_CONFIG_HOME nor HOME says where this user's configuration is")
}

/// A line of environment.d(5), where dollars and quotes would mean something.
fn environment_d(cnf: &Path) -> anyhow::Result<String> {
    match cnf.to_str().filter(|text| !text.contains(['$', '"', '\'', '\\', '\n'])) {
        Some(text) => Ok(format!("OPENSSL_CONF=\"{text}\"\n")),
        None => bail!("{}: a session's environment cannot hold this path", cnf.display()),
    }
}

/// A unit's name as shells take it.
fn shell_word(unit: &str) -> String {
    if unit.contains('\\') { format!("'{unit}'") } else { unit.to_owned() }
}

/// Names as systemd.unit(5) has them.
fn check_unit(unit: &str) -> anyhow::Result<()> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || r":-_.\@".contains(c);
    let name = unit.strip_suffix(".service").unwrap_or_default();
    if name.is_empty() || name.starts_with(['.', '-']) || !name.chars().all(is_plain) {
        bail!("{unit:?} is no service; write its whole name, such as nginx.service");
    }
    Ok(())
}

/// A path of the system, below another root.
pub(super) fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}
