//! `evener status`: what the provider counts in this user's programs, while they run, and what hosts did.
//!
//! Steps: [`Sources`] -> [`Reading`](crate::activity::Reading) -> `text.rs`, `json.rs` or `prometheus.rs`; `modules.rs` has
//! modules that processes share, for each of them.

mod json;
mod modules;
mod prometheus;
mod text;

use std::path::PathBuf;

use anyhow::bail;
use evener::counts_file::ended_files;

use crate::activity::{Reading, Sources};
use crate::terminal::{Exit, PathDisplay, output};

/// Shows what Evener's OpenSSL provider did in programs of this user that run, or of one process, what hosts did, and who shares modules.
///
/// One line for each algorithm and direction: requests, bytes, and which way they went: direct (OpenSSL's own code where it
/// stood), kernel (code of Evener's for this processor, where it stood), combined (side by side with those of other threads), split (over several cores), routed (to a module). A program
/// that has ended is shown once more, and its file is removed then. `evener top` shows the same live.
#[derive(clap::Args)]
#[command(after_help = "\
The counts lie in $XDG_RUNTIME_DIR/evener, /run/user/UID/evener or /tmp/evener-UID, one file for each process
(docs/reference/counters.md). A program in which the provider has done nothing yet has none. Hosts whose control socket lies there
under a name that ends in .control are asked too.")]
pub(crate) struct Status {
    /// This process only, of whichever user its files may be read.
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,

    /// The host with this control socket too (`evener host --control`); may be repeated.
    #[arg(long = "host", value_name = "SOCKET", conflicts_with = "pid")]
    hosts: Vec<PathBuf>,

    /// A line for each size class too.
    #[arg(long)]
    sizes: bool,

    /// Prints JSON (docs/reference/schemas/status.schema.json), all size classes apart.
    #[arg(long)]
    json: bool,

    /// Prints the text format of Prometheus (docs/guide/many-processes.md); removes no file of a program that has ended.
    #[arg(long, conflicts_with_all = ["json", "sizes"])]
    prometheus: bool,

    /// Shows nothing and takes the segment away in which this user's processes share modules (docs/design/arbiter.md): those that have it go on among
    /// themselves, the next ones make a new one.
    #[arg(long, conflicts_with_all = ["pid", "hosts", "json", "sizes", "prometheus"])]
    remove_arbiter: bool,
}

pub(crate) fn run(arguments: &Status) -> anyhow::Result<Exit> {
    let sources = Sources::of_this_user(&arguments.hosts);
    if arguments.remove_arbiter {
        let was_there = sources.remove_arbiter()?;
        output::line(if was_there {
            "the arbiter's segment was removed"
        } else {
            "there is no arbiter's segment"
        });
        return Ok(Exit::Done);
    }
    // Before anything is read: what ends from here on is shown the next time.
    let removes = arguments.pid.is_none() && !arguments.prometheus;
    let ended = removes.then(|| ended_files(&sources.places, sources.uid));
    let reading = match arguments.pid {
        None => sources.read(),
        Some(pid) => match sources.read_process(pid) {
            Some(reading) => reading,
            None => {
                bail!("process {pid} has no statistics: the provider is not in it, or has done nothing yet")
            }
        },
    };
    let text = if arguments.json {
        json::text(&reading)?
    } else if arguments.prometheus {
        prometheus::text(&reading)
    } else {
        text::text(&reading, arguments.sizes)
    };
    output::answer(text.as_bytes())?;
    if arguments.json {
        // The answer has no place for it.
        reading.refused_directory.iter().for_each(output::line);
    } else {
        faults(&reading).iter().for_each(output::line);
    }
    if let Some(ended) = ended.filter(|_| reading.refused_directory.is_none()) {
        ended.remove();
    }
    Ok(if faults(&reading).is_empty() { Exit::Done } else { Exit::SomeFailed })
}

/// What could not be read, a line each.
pub(crate) fn faults(reading: &Reading) -> Vec<String> {
    let files = reading.unreadable.iter().map(|one| format!("process {}: {}", one.pid, one.reason));
    let hosts = reading.hosts.iter().filter_map(|host| {
        let reason = host.answer.as_ref().err()?;
        Some(format!("host {}: {reason}", PathDisplay(&host.socket)))
    });
    let arbiter = reading.arbiter.as_ref().err().map(ToString::to_string);
    reading.refused_directory.clone().into_iter().chain(files).chain(hosts).chain(arbiter).collect()
}
