//! Where one request goes, and what is known of that.

use evener_core::Nanos;

/// Where one request goes.
pub(super) enum Choice {
    /// It stays, and is the measure for those that go.
    Control,
    /// It stays: the guard has locked its class, or no module pays.
    Inline,
    /// It goes, and is known to take so long there.
    Module(Chosen),
}

/// A module that a request goes to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chosen {
    pub(super) module: usize,
    /// Time that it takes there, its wait not counted; nothing where that is not known.
    pub(super) expected: Nanos,
    /// Time that a core takes; nothing where that is not known.
    pub(super) on_core: Nanos,
}
