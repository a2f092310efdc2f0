//! Instructions and system calls of a request, counted.
//!
//! Steps of one figure: a server is started behind a counter, asked so often by one connection after the other request, and
//! ended -> another like it is asked twice as often -> the difference is that of the requests, without start and end -> the
//! same with the module, in turn -> ratios of neighbours. The start is the first process's own work, from the same runs.

use evener_bench::BenchError;
use evener_bench::programs::counters::{Counter, Tally, Tool, in_turn, line};
use evener_bench::programs::openssl_conf::Providers;

use crate::load::{self, Connection};
use crate::server::{Kind, Server, Site};
use crate::{OBJECTS, Options};

/// What is asked for, an index into [`OBJECTS`]; how often the first time; and how.
type Work = (usize, u32, Connection);

const WORK: [Work; 3] = [(0, 300, Connection::Kept), (1, 20, Connection::Kept), (0, 50, Connection::Each)];

/// What one server did.
struct Counts {
    all: Tally,
    /// Of the process that starts the others.
    first: Tally,
    processes: usize,
}

pub(crate) fn measure(options: &Options) -> Result<(), String> {
    for &kind in &options.kinds {
        let site = Site::new(&OBJECTS, &options.module, &options.settings)?;
        for work in WORK {
            for tool in Tool::BOTH {
                tell(
                    kind,
                    work,
                    tool,
                    &in_turn(options.runs, |providers| cost(kind, &site, providers, work, tool))?,
                );
            }
        }
    }
    Ok(())
}

/// What a request takes, and the start of the server's first process.
fn cost(
    kind: Kind,
    site: &Site,
    providers: Providers,
    (object, requests, connection): Work,
    tool: Tool,
) -> Result<[Tally; 2], String> {
    let (name, bytes) = OBJECTS[object];
    let count = |requests| {
        let counter = Counter::new(tool).map_err(|error| error.to_string())?;
        let server = Server::start(kind, site, providers, Some(&counter))?;
        load::exactly(&server.url(name), bytes, requests, connection)?;
        end(&counter, server).map_err(|error| error.to_string())
    };
    // Calls depend on what is ready when, but are cheap to count.
    let requests = if tool == Tool::SystemCalls { 10 * requests } else { requests };
    let (once, twice): (Counts, Counts) = (count(requests)?, count(2 * requests)?);
    if once.processes != twice.processes {
        return Err(format!("{kind} had {} processes, then {}", once.processes, twice.processes));
    }
    Ok([twice.all.each_beyond(&once.all, requests), once.first])
}

/// Ends the server and reads what it did. A process that was ended before it could tell is an error.
fn end(counter: &Counter, server: Server) -> Result<Counts, BenchError> {
    let processes = server.end();
    let counts = counter.read()?;
    let all = Tally::sum(counts.values());
    if counter.tool() == Tool::SystemCalls {
        return Ok(Counts { all, first: Tally::default(), processes: processes.len() });
    }
    if let Some(silent) = processes.iter().find(|&process| !counts.contains_key(process)) {
        return Err(BenchError::Library(format!("process {silent} left no count")));
    }
    Ok(Counts { all, first: counts[&processes[0]].clone(), processes: counts.len() })
}

fn tell(kind: Kind, (object, _, connection): Work, tool: Tool, pairs: &[[[Tally; 2]; 2]]) {
    let of = |which: usize| -> Vec<[Tally; 2]> {
        pairs.iter().map(|pair| [pair[0][which].clone(), pair[1][which].clone()]).collect()
    };
    let what = if connection == Connection::Each { "+ connection" } else { "" };
    println!("{kind:<14} {:>7} B {what:<12}  {}", OBJECTS[object].1, line(tool, &of(0)));
    if tool == Tool::Instructions {
        println!("{kind:<14} {:<22}  {}", "start", line(tool, &of(1)));
    }
}
