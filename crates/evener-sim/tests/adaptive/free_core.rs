//! Nothing else wants the core.

use evener_core::Objective;
use evener_core::plan::Policy;
use evener_sim::bounds::Requests;

use crate::bench::{PAPERS, WORKLOADS, adaptive, bound, papers};

fn makespan(name: &str, depth: u32) -> f64 {
    adaptive(name, 0, depth, Objective::Throughput).makespan_ms
}

#[test]
fn with_one_request_outstanding_it_is_as_fast_as_one_can_be() {
    for name in WORKLOADS {
        let (took, bound) = (makespan(name, 1), bound(name, Requests::Synchronous));
        println!("{name}: {took:.1} ms, {:.4} x the bound", took / bound);
        assert!(took <= 1.02 * bound, "{name}: {took} ms, bound {bound} ms");
    }
}

#[test]
fn no_policy_of_the_papers_is_ever_faster() {
    for name in WORKLOADS {
        let took = makespan(name, 1);
        for policy in PAPERS {
            let theirs = papers(name, policy, 0).makespan_ms;
            assert!(took <= 1.02 * theirs, "{name}: {took} ms, {policy} {theirs} ms");
        }
    }
}

#[test]
fn jobs_of_several_sizes_take_much_less_time_than_in_the_shared_queue() {
    for name in ["mixed_uniform8", "mixed_tls"] {
        let faster = papers(name, Policy::SharedQueue, 0).makespan_ms / makespan(name, 1);
        println!("{name}: {faster:.3} x faster than the shared queue");
        assert!(faster >= 1.40, "{name}: {faster}");
    }
}

#[test]
fn with_two_requests_outstanding_the_module_never_waits_for_the_core() {
    for name in WORKLOADS {
        let (took, bound) = (makespan(name, 2), bound(name, Requests::Asynchronous));
        let faster = papers(name, Policy::SharedQueue, 0).makespan_ms / took;
        println!("{name}: {took:.1} ms, {:.4} x the bound, {faster:.3} x the shared queue", took / bound);
        assert!(took <= 1.04 * bound, "{name}: {took} ms, bound {bound} ms");
        let least = match name {
            "8192" => 1.25,
            "16384" => 1.40,
            _ => 1.0,
        };
        assert!(faster >= least, "{name}: {faster}");
    }
}
