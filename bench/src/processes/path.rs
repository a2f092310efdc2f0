//! What computes a request, and the way to it: libcrypto on the process's core, a host, or a module behind the kernel, in which the process itself sleeps.
//!
//! [`Opened`] is what a process has opened after its fork -> [`Path`] asks it for one request after the other, from a text to a result beside it.

use std::sync::Arc;

use evener_core::driver::{SingleDriver, Text};
use evener_core::{InlineDriver as _, Job, Nanos, Outcome, QueuedDriver, Session};
use evener_driver_kernel::Module as KernelModule;
use evener_driver_libcrypto::Libcrypto;
use evener_driver_virtio::Module as HostedModule;

use super::{Mode, Place};
use crate::error::BenchError;

/// What a process has opened.
pub(super) enum Opened {
    /// Nothing: its core computes.
    Core,
    Host(HostedModule),
    Kernel(KernelModule),
}

impl Opened {
    /// At the place of an experiment.
    pub(super) fn at(place: &Place, mode: Mode) -> Result<Self, BenchError> {
        match place {
            _ if mode == Mode::Cores => Ok(Self::Core),
            Place::Emulated => Ok(Self::Core),
            Place::Host(name) => {
                HostedModule::open(name).map(Self::Host).map_err(|error| lost(format!("the host: {error}")))
            }
            Place::Kernel(name) => {
                KernelModule::bind(name).map(Self::Kernel).map_err(|error| lost(error.to_string()))
            }
        }
    }
}

/// Where the requests of a process go.
pub(super) struct Path<'m> {
    driver: Driver<'m>,
    text: &'m [u8],
    /// Text and space, for drivers that take jobs.
    job: Option<Box<Job<'m>>>,
    /// Where the kernel's result stands.
    output: Vec<u8>,
}

enum Driver<'m> {
    Libcrypto(Libcrypto),
    Host(Box<dyn QueuedDriver<'m> + 'm>),
    Kernel(Box<dyn SingleDriver>),
}

impl<'m> Path<'m> {
    /// From a text to a buffer beside it, which is as long.
    pub(super) fn new(opened: &'m Opened, text: &'m [u8], space: &'m mut [u8]) -> Result<Self, BenchError> {
        let driver = match opened {
            Opened::Core => Driver::Libcrypto(Libcrypto::new().map_err(|error| lost(error.to_string()))?),
            Opened::Host(module) => Driver::Host(module.driver()),
            Opened::Kernel(module) => Driver::Kernel(module.called()),
        };
        Ok(Self { driver, text, job: Some(Job::apart(text, space)), output: Vec::new() })
    }

    /// Has the text worked on; [`Path::result`] is there then.
    pub(super) fn compute(&mut self, session: &Arc<Session>, iv: &[u8; 16]) -> Result<(), BenchError> {
        if let Driver::Kernel(driver) = &self.driver {
            self.output.resize(self.text.len(), 0);
            let mut text = Beside { input: self.text, output: &mut self.output };
            let asked = driver.run_single(session.with_iv(iv), &mut text, FOREVER);
            return asked.map_err(|why| lost(format!("the module: {why:?}")));
        }
        let mut armed = self.job.take().ok_or_else(|| lost("a request is missing".to_owned()))?;
        armed.arm(Arc::clone(session), &iv[..session.algorithm().iv_bytes()], self.text.len());
        let mut done = Vec::new();
        match &mut self.driver {
            Driver::Host(driver) => {
                driver.submit(armed).map_err(|(_, refusal)| lost(format!("the host: {refusal:?}")))?;
                driver.poll(&mut done, FOREVER);
            }
            Driver::Libcrypto(libcrypto) => {
                done.push(armed);
                libcrypto.run(&mut done);
            }
            Driver::Kernel(_) => {}
        }
        self.job = done.pop();
        let is_done =
            |job: &Job<'_>| matches!(job.outcome(), Outcome::Done { written } if written == self.text.len());
        match self.job.as_ref().is_some_and(|job| is_done(job)) {
            true => Ok(()),
            false => Err(lost("a request failed".to_owned())),
        }
    }

    /// Of the last request; none where that did not come back whole.
    pub(super) fn result(&self) -> Option<&[u8]> {
        let result = match (&self.driver, &self.job) {
            (Driver::Kernel(_), _) => &self.output[..],
            (_, Some(job)) => job.output(),
            (_, None) => return None,
        };
        (result.len() == self.text.len()).then_some(result)
    }
}

/// A text whose result stands beside it.
struct Beside<'a> {
    input: &'a [u8],
    output: &'a mut [u8],
}

impl Text for Beside<'_> {
    fn input(&self) -> &[u8] {
        self.input
    }

    fn take(&mut self, result: &[u8]) {
        self.output.copy_from_slice(result);
    }

    fn apart(&mut self) -> Option<(&[u8], &mut [u8])> {
        Some((self.input, self.output))
    }
}

fn lost(reason: String) -> BenchError {
    BenchError::Library(reason)
}

/// The alarm ends a process before.
const FOREVER: Nanos = Nanos::from_millis(60_000);
