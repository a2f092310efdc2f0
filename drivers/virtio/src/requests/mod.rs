//! Sends jobs and single requests over a connection, and brings back what became of them.

pub(crate) mod capabilities;
pub(crate) mod connector;
pub(crate) mod jobs;
pub(crate) mod single;
