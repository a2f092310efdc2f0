//! Raw work of the provider as jobs of an emulated module.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use evener_core::job::Memory;
use evener_core::{Algorithm, Direction, Job, Nanos, Outcome, Padding, QueuedDriver as _, Session};
use evener_driver_emulated::{Emulated, Preset};
use evener_provider::{Engine, Raw, RawError};

use crate::count;
use crate::soft::Soft;

/// A module that takes everything that it is offered. It holds nothing between two calls, so that a fork finds nothing.
pub(crate) struct Module;

/// Time programmed for a job: none. What is tested is what comes out.
const PRESET: &str = "emulated:d=0+0,h=0+0";

/// One in so many is left undone.
const FAULT_EVERY: u64 = 16;

impl Engine for Module {
    fn takes(&self, algorithm: Algorithm, direction: Direction, len_bytes: usize) -> bool {
        len_bytes % evener_core::BLOCK_BYTES == 0 && Soft::does(algorithm, direction)
    }

    fn run(&self, raw: &mut Raw<'_>) -> Result<(), RawError> {
        static OFFERED: AtomicU64 = AtomicU64::new(0);
        count::one_more();
        if OFFERED.fetch_add(1, Ordering::Relaxed) % FAULT_EVERY == FAULT_EVERY - 1 {
            return Err(RawError::Undone);
        }
        let session = Session::new(raw.algorithm, raw.direction, Padding::None, raw.key);
        // A key that Evener refuses, as one of XTS whose halves are the same.
        let session = Arc::new(session.map_err(|_| RawError::Undone)?);
        let input = match &raw.memory {
            Memory::InPlace { room, input_bytes } => &room[..*input_bytes],
            Memory::Apart { src, .. } => src,
        };
        let mut output = vec![0; input.len()];
        done_by_module(&session, &raw.iv[..raw.algorithm.iv_bytes()], input, &mut output)?;
        match &mut raw.memory {
            Memory::InPlace { room, .. } => room[..output.len()].copy_from_slice(&output),
            Memory::Apart { dst, .. } => dst[..output.len()].copy_from_slice(&output),
        }
        Ok(())
    }
}

/// Hands one job to a module and waits for it.
fn done_by_module(
    session: &Arc<Session>,
    iv: &[u8],
    input: &[u8],
    output: &mut [u8],
) -> Result<(), RawError> {
    let preset: Preset = PRESET.parse().map_err(|_| RawError::Undone)?;
    let mut module = Emulated::new(preset, Box::new(Soft::new()));
    let mut job = Job::apart(input, output);
    job.arm(Arc::clone(session), iv, input.len());
    module.submit(job).map_err(|_| RawError::Undone)?;
    let mut finished = Vec::new();
    while module.poll(&mut finished, Nanos(1_000_000)) == 0 {}
    match finished[0].outcome() {
        Outcome::Done { .. } => Ok(()),
        _ => Err(RawError::Undone),
    }
}
