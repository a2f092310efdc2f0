//! AES by the crate `aes`: what the emulated module computes with. The modes are written out here (SP 800-38A,
//! SP 800-38E), so that nothing of OpenSSL's judges itself.

use aes::cipher::generic_array::GenericArray;
use aes::cipher::{BlockDecrypt as _, BlockEncrypt as _, KeyInit as _};
use aes::{Aes128, Aes192, Aes256};
use evener_core::job::Memory;
use evener_core::{Algorithm, Direction, Family, HasEnded, InlineDriver, Job, JobError, Profile};

type Block = [u8; 16];

/// A core with this crate's AES.
pub(crate) struct Soft(Profile);

impl Soft {
    pub(crate) fn new() -> Self {
        let (name, detail) = ("soft".into(), "the crate aes".into());
        Self(Profile { name, detail, width: 1, emulated: true })
    }

    pub(crate) fn does(algorithm: Algorithm, _: Direction) -> bool {
        matches!(algorithm.family(), Family::Ecb | Family::Cbc | Family::Ctr | Family::Xts)
    }
}

impl InlineDriver for Soft {
    fn profile(&self) -> &Profile {
        &self.0
    }

    fn supports(&self, algorithm: Algorithm, direction: Direction) -> bool {
        Self::does(algorithm, direction)
    }

    fn run(&mut self, burst: &mut [Box<Job<'_>>]) {
        for job in burst {
            match run(job) {
                Some(bytes) => job.done(bytes),
                None => job.fail(JobError::Unsupported),
            }
        }
    }

    fn evict(&mut self, _: HasEnded<'_>) {}
}

/// Runs a job whose input and output lie apart, as those of the module do.
fn run(job: &mut Job<'_>) -> Option<usize> {
    let session = job.session();
    let (family, encrypts) = (session.algorithm().family(), session.direction() == Direction::Encrypt);
    let keys = match family {
        Family::Xts => session.key().split_at(session.key().len() / 2),
        _ => (session.key(), session.key()),
    };
    let (aes, tweak) = (Aes::new(keys.0)?, Aes::new(keys.1)?);
    let parts = job.parts();
    let Memory::Apart { src, dst } = parts.memory else { return None };
    let bytes = src.len();
    dst[..bytes].copy_from_slice(src);
    let mut chain: Block = *parts.iv.first_chunk().unwrap_or(&[0; 16]);
    if family == Family::Xts {
        tweak.encrypt(&mut chain);
    }
    for block in dst[..bytes].chunks_exact_mut(16) {
        let block: &mut Block = block.try_into().ok()?;
        match family {
            Family::Ecb => aes.crypt(block, encrypts),
            Family::Cbc => cbc(&aes, block, &mut chain, encrypts),
            Family::Ctr => ctr(&aes, block, &mut chain),
            Family::Xts => xts(&aes, block, &mut chain, encrypts),
            _ => return None,
        }
    }
    Some(bytes)
}

fn cbc(aes: &Aes, block: &mut Block, chain: &mut Block, encrypts: bool) {
    if encrypts {
        xor(block, chain);
        aes.encrypt(block);
        *chain = *block;
    } else {
        let sealed = *block;
        aes.crypt(block, false);
        xor(block, chain);
        *chain = sealed;
    }
}

fn ctr(aes: &Aes, block: &mut Block, counter: &mut Block) {
    let mut stream = *counter;
    aes.encrypt(&mut stream);
    xor(block, &stream);
    *counter = u128::from_be_bytes(*counter).wrapping_add(1).to_be_bytes();
}

fn xts(aes: &Aes, block: &mut Block, tweak: &mut Block, encrypts: bool) {
    xor(block, tweak);
    aes.crypt(block, encrypts);
    xor(block, tweak);
    let number = u128::from_le_bytes(*tweak);
    // x^128 = x^7 + x^2 + x + 1.
    let carried = (number >> 127) * 0x87;
    *tweak = (number << 1 ^ carried).to_le_bytes();
}

fn xor(block: &mut Block, with: &Block) {
    block.iter_mut().zip(with).for_each(|(byte, with)| *byte ^= with);
}

/// AES with a key of any length.
enum Aes {
    Short(Aes128),
    Middle(Aes192),
    Long(Aes256),
}

impl Aes {
    fn new(key: &[u8]) -> Option<Self> {
        match key.len() {
            16 => Aes128::new_from_slice(key).ok().map(Self::Short),
            24 => Aes192::new_from_slice(key).ok().map(Self::Middle),
            32 => Aes256::new_from_slice(key).ok().map(Self::Long),
            _ => None,
        }
    }

    fn encrypt(&self, block: &mut Block) {
        self.crypt(block, true);
    }

    fn crypt(&self, block: &mut Block, encrypts: bool) {
        let block = GenericArray::from_mut_slice(block);
        match (self, encrypts) {
            (Self::Short(aes), true) => aes.encrypt_block(block),
            (Self::Short(aes), false) => aes.decrypt_block(block),
            (Self::Middle(aes), true) => aes.encrypt_block(block),
            (Self::Middle(aes), false) => aes.decrypt_block(block),
            (Self::Long(aes), true) => aes.encrypt_block(block),
            (Self::Long(aes), false) => aes.decrypt_block(block),
        }
    }
}
