//! Commands of an administrator to a host: lines of text on its control socket. `docs/design/host.md` lists them.

use std::str::FromStr;

use evener_core::{Line, Nanos};
use evener_driver_emulated::{Control, Fault, When};

/// What the host is told to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum AdminCommand {
    /// Say what was done so far.
    Report,
    /// Let the module drop all that it holds.
    Reset,
    /// Change an emulated module.
    Emulation(Change),
}

/// A change of an emulated module.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Change {
    Pace(u32),
    Service(Option<Line>),
    Units(Option<usize>),
    Depth(Option<usize>),
    Fault(Fault, When),
}

impl Change {
    pub(crate) fn apply(self, control: &Control) {
        match self {
            Self::Pace(percent) => control.set_pace(percent),
            Self::Service(line) => control.set_service(line),
            Self::Units(count) => control.set_units(count),
            Self::Depth(count) => control.set_depth(count),
            Self::Fault(fault, when) => control.set_fault(fault, when),
        }
    }
}

/// A line that is no command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown order {0:?}; there are report, reset, pace, service, units, depth and fault")]
pub(crate) struct NoCommand(String);

impl FromStr for AdminCommand {
    type Err = NoCommand;

    fn from_str(line: &str) -> Result<Self, Self::Err> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let command = match words.as_slice() {
            ["report"] => Some(Self::Report),
            ["reset"] => Some(Self::Reset),
            ["pace", percent] => percent.parse().ok().map(Change::Pace).map(Self::Emulation),
            ["service", "preset"] => Some(Self::Emulation(Change::Service(None))),
            ["service", time] => service(time).map(|line| Self::Emulation(Change::Service(Some(line)))),
            ["units", count] => of_preset(count).map(|count| Self::Emulation(Change::Units(count))),
            ["depth", count] => of_preset(count).map(|count| Self::Emulation(Change::Depth(count))),
            ["fault", rest @ ..] => fault(rest).map(Self::Emulation),
            _ => None,
        };
        command.ok_or_else(|| NoCommand(line.to_owned()))
    }
}

/// `A+B`: nanoseconds, and picoseconds per byte.
fn service(text: &str) -> Option<Line> {
    let (fixed, per_byte) = text.split_once('+')?;
    let (fixed_ns, per_byte_ps) = (fixed.parse().ok()?, per_byte.parse().ok()?);
    (fixed_ns <= TIME_NS_MAX && per_byte_ps <= TIME_NS_MAX).then_some(Line { fixed_ns, per_byte_ps })
}

/// A count from 1, or the preset's own.
fn of_preset(text: &str) -> Option<Option<usize>> {
    match text {
        "preset" => Some(None),
        count => count.parse().ok().filter(|count| *count > 0).map(Some),
    }
}

/// What is wrong, then `from N` and `every M`, each where it is not 1.
fn fault(words: &[&str]) -> Option<Change> {
    let (fault, rest) = match words {
        ["none", rest @ ..] => (Fault::None, rest),
        ["error", code, rest @ ..] => (Fault::Error { code: code.parse().ok()? }, rest),
        ["wrong-bytes", rest @ ..] => (Fault::WrongBytes, rest),
        ["delay", ns, rest @ ..] => {
            let ns = ns.parse().ok().filter(|ns| *ns <= TIME_NS_MAX)?;
            (Fault::Delay { by: Nanos(ns) }, rest)
        }
        ["hang", rest @ ..] => (Fault::Hang, rest),
        ["gone", rest @ ..] => (Fault::Gone, rest),
        _ => return None,
    };
    let (mut when, mut rest) = (When::ALWAYS, rest);
    while let [word, number, others @ ..] = rest {
        match *word {
            "from" => when.from = number.parse().ok()?,
            "every" => when.every = number.parse().ok()?,
            _ => return None,
        }
        rest = others;
    }
    rest.is_empty().then_some(Change::Fault(fault, when))
}

/// 1000 seconds, as in a preset's name.
const TIME_NS_MAX: u64 = 1_000_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn command(line: &str) -> Result<AdminCommand, NoCommand> {
        line.parse()
    }

    #[test]
    fn every_order_is_understood() {
        let changes = [
            ("pace 300", Change::Pace(300)),
            ("service 40000+36000", Change::Service(Some(Line { fixed_ns: 40_000, per_byte_ps: 36_000 }))),
            ("service preset", Change::Service(None)),
            ("units 2", Change::Units(Some(2))),
            ("depth preset", Change::Depth(None)),
            ("fault none", Change::Fault(Fault::None, When::ALWAYS)),
            (
                "fault error 5 from 10 every 3",
                Change::Fault(Fault::Error { code: 5 }, When { from: 10, every: 3 }),
            ),
            ("fault wrong-bytes every 2", Change::Fault(Fault::WrongBytes, When { from: 0, every: 2 })),
            ("fault delay 2000000", Change::Fault(Fault::Delay { by: Nanos(2_000_000) }, When::ALWAYS)),
            ("fault hang from 7", Change::Fault(Fault::Hang, When { from: 7, every: 1 })),
            ("fault gone", Change::Fault(Fault::Gone, When::ALWAYS)),
        ];
        for (line, change) in changes {
            assert_eq!(command(line), Ok(AdminCommand::Emulation(change)), "{line}");
        }
        assert_eq!(command(" report "), Ok(AdminCommand::Report));
        assert_eq!(command("reset"), Ok(AdminCommand::Reset));
    }

    #[test]
    fn what_is_no_order_changes_nothing() {
        let wrong = [
            "",
            "pace",
            "pace fast",
            "units 0",
            "depth -1",
            "service 1",
            "service 1+1000000000001",
            "fault",
            "fault error",
            "fault hang from",
            "fault hang since 3",
            "fault delay 9999999999999",
            "report now",
        ];
        for line in wrong {
            assert_eq!(command(line), Err(NoCommand(line.to_owned())));
        }
    }
}
