//! Who is told what a look at the machine has to say: a library prints nothing.

/// Hears warnings, and stands by while something is measured.
pub trait Observer: Sync {
    /// Something is amiss, and what was asked is done nevertheless.
    fn warn(&self, text: &str);

    /// Runs `measurement`, which may take a second: of each machine once.
    fn while_measuring(&self, measurement: &mut dyn FnMut()) {
        measurement();
    }
}

/// Passes over what there is to say.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    fn warn(&self, _: &str) {}
}
