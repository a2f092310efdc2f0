//! `evener top`: what `evener status` tells, live.
//!
//! Path: [`Sources`] -> [`Reading`], each `--interval` -> [`Comparison`] with the one before -> lines (`view.rs`) -> [`Screen`]; keys
//! change the [`View`]. Where there is no terminal, or with `--once`: two readings, and the lines as they are (`lines.rs`).

mod comparison;
mod lines;
mod view;

use std::io::{IsTerminal as _, stdin, stdout};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::activity::{Reading, Sources};
use crate::terminal::keyboard::Key;
use crate::terminal::screen::{Event, Screen};
use crate::terminal::{Exit, output};
use comparison::Comparison;
use view::View;

/// Shows live what Evener's OpenSSL provider does in programs of this user, and what hosts do.
///
/// A line for each process: requests and bytes in a second, which way requests went, CPU time of the process (all that it does) and
/// how much of it for each byte. Below the processes: hosts, and the kinds of work of the process that is chosen. Without a terminal,
/// or with --once, the same as plain lines after one interval.
#[derive(clap::Args)]
#[command(after_help = "\
Keys: q ends, h or ? explains, up and down (or k and j) choose a process, s sorts by the next column, p pauses.
docs/guide/many-processes.md shows the screen and says where the figures are from.")]
pub(crate) struct Top {
    /// Time between two readings, in seconds.
    #[arg(long, value_name = "SECONDS", value_parser = interval, default_value = "1")]
    interval: Duration,

    /// Prints plain lines after one interval, and ends.
    #[arg(long)]
    once: bool,

    /// The host with this control socket too (`evener host --control`); may be repeated.
    #[arg(long = "host", value_name = "SOCKET")]
    hosts: Vec<PathBuf>,
}

/// From a tenth of a second to an hour.
fn interval(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.1..=3_600.0).contains(seconds));
    seconds
        .map(Duration::from_secs_f64)
        .ok_or_else(|| format!("{text:?} is no time from 0.1 to 3600 seconds"))
}

pub(crate) fn run(arguments: &Top) -> anyhow::Result<Exit> {
    let sources = Sources::of_this_user(&arguments.hosts);
    if arguments.once || !can_draw() {
        return once(&sources, arguments.interval);
    }
    live(&sources, arguments.interval)
}

/// Whether keys can be read and the cursor moved.
fn can_draw() -> bool {
    let moves = std::env::var_os("TERM").is_some_and(|name| !name.is_empty() && name != "dumb");
    moves && stdin().is_terminal() && stdout().is_terminal()
}

fn once(sources: &Sources, interval: Duration) -> anyhow::Result<Exit> {
    let before = sources.read();
    std::thread::sleep(interval);
    let now = sources.read();
    output::answer(lines::text(&Comparison::new(Some(&before), &now)).as_bytes())?;
    let faults = super::status::faults(&now);
    faults.iter().for_each(output::line);
    Ok(if faults.is_empty() { Exit::Done } else { Exit::SomeFailed })
}

fn live(sources: &Sources, interval: Duration) -> anyhow::Result<Exit> {
    let mut screen = Screen::open()?;
    let mut view = View::new(interval);
    let mut before: Option<Reading> = None;
    let mut now = sources.read();
    loop {
        let size = screen.size();
        if screen.draw(&view.lines(&Comparison::new(before.as_ref(), &now), size)).is_err() {
            // The terminal is gone.
            return Ok(Exit::Stopped);
        }
        let due = now.at + interval;
        let wait = if view.is_paused() { None } else { Some(due.saturating_duration_since(Instant::now())) };
        for event in screen.wait(wait)? {
            match event {
                Event::Key(Key::Quit) => return Ok(Exit::Done),
                Event::Stop => return Ok(Exit::Stopped),
                Event::Key(key) => view.press(key, &Comparison::new(before.as_ref(), &now)),
                Event::Redraw => {}
            }
        }
        if !view.is_paused() && Instant::now() >= due {
            before = Some(std::mem::replace(&mut now, sources.read()));
        }
    }
}
