//! Requests for which the thread that asks sleeps in the kernel itself, as OpenSSL's engine has it: no other thread is woken for
//! them and nothing is copied, and nothing frees that thread from a module that never answers.
//!
//! `call -> key -> device`, on the caller's thread. Several threads may be inside at once, each with a socket of its own.

use std::sync::Arc;

use evener_core::driver::CalledDriver;
use evener_core::{Algorithm, IsOver, JobError, Padding, Session};

use crate::desk::{Device, Spec};
use crate::keys::Keys;
use crate::queued::error_of;

/// A module behind the kernel, asked by whoever waits for it. Of one process: a forked child makes its own.
pub(crate) struct Called<D: Device> {
    device: Arc<D>,
    keys: Keys<D::Key>,
}

impl<D: Device> Called<D> {
    pub(crate) fn new(device: Arc<D>) -> Self {
        Self { device, keys: Keys::default() }
    }
}

impl<D: Device> CalledDriver for Called<D> {
    fn call(
        &self,
        session: &Session,
        iv: &[u8; 16],
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), JobError> {
        let spec = Spec { algorithm: session.algorithm(), direction: session.direction() };
        if input.len() != output.len()
            || session.padding() != Padding::None
            || !is_for_callers(&*self.device, spec.algorithm, input.len())
        {
            return Err(JobError::ModuleFull);
        }
        let key = self.keys.entry(session, drop);
        let opened = self.keys.opened(&key, || self.device.open_key(key.spec, &key.bytes));
        let done = opened.and_then(|opened| self.device.work(opened, spec, *iv, input, output));
        done.map_err(|failure| error_of(failure, spec))
    }

    fn forget(&self, is_over: IsOver<'_>) {
        drop(self.keys.forget(is_over));
    }
}

/// Whether `bytes` are whole blocks of a cipher, of which the device takes so many.
pub(crate) fn is_for_callers(device: &impl Device, algorithm: Algorithm, bytes: usize) -> bool {
    let is_plain = algorithm.is_cipher() && !algorithm.is_aead();
    is_plain && bytes > 0 && device.takes(algorithm, bytes, 0)
}
