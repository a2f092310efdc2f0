//! When a thread is due in an order by deadlines (`deadline.rs`).

/// Virtual times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    /// By which it has had its slice.
    pub(super) deadline: u64,
    /// Up to which no thread takes its core that is not more behind.
    pub(super) shield: u64,
    /// How far it was behind the mean of its core when it fell asleep.
    pub(super) lag: i64,
}

impl Due {
    /// Of a thread that has asked for no slice.
    pub(super) const NONE: Self = Self { deadline: 0, shield: 0, lag: 0 };
}
