//! A job's place in the order of its stream.

/// Where a job goes when it is finished, and its position there. Written by the runtime only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticket {
    /// Index of the stream or caller that submitted the job.
    pub owner: u32,
    /// Position within it.
    pub position: u32,
}
