//! Which worker may take which job: policies, one file each, under the papers' names.
//!
//! A policy is a pure function from a [`Snapshot`] to a [`Plan`]; callers and workers look the plan up in
//! O(1). Five are those of paper 002 (Kaneko, Saito, Kikuchi, 2015) and need no costs: their plan is made once.
//! They differ in how jobs reach workers ([`Dispatch`]) and in how many a worker takes at a time ([`Take`]).
//! The sixth weighs measured costs ([`adaptive`]): its plan here says only that workers ask its table.

pub mod adaptive;
mod cpu_only;
mod module_only;
mod polling;
mod round_robin;
mod shared_queue;

use crate::named::names;

/// What a policy sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// CPU workers.
    pub cpu_workers: u32,
    /// Module workers.
    pub module_workers: u32,
    /// Jobs that a CPU worker runs side by side at its best; 1 without multi-buffer.
    pub cpu_width: u32,
}

/// How jobs reach workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispatch {
    /// Workers pull from one queue.
    SharedQueue,
    /// Jobs are dealt out in turn when they are submitted, one each, without weights.
    RoundRobin,
    /// A busy monitor hands the next job to whichever worker has finished.
    Monitor,
    /// Jobs wait by class, and workers take what the table of the [`adaptive`] policy says.
    ByCost,
}

/// What an idle worker takes from the backlog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Take {
    /// Most jobs at a time; 0: this worker takes nothing.
    pub jobs_max: u32,
    /// Least jobs at a time while the backlog lasts, so that lanes are filled.
    pub jobs_min: u32,
    /// A claim is one `share`-th of the backlog between those bounds, in multiples of the lower one, so that workers end
    /// together.
    pub share: u32,
}

impl Take {
    /// Nothing.
    pub const NOTHING: Self = Self { jobs_max: 0, jobs_min: 0, share: 1 };
    /// One job at a time.
    pub const ONE: Self = Self { jobs_max: 1, jobs_min: 1, share: 1 };

    /// Jobs to claim from a backlog of `waiting`.
    ///
    /// Whole fills: a core's lanes take as long for one job as for all that they hold, and a claim that ends within a
    /// fill wastes the rest of it. Of 128 jobs of 16 KiB two workers made ten fills of 16 lanes where eight do.
    #[must_use]
    pub const fn claim(&self, waiting: usize) -> usize {
        let (least, most) = (self.jobs_min as usize, self.jobs_max as usize);
        let part = waiting / self.share as usize;
        let part = if least > 1 { part - part % least } else { part };
        if part > most {
            most
        } else if part < least {
            least
        } else {
            part
        }
    }
}

/// What a policy decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// How jobs reach workers.
    pub dispatch: Dispatch,
    /// What a CPU worker takes.
    pub cpu: Take,
    /// What a module worker takes.
    pub module: Take,
}

impl Plan {
    /// Whether no module ever takes a job, so that a caller may run its jobs where it stands.
    #[must_use]
    pub const fn is_cpu_only(&self) -> bool {
        self.module.jobs_max == 0
    }
}

/// Jobs that a CPU worker takes at most in one claim. Equal sizes need no more than eight fills of 16 lanes; in a
/// mix of sizes one long job holds a lane for as long as many short ones take, and a core in place did 4.5 GB/s
/// with claims of 128 and 8.6 with 512 (log-normal sizes, AES-128-CBC encryption, libipsec-mb 1.3, Zen 4).
pub const CLAIM_JOBS_MAX: u32 = 512;

/// From this mean length in bytes on a claim of a core is limited by bytes too. Shorter jobs are not worth more looks.
pub const LONG_JOB_BYTES: u64 = 4 << 10;

/// Input of a claim in bytes, about: with its output what the second cache of current cores holds, and a tenth of a
/// millisecond, so that workers end together though jobs differ in length. With log-normal sizes out of place two cores
/// did 9.8 GB/s with 512 KiB, 8.3 with 1 MiB and 8.5 with 4 MiB (AES-128-CBC encryption, libipsec-mb 1.3, Zen 4).
pub const CLAIM_BYTES_MAX: u64 = 512 << 10;

