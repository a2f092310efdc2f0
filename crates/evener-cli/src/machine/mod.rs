//! The machine as the command looks at it: options that name modules, and a terminal that hears of what is amiss.

pub(crate) mod options;

use crate::terminal::{output, waiting};
use evener_machine::libraries::Operation;
use evener_machine::{Machine, MachineError, Observer};
use options::ModuleOptions;

/// Looks at what is there.
pub(crate) fn whole(options: &ModuleOptions) -> Result<Machine, MachineError> {
    Machine::new(&options.choice(), &Terminal)
}

/// Looks at what these operations need; see [`Machine::only_for`].
pub(crate) fn only_for(
    operations: &[Operation],
    options: &ModuleOptions,
    is_little: bool,
) -> Result<Machine, MachineError> {
    Machine::only_for(operations, &options.choice(), is_little, &Terminal)
}

/// The person who gave the command.
pub(crate) struct Terminal;

impl Observer for Terminal {
    fn warn(&self, text: &str) {
        output::warning(text);
    }

    fn while_measuring(&self, measurement: &mut dyn FnMut()) {
        waiting::said_while("measuring what jobs cost on this machine, once", |_| measurement());
    }
}
