//! How a core runs a burst: plain (one job after the other) or multi-buffer (many side by side).
//!
//! Multi-buffer is a method of the CPU worker, not a second unit: for a burst of independent CBC encryptions
//! or hashes it does several times the plain rate, for a single one less. The choice is made per burst, by class and
//! width, from what both were measured to cost ([`Estimator::method`](crate::Estimator::method)).

crate::named! {
    /// A way to run a burst on one core.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Method {
        /// One job after the other, by libcrypto.
        Plain = "plain",
        /// Many jobs side by side, by the multi-buffer library; or many blocks of one, by kernels of our own.
        MultiBuffer = "multi-buffer",
    }
}

impl Method {
    /// The one that is not this one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Plain => Self::MultiBuffer,
            Self::MultiBuffer => Self::Plain,
        }
    }
}
