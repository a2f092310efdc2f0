//! Nodes of our own, behind which a set of drivers computes, rightly or not.

use evener::core::plan::Policy;
use evener::{Cancel, CoreDrivers, Setup, run};
use evener_core::{InlineDriver as _, Job};
use evener_cryptodev::{Node, TEXT_BYTES_MAX};
use evener_driver_kernel::{Module, ModuleName, OpenError};
use evener_driver_libcrypto::Libcrypto;
use evener_testing::drivers::{Around, libcrypto};
use evener_testing::requests::OnCore;

const NODE: &str = "evener-fork";

/// Lends a module behind a node of our own, where this machine lets us make one.
pub(super) fn with_node(body: impl FnOnce(Module)) {
    with_node_of(OnCore::plain().into_inner(), |name| body(Module::open(name).expect("it serves")));
}

/// Lends the name of a node that computes by `core_drivers`.
pub(super) fn with_node_of(core_drivers: CoreDrivers, body: impl FnOnce(&ModuleName)) {
    with_node_at(NODE, core_drivers, body);
}

pub(super) fn with_node_at(name: &str, core_drivers: CoreDrivers, body: impl FnOnce(&ModuleName)) {
    let node = match Node::new(name) {
        Ok(node) => node,
        Err(error) => return println!("skipped: {error}"),
    };
    let cancel = Cancel::default();
    let serve = || {
        let memory = vec![0; 4 * (TEXT_BYTES_MAX + 16)].leak();
        let jobs = memory.chunks_mut(TEXT_BYTES_MAX + 16).map(Job::in_place).collect();
        let setup = Setup { policy: Policy::CpuOnly, callers: 1, ..Setup::default() };
        run(setup, |runtime| node.serve(&mut runtime.caller(core_drivers), jobs, &cancel)).0
    };
    std::thread::scope(|scope| {
        let served = scope.spawn(serve);
        let _ends = Ends(&cancel);
        let path = format!("/dev/{name}");
        while !std::fs::exists(&path).unwrap_or(false) {
            assert!(!served.is_finished(), "there is no node");
            std::thread::yield_now();
        }
        body(&format!("devcrypto:{path}").parse().expect("a name"));
        cancel.cancel();
        let served = served.join().expect("no panic").expect("the kernel goes on");
        assert!(served.requests > 4, "{served:?}");
    });
}

/// Computes, and turns one bit of each text over.
fn lies() -> CoreDrivers {
    let run = |libcrypto: &mut Libcrypto, burst: &mut [Box<Job<'_>>]| {
        libcrypto.run(burst);
        for job in burst {
            job.space_mut().first_mut().into_iter().for_each(|byte| *byte ^= 1);
        }
    };
    CoreDrivers::new(Box::new(Around::new(libcrypto(), run)), None)
}

#[test]
fn a_node_that_computes_wrong_is_refused_with_the_example_that_it_got_wrong() {
    with_node_of(lies(), |name| {
        let error = Module::open(name).expect_err("it lies");
        let OpenError::WrongAnswer { wrong, .. } = &error else { panic!("{error}") };
        assert_eq!((wrong.source, wrong.key_bytes), ("SP 800-38A, appendix F", 16));
        assert!(error.to_string().starts_with(&format!("{name} is refused: AES-128-")), "{error}");
    });
}

/// Ends a node, also where a test panics.
struct Ends<'a>(&'a Cancel);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
