//! `evener host`: owns a module and serves it to other processes until a signal or a command stops it.
//!
//! Steps: options -> [`Module`] -> `evener_host::run` -> its report as JSON.

use std::env;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use evener::core::driver::SILENCE_MAX;
use evener::core::{Algorithm, Direction};
use evener::{Costs, DriverFactory as _, Turns};
use evener_driver_emulated::{Emulated, Preset};
use evener_driver_kernel as kernel;
use evener_driver_libcrypto::Libcrypto;
use evener_driver_virtio as hosted;
use evener_host::{Access, Limits, Module, Setup, Socket};
use evener_machine::modules::OpenModule;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use crate::machine;
use crate::machine::options::ModuleOptions;
use crate::terminal::{Exit, PathDisplay, output, signals, units};

/// Owns a module and serves it to local programs and QEMU guests.
///
/// The wire is vhost-user-crypto: Evener's own programs come as clients, QEMU as cryptodev-vhost-user. Serves until SIGTERM or
/// SIGINT, or until no client came for the time of --idle-exit, then prints what was done as JSON (docs/reference/schemas/host.schema.json).
#[derive(clap::Args)]
#[command(after_help = "\
Orders on the control socket, one per line, each answered by a line of JSON: report, reset, and for an emulated module
pace PERCENT, service A+B|preset, units N|preset, depth N|preset, and fault none|error CODE|wrong-bytes|delay NS|hang|gone
[from N] [every M]. docs/design/host.md explains them.")]
pub(crate) struct Host {
    /// Where clients come. A socket that no process listens on any more is replaced. Needed unless the socket was opened for this process before it
    /// began, as systemd does it (LISTEN_FDS).
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,

    /// What is served: cpu (a core with all methods), multibuffer (the same, refused without the library), a module behind the
    /// kernel (afalg:DRIVER, devcrypto or devcrypto:/dev/NAME), a device that this host drives itself (virtio:ADDRESS), or an emulated
    /// one (emulated:am3358), whose client pays its own core time.
    #[arg(long, value_name = "MODULE")]
    module: Kind,

    /// Where orders come, from this user and root only.
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,

    /// Lets this user come besides the own one and root; may be repeated.
    #[arg(long = "allow-uid", value_name = "UID")]
    uids: Vec<u32>,

    /// Lets processes of this group come; may be repeated.
    #[arg(long = "allow-gid", value_name = "GID")]
    gids: Vec<u32>,

    /// Cores that a module of cores has, each a thread with clients of its own.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    cores: u16,

    /// Gives each client of a user N shares of a burst instead of one; may be repeated.
    #[arg(long = "weight", value_name = "UID=N", value_parser = weight)]
    weights: Vec<(u32, u32)>,

    /// Ends after so many seconds without a client.
    #[arg(long = "idle-exit", value_name = "SECONDS")]
    idle_exit: Option<u64>,

    /// Lets processes of the same user look into this one, keys included, and the system leave a core file, in which no memory and so no key is: for looking for faults.
    #[arg(hide_short_help = true, long)]
    dumpable: bool,

    #[command(flatten)]
    most: Most,
}

/// What one client may have.
#[derive(clap::Args)]
#[command(next_help_heading = "Limits")]
struct Most {
    /// Clients at the same time: 1024, or as many as the limit of open files allows. More than that allows are refused.
    #[arg(hide_short_help = true, long = "clients", value_name = "N", value_parser = some)]
    clients_max: Option<usize>,

    /// Open sessions of a client.
    #[arg(hide_short_help = true, long = "sessions", value_name = "N", value_parser = some, default_value_t = Limits::default().sessions_max)]
    sessions_max: usize,

    /// Requests of a client that the module holds; others wait in the client's ring.
    #[arg(hide_short_help = true, long = "in-flight", value_name = "N", value_parser = some, default_value_t = Limits::default().in_flight_max)]
    in_flight_max: usize,

    /// Bytes of these requests: the one that goes beyond is the last that is taken.
    #[arg(hide_short_help = true, long = "bytes-in-flight", value_name = "SIZE", value_parser = some_bytes, default_value = "16M")]
    bytes_in_flight_max: usize,

    /// Memory of a client that is mapped: a guest needs all of its own.
    #[arg(hide_short_help = true, long = "client-memory", value_name = "SIZE", value_parser = units::parse_bytes, default_value = "64G")]
    memory_bytes_max: u64,

    /// Longest request.
    #[arg(hide_short_help = true, long = "request-size", value_name = "SIZE", value_parser = request_size, default_value = "1M")]
    request_bytes_max: usize,

    /// Clients of one user at the same time: all, or where others may come an equal share for each that is named, the own user and root; a group counts as eight.
    #[arg(hide_short_help = true, long = "user-clients", value_name = "N", value_parser = some)]
    user_clients_max: Option<usize>,

    /// Open sessions of a user's clients together.
    #[arg(hide_short_help = true, long = "user-sessions", value_name = "N", value_parser = some, default_value_t = Limits::default().user_sessions_max)]
    user_sessions_max: usize,

