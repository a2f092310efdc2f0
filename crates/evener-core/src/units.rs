//! Units and the few numbers that every crate needs.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

/// Length of an AES block in bytes (FIPS 197).
pub const BLOCK_BYTES: usize = 16;

/// A span of time in nanoseconds; 64 bits last 584 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// A span of `us` microseconds.
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        Self(us * 1_000)
    }

    /// A span of `ms` milliseconds.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }

    /// The span as seconds; exact to 53 bits.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "104 days fit 53 bits of nanoseconds")]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// What is left after taking `other` away, never below zero.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl From<std::time::Duration> for Nanos {
    fn from(span: std::time::Duration) -> Self {
        Self(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for std::time::Duration {
    fn from(span: Nanos) -> Self {
        Self::from_nanos(span.0)
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.saturating_sub(other)
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ns @ 0..10_000 => write!(f, "{ns} ns"),
            ns @ 10_000..10_000_000 => write!(f, "{} us", ns / 1_000),
            ns @ 10_000_000..10_000_000_000 => write!(f, "{} ms", ns / 1_000_000),
            ns => write!(f, "{}.{} s", ns / 1_000_000_000, ns / 100_000_000 % 10),
        }
    }
}

/// Adds up counts, field by field.
macro_rules! sum_fields {
    ($type:ty: $($field:ident),+ $(,)?) => {
        impl std::ops::AddAssign for $type {
            fn add_assign(&mut self, other: Self) {
                $(self.$field += other.$field;)+
            }
        }
    };
}
pub(crate) use sum_fields;
