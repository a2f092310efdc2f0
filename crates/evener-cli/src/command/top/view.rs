//! The screen: lines for its size, in the order and with the process that keys chose.

use std::cmp::Reverse;
use std::time::Duration;

use evener::core::counts::Count;

use super::comparison::{Comparison, Entry};
use super::lines;
use crate::terminal::keyboard::Key;
use crate::terminal::screen::{Line, Size, Style};
use crate::terminal::units::counted;

/// What keys have chosen.
pub(super) struct View {
    interval: Duration,
    sort: Sort,
    /// By its number, so that it stays chosen where it goes.
    chosen: Option<u32>,
    is_paused: bool,
    shows_help: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Bytes,
    Requests,
    Cpu,
    Pid,
    Name,
}

impl Sort {
    const fn next(self) -> Self {
        match self {
            Self::Bytes => Self::Requests,
            Self::Requests => Self::Cpu,
            Self::Cpu => Self::Pid,
            Self::Pid => Self::Name,
            Self::Name => Self::Bytes,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes/s",
            Self::Requests => "requests/s",
            Self::Cpu => "cpu",
            Self::Pid => "pid",
            Self::Name => "name",
        }
    }

    fn order(self, entries: &mut [Entry<'_>]) {
        let rate = |entry: &Entry<'_>| {
            let change = entry.change.unwrap_or_default();
            match self {
                Self::Bytes => change.of(Count::Bytes),
                Self::Requests => change.requests(),
                // Thousandths of a per cent; `as` saturates.
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative")]
                Self::Cpu => (change.cpu_percent().unwrap_or(0.0) * 1_000.0) as u64,
                Self::Pid | Self::Name => 0,
            }
        };
        entries.sort_by_key(|entry| (Reverse(rate(entry)), entry.process.pid));
        if self == Self::Name {
            entries.sort_by_key(|entry| entry.process.name.clone());
        }
    }
}

impl View {
    pub(super) const fn new(interval: Duration) -> Self {
        Self { interval, sort: Sort::Bytes, chosen: None, is_paused: false, shows_help: false }
    }

    pub(super) const fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// Does what `key` says to what is `shown`.
    pub(super) fn press(&mut self, key: Key, shown: &Comparison<'_>) {
        match key {
            Key::Help => self.shows_help = !self.shows_help,
            Key::Escape => self.shows_help = false,
            Key::Pause => self.is_paused = !self.is_paused,
            Key::Sort => self.sort = self.sort.next(),
            Key::Up => self.choose(shown, -1),
            Key::Down => self.choose(shown, 1),
            Key::Quit => {}
        }
    }

    fn choose(&mut self, shown: &Comparison<'_>, step: isize) {
        let entries = self.ordered(shown);
        let to = self.place(&entries).saturating_add_signed(step).min(entries.len().saturating_sub(1));
        self.chosen = entries.get(to).map(|entry| entry.process.pid);
    }

    fn ordered<'r>(&self, shown: &Comparison<'r>) -> Vec<Entry<'r>> {
        let mut entries = shown.processes.clone();
        self.sort.order(&mut entries);
        entries
    }

    /// Where the chosen one stands; the first where it is gone or none was chosen.
    fn place(&self, entries: &[Entry<'_>]) -> usize {
        entries.iter().position(|entry| Some(entry.process.pid) == self.chosen).unwrap_or(0)
    }

    /// All lines of a screen of this size, the help line at its end.
    pub(super) fn lines(&self, shown: &Comparison<'_>, size: Size) -> Vec<Line> {
        let space = size.rows.saturating_sub(1);
        let mut all = vec![Line::new(Style::Title, self.title(shown))];
        if self.shows_help {
            all.extend(HELP.lines().map(|line| Line::new(Style::Plain, line.to_owned())));
        } else {
            all.extend(lines::summary(shown).into_iter().map(|line| Line::new(Style::Plain, line)));
            let left = space.saturating_sub(all.len() + 1);
            all.push(Line::new(Style::Title, lines::TITLES.to_owned()));
            all.extend(self.body(shown, left));
        }
        all.truncate(space);
        all.resize_with(space, || Line::new(Style::Plain, String::new()));
        all.push(Line::new(Style::Title, KEYS.to_owned()));
        all
    }

    fn title(&self, shown: &Comparison<'_>) -> String {
        let count = shown.processes.len();
        let paused = if self.is_paused { "  PAUSED" } else { "" };
        let mut title =
            format!("evener top{paused}  {count} {}", if count == 1 { "process" } else { "processes" });
        let (ended, unreadable) = (shown.ended(), shown.reading.unreadable.len());
        if ended > 0 {
            title += &format!(", {ended} ended");
        }
        if unreadable > 0 {
            title += &format!(", {unreadable} unreadable");
        }
        if !shown.hosts.is_empty() {
            title += &format!("  {}", counted(shown.hosts.len() as u64, "host"));
        }
        title + &format!("  by {}  every {} s", self.sort.name(), self.interval.as_secs_f64())
    }

    /// Processes, hosts and modules that processes share, and what the chosen process did, in `space` lines: a quarter for hosts and modules, a third for
    /// details, at most.
    fn body(&self, shown: &Comparison<'_>, space: usize) -> Vec<Line> {
        let plain = |line| Line::new(Style::Plain, line);
        let entries = self.ordered(shown);
        let at = self.place(&entries);
        let modules = shown.modules.iter().map(lines::module);
        let hosts = shown.hosts.iter().map(lines::host).chain(modules);
        let hosts: Vec<Line> = hosts.take(space / 4).map(plain).collect();
        let mut details: Vec<Line> = Vec::new();
        if let Some(entry) = entries.get(at) {
            details.push(Line::new(Style::Title, lines::detail_title(entry)));
            details.extend(lines::details(entry.process).into_iter().map(plain));
        }
        details.truncate(space / 3);
        let rows = space.saturating_sub(hosts.len() + details.len());
        let first = (at + 1).saturating_sub(rows);
        let style = |index: usize| if index == at { Style::Chosen } else { Style::Plain };
        let table = entries.iter().enumerate().skip(first).take(rows);
        let mut body: Vec<Line> =
            table.map(|(index, entry)| Line::new(style(index), lines::process(entry))).collect();
        if entries.is_empty() {
            body.push(plain(lines::nobody(shown)));
        }
        body.truncate(rows);
        body.resize_with(rows, || plain(String::new()));
        body.into_iter().chain(hosts).chain(details).collect()
    }
}

const KEYS: &str = "q quit  h help  up/down or k/j choose  s sort  p pause";

const HELP: &str = "
REQ/S, BYTES/S  what the process gave to the provider in a second
DIRECT          done by OpenSSL's own code where it stood
KERN.           done by code of Evener's for this processor where it stood
COMB.           done side by side with requests of other threads
SPLIT           cut and done on several cores
ROUTED          sent to a module
CPU%            CPU time of the process, all that it does, in % of one core
NS/B            the same CPU time in ns for each byte given to the provider

taken back            parts that nobody had begun when their caller was done
failed and redone     requests that a module failed, done again on the CPU
locked by the guard   kinds of work kept on the direct path, which cost less

q ends, up and down (k and j) choose a process, s sorts by the next column,
p pauses, h comes back from here.";