    /// Requests of a user's clients together that the module holds, for each of --cores; others wait.
    #[arg(hide_short_help = true, long = "user-in-flight", value_name = "N", value_parser = some, default_value_t = Limits::default().user_in_flight_max)]
    user_in_flight_max: usize,

    /// Memory of a user's clients together that is mapped: several guests of one user need all of theirs.
    #[arg(hide_short_help = true, long = "user-memory", value_name = "SIZE", value_parser = units::parse_bytes, default_value = "64G")]
    user_memory_bytes_max: u64,

    /// Memory of a user's clients together that had no pages and was given them by the host, which pays for them: a quarter of what the host may have, shared as the places are.
    #[arg(hide_short_help = true, long = "user-faults", value_name = "SIZE", value_parser = units::parse_bytes)]
    user_faulted_bytes_max: Option<u64>,

    /// How long a client may say nothing after it connected, or stop in the middle of a message.
    #[arg(hide_short_help = true, long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3600))]
    silence: u64,
}

/// A module by its name.
#[derive(Clone)]
enum Kind {
    Cpu,
    Multibuffer,
    Emulated(Preset),
    Kernel(kernel::ModuleName),
    Device(hosted::ModuleName),
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse() {
            Err(kernel::NameError::NotKernel(_)) => {}
            name => return name.map(Self::Kernel).map_err(|error| error.to_string()),
        }
        match text.parse::<hosted::ModuleName>() {
            Ok(name) if matches!(name.place(), hosted::Place::Function(_)) => return Ok(Self::Device(name)),
            Err(error @ hosted::NameError::NoFunction(..)) => return Err(error.to_string()),
            // A host of a host's module is none.
            _ => {}
        }
        match text {
            "cpu" => Ok(Self::Cpu),
            "multibuffer" => Ok(Self::Multibuffer),
            name if name.starts_with("emulated:") => name
                .parse()
                .map(Self::Emulated)
                .map_err(|error: evener_driver_emulated::PresetError| error.to_string()),
            other => Err(format!(
                "unknown module {other:?}; there are cpu, multibuffer, afalg:DRIVER, devcrypto, virtio:ADDRESS and emulated:NAME"
            )),
        }
    }
}

/// With none no client or request would ever be taken.
fn some(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|count| *count > 0).ok_or_else(|| format!("{text:?} is no number from 1 on"))
}

/// The same of memory.
fn some_bytes(text: &str) -> Result<usize, String> {
    let bytes = usize::try_from(units::parse_bytes(text)?).ok().filter(|bytes| *bytes > 0);
    bytes.ok_or_else(|| format!("{text:?} is no size of memory from 1 on"))
}

/// A user by number, and shares.
fn weight(text: &str) -> Result<(u32, u32), String> {
    let parsed =
        text.split_once('=').and_then(|(uid, shares)| Some((uid.parse().ok()?, shares.parse().ok()?)));
    let is_some = |&(_, shares): &(u32, u32)| (1..=WEIGHT_MAX).contains(&shares);
    parsed.filter(is_some).ok_or_else(|| format!("{text:?} is not UID=N with N from 1 to {WEIGHT_MAX}"))
}

/// Most shares of a burst that a client may have. Assumed, not measured: 64, because four bursts of a core are long beside the turn of any other client.
const WEIGHT_MAX: u32 = 64;

/// Up to 64 MiB: what one request may take of the host's memory.
fn request_size(text: &str) -> Result<usize, String> {
    let bytes = units::parse_bytes(text)?;
    let bytes = usize::try_from(bytes).ok().filter(|bytes| (1..=64 << 20).contains(bytes));
    bytes.ok_or_else(|| format!("{text:?} is not between 1 and 64M"))
}

/// Serves until a signal comes.
pub(crate) fn run(arguments: &Host) -> anyhow::Result<Exit> {
    let most = &arguments.most;
    if !arguments.dumpable {
        // Before there is a key.
        set_dumpable_behavior(DumpableBehavior::NotDumpable).context("PR_SET_DUMPABLE")?;
    }
    let access = Access {
        uids: arguments.uids.clone(),
        gids: arguments.gids.clone(),
        weights: arguments.weights.clone(),
    };
    let socket = socket(arguments.socket.as_deref())?;
    let clients_max = clients_max(most.clients_max)?;
    let user_clients_max = Limits::places_of_user(clients_max, access.user_count());
    let faulted_share = evener_host::memory_of_machine() / 4 / access.user_count() as u64;
    let limits = Limits {
        clients_max,
        user_clients_max: most.user_clients_max.unwrap_or(user_clients_max).min(clients_max),
        user_sessions_max: most.user_sessions_max,
        user_in_flight_max: most.user_in_flight_max,
        user_memory_bytes_max: most.user_memory_bytes_max,
        user_faulted_bytes_max: most.user_faulted_bytes_max.unwrap_or(faulted_share),
        silence_max: Duration::from_secs(most.silence),
        sessions_max: most.sessions_max,
        in_flight_max: most.in_flight_max,
        bytes_in_flight_max: most.bytes_in_flight_max,
        memory_bytes_max: most.memory_bytes_max,
        request_bytes_max: most.request_bytes_max,
        idle_max: arguments.idle_exit.map(Duration::from_secs),
    };
    let module = module(&arguments.module, most.request_bytes_max, arguments.cores)?;
    let control = arguments.control.clone();
    let place = match &socket {
        Socket::Path(path) => PathDisplay(path).to_string(),
        Socket::Inherited(_) => "the socket that it was given".to_owned(),
    };
    let setup = Setup { socket, control, access, limits, module };
    let cancel = signals::cancel_on_signals()?;
    let report_start = || output::line(format_args!("serving at {place}"));
    let report = evener_host::run(setup, &cancel, report_start)?;
    let mut text = serde_json::to_vec_pretty(&report)?;
    text.push(b'\n');
    output::answer(&text)
}

