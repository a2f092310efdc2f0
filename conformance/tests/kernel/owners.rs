//! A module behind the kernel whose owner is a host, or a process that forks.

use std::sync::Arc;

use evener::Turns;
use evener_core::{Direction, Job, JobError, Outcome, Padding, QueuedDriver, Session};
use evener_driver_kernel::Module;
use evener_testing::hosts::Host;
use evener_testing::programs::is_right_in_child;
use evener_testing::requests::{Answer, JobSpec, Layout, answers, judged, kinds, session};

use super::modules::{AtHost, TIMEOUT, hardware};
use super::nodes::with_node;

#[test]
fn a_host_serves_a_module_behind_the_kernel_and_reports_what_that_did() {
    hardware().into_iter().for_each(|module| serves_as_a_hosts(&module));
    with_node(|module| serves_as_a_hosts(&module));
}

/// To a client that sends requests below the longest that any module takes whole.
fn serves_as_a_hosts(module: &Module) {
    let (name, answered) = (module.profile().name.clone(), module.answered());
    let mut specs = Vec::new();
    let report = with_host(module, |client| {
        let does = |session: &Arc<Session>| client.supports(session.algorithm(), session.direction());
        for session in kinds(8).filter(does) {
            specs.extend([16, 255, 4_096, 30_000].map(|bytes| JobSpec::noisy(&session, bytes, bytes)));
        }
        let came = answers(&mut AtHost(client), &specs);
        specs
            .iter()
            .zip(&came)
            .for_each(|(spec, answer)| assert_eq!(*answer, judged(spec), "{}", spec.what()));
    });
    let count = specs.len() as u64;
    assert!(count > 0, "{name}: nothing for a client");
    assert_eq!((report.module.name.as_str(), report.module.gone), (name.as_str(), false));
    assert_eq!([report.module.submitted, report.module.completed, report.totals.requests], [count; 3]);
    assert_eq!((report.totals.failed, report.totals.refused, report.connections.broken_off), (0, 0, 0));
    if let Some((before, after)) = answered.zip(module.answered()) {
        assert_eq!(after - before, count, "{name}: the module's own count");
    }
    println!("{name}: {count} requests of a host's client");
}

/// Has a host own `module` and lends a client of it, that has asked nothing yet.
fn with_host(module: &Module, body: impl FnOnce(evener_driver_virtio::Module)) -> evener_host::Report {
    let host = Host::start(evener_host::Module::queued(module.driver(), TIMEOUT.into(), Turns::new(None)));
    let name = format!("hosted:{},offer=all", host.socket().display()).parse().expect("a name");
    body(evener_driver_virtio::Module::connect(&name).expect("it serves"));
    host.stop()
}

#[test]
fn a_forked_child_opens_keys_of_its_own_and_its_parent_goes_on() {
    hardware().into_iter().for_each(|module| forks(&module));
    with_node(|module| forks(&module));
}

/// Jobs by one driver before a fork, in its child, and after it.
fn forks(module: &Module) {
    let sealing = session(module.algorithms()[0], Direction::Encrypt, Padding::None, 9);
    let mut specs: Vec<JobSpec> = (0..4).map(|seed| JobSpec::noisy(&sealing, 4_096, seed)).collect();
    specs.iter_mut().for_each(|spec| spec.layout = Layout { shift: 0, in_place: true });
    let mut driver = module.driver();
    hand_over(&mut *driver, &specs[0]);
    assert_eq!(taken(&mut *driver), judged(&specs[0]));
    hand_over(&mut *driver, &specs[1]);
    let is_right = is_right_in_child(|| {
        // The parent calls it here.
        assert_eq!(taken(&mut *driver).outcome, Outcome::Failed(JobError::ModuleLost));
        hand_over(&mut *driver, &specs[2]);
        assert_eq!(taken(&mut *driver), judged(&specs[2]));
    });
    assert!(is_right, "{}: see what the child said", module.profile().name);
    assert_eq!(taken(&mut *driver), judged(&specs[1]), "the parent's own");
    hand_over(&mut *driver, &specs[3]);
    assert_eq!(taken(&mut *driver), judged(&specs[3]), "its key is still open");
}

fn hand_over(driver: &mut dyn QueuedDriver<'static>, spec: &JobSpec) {
    let mut job = Job::in_place(spec.input.clone().leak());
    job.arm(Arc::clone(&spec.session), &spec.iv, spec.input.len());
    assert!(driver.submit(job).is_ok());
}

fn taken(driver: &mut dyn QueuedDriver<'static>) -> Answer {
    let mut done = Vec::new();
    driver.poll(&mut done, TIMEOUT);
    let [job] = &done[..] else { panic!("{} jobs came back", done.len()) };
    Answer { outcome: job.outcome(), output: job.output().to_vec(), tag: job.tag().to_vec() }
}
