//! Nothing else wants the core.

use evener_core::Objective;
use evener_core::plan::Policy;
use evener_sim::bounds::Requests;
use evener_sim::lab::Setup;

use crate::bench::{WORKLOADS, adaptive, bound, papers};

#[test]
fn probe() {
    for name in WORKLOADS {
        let one = adaptive(name, |_| {}, Objective::Throughput);
        let pull = papers(name, Policy::SharedQueue, 0);
        let (sync, apart) = (bound(name, Requests::Synchronous), bound(name, Requests::Asynchronous));
        let two = adaptive(name, |s: &mut Setup| { s.modules[0].depth = 2; }, Objective::Throughput);
        let nice = adaptive(name, |s: &mut Setup| { s.modules[0].depth = 2; s.cpu.nice = 19; }, Objective::Throughput);
        println!("{name}: depth 1 {:.1} = {:.3} LB, {:.2}x pull, {:.0} on module; depth 2 {:.1} = {:.3}, nice {:.3} {:.2}x pull", one.makespan_ms, one.makespan_ms / sync, pull.makespan_ms / one.makespan_ms, one.module_jobs, two.makespan_ms, two.makespan_ms / apart, nice.makespan_ms / apart, pull.makespan_ms / nice.makespan_ms);
    }
    for name in WORKLOADS {
        let pull = papers(name, Policy::SharedQueue, 1);
        for depth in [1, 2] {
        for o in [Objective::Throughput, Objective::Cpu] {
        let one = adaptive(name, |s: &mut Setup| { s.hogs = 1; s.modules[0].depth = depth; }, o);
        println!("hog {name} depth {depth} {o}: {:.1} core {:.3} x pull by clocks, {:.3} with interrupts, hog {:.2} (pull {:.2})", one.makespan_ms, one.crypto_ms / pull.crypto_ms, (one.crypto_ms + one.interrupt_ms) / (pull.crypto_ms + pull.interrupt_ms), one.hog_ms / one.makespan_ms, pull.hog_ms / pull.makespan_ms);
        }}
    }
}