/// What a CPU worker takes in a queue that it shares with its like: whole fills of its lanes, at most
/// [`CLAIM_JOBS_MAX`], and less towards the end so that no worker waits long for the last one.
fn cpu_take(snapshot: &Snapshot) -> Take {
    let jobs_min = match snapshot.cpu_width {
        0 | 1 => 4, // Adjacent jobs: claims of one cost memory-bound algorithms 17 to 35 %.
        width => width,
    };
    Take { jobs_max: CLAIM_JOBS_MAX.max(jobs_min), jobs_min, share: 2 * snapshot.cpu_workers.max(1) }
}

crate::named! {
    /// A policy by its name in paper 002.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Policy {
        /// Every job on the CPU.
        CpuOnly = "cpu_only",
        /// Every job on the module.
        ModuleOnly = "module_only",
        /// In turn, unweighted.
        RoundRobin = "round_robin",
        /// A busy monitor serves the worker that is free.
        Polling = "polling",
        /// A worker that is free takes the next: the papers' proposal.
        SharedQueue = "shared_queue",
        /// Every job where it costs least, by what was measured.
        Adaptive = "adaptive",
    }
}

impl Policy {
    /// Those of paper 002, in its order.
    pub const PAPERS: [Self; 5] =
        [Self::CpuOnly, Self::ModuleOnly, Self::RoundRobin, Self::Polling, Self::SharedQueue];

    /// The plan for what is there. Without a module every policy is `cpu_only`.
    #[must_use]
    pub fn plan(self, snapshot: &Snapshot) -> Plan {
        match self {
            _ if snapshot.module_workers == 0 => cpu_only::plan(snapshot),
            Self::CpuOnly => cpu_only::plan(snapshot),
            Self::ModuleOnly => module_only::plan(),
            Self::RoundRobin => round_robin::plan(),
            Self::Polling => polling::plan(),
            Self::SharedQueue => shared_queue::plan(snapshot),
            // Nothing to weigh a module against.
            Self::Adaptive if snapshot.cpu_workers == 0 => module_only::plan(),
            Self::Adaptive => Plan { dispatch: Dispatch::ByCost, cpu: cpu_take(snapshot), module: Take::ONE },
        }
    }
}

names!(Policy, "policy", UnknownPolicy);

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: Snapshot = Snapshot { cpu_workers: 2, module_workers: 1, cpu_width: 16 };

    #[test]
    fn without_a_module_every_policy_leaves_the_cpu_alone_with_the_work() {
        for policy in Policy::ALL {
            let plan = policy.plan(&Snapshot { module_workers: 0, ..BOTH });
            assert!(plan.is_cpu_only() && plan.cpu.jobs_max > 0, "{policy}");
        }
    }

    #[test]
    fn only_the_policy_named_so_keeps_a_worker_idle() {
        for policy in Policy::ALL {
            let plan = policy.plan(&BOTH);
            assert_eq!(plan.cpu.jobs_max == 0, policy == Policy::ModuleOnly, "{policy}");
            assert_eq!(plan.module.jobs_max == 0, policy == Policy::CpuOnly, "{policy}");
        }
    }

    #[test]
    fn claims_shrink_towards_the_end_but_fill_the_lanes() {
        let take = Policy::SharedQueue.plan(&BOTH).cpu;
        assert_eq!(
            [4000, 512, 200, 70, 30, 3].map(|waiting| take.claim(waiting)),
            [512, 128, 48, 16, 16, 16]
        );
        assert_eq!(Take::NOTHING.claim(100), 0);
        assert_eq!(Take::ONE.claim(100), 1);
    }

    #[test]
    fn every_policy_is_found_by_its_name() {
        for policy in Policy::ALL {
            assert_eq!(policy.name().parse(), Ok(policy));
        }
        assert!("adaptive-ish".parse::<Policy>().is_err());
    }
}
