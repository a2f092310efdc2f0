//! A visit beside neighbours: rounds follow each other without a barrier, for at one threads would spin that no program has,
//! and what neighbours got of the cores would be its doing.

use std::iter;

use evener::core::driver::Clock as _;
use evener::{Setup, Submitted, SystemClock};
use evener_core::{Job, Nanos};

use super::{Contender, Visit, VisitPlan, Workload, jobs};
use crate::crypt::neighbours::{self, NeighbourSpec, Neighbours};
use crate::crypt::visit::arm_all;
use crate::error::BenchError;

impl Contender {
    /// Does the cell's jobs over and over for `budget` beside the neighbours that are asked for: Evener's contenders only. With
    /// `verify` compares one more round with the right answers before.
    ///
    /// # Errors
    ///
    /// As of [`Contender::visit`].
    pub fn visit_beside(
        &self,
        load: &Workload,
        plan: VisitPlan<'_>,
        spec: NeighbourSpec,
    ) -> Result<Visit, BenchError> {
        let VisitPlan { budget, verify, driver_factory, learned } = plan;
        let mut memory = load.memory();
        if verify {
            self.verify(load, &mut memory, driver_factory, learned)?;
        }
        let mut jobs = jobs(load, &mut memory);
        let setup = self.setup(load, driver_factory, learned);
        Ok(neighbours::beside(spec, |all| rounds(load, &mut jobs, setup, budget, all)))
    }
}

fn rounds<'m>(
    load: &'m Workload,
    jobs: &mut Vec<Box<Job<'m>>>,
    setup: Setup<'m>,
    budget: Nanos,
    all: &Neighbours,
) -> Visit {
    let (clock, mut rounds) = (SystemClock, Vec::new());
    let (beside, report) = evener::run(setup, |runtime| {
        let (mut sender, mut receiver) = runtime.stream();
        let work = || {
            let began = clock.now();
            while rounds.is_empty() || clock.now() - began < budget {
                let start = clock.now();
                for _ in 0..load.turns {
                    arm_all(jobs, load);
                    let count = jobs.len();
                    let submitted = sender.submit_all(jobs);
                    debug_assert_eq!(submitted, Submitted::Yes, "the outlet is there");
                    receiver.wait_for_all();
                    jobs.extend(iter::from_fn(|| receiver.next()).take(count));
                }
                rounds.push(clock.now() - start);
            }
        };
        all.watch(work).1
    });
    let core = report.total().core_time().map(|core| Nanos(core.0 / rounds.len() as u64));
    Visit { rounds, core, report: Some(report), beside: Some(beside), ..Visit::default() }
}
