//! Which modules there are behind the kernel, and the ways by which jobs come to them.

use evener::Report;
use evener_core::Nanos;
use evener_driver_kernel::{Module, OpenError, survey};
use evener_testing::requests::{Burst, Route, all_by, by_run};

/// Software of the kernel, asynchronous and not, one for each family; a kernel may lack some.
const SOFTWARE: &[&str] = &[
    "cryptd(cbc(aes-generic))",
    "cbc(aes-generic)",
    "ecb(aes-generic)",
    "ctr(aes-generic)",
    "xts(ecb(aes-generic))",
    "gcm_base(ctr(aes-generic),ghash-generic)",
    "rfc7539(chacha20-generic,poly1305-generic)",
    "sha1-generic",
    "sha256-generic",
    "md5-generic",
    "hmac(sha1-generic)",
    "hmac(sha256-generic)",
    "hmac(md5-generic)",
];

/// Jobs before a module is asked for one more.
pub(super) const TIMEOUT: Nanos = Nanos::from_millis(20_000);

/// Modules of this machine, then software; nothing and a printed line where AF_ALG is missing.
pub(super) fn modules() -> Vec<Module> {
    devices().into_iter().chain(SOFTWARE.iter().filter_map(|name| software(name))).collect()
}

/// Modules with a device behind them.
pub(super) fn devices() -> Vec<Module> {
    let survey = survey();
    if let Some(why) = &survey.nothing {
        println!("skipped: no module behind AF_ALG: {why}");
    }
    let admitted = survey.hardware.iter().filter(|standing| standing.refused.is_none());
    admitted.map(|standing| open(&standing.driver).expect("it was admitted a moment ago")).collect()
}

pub(super) fn open(driver: &str) -> Result<Module, OpenError> {
    Module::open(&format!("afalg:{driver}").parse().expect("a name"))
}

pub(super) fn software(name: &str) -> Option<Module> {
    match open(name) {
        Ok(module) => Some(module),
        Err(OpenError::Unavailable(_)) => None,
        Err(error @ OpenError::WrongAnswer { .. }) => panic!("{error}"),
        Err(error) => {
            println!("skipped: {error}");
            None
        }
    }
}

/// The first module with a device behind it.
pub(super) fn hardware() -> Option<Module> {
    devices().into_iter().next()
}

/// A module's driver, given jobs as it takes them.
pub(super) struct Alone(pub(super) Module);

impl Route for Alone {
    fn run<'m>(&mut self, jobs: Burst<'m>) -> Burst<'m> {
        all_by(&mut *self.0.driver(), jobs, TIMEOUT)
    }
}

/// The module of a host, likewise.
pub(super) struct AtHost(pub(super) evener_driver_virtio::Module);

impl Route for AtHost {
    fn run<'m>(&mut self, jobs: Burst<'m>) -> Burst<'m> {
        all_by(&mut *self.0.driver(), jobs, TIMEOUT)
    }
}

/// A module under a run, which redoes what the module leaves.
pub(super) struct ByRun<'a> {
    pub(super) module: &'a Module,
    /// Silence after which it is taken for dead.
    pub(super) timeout: Nanos,
    pub(super) report: Report,
}

impl<'a> ByRun<'a> {
    pub(super) fn new(module: &'a Module) -> Self {
        Self { module, timeout: TIMEOUT, report: Report::default() }
    }
}

impl Route for ByRun<'_> {
    fn run<'m>(&mut self, jobs: Burst<'m>) -> Burst<'m> {
        let (jobs, report) = by_run(self.module.driver(), jobs, self.timeout);
        self.report = report;
        jobs
    }
}
