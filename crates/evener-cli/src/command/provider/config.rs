//! `evener provider config`: an openssl.cnf for this machine.
//!
//! Steps: where the system's OpenSSL keeps its configuration and modules -> what that configuration says already
//! ([`Base`]) -> a file that includes it and adds what is missing, so that a program loses nothing.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use evener::split::THREADS_MAX;
use evener_machine::modules::ModuleSpec;
use object::{Object as _, ObjectKind, ObjectSymbol as _};

use super::scope::below;
use crate::input_file::{self, PROGRAM_BYTES_MAX};
use crate::openssl::config::{Cnf, TOP};
use crate::openssl::system::System;
use crate::terminal::{Exit, PathDisplay, output};

/// Prints a configuration for OpenSSL that includes the system's and adds Evener's provider.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  evener provider config > evener.cnf
  OPENSSL_CONF=$PWD/evener.cnf openssl list -providers")]
pub(crate) struct Config {
    #[command(flatten)]
    options: ConfigOptions,
}

/// What goes into the file.
#[derive(clap::Args)]
pub(super) struct ConfigOptions {
    /// The provider's file; without it evener.so in the module directory of the system's OpenSSL.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// The configuration that is included; without it the one that the system's OpenSSL reads.
    #[arg(long, value_name = "FILE")]
    base: Option<PathBuf>,

    /// A crypto module that programs shall use where it pays, as afalg:DRIVER or hosted:SOCKET; may be repeated.
    #[arg(long, value_name = "NAME", value_parser = real_module)]
    module: Vec<ModuleSpec>,

    /// The socket of an `evener host`, whose module programs shall use where it pays; the same as --module hosted:SOCKET.
    #[arg(long, value_name = "SOCKET", value_parser = host)]
    host: Vec<ModuleSpec>,

    /// Threads that work on one large buffer, the caller included, or auto: the cores that a program may use. They are threads in other people's programs, so
    /// none are started unless this is said.
    #[arg(long, value_name = "N|auto", value_parser = threads)]
    threads: Option<String>,

    /// Leaves out that threads of one program encrypt CBC messages together where that pays.
    #[arg(long)]
    no_combine: bool,
}

fn host(socket: &str) -> Result<ModuleSpec, String> {
    real_module(&format!("hosted:{socket}"))
}

fn threads(text: &str) -> Result<String, String> {
    let is_count = text.parse::<usize>().is_ok_and(|count| (1..=THREADS_MAX).contains(&count));
    if is_count || text == "auto" {
        return Ok(text.to_owned());
    }
    Err(format!("auto, or a number from 1 to {THREADS_MAX}"))
}

/// A module that the provider can open.
fn real_module(text: &str) -> Result<ModuleSpec, String> {
    let text = from_anywhere(text)?;
    match text.parse()? {
        ModuleSpec::Emulated(_) => Err("the provider has no emulated modules".to_owned()),
        _ if text.contains(char::is_whitespace) => {
            Err("a name in a configuration holds no spaces".to_owned())
        }
        named => Ok(named),
    }
}

/// The same name with the whole path of a host's socket: programs run in other directories.
fn from_anywhere(text: &str) -> Result<String, String> {
    match text.strip_prefix("hosted:").filter(|socket| !socket.is_empty()) {
        Some(socket) => {
            let path = std::path::absolute(socket).map_err(|error| error.to_string())?;
            Ok(format!("hosted:{}", path.to_str().ok_or("the name of this directory is no text")?))
        }
        None => Ok(text.to_owned()),
    }
}

/// Refuses a file that OpenSSL cannot load as a provider.
pub(super) fn check_module(file: &Path) -> anyhow::Result<()> {
    let bytes = input_file::regular(file, PROGRAM_BYTES_MAX)
        .with_context(|| format!("cannot read {}", PathDisplay(file)))?;
    let is_provider = object::File::parse(&*bytes).is_ok_and(|module| {
        let mut symbols = module.dynamic_symbols().filter(|symbol| !symbol.is_undefined());
        module.kind() == ObjectKind::Dynamic
            && symbols.any(|symbol| symbol.name() == Ok("OSSL_provider_init"))
    });
    if !is_provider {
        bail!("{} is no shared object that OpenSSL can load as a provider", PathDisplay(file));
    }
    Ok(())
}

