//! The command `evener`: arguments in, exit status out. One file per subcommand; each turns typed arguments
//! into ready objects and hands them to a library.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "talks to a terminal")]
#![cfg_attr(
    not(all(feature = "experiments", feature = "servers")),
    allow(dead_code, reason = "a small build is without some that use it")
)]

mod activity;
mod arguments;
mod command;
mod device_paths;
mod input_file;
mod key_files;
mod machine;
mod openssl;
mod terminal;

use std::process::ExitCode;

use crate::arguments::Command;
#[cfg(feature = "experiments")]
use crate::command::{bench, demo, sim};
#[cfg(feature = "manuals")]
use crate::command::{completions, man};
#[cfg(feature = "servers")]
use crate::command::{cryptodev, host};
use crate::command::{
    devices, doctor, encrypt, explain, inspect, keygen, keyset, objects, provider, status, sum, top,
};
use crate::terminal::{output, signals};

/// Has the system leave this process's memory, in which keys lie, out of core dumps. One that knows no such wish dumps as it likes.
fn hide_from_dumps() {
    _ = std::fs::write("/proc/self/coredump_filter", "0");
}

fn main() -> ExitCode {
    hide_from_dumps();
    let command = match arguments::parse() {
        Ok(arguments) => arguments.command,
        Err(error) => return arguments::explain(&error).into(),
    };
    let outcome = match &command {
        Command::Keygen(arguments) => keygen::run(arguments),
        Command::Keyset(command) => keyset::run(command),
        Command::Encrypt(arguments) => encrypt::encrypt(arguments),
        Command::Decrypt(arguments) => encrypt::decrypt(arguments),
        Command::Verify(arguments) => encrypt::verify::verify(arguments),
        Command::Inspect(arguments) => inspect::run(arguments),
        Command::Sum(arguments) => sum::run(arguments),
        Command::Plan(arguments) => objects::plan::run(arguments),
        Command::RunShard(arguments) => objects::run_shard::run(arguments),
        Command::Devices(arguments) => devices::run(arguments),
        Command::Explain(arguments) => explain::run(arguments),
        #[cfg(feature = "experiments")]
        Command::Bench(bench) => bench::run(bench),
        #[cfg(feature = "experiments")]
        Command::Sim(sim) => sim::run(sim),
        #[cfg(feature = "experiments")]
        Command::Demo(arguments) => demo::run(arguments),
        #[cfg(feature = "servers")]
        Command::Host(arguments) => host::run(arguments),
        Command::Status(arguments) => status::run(arguments),
        Command::Top(arguments) => top::run(arguments),
        Command::Doctor(arguments) => doctor::run(arguments),
        #[cfg(feature = "servers")]
        Command::Cryptodev(arguments) => cryptodev::run(arguments),
        Command::Provider(provider) => provider::run(provider),
        #[cfg(feature = "manuals")]
        Command::Completions(arguments) => completions::run(arguments, arguments::definition()),
        #[cfg(feature = "manuals")]
        Command::Man(arguments) => man::run(arguments, arguments::definition()),
    };
    signals::end(outcome.unwrap_or_else(|error| output::failure(&error)))
}
