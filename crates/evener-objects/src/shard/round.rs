//! A range of an object that several machines do: rounds of a look at their notes and what is then to be done, until the object is whole or the
//! others will see to it.
//!
//! ```text
//! look ─┬─ no agreement ───────────────────> begin an upload ──────────────────────────────> look
//!       ├─ no receipt of this range ───────> its parts, on all threads ─> leave a receipt ──> look
//!       ├─ others have none, undisturbed ──> done: who leaves the last receipt completes it
//!       ├─ others have none, disturbed ────> one of theirs, as one's own
//!       └─ all receipts ───────────────────> complete ─> clear the notes
//! ```
//! Who ends with status 0 has left a receipt in the first upload, or has seen the object whole. The upload is lost only to one who has not ended,
//! and who does then all that is missing: so when all have ended with 0, the object is there.

use evener_shards::Ranged;

use super::core::Core;
use super::large::Large;
use super::notes::{Agreement, Notes, Seen};
use super::order::Order;
use crate::outcome::{Failure, Kind};
use crate::report::Ended;
use crate::store::{Found, Making};

/// Uploads that one run begins: the first, and others where one was lost. Assumed, not measured: 4, for a rule of a bucket ends one a day.
const BEGUN_MAX: u32 = 4;

/// One range's way, between two looks.
pub(super) struct Round {
    pub(super) found: Found,
    pub(super) making: Making,
    object: Ranged,
    /// The range that this shard is to do.
    own: u32,
    notes: Notes,
    /// Bytes that were read and made here.
    bytes_in: u64,
    bytes_out: u64,
    begun_count: u32,
    sent_count: u32,
}

/// What is done in this round.
pub(super) struct Doing {
    round: Round,
    agreement: Agreement,
    range: u32,
}

/// What came of looking.
pub(super) enum Step {
    /// Parts for all threads; when they have ended, [`Doing::end`] is called with what came of them.
    Parts(Box<Large>, Box<Doing>),
    Ended(Ended),
}

/// What is to be done next.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Range(u32),
    Complete,
    Nothing,
}

impl Round {
    /// Begins the range of a shard.
    pub(super) fn begin(
        shard: &Order<'_>,
        core: &mut Core<'_, '_>,
        object: &Ranged,
        own: u32,
    ) -> Result<Step, Failure> {
        let found = Found::by_tag(&object.name, object.bytes, &object.tag);
        let making = shard.making(&found)?;
        let notes = Notes::new(shard, object, &making);
        let Some(making) = shard.unless_finished(making.clone())? else {
            notes.clear(shard, &making);
            // An object is counted once, not by each of its ranges.
            return Ok(Step::Ended(match own {
                0 => Ended::Already,
                _ => Ended::Range { bytes_in: 0, bytes_out: 0 },
            }));
        };
        let object = object.clone();
        let (bytes_in, bytes_out, begun_count, sent_count) = (0, 0, 0, 0);
        let round = Self { found, making, object, own, notes, bytes_in, bytes_out, begun_count, sent_count };
        round.go_on(shard, core)
    }

    fn go_on(mut self, shard: &Order<'_>, core: &mut Core<'_, '_>) -> Result<Step, Failure> {
        loop {
            let seen = self.notes.look(shard)?;
            let agreement = match seen.newest {
                Some(newest) => self.notes.agreement(shard, newest)?,
                None => None,
            };
            let Some(agreement) = agreement else {
                // None yet, or those who made the object have just cleared it.
                if let Some(ended) = self.begin_upload(shard, seen.newest.unwrap_or(0))? {
                    return Ok(Step::Ended(ended));
                }
                continue;
            };
            match next(&seen, self.own, self.object.count) {
                // The machine that completed it meanwhile may not have seen this receipt.
                Next::Nothing if shard.is_finished(&self.making)? => {
                    return Ok(Step::Ended(self.cleared(shard)));
                }
                Next::Nothing => return Ok(Step::Ended(self.range_done())),
                Next::Range(range) => return self.parts(shard, core, agreement, range),
                Next::Complete => match self.receipts(shard, &agreement)? {
                    Ok(parts) => {
                        if let Some(ended) = self.complete(shard, &agreement, parts)? {
                            return Ok(Step::Ended(ended));
                        }
                    }
                    // Who was quicker has completed the object and taken them away; else it is one of another upload.
                    Err(_) if shard.is_finished(&self.making)? => {
                        return Ok(Step::Ended(self.cleared(shard)));
                    }
                    Err(range) => return self.parts(shard, core, agreement, range),
                },
            }
        }
    }

    /// Has an upload begin, unless the output is there.
    fn begin_upload(&mut self, shard: &Order<'_>, number: u32) -> Result<Option<Ended>, Failure> {
        self.begun_count += 1;
        if self.begun_count > BEGUN_MAX {
            return Err(Failure::new(Kind::Exhausted, "its upload was lost again and again"));
        }
        self.notes.begin(shard, &self.making, number)?;
        // Behind the agreement: who completed the object meanwhile has taken away its own before this came.
        Ok(if shard.is_finished(&self.making)? { Some(self.cleared(shard)) } else { None })
    }

