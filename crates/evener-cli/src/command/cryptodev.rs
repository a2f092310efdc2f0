//! `evener cryptodev`: a node like `/dev/crypto`, for programs that know no other interface.

use evener::core::Job;
use evener::core::plan::Policy;
use evener::{DriverFactory as _, Setup};
use evener_cryptodev::{Node, Served, TEXT_BYTES_MAX};

use crate::machine;
use crate::machine::options::{ModuleOptions, policy_parser};
use crate::terminal::{Exit, output, signals};

/// Makes a node like /dev/crypto and serves it, until it is stopped.
///
/// Programs that speak OCF (cryptodev-linux, FreeBSD) get AES-CBC, CTR, ECB, XTS, SHA and HMAC from this process. It is slow:
/// each request goes through three or four changes of process and takes hundreds of microseconds. It is for old programs and
/// for tests; what is to be fast uses the OpenSSL provider. Needs the kernel's module `cuse`, and root's rights.
#[derive(clap::Args)]
pub(crate) struct Cryptodev {
    /// The node's name below /dev.
    #[arg(long, value_name = "NAME", default_value = "crypto")]
    name: String,

    /// Who takes which request where there is a module.
    #[arg(long, value_name = "POLICY", value_parser = policy_parser(), default_value = Policy::Adaptive.name())]
    policy: Policy,

    #[command(flatten)]
    module_options: ModuleOptions,
}

/// Space beyond the longest text.
const BLOCK_BYTES: usize = 16;

/// Requests that clients left which run at once: as many as one client may leave.
const SIDE_BY_SIDE: usize = 16;

pub(crate) fn run(arguments: &Cryptodev) -> anyhow::Result<Exit> {
    let machine = machine::whole(&arguments.module_options)?;
    let cancel = signals::cancel_on_signals()?;
    let node = Node::new(&arguments.name)?;
    let mut spaces = vec![vec![0; TEXT_BYTES_MAX + BLOCK_BYTES]; SIDE_BY_SIDE];
    let jobs = spaces.iter_mut().map(|space| Job::in_place(space)).collect();
    let setup = Setup {
        policy: arguments.policy,
        modules: machine.modules(),
        callers: 1,
        cancel: cancel.clone(),
        ..Setup::default()
    };
    output::line(format_args!(
        "serving /dev/{}; each request takes hundreds of microseconds, so this is for old programs and tests",
        arguments.name
    ));
    let (served, _) =
        evener::run(setup, |runtime| node.serve(&mut runtime.caller(machine.core_drivers()), jobs, &cancel));
    let Served { requests, async_requests } = served?;
    output::line(format_args!(
        "served {requests} requests, {async_requests} of them left to be fetched later"
    ));
    Ok(Exit::Stopped)
}
