//! What is known of the costs of a kind of job, and what does it, as text.

use std::fmt::Write as _;

use evener::core::plan::Policy;
use evener::core::{Algorithm, Class, Direction, Method};

use crate::runtime::Runtime;
use crate::{Error, Failure};

/// One kind of job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    /// The algorithm.
    pub(crate) algorithm: Algorithm,
    /// The direction.
    pub(crate) direction: Direction,
    /// Bytes of input.
    pub(crate) bytes: usize,
    /// Whether output replaces input.
    pub(crate) in_place: bool,
}

/// The text.
///
/// # Errors
///
/// [`Error::Fork`].
pub(crate) fn explain(runtime: &Runtime, kind: Kind) -> Result<String, Failure> {
    runtime.check_process()?;
    let Kind { algorithm, direction, bytes, in_place } = kind;
    if direction == Direction::Decrypt && !algorithm.is_cipher() {
        return Err(Failure::new(Error::Unsupported, format_args!("{algorithm} has nothing to decrypt")));
    }
    let class = Class::of(algorithm, direction, bytes, !in_place);
    let learned = runtime.report().learned;
    let mut text = format!("{class}\npolicy {}\n", runtime.policy());
    for method in Method::ALL {
        let known = learned.all_cpu().filter(|(of, by, ..)| (*of, *by) == (class, method));
        for (_, _, width, mean) in known {
            let name = if method == Method::Plain { "plain" } else { "lanes" };
            let time = mean.at(bytes).map_or_else(|| "not known".to_owned(), |time| format!("{} ns", time.0));
            let least = 1_u64 << width;
            // A String takes all that it is given.
            _ = writeln!(text, "core, {name}, bursts of {least} or more: {time} a job");
        }
    }
    for (number, name) in runtime.module_names().iter().enumerate() {
        let known = learned.on_module(number, class);
        _ = match known.at(bytes) {
            Some((d, h)) => {
                writeln!(text, "module {name}: {} ns of a core and {} ns of its own a job", d.0, h.0)
            }
            None => writeln!(text, "module {name}: nothing is known"),
        };
    }
    if runtime.policy() == Policy::CpuOnly {
        text.push_str("done by cores\n");
    }
    Ok(text)
}