/// The one that was named, or the one that this process was given.
fn socket(path: Option<&Path>) -> anyhow::Result<Socket> {
    let variable = |name| env::var(name).ok();
    let (pid, count) = (variable("LISTEN_PID"), variable("LISTEN_FDS"));
    let given = evener_host::listener_of_activation(pid.as_deref(), count.as_deref())?;
    match (path, given) {
        (None, Some(given)) => Ok(Socket::Inherited(given)),
        (Some(path), None) => Ok(Socket::Path(path.to_owned())),
        (Some(_), Some(_)) => {
            bail!("--socket names a socket, and this process was given one (LISTEN_FDS): one is enough")
        }
        (None, None) => bail!("--socket is needed: this process was given no socket (LISTEN_FDS)"),
    }
}

/// As many clients as the option says, or as many of the usual number as the limit of open files allows.
fn clients_max(requested: Option<usize>) -> anyhow::Result<usize> {
    let usual = Limits::default();
    let limits = Limits { clients_max: requested.unwrap_or(usual.clients_max), ..usual };
    match limits.raise_open_files() {
        Ok(()) => Ok(limits.clients_max),
        Err(few) if requested.is_some() || few.fitting == 0 => Err(anyhow!(few)).context("--clients"),
        Err(few) => {
            // Of a number that no person named, a part is no news.
            if few.fitting < usual.clients_max / 4 {
                output::warning(format_args!("{few}; it serves so many"));
            }
            Ok(few.fitting)
        }
    }
}

fn module(kind: &Kind, request_bytes_max: usize, cores: u16) -> anyhow::Result<Module> {
    if cores > 1 && !matches!(kind, Kind::Cpu | Kind::Multibuffer) {
        bail!("--cores is for modules of cores (cpu, multibuffer)");
    }
    match kind {
        Kind::Emulated(preset) => {
            let computes = Libcrypto::new().context("libcrypto")?;
            let driver = Emulated::new(preset.clone().without_core_time(), Box::new(computes));
            Ok(Module::emulated(driver))
        }
        Kind::Kernel(name) => {
            let module = OpenModule::Kernel(kernel::Module::open(name)?);
            Ok(Module::queued(module.driver(), silence(request_bytes_max), module.turns(&machine::Terminal)))
        }
        Kind::Device(name) => {
            let module = hosted::Module::open(name)?;
            // The kernel gives it to one process.
            Ok(Module::queued(module.driver(), silence(request_bytes_max), Turns::new(None)))
        }
        Kind::Cpu | Kind::Multibuffer => core(kind, cores),
    }
}

/// After which such a module is taken for dead: the silence of a run, and what the longest request takes one that
/// does a megabyte in a second. Both are assumed, not measured: far more than a module that works needs.
fn silence(request_bytes_max: usize) -> Duration {
    Duration::from(SILENCE_MAX) + Duration::from_micros(request_bytes_max as u64)
}

fn core(kind: &Kind, cores: u16) -> anyhow::Result<Module> {
    let mut machine = machine::whole(&ModuleOptions::default())?;
    let profile = match (kind, &machine.multibuffer) {
        (Kind::Multibuffer, Some(Err(unavailable))) => return Err(anyhow!("multibuffer: {unavailable}")),
        _ => machine.library().unwrap_or(&machine.libcrypto).clone(),
    };
    machine.load_or_measure_costs(&WORTH_KNOWING.map(|algorithm| (algorithm, Direction::Encrypt)), false);
    let costs = Arc::new(Costs::new(machine.costs_of_cores()));
    let all_core_drivers = (0..cores).map(|_| machine.core_drivers().sharing(&costs)).collect();
    Ok(Module::cores(profile, all_core_drivers, Algorithm::ALL.to_vec()))
}

/// What is worth sending to another process, for two copies cost more than other algorithms do (docs/design/host.md); of others the
/// costs are learned while they are used.
const WORTH_KNOWING: [Algorithm; 9] = [
    Algorithm::Aes128Cbc,
    Algorithm::Aes192Cbc,
    Algorithm::Aes256Cbc,
    Algorithm::Sha1,
    Algorithm::Sha256,
    Algorithm::Md5,
    Algorithm::HmacSha1,
    Algorithm::HmacSha256,
    Algorithm::HmacMd5,
];
