//! The time slice of a module's thread: short, so that it gives its core to clients that it has woken, and has one again sooner where they all share it.
//!
//! Linux 6.12 and later let each thread ask for its own (`sched_runtime` of `sched_setattr(2)`, for threads of the usual policy, too); earlier ones ignore it. It is no
//! priority: the thread's share of a core stays what it was, cut into smaller parts.

/// Nanoseconds, the least that Linux takes. Measured beside 64 hostile clients of another user (docs/results/hosted.md).
const SLICE_NS: u64 = 100_000;

/// `struct sched_attr` of `linux/sched/types.h`, as long as it was at first.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

const ATTRIBUTES_BYTES: u32 = 48;
const _: () = assert!(size_of::<Attributes>() == ATTRIBUTES_BYTES as usize);

/// Asks for a short slice for this thread. Where it runs under another policy than the usual ones, or the system refuses, it stays as it is.
pub(super) fn shorten() {
    let mut attributes = Attributes { size: ATTRIBUTES_BYTES, ..Attributes::default() };
    // SAFETY: the kernel writes no more than the size that it is told, which is the structure's; 0 is this thread.
    let read = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, ATTRIBUTES_BYTES, 0) };
    let usual = [libc::SCHED_OTHER, libc::SCHED_BATCH].map(|policy| u32::try_from(policy).ok());
    if read != 0 || !usual.contains(&Some(attributes.policy)) {
        return;
    }
    attributes.runtime = SLICE_NS;
    // SAFETY: the kernel reads the structure, which says its size; all else is as it was.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::thread;

    use super::*;

    /// The slice of this thread as the kernel shows it, where it shows one.
    fn shown() -> Option<u64> {
        let about = fs::read_to_string("/proc/thread-self/sched").ok()?;
        let line = about.lines().find(|line| line.starts_with("se.slice"))?;
        line.rsplit(':').next()?.trim().parse().ok()
    }

    #[test]
    fn a_thread_has_the_slice_that_it_asked_for_and_others_keep_theirs() {
        let before = shown();
        let own = thread::spawn(|| {
            shorten();
            shown()
        });
        let own = own.join().unwrap();
        assert_eq!(shown(), before);
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        let numbers: Vec<u32> = release.split(['.', '-']).filter_map(|number| number.parse().ok()).collect();
        if own.is_none() || numbers < vec![6, 12] {
            println!("skipped: this kernel has no slices of threads, or shows none");
            return;
        }
        assert_eq!(own, Some(SLICE_NS));
    }
}
