//! TLS records: a context whose `tls-version` is set takes each update for one record, works on it in place, and adds
//! or removes the padding itself (providers/implementations/ciphers/ciphercommon.c and ssl/record/tls_pad.c of
//! OpenSSL 3.0; ssl/record/methods/tls_pad.c since 3.2).
//!
//! Path of one record of at least `thresh` bytes: padding on -> encrypted together with other threads' or jobs' records (`combining.rs`), or its
//! blocks are block work, from the chaining value that the inner context holds -> the inner context gets the next one -> padding off. All else about records is left
//! to the inner context, and so is, for good, one kind of record:
//!
//! **Decryption of MAC-then-encrypt.** There the padding is checked before the MAC, and how long the check of both
//! takes shows an attacker something of the plaintext (Lucky Thirteen, AlFardan and Paterson 2013). OpenSSL's answer runs
//! through padding, MAC and the copy between them, and can be used but not be wrapped. Under Encrypt-then-MAC
//! (RFC 7366) the MAC over the ciphertext was right before the cipher runs, so that the maker of the padding has
//! the keys.

use evener_core::BLOCK_BYTES;
use evener_core::Family;
use evener_core::job::Memory;

use super::combining::Group;
use super::context::CipherCtx;
use super::engine::BlockError;
use super::message::record_mode::RecordMode;
use super::{blocks, combining};
use crate::core::errors::Reason;
use crate::inner_cipher::call::Update;

/// One record; `None` where it is the inner context's business.
pub(crate) fn update(
    ctx: &mut CipherCtx,
    records: RecordMode,
    call: &Update,
) -> Result<Option<usize>, Reason> {
    let is_cbc = ctx.family() == Some(Family::Cbc) && ctx.message.padding;
    if !is_cbc || !call.is_in_place() || !records.are_ours(ctx.message.encrypts) {
        return Ok(None);
    }
    if ctx.message.encrypts { encrypt(ctx, call) } else { decrypt(ctx, records, call) }
}

fn encrypt(ctx: &mut CipherCtx, call: &Update) -> Result<Option<usize>, Reason> {
    let added = BLOCK_BYTES - call.len() % BLOCK_BYTES;
    let whole = call.len() + added;
    if !call.has_space(whole) {
        return Ok(None);
    }
    let Some(iv) = ctx.inner().updated_iv() else { return Ok(None) };
    // As many bytes as are added, each of which says how many there are without it.
    let padding = [u8::try_from(added - 1).expect("at most a block"); BLOCK_BYTES];
    call.put_output(call.len(), &padding[..added]);
    if together(ctx, call.space(whole))? {
        ctx.hot.taken = ctx.hot.taken.wrapping_add(whole);
        return Ok(Some(whole));
    }
    let space = call.space(whole);
    if call.len() < ctx.block_thresh() || !work(ctx, iv, space)? {
        return Ok(None);
    }
    let last = *space.last_chunk().expect("a record has a block");
    ctx.hot.taken = ctx.hot.taken.wrapping_add(whole);
    move_on(ctx, &last)?;
    Ok(Some(whole))
}

fn decrypt(ctx: &mut CipherCtx, records: RecordMode, call: &Update) -> Result<Option<usize>, Reason> {
    let len = call.len();
    // An IV and a block at least; these lengths are public.
    if len % BLOCK_BYTES != 0 || len < 2 * BLOCK_BYTES {
        return Ok(None);
    }
    let Some(iv) = ctx.inner().updated_iv() else { return Ok(None) };
    let space = call.space(len);
    let last = *space.last_chunk().expect("a record has a block");
    if !work(ctx, iv, space)? {
        return Ok(None);
    }
    ctx.hot.taken = ctx.hot.taken.wrapping_add(len);
    move_on(ctx, &last)?;
    unpadded(&space[records.iv_bytes()..]).map(Some).ok_or(Reason::BadRecord)
}

/// Whether a padded record was encrypted together with those of others, and the inner context has its last block; if not, it is what it was.
fn together(ctx: &mut CipherCtx, space: &mut [u8]) -> Result<bool, Reason> {
    let input_bytes = space.len();
    let Some(group) = Group::of(ctx, input_bytes) else { return Ok(false) };
    let is_done = combining::blocks(ctx, &mut Memory::InPlace { space, input_bytes }, group)?;
    if is_done {
        // No module had it.
        ctx.pending.module = None;
    }
    Ok(is_done)
}

/// Whether it was done; if not, the record is what it was.
fn work(ctx: &mut CipherCtx, iv: [u8; BLOCK_BYTES], space: &mut [u8]) -> Result<bool, Reason> {
    let input_bytes = space.len();
    let mut memory = Memory::InPlace { space, input_bytes };
    match blocks::work(ctx, iv, &mut memory) {
        Ok(()) => Ok(true),
        Err(BlockError::Undone | BlockError::Refused) => Ok(false),
        Err(BlockError::Lost) => Err(ctx.fail()),
    }
}

/// Gives the inner context the chaining value of the next record.
fn move_on(ctx: &mut CipherCtx, chain: &[u8; BLOCK_BYTES]) -> Result<(), Reason> {
    if !ctx.inner().init(ctx.message.encrypts, None, Some(chain)) {
        return Err(ctx.fail());
    }
    ctx.message.iv_moved = true;
    Ok(())
}

/// Bytes before the padding of a record; `None` where the padding is none. No branch and no address depends on the
/// record's bytes but the answer itself: every byte that could be padding is looked at.
fn unpadded(record: &[u8]) -> Option<usize> {
    let count = record.last().copied()?;
    let too_long = usize::from(count) + 1 > record.len();
    let candidates = record.iter().rev().zip(0..=u8::MAX);
    // `at <= count` without a branch: the borrow of `count - at` fills all bits or none.
    let is_padding = |at: u8| !((u16::from(count).wrapping_sub(u16::from(at)) >> 8) as u8);
    let wrong = candidates.fold(0, |wrong, (byte, at)| wrong | (is_padding(at) & (byte ^ count)));
    (!(too_long | (wrong != 0))).then(|| record.len() - usize::from(count) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 5246, 6.2.3.2, read slowly.
    fn judge(record: &[u8]) -> Option<usize> {
        let count = usize::from(*record.last()?) + 1;
        let text = record.len().checked_sub(count)?;
        record[text..].iter().all(|&byte| usize::from(byte) + 1 == count).then_some(text)
    }

    #[test]
    fn padding_is_right_or_wrong_as_the_standard_says() {
        for len in 1..=300_usize {
            for count in [0_u8, 1, 2, 14, 15, 16, 254, 255] {
                let mut record: Vec<u8> = (0..=u8::MAX).cycle().step_by(7).take(len).collect();
                let start = len.saturating_sub(usize::from(count) + 1);
                record[start..].fill(count);
                assert_eq!(unpadded(&record), judge(&record), "{len} {count}");
                for wrong in [start, (start + len) / 2, len - 1, start.saturating_sub(1)] {
                    let mut record = record.clone();
                    record[wrong] ^= 0x40;
                    assert_eq!(unpadded(&record), judge(&record), "{len} {count} {wrong}");
                }
            }
        }
        assert_eq!(unpadded(&[]), None);
    }
}
