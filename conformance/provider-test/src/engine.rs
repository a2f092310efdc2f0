//! Block work of the provider as jobs of an emulated module.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use evener_core::job::Memory;
use evener_core::{Algorithm, Direction, Job, Nanos, Outcome, Padding, QueuedDriver as _, Session};
use evener_driver_emulated::{Emulated, Preset};
use evener_provider::{BlockError, BlockRequest, Engine};

use crate::count;
use crate::software_aes::Soft;

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

    fn run(&self, block_request: &mut BlockRequest<'_>) -> Result<(), BlockError> {
        static OFFERED: AtomicU64 = AtomicU64::new(0);
        count::one_more();
        if OFFERED.fetch_add(1, Ordering::Relaxed) % FAULT_EVERY == FAULT_EVERY - 1 {
            return Err(BlockError::Undone);
        }
        let session =
            Session::new(block_request.algorithm, block_request.direction, Padding::None, block_request.key);
        // A key that Evener refuses, as one of XTS whose halves are the same.
        let session = Arc::new(session.map_err(|_| BlockError::Undone)?);
        let input = match &block_request.memory {
            Memory::InPlace { space, input_bytes } => &space[..*input_bytes],
            Memory::Apart { src, .. } => src,
        };
        let mut output = vec![0; input.len()];
        done_by_module(
            &session,
            &block_request.iv[..block_request.algorithm.iv_bytes()],
            input,
            &mut output,
        )?;
        match &mut block_request.memory {
            Memory::InPlace { space, .. } => space[..output.len()].copy_from_slice(&output),
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
) -> Result<(), BlockError> {
    let preset: Preset = PRESET.parse().map_err(|_| BlockError::Undone)?;
    let mut module = Emulated::new(preset, Box::new(Soft::new()));
    let mut job = Job::apart(input, output);
    job.arm(Arc::clone(session), iv, input.len());
    module.submit(job).map_err(|_| BlockError::Undone)?;
    let mut finished = Vec::new();
    while module.poll(&mut finished, Nanos(1_000_000)) == 0 {}
    match finished[0].outcome() {
        Outcome::Done { .. } => Ok(()),
        _ => Err(BlockError::Undone),
    }
}
