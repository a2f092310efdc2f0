//! Lanes beside the inner cipher: of what they encrypted, a sample is computed again, as of results of modules (`cipher/comparison.rs`) and of kernels (`native/kernel_check.rs`).
//!
//! Path of a request whose turn it is: [`sample`] keeps its input -> lanes -> [`LaneSample::settle`] -> the same, and nothing happens; or
//! another result, and the right one takes its place, and lanes are out of service in this process (`evener::lanes`), which `evener status` shows.

use std::ops::Range;

use evener::counts_file::Statistics;
use evener::lanes;
use evener_core::counts::Count;
use evener_core::job::Memory;
use evener_core::{Algorithm, Direction};
use zeroize::Zeroizing;

use crate::cipher::comparison::{ResultCheck, Sampler};
use crate::cipher::context::CipherCtx;
use crate::cipher::engine::Fallback;
use crate::ffi::reserve::zeroed;

/// Requests of this process that lanes encrypted.
static REQUESTS: Sampler = Sampler::new();

/// A request as it was before lanes had it.
pub(in crate::cipher) struct LaneSample {
    algorithm: Algorithm,
    iv: [u8; 16],
    part: Range<usize>,
    input: Zeroizing<Vec<u8>>,
}

/// Keeps a request that lanes are to encrypt, where it is its turn and there is memory for it.
pub(in crate::cipher) fn sample(algorithm: Algorithm, iv: &[u8; 16], input: &[u8]) -> Option<LaneSample> {
    let part = REQUESTS.part_of(algorithm, Direction::Encrypt, input.len())?;
    let mut copy = Zeroizing::new(zeroed(input.len())?);
    copy.copy_from_slice(input);
    Some(LaneSample { algorithm, iv: *iv, part, input: copy })
}

/// Lanes computed something else than the inner cipher, or than a known answer.
#[cold]
pub(in crate::cipher) fn take_out_of_service(shown_in: Option<&Statistics>) {
    lanes::found_wrong();
    shown_in.into_iter().for_each(|statistics| statistics.show_wrong_lanes(lanes::wrong_results()));
}

impl LaneSample {
    /// Whether `output` is what the inner cipher makes of the same under `key`; puts that there where it is not. An error where it cannot be made.
    pub(in crate::cipher) fn settle(
        mut self,
        ctx: &CipherCtx,
        key: &[u8],
        output: &mut [u8],
    ) -> Result<bool, ()> {
        let plain = Fallback::new(ctx.row(), Direction::Encrypt, key);
        let (algorithm, direction, iv) = (self.algorithm, Direction::Encrypt, self.iv);
        let result = ResultCheck { algorithm, direction, iv, input: &self.input };
        if result.is_right(plain, output, self.part) {
            return Ok(true);
        }
        take_out_of_service(ctx.statistics());
        ctx.count_event(Count::Redone, 1, output.len());
        let input_bytes = self.input.len();
        plain.run(&iv, &mut Memory::InPlace { space: &mut self.input, input_bytes }).map_err(drop)?;
        output.copy_from_slice(&self.input);
        Ok(false)
    }
}