    /// The parts of a range for all threads.
    fn parts(
        mut self,
        shard: &Order<'_>,
        core: &mut Core<'_, '_>,
        agreement: Agreement,
        range: u32,
    ) -> Result<Step, Failure> {
        self.sent_count += 1;
        // Where a store shows no note that it has taken, this would never end.
        if self.sent_count > self.object.count.saturating_mul(BEGUN_MAX) {
            return Err(Failure::new(Kind::Exhausted, "the store does not show what it was given"));
        }
        let Self { object, found, making, .. } = &self;
        let large = Large::open_range(shard, core, (found, making), &agreement.upload, |parts| {
            object.parts(range, parts)
        });
        let doing = Box::new(Doing { round: self, agreement, range });
        match large {
            Ok(large) if large.part_count() > 0 => Ok(Step::Parts(large.into(), doing)),
            Ok(large) => doing.end(shard, core, &large),
            Err(failure) => doing.failed(shard, core, failure),
        }
    }

    /// What the store calls all parts; the range whose receipt is none.
    fn receipts(
        &self,
        shard: &Order<'_>,
        agreement: &Agreement,
    ) -> Result<Result<Vec<String>, u32>, Failure> {
        let mut parts = Vec::new();
        for range in 0..self.object.count {
            match self.notes.parts(shard, agreement, range)? {
                Some(own) => parts.extend(own),
                None => return Ok(Err(range)),
            }
        }
        Ok(Ok(parts))
    }

    /// Completes the object; nothing where its upload is lost and another was begun.
    fn complete(
        &mut self,
        shard: &Order<'_>,
        agreement: &Agreement,
        parts: Vec<String>,
    ) -> Result<Option<Ended>, Failure> {
        // The store is not asked to complete only where nothing stands, so it is looked at once more.
        if !self.making.replaces && shard.unless_finished(self.making.clone())?.is_none() {
            return Ok(Some(self.cleared(shard)));
        }
        let mut tries = 0;
        let completed = shard.patiently(|| {
            tries += 1;
            shard.sharing()?.complete_shared(&self.making, &agreement.upload, parts.clone())
        });
        match completed {
            Ok(()) => {}
            // An answer may have been lost: what stands there tells.
            Err(_) if tries > 1 && shard.is_finished(&self.making)? => {}
            Err(failure) if failure.kind == Kind::Lost => return self.lost(shard, agreement),
            Err(failure) => return Err(failure),
        }
        self.notes.clear(shard, &self.making);
        Ok(Some(Ended::Done { bytes_in: self.bytes_in, bytes_out: self.bytes_out }))
    }

    /// The upload is no more: the object is whole, or another upload is begun.
    fn lost(&mut self, shard: &Order<'_>, agreement: &Agreement) -> Result<Option<Ended>, Failure> {
        if shard.is_finished(&self.making)? {
            return Ok(Some(self.cleared(shard)));
        }
        let begun = self.begin_upload(shard, agreement.number + 1)?;
        // One that is there, but has other parts than was said, is of no use either.
        shard.sharing()?.abort_shared(&self.making, &agreement.upload).ok();
        Ok(begun)
    }

    /// The object is whole, by other hands.
    fn cleared(&self, shard: &Order<'_>) -> Ended {
        self.notes.clear(shard, &self.making);
        self.range_done()
    }

    const fn range_done(&self) -> Ended {
        Ended::Range { bytes_in: self.bytes_in, bytes_out: self.bytes_out }
    }
}

impl Doing {
    /// Goes on after all parts of the range have ended.
    pub(super) fn end(
        self,
        shard: &Order<'_>,
        core: &mut Core<'_, '_>,
        large: &Large,
    ) -> Result<Step, Failure> {
        if let Err(failure) = large.outcome() {
            return self.failed(shard, core, failure);
        }
        let Self { mut round, agreement, range } = self;
        round.notes.receive(shard, &agreement, range, &large.sent()?)?;
        let (bytes_in, bytes_out) = large.bytes();
        (round.bytes_in, round.bytes_out) = (round.bytes_in + bytes_in, round.bytes_out + bytes_out);
        round.go_on(shard, core)
    }

    fn failed(self, shard: &Order<'_>, core: &mut Core<'_, '_>, failure: Failure) -> Result<Step, Failure> {
        let Self { mut round, agreement, .. } = self;
        match failure.kind {
            Kind::Lost => match round.lost(shard, &agreement)? {
                Some(ended) => Ok(Step::Ended(ended)),
                None => round.go_on(shard, core),
            },
            // No machine will read this state of it again. What was damaged others may meet in their turn.
            Kind::Changed | Kind::Absent => {
                round.notes.clear(shard, &round.making);
                Err(failure)
            }
            _ => Err(failure),
        }
    }
}

/// What is to be done by who has the range `own` of `count`.
fn next(seen: &Seen, own: u32, count: u32) -> Next {
    // One's own first, then those behind it, so that several who do all that is missing begin at several places.
    let missing = (own..count).chain(0..own).find(|range| !seen.whole.contains(range));
    match missing {
        None => Next::Complete,
        Some(range) if range == own || seen.is_disturbed => Next::Range(range),
        Some(_) => Next::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_ended_his_own_leaves_others_theirs_unless_an_upload_was_lost() {
        let seen =
            |whole: &[u32], is_disturbed| Seen { newest: Some(0), whole: whole.to_vec(), is_disturbed };
        assert_eq!(next(&seen(&[], false), 1, 3), Next::Range(1));
        assert_eq!(next(&seen(&[0, 2], false), 1, 3), Next::Range(1));
        assert_eq!(next(&seen(&[1], false), 1, 3), Next::Nothing);
        assert_eq!(next(&seen(&[1], true), 1, 3), Next::Range(2));
        assert_eq!(next(&seen(&[1, 2], true), 1, 3), Next::Range(0));
        assert_eq!(next(&seen(&[2, 0, 1], false), 1, 3), Next::Complete);
    }
}
