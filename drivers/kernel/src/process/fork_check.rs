//! The process in which something was made, checked at each request by a word that a fork wipes: its number would take a system call.

use std::process;

/// A mark that a forked child does not have.
pub(crate) struct Creator {
    #[cfg(target_os = "linux")]
    mark: Option<evener_ring::Mapping>,
    process: u32,
}

impl Creator {
    /// This process.
    pub(crate) fn current() -> Self {
        Self {
            #[cfg(target_os = "linux")]
            mark: marked().ok(),
            process: process::id(),
        }
    }

    /// Whether this is that process. Where the system has no memory that a fork wipes, its number decides.
    pub(crate) fn is_current(&self) -> bool {
        #[cfg(target_os = "linux")]
        if let Some(mark) = &self.mark {
            use evener_ring::Words as _;
            // Relaxed: a word that changes by a fork only.
            return mark.words()[0].load(std::sync::atomic::Ordering::Relaxed) == 1;
        }
        self.process == process::id()
    }
}

#[cfg(target_os = "linux")]
fn marked() -> std::io::Result<evener_ring::Mapping> {
    use evener_ring::Words as _;
    let mark = evener_ring::Mapping::wiped_by_fork(1)?;
    mark.words()[0].store(1, std::sync::atomic::Ordering::Relaxed);
    Ok(mark)
}
