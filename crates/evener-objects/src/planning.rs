//! `evener plan`: a walk over the listing, cuts, one file.
//!
//! Stores list in the order of bytes, nearly all of them; what does not is listed once more, whole, and put in order here.

use std::path::Path;
use std::time::Duration;

use evener_shards::{Cuts, Direction, Plan, Planning, SALT_BYTES, Shard};

use crate::outcome::{Exit, Failure, Kind, Retries};
use crate::report::say;
use crate::store::{self, Found, Store, Unlisted};

/// Makes a plan.
pub(crate) fn run(planning: &Planning) -> Result<Exit, Failure> {
    let [source, destination] = store::places(&planning.source, &planning.destination)?;
    let (direction, suffix) = (planning.direction, planning.suffix.clone());
    let salt = salt(&planning.output, &source, &destination)?;
    let retries = Retries { timeout: Duration::from_secs(60) };
    let store = store::open(&source, false, retries)?;
    let (shards, is_ordered) = shards(&*store, planning, retries)?;
    let plan = Plan { direction, source, destination, suffix, salt, is_ordered, shards };
    let text = plan.written();
    write(&planning.output, text.as_bytes())?;
    if !planning.quiet {
        let (objects, bytes) =
            plan.shards.iter().fold((0, 0), |sum, shard| (sum.0 + shard.objects, sum.1 + shard.bytes));
        let (count, size) = (plan.shards.len(), text.len());
        let verb = if direction == Direction::Encrypt { "encrypt" } else { "decrypt" };
        say(format_args!(
            "{count} shards to {verb} {objects} objects ({bytes} bytes); the plan has {size} bytes"
        ));
    }
    Ok(Exit::Done)
}

/// The shards, and whether the store lists in order.
fn shards(store: &dyn Store, planning: &Planning, retries: Retries) -> Result<(Vec<Shard>, bool), Failure> {
    let mut is_ordered = true;
    retries
        .until_done(
            || {},
            || {
                let mut cuts = Cuts::new(planning.wanted);
                for found in listed(store) {
                    let found = found?;
                    if cuts.add(&found.name, found.bytes).is_err() {
                        is_ordered = false;
                        return sorted(store, planning).map(Cuts::finish);
                    }
                }
                Ok(cuts.finish())
            },
        )
        .map(|shards| (shards, is_ordered))
}

/// The cuts of a listing that is in no order.
fn sorted(store: &dyn Store, planning: &Planning) -> Result<Cuts, Failure> {
    let mut all = Vec::new();
    for found in listed(store) {
        let found = found?;
        all.push((found.name, found.bytes));
    }
    all.sort_unstable();
    all.dedup_by(|one, other| one.0 == other.0);
    let mut cuts = Cuts::new(planning.wanted);
    all.iter().try_for_each(|(name, bytes)| cuts.add(name, *bytes)).map_err(Failure::never)?;
    Ok(cuts)
}

/// All objects, or why there are no more. What is no object is named by the run that meets it.
fn listed(store: &dyn Store) -> impl Iterator<Item = Result<Found, Failure>> {
    store.list("").filter_map(|found| match found {
        Ok(found) => Some(Ok(found)),
        Err(Unlisted { name: Some(_), .. }) => None,
        // There is no such bucket.
        Err(Unlisted { failure, .. }) if failure.kind == Kind::Absent => {
            Some(Err(Failure { kind: Kind::Never, ..failure }))
        }
        Err(Unlisted { failure, .. }) => Some(Err(failure)),
    })
}

/// The random number of the plan: that of the plan that stands there already, if it is of the same places, so that its outputs are known
/// again.
fn salt(output: &Path, source: &str, destination: &str) -> Result<[u8; SALT_BYTES], Failure> {
    let earlier = std::fs::read_to_string(output).ok().and_then(|text| Plan::read(&text).ok());
    if let Some(earlier) =
        earlier.filter(|earlier| earlier.source == source && earlier.destination == destination)
    {
        return Ok(earlier.salt);
    }
    let mut salt = [0; SALT_BYTES];
    getrandom::getrandom(&mut salt).map_err(Failure::never)?;
    Ok(salt)
}

/// Writes a file beside its place and gives it its name.
fn write(output: &Path, text: &[u8]) -> Result<(), Failure> {
    if output == Path::new("-") {
        use std::io::Write as _;
        return std::io::stdout()
            .write_all(text)
            .map_err(|error| Failure::never(format_args!("standard output: {error}")));
    }
    let mut draft = output.as_os_str().to_owned();
    draft.push(".draft");
    let written = std::fs::write(&draft, text).and_then(|()| std::fs::rename(&draft, output));
    written.map_err(|error| Failure::never(format_args!("cannot write {}: {error}", output.display())))
}
