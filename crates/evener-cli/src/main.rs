//! The command `evener`: arguments in, exit status out. One file per subcommand; each turns typed arguments
//! into ready objects and hands them to a library.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "talks to a terminal")]

mod arguments;
mod asked;
mod bench;
mod bench_crypt;
mod bench_files;
mod cache;
mod completions;
mod costs;
mod crypt_files;
mod cryptodev;
mod devices;
mod doctor;
mod explain;
mod explained;
mod host;
mod kept_costs;
mod kernel;
mod keygen;
mod keys;
mod live_costs;
mod machinery;
mod man;
mod modules;
mod openssl_cnf;
mod price;
mod processor;
mod progress;
mod provider;
mod quantity;
mod report;
mod say;
mod sim;
mod sim_live;
mod sim_papers;
mod sim_run;
mod sim_scale;
mod status;
mod stop;
mod summary;
mod system_openssl;
mod trial;

use std::process::ExitCode;

use clap::Parser as _;

use crate::arguments::{Arguments, Command};

fn main() -> ExitCode {
    let command = match Arguments::try_parse() {
        Ok(arguments) => arguments.command,
        Err(error) => return arguments::explain(&error).into(),
    };
    let outcome = match &command {
        Command::Keygen(arguments) => keygen::run(arguments),
        Command::Encrypt(arguments) => crypt_files::encrypt(arguments),
        Command::Decrypt(arguments) => crypt_files::decrypt(arguments),
        Command::Devices(arguments) => devices::run(arguments),
        Command::Explain(arguments) => explain::run(arguments),
        Command::Bench(bench) => bench::run(bench),
        Command::Sim(sim) => sim::run(sim),
        Command::Host(arguments) => host::run(arguments),
        Command::Status(arguments) => status::run(arguments),
        Command::Doctor(arguments) => doctor::run(arguments),
        Command::Cryptodev(arguments) => cryptodev::run(arguments),
        Command::Provider(provider) => provider::run(provider),
        Command::Completions(arguments) => completions::run(arguments),
        Command::Man(arguments) => man::run(arguments),
    };
    outcome.unwrap_or_else(|error| say::failure(&error)).into()
}
