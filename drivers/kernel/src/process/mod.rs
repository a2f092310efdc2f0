//! What is the process's: the core time of a thread, what threads serve and a forked child frees; and wiping memory.

pub(crate) mod clock;
pub(crate) mod served;
pub(crate) mod wipe;
