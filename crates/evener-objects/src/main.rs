//! The program behind `evener plan` and `evener run-shard`: what it is asked stands in its one argument, as JSON. It is a program by itself so
//! that `evener encrypt` does not carry clients of stores around.
#![forbid(unsafe_code)]

mod keys;
mod outcome;
mod planning;
mod report;
mod shard;
mod spared;
mod store;

use std::process::ExitCode;

use evener_shards::Ask;

use crate::outcome::{Exit, Failure};

fn main() -> ExitCode {
    // Keys lie in this process's memory: a system that knows such a wish leaves it out of core dumps.
    _ = std::fs::write("/proc/self/coredump_filter", "0");
    let outcome = asked().and_then(|ask| match ask {
        Ask::Plan(planning) => planning::run(&planning),
        Ask::RunShard(run) => shard::run(&run),
    });
    let exit = outcome.unwrap_or_else(|failure| {
        report::say(&failure);
        Exit::from(&failure)
    });
    exit.into()
}

fn asked() -> Result<Ask, Failure> {
    let mut arguments = std::env::args_os().skip(1);
    let (argument, more) = (arguments.next(), arguments.next());
    let (Some(argument), None) = (argument, more) else {
        return Err(Failure::never("this program is called by `evener plan` and `evener run-shard`"));
    };
    let text = argument.to_str().ok_or_else(|| Failure::never("what was asked is no text"))?;
    // Its own words would repeat what was asked.
    serde_json::from_str(text).map_err(|error| {
        Failure::never(format_args!("what was asked is not understood, from column {} on", error.column()))
    })
}
