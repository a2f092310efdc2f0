//! `evener plan`: a walk over the listing, cuts, one file (`file.rs`).
//!
//! Stores list in the order of bytes, nearly all of them; what does not is listed once more, whole, and put in order here.

mod file;

use std::thread;
use std::time::Duration;

use evener_shards::{Cuts, Direction, Plan, Planning, RANGE_BYTES_MIN, Ranged, Shard, Wanted};

use self::file::PlanFile;
use crate::outcome::{Breaks, Exit, Failure, Kind, Retries};
use crate::report::say;
use crate::store::{self, Found, Step, Store, Walk};

/// How long a listing is tried again from when it broke.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Makes a plan.
pub(crate) fn run(planning: &Planning) -> Result<Exit, Failure> {
    let [source, destination] = store::places(&planning.source, &planning.destination)?;
    let (direction, suffix) = (planning.direction, planning.suffix.clone());
    let file = PlanFile::new(&planning.output, [&source, &destination], planning.force);
    // At once, before a listing that may take long.
    file.check()?;
    let retries = Retries { timeout: TIMEOUT };
    // What is not there now is no mount of another machine's that may come.
    let store = store::open(&source, retries).map_err(|failure| match failure.kind {
        Kind::Absent => Failure { kind: Kind::Never, ..failure },
        _ => failure,
    })?;
    // Whether keys are of a format that can be cut is not known here; where they are not, the first range is the whole.
    let is_cut = !planning.no_ranges && can_share(&destination, retries);
    let ((shards, ranged), is_ordered) = shards(&*store, planning.wanted, is_cut, retries)?;
    // Here and nowhere else: a run that does not find it may have a mount that is missing.
    store::make_directory(&destination)?;
    let salt = file.salt()?;
    let (source, destination) = (source.clone(), destination.clone());
    let plan = Plan { direction, source, destination, suffix, salt, is_ordered, shards, ranged };
    let text = plan.written();
    file.write(text.as_bytes())?;
    if !planning.quiet {
        let names = plan.shards.iter().map(|shard| (shard.objects, shard.bytes));
        let all = names.chain(plan.ranged.iter().map(|object| (1, object.bytes)));
        let (objects, bytes) = all.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let (count, size) = (plan.shard_count(), text.len());
        let verb = if direction == Direction::Encrypt { "encrypt" } else { "decrypt" };
        say(format_args!(
            "{count} shards to {verb} {objects} objects ({bytes} bytes); the plan has {size} bytes"
        ));
    }
    Ok(Exit::Done)
}

/// Whether the store of outputs takes one from several machines. One that cannot be opened now is a failure of who writes to it.
fn can_share(destination: &str, retries: Retries) -> bool {
    store::open(destination, retries).is_ok_and(|store| store.sharing().is_some())
}

/// Shards of names and objects that are cut into ranges, if any is to be.
type Made = (Vec<Shard>, Vec<Ranged>);

/// The shards, and whether the store lists in order.
fn shards(
    store: &dyn Store,
    wanted: Wanted,
    is_cut: bool,
    retries: Retries,
) -> Result<(Made, bool), Failure> {
    let (mut cuts, mut is_ordered) = (Cuts::new(wanted), true);
    let unlisted = each(store, true, retries, |found| {
        let tag = tag(&found, is_cut);
        is_ordered = cuts.add(&found.name, found.bytes, tag).is_ok() || is_marker(store, &found, retries)?;
        Ok(is_ordered)
    })?;
    if !is_ordered {
        cuts = sorted(store, wanted, is_cut, retries)?;
    }
    let shards = cuts.finish();
    match unlisted {
        // Else the run that meets it names it.
        Some((name, failure)) if shards.0.is_empty() && shards.1.is_empty() => {
            let name = if name.is_empty() { "." } else { &name };
            Err(Failure { text: format!("there are no objects; {name}: {failure}"), ..failure })
        }
        _ => Ok((shards, is_ordered)),
    }
}

/// The entity tag of an object that may be cut. Where no one state of it can be demanded, as in directories, ranges could be of two.
fn tag(found: &Found, is_cut: bool) -> Option<&str> {
    found.strong_tag().filter(|_| is_cut && found.bytes > RANGE_BYTES_MIN)
}

/// Whether this is a marker of a folder, whose place in the listing is that of its name with a slash behind it.
fn is_marker(store: &dyn Store, found: &Found, retries: Retries) -> Result<bool, Failure> {
    retries.until_done(|| {}, || store.is_marker(found))
}

/// The cuts of a listing that is in no order, which begins anew where it breaks.
fn sorted(store: &dyn Store, wanted: Wanted, is_cut: bool, retries: Retries) -> Result<Cuts, Failure> {
    let mut breaks = Breaks::default();
    let mut all = loop {
        let mut all = Vec::new();
        let listed = each(store, false, retries, |found| {
            let tag = tag(&found, is_cut).map(str::to_owned);
            all.push((found.name, found.bytes, tag));
            Ok(true)
        });
        match listed {
            Ok(_) => break all,
            Err(failure) if failure.kind != Kind::Transient => return Err(failure),
            Err(failure) => thread::sleep(breaks.pause(retries).ok_or(failure)?),
        }
    };
    all.sort_unstable();
    all.dedup_by(|one, other| one.0 == other.0);
    let mut cuts = Cuts::new(wanted);
    let mut added = all.iter().map(|(name, bytes, tag)| cuts.add(name, *bytes, tag.as_deref()));
    added.try_for_each(|added| added).map_err(Failure::never)?;
    Ok(cuts)
}

/// Has `take` see each object, for as long as it wants to; the first thing that could not be listed.
fn each(
    store: &dyn Store,
    is_ordered: bool,
    retries: Retries,
    mut take: impl FnMut(Found) -> Result<bool, Failure>,
) -> Result<Option<(String, Failure)>, Failure> {
    let mut walk = Walk::new(store, "", is_ordered, retries);
    let mut unlisted = None;
    loop {
        match walk.next() {
            Step::Found(found) => {
                if !take(found)? {
                    return Ok(unlisted);
                }
            }
            Step::End => return Ok(unlisted),
            Step::Unlisted(name, failure) => _ = unlisted.get_or_insert((name, failure)),
            Step::Pause(pause) => thread::sleep(pause),
            Step::Broken(failure) => return Err(failure),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::breaking::Breaking;

    #[test]
    fn a_listing_that_breaks_is_taken_up_behind_its_last_name_and_for_as_long_from_then_on() {
        let retries = Retries { timeout: Duration::from_millis(500) };
        // Each break costs 50 ms at least, all of them more than half a second; the store gives each name once.
        let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m"];
        let source = Breaking::new(names.map(Some));
        let ((shards, _), is_ordered) = shards(&source, Wanted::Shards(1), true, retries).unwrap();
        assert_eq!((shards[0].objects, is_ordered), (names.len() as u64, true));
        assert_eq!(source.after(), [&[""], &names[..names.len() - 1]].concat());
        // And no longer than that.
        let source = Breaking::new([None; 9]);
        let broken = super::shards(&source, Wanted::Shards(1), true, retries);
        assert_eq!(broken.unwrap_err().kind, Kind::Transient);
        assert!(source.left() > 0);
    }
}