pub(crate) fn run(arguments: &Config) -> anyhow::Result<Exit> {
    let root = Path::new("/");
    let system = System::below(root);
    let text = arguments.options.text("evener provider config", system, root)?;
    // It may be one of another machine.
    let file = arguments.options.file(system)?;
    if file.exists() {
        check_module(&file)?;
    }
    output::answer(text.as_bytes())
}

impl ConfigOptions {
    /// The provider's file, absolute.
    pub(super) fn file(&self, system: System) -> anyhow::Result<PathBuf> {
        match &self.file {
            Some(file) if file.file_name().is_none_or(|name| name != "evener.so") => {
                bail!(
                    "{} is not named evener.so, the name by which programs load the provider",
                    PathDisplay(file)
                )
            }
            Some(file) => std::path::absolute(file).context("this directory is gone"),
            None => Ok(system.modules_directory()?.join("evener.so")),
        }
    }

    pub(super) const fn has_base(&self) -> bool {
        self.base.is_some()
    }

    /// The whole file, written by `writer`, for a system below `root`.
    pub(super) fn text(&self, writer: &str, system: System, root: &Path) -> anyhow::Result<String> {
        let (base, known) = self.base(system, root)?;
        let file = self.file(system)?;
        for path in [&base, &file] {
            check_path(path)?;
        }
        Base { known: &known }.with_evener(writer, &base, &file, &self.keys()?)
    }

    /// Lines for a configuration that includes them, and lists the provider itself under the name of the section.
    pub(super) fn fragment(&self, writer: &str, system: System, root: &Path) -> anyhow::Result<String> {
        let (base, known) = self.base(system, root)?;
        let file = self.file(system)?;
        check_path(&file)?;
        Base { known: &known }.fragment(writer, &base, &file, &self.keys()?)
    }

    /// The configuration that there is, by the name that programs have for it, and what it says.
    fn base(&self, system: System, root: &Path) -> anyhow::Result<(PathBuf, Cnf)> {
        let (base, there) = match &self.base {
            Some(base) => {
                let base = std::path::absolute(base).context("this directory is gone")?;
                (base.clone(), base)
            }
            None => {
                let base = system.configuration()?;
                // Of another root only what is known to lie there is looked at there: paths of this machine's OpenSSL are this machine's.
                let there = if system == System::Systemd { base.clone() } else { below(root, &base) };
                (base, there)
            }
        };
        match Cnf::read(&there) {
            Ok(known) => Ok((base, known)),
            Err(error) if self.base.is_none() && error.kind() == std::io::ErrorKind::NotFound => {
                Ok((base, Cnf::default()))
            }
            Err(error) => Err(error).with_context(|| format!("cannot read {}", PathDisplay(&there))),
        }
    }

    /// Lines of the provider's own section.
    fn keys(&self) -> anyhow::Result<String> {
        let mut lines = String::new();
        if !self.no_combine {
            lines.push_str("combine = auto\n");
        }
        if let Some(threads) = &self.threads {
            lines.push_str(&format!("threads = {threads}\n"));
        }
        let modules: Vec<String> = self.module.iter().chain(&self.host).map(ModuleSpec::to_string).collect();
        modules.iter().try_for_each(|name| check_path(Path::new(name)))?;
        if !modules.is_empty() {
            lines.push_str(&format!("modules = {}\n", modules.join(" ")));
        }
        Ok(lines)
    }
}

/// OpenSSL takes these for a variable, a comment, an escape, a quote or the end of the line.
fn check_path(path: &Path) -> anyhow::Result<()> {
    match path.to_str() {
        Some(text)
            if !text.contains(['$', '#', '\\', '"', '\'', '`']) && !text.contains(char::is_control) =>
        {
            Ok(())
        }
        _ => bail!("{}: OpenSSL's configuration cannot hold this path", PathDisplay(path)),
    }
}

/// The configuration that is there.
struct Base<'a> {
    known: &'a Cnf,
}

