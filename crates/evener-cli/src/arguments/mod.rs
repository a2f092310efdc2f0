//! The command line as types. Man pages and completions are made from the same definition.

mod help;
mod version;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser, Subcommand};

#[cfg(feature = "experiments")]
use crate::command::bench::Bench;
#[cfg(feature = "manuals")]
use crate::command::completions::Completions;
#[cfg(feature = "servers")]
use crate::command::cryptodev::Cryptodev;
#[cfg(feature = "experiments")]
use crate::command::demo::Demo;
use crate::command::devices::Devices;
use crate::command::doctor::Doctor;
use crate::command::encrypt::verify::Verify;
use crate::command::encrypt::{Decrypt, Encrypt};
use crate::command::explain::Explain;
#[cfg(feature = "servers")]
use crate::command::host::Host;
use crate::command::inspect::Inspect;
use crate::command::keygen::Keygen;
use crate::command::keyset::KeysetCommand;
#[cfg(feature = "manuals")]
use crate::command::man::Man;
use crate::command::objects::plan::Plan;
use crate::command::objects::run_shard::RunShard;
use crate::command::provider::Provider;
#[cfg(feature = "experiments")]
use crate::command::sim::Sim;
use crate::command::status::Status;
use crate::command::sum::Sum;
use crate::command::top::Top;
use crate::terminal::{Exit, examples_help, output};

/// Encrypts and decrypts files on every core.
///
/// The key chooses the format: recipients, identities and passphrases the age format, a Tink keyset Tink's
/// streaming AEAD; `--format openssl` reads and writes what `openssl enc` does.
#[derive(Parser)]
#[command(
    name = "evener",
    version,
    max_term_width = 100,
    after_help = examples_help! {
        "evener keygen --age ID.txt                    # prints its recipient"
        "evener encrypt -r age1... report.pdf          # makes report.pdf.age"
        "evener decrypt -i ID.txt report.pdf.age       # makes report.pdf"
        "evener encrypt -r age1... -o sealed photos    # a tree"
    }
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Keygen(Keygen),
    #[command(subcommand)]
    Keyset(KeysetCommand),
    Encrypt(Box<Encrypt>),
    Decrypt(Box<Decrypt>),
    Verify(Box<Verify>),
    Inspect(Inspect),
    Sum(Box<Sum>),
    Plan(Box<Plan>),
    RunShard(Box<RunShard>),
    Devices(Devices),
    Explain(Box<Explain>),
    #[cfg(feature = "experiments")]
    #[command(subcommand)]
    Bench(Bench),
    #[cfg(feature = "experiments")]
    #[command(subcommand)]
    Sim(Sim),
    #[cfg(feature = "experiments")]
    Demo(Demo),
    #[cfg(feature = "servers")]
    Host(Box<Host>),
    Status(Status),
    Top(Top),
    Doctor(Doctor),
    #[cfg(feature = "servers")]
    Cryptodev(Box<Cryptodev>),
    #[command(subcommand)]
    Provider(Box<Provider>),
    #[cfg(feature = "manuals")]
    Completions(Completions),
    #[cfg(feature = "manuals")]
    Man(Man),
}

/// The command line's definition, with its help as it is shown.
pub(crate) fn definition() -> clap::Command {
    help::dressed(Arguments::command())
}

/// What this process was asked for. Only who asks for help waits until it is dressed.
pub(crate) fn parse() -> Result<Arguments, clap::Error> {
    Arguments::try_parse().map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            definition().try_get_matches().err().unwrap_or(error)
        }
        _ => error,
    })
}

/// Prints what clap has to say: help as it is, errors as one line; and the version, with the libraries.
pub(crate) fn explain(error: &clap::Error) -> Exit {
    if error.kind() == ErrorKind::DisplayVersion {
        let answered = output::answer(version::text().as_bytes());
        return answered.unwrap_or_else(|error| output::failure(&error));
    }
    let text = error.render().to_string();
    if error.use_stderr() && error.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let facts = text.split("\n\nUsage:").next().unwrap_or_default();
        let facts = facts.split("\n\nFor more information").next().unwrap_or_default();
        output::line(output::one_line(facts.trim_start_matches("error: ")));
        return Exit::NothingDone;
    }
    if error.use_stderr() {
        eprint!("{text}");
        return Exit::NothingDone;
    }
    output::answer(text.as_bytes()).unwrap_or_else(|error| output::failure(&error))
}
