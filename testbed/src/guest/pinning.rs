//! QEMU's threads on processors of their own: the guest's cores here, the module and everything else there.
//!
//! Where the system is free to put them, a module's request runs now beside the guest's core and now behind it, on the same processor:
//! requests of 8 bytes took 95 us and 215 us within one minute. Hardware shares no processor with a core, so that is the test bed's
//! property and no module's.

use std::{fs, io};

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::{Value, json};

use super::Guest;
use crate::error::{Error, at};

impl Guest {
    /// Gives each core of the guest a processor of this machine, and the rest of QEMU the others; `false` where these are too few.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] or [`Error::Protocol`] where QEMU has ended or does not name its threads.
    pub fn set_apart(&self) -> Result<bool, Error> {
        let answer = self.qmp()?.command("query-cpus-fast", json!({}))?;
        let odd = || Error::Protocol { peer: "QEMU", answer: answer.to_string() };
        let cores = threads_of_cores(&answer).ok_or_else(odd)?;
        let allowed = sched_getaffinity(None).map_err(io::Error::from)?;
        let processors: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&it| allowed.is_set(it)).collect();
        let Some((own, others)) = processors.split_at_checked(cores.len()).filter(|it| !it.1.is_empty())
        else {
            return Ok(false);
        };
        let folder = format!("/proc/{}/task", cores.first().ok_or_else(odd)?);
        for thread in fs::read_dir(&folder).map_err(|error| at(folder.as_ref(), error))? {
            let Some(thread) = thread?.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let place = cores.iter().position(|&core| core == thread);
            put(thread, place.map_or(others, |place| &own[place..=place]))?;
        }
        Ok(true)
    }
}

/// The thread of each core.
fn threads_of_cores(answer: &Value) -> Option<Vec<i32>> {
    answer.as_array()?.iter().map(|core| core["thread-id"].as_i64()?.try_into().ok()).collect()
}

fn put(thread: i32, processors: &[usize]) -> Result<(), Error> {
    let mut set = CpuSet::new();
    processors.iter().for_each(|&processor| set.set(processor));
    // A thread that has just ended needs no place.
    match sched_setaffinity(Pid::from_raw(thread), &set) {
        Err(rustix::io::Errno::SRCH) => Ok(()),
        done => Ok(done.map_err(io::Error::from)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qemu_tells_which_thread_is_which_core() {
        let answer = json!([{ "cpu-index": 0, "thread-id": 71 }, { "cpu-index": 1, "thread-id": 72 }]);
        assert_eq!(threads_of_cores(&answer), Some(vec![71, 72]));
        assert_eq!(threads_of_cores(&json!([{ "cpu-index": 0 }])), None);
        assert_eq!(threads_of_cores(&json!({})), None);
    }
}