impl Base<'_> {
    fn with_evener(&self, writer: &str, base: &Path, module: &Path, keys: &str) -> anyhow::Result<String> {
        let start = self.known.start().unwrap_or("evener_init");
        let section =
            |name: &str, ours: &'static str| self.known.value(start, name).unwrap_or(ours).to_owned();
        let providers = section("providers", "evener_providers");
        let default = self.known.value(&providers, "default").unwrap_or("evener_default");
        let (algorithms, random) =
            (section("alg_section", "evener_algorithms"), section("random", "evener_random"));
        let choice = self.choice(&algorithms, &random)?;
        let node = match self.known.value(TOP, "nodejs_conf") {
            None => format!("nodejs_conf = {start}\n"),
            Some(_) => String::new(),
        };
        let (base, module) = (base.display(), module.display());
        Ok(format!(
            "# Written by `{writer}`. Whatever the system's configuration says holds here too.\n\
             .include {base}\n\
             \n\
             [{TOP}]\n\
             openssl_conf = {start}\n\
             {node}\
             \n\
             [{start}]\n\
             providers = {providers}\n\
             alg_section = {algorithms}\n\
             random = {random}\n\
             \n\
             # default stands first: evener wraps what is active when it is loaded.\n\
             [{providers}]\n\
             default = {default}\n\
             evener = evener_provider\n\
             \n\
             [{default}]\n\
             activate = 1\n\
             \n\
             [evener_provider]\n\
             identity = evener\n\
             module = {module}\n\
             activate = 1\n\
             {keys}\
             \n\
             {choice}"
        ))
    }

    /// The same for a configuration that includes it.
    fn fragment(&self, writer: &str, base: &Path, module: &Path, keys: &str) -> anyhow::Result<String> {
        let Some(start) = self.known.start() else {
            bail!("{}: it has no line openssl_conf, so that nothing in it is read", PathDisplay(base));
        };
        let section =
            |name: &str, ours: &'static str| self.known.value(start, name).unwrap_or(ours).to_owned();
        let (algorithms, random) =
            (section("alg_section", "evener_algorithms"), section("random", "evener_random"));
        let choice = self.choice(&algorithms, &random)?;
        let (base, module) = (base.display(), module.display());
        Ok(format!(
            "# Written by `{writer}`. {base} includes it.\n\
             [{start}]\n\
             alg_section = {algorithms}\n\
             random = {random}\n\
             \n\
             {choice}\
             \n\
             [evener_sect]\n\
             identity = evener\n\
             module = {module}\n\
             activate = 1\n\
             {keys}"
        ))
    }

    /// The sections by which OpenSSL chooses between providers.
    fn choice(&self, algorithms: &str, random: &str) -> anyhow::Result<String> {
        let properties = self.properties(algorithms)?;
        let random_properties = match self.known.value(random, "properties") {
            None => "properties = provider=default\n".to_owned(),
            Some(properties) => format!("# properties = {properties}, as the system has it\n"),
        };
        Ok(format!(
            "# Without this line it is left to chance who serves an algorithm that both have.\n\
             [{algorithms}]\n\
             default_properties = {properties}\n\
             \n\
             # OpenSSL 3.0 would otherwise draw random numbers through evener.\n\
             [{random}]\n\
             {random_properties}"
        ))
    }

    /// The system's own properties, and evener's where they leave a choice.
    fn properties(&self, algorithms: &str) -> anyhow::Result<String> {
        let properties = self.known.value(algorithms, "default_properties").unwrap_or("");
        let parts = properties.split(',').map(str::trim).filter(|part| !part.is_empty());
        let mut parts: Vec<&str> = parts.filter(|part| !EVENER.contains(part)).collect();
        if let Some(fips) = parts.iter().find(|part| part.trim_start_matches('?').starts_with("fips=yes")) {
            bail!("the system's OpenSSL asks for {fips}: Evener stands aside there and has no configuration");
        }
        if let Some(other) = parts.iter().find(|part| part.trim_start_matches('?').starts_with("provider=")) {
            bail!("the system's OpenSSL asks for {other}: take that out of default_properties first");
        }
        parts.extend(EVENER);
        Ok(parts.join(","))
    }
}

/// Evener where it has the algorithm, any other provider where not; also for a program that asks with a `provider` of its own.
const EVENER: [&str; 2] = ["?provider=evener", "?evener.serves=yes"];
