//! Last blocks that hold padding, all of a burst in one call.
//!
//! The last block of CBC is a block of ECB once the one before it is known: `E(padded text xor block before)`.
//! So the tails of many jobs are gathered side by side, where ECB takes a nanosecond for each, and the library
//! needs no second lane per job, which would take 20.

use std::ops::DerefMut;

use evener_core::job::Memory;
use evener_core::padding::pad;
use evener_core::{BLOCK_BYTES, Job};

use super::Multibuffer;
use super::padding_in_place::{has_tail, tail};
use super::survey::Need;
use crate::ffi::{KeySize, Pass, Refused, Span, Work};

/// Whether a block is encrypted together with the one before it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chain {
    /// CBC.
    Chained,
    /// ECB.
    Single,
}

/// The tails of a burst.
#[derive(Default)]
pub(crate) struct Tails {
    /// Padded text, then ciphertext, block by block.
    blocks: Vec<[u8; BLOCK_BYTES]>,
    /// Place of the key of each block.
    keys: Vec<usize>,
}

impl Multibuffer {
    /// Encrypts the tails of jobs whose other blocks are encrypted already.
    pub(crate) fn run_tails<'m, J>(
        &mut self,
        chain: Chain,
        size: KeySize,
        jobs: &mut [J],
    ) -> Result<(), Refused>
    where
        J: DerefMut<Target = Job<'m>>,
    {
        if !self.survey.tails {
            return Ok(());
        }
        self.tails.gather(chain, jobs, &self.survey.needs);
        let keys = self.aes.held();
        let mut pass = Pass::new(&mut self.manager, Work::EcbEncrypt(size));
        let mut blocks = &mut self.tails.blocks[..];
        for same in self.tails.keys.chunk_by(|one, next| one == next) {
            let (of_key, rest) = blocks.split_at_mut(same.len());
            blocks = rest;
            let lanes = Span::InPlace(of_key.as_flattened_mut()).cut(pass.lane_bytes_max());
            lanes.for_each(|span| pass.span(&keys[same[0]], &[0; BLOCK_BYTES], span));
        }
        pass.finish()?;
        self.tails.scatter(jobs, &self.survey.needs);
        Ok(())
    }
}

impl Tails {
    fn gather<'m, J>(&mut self, chain: Chain, jobs: &[J], needs: &[Need])
    where
        J: DerefMut<Target = Job<'m>>,
    {
        self.blocks.clear();
        self.keys.clear();
        for (job, need) in
            jobs.iter().zip(needs).filter(|(job, need)| has_tail(job.input_bytes(), need.bytes))
        {
            let (text, before) = tail(job, need.bytes);
            self.blocks.push(block(chain, text, before));
            self.keys.push(need.keys);
        }
    }

    fn scatter<'m, J>(&self, jobs: &mut [J], needs: &[Need])
    where
        J: DerefMut<Target = Job<'m>>,
    {
        let mut blocks = self.blocks.iter();
        for (job, need) in
            jobs.iter_mut().zip(needs).filter(|(job, need)| has_tail(job.input_bytes(), need.bytes))
        {
            let (Memory::InPlace { space, .. } | Memory::Apart { dst: space, .. }) = job.parts().memory;
            let block = blocks.next().expect("one was gathered for each");
            space[need.bytes - BLOCK_BYTES..need.bytes].copy_from_slice(block);
        }
    }
}

/// The last block, padded and, where it is chained, joined to the one before it.
#[inline]
fn block(chain: Chain, text: &[u8], before: &[u8; BLOCK_BYTES]) -> [u8; BLOCK_BYTES] {
    let mut block = FULL_PADDING;
    if !text.is_empty() {
        block[..text.len()].copy_from_slice(text);
        pad(&mut block, text.len());
    }
    match chain {
        Chain::Chained => (u128::from_ne_bytes(block) ^ u128::from_ne_bytes(*before)).to_ne_bytes(),
        Chain::Single => block,
    }
}

/// What is added to a text of whole blocks.
const FULL_PADDING: [u8; BLOCK_BYTES] = [16; BLOCK_BYTES];
