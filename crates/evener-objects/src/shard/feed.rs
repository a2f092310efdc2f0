//! The names of a shard, as its part of the listing has them.

use std::thread;
use std::time::Instant;

use crate::outcome::{Failure, Kind, Retries};
use crate::report::{Ended, Report};
use crate::store::{Found, Listing, Store, Unlisted};

/// What stands for a name where the listing failed.
const LISTING: &str = "(listing)";

/// A listing from one name to another.
pub(super) struct Feed<'a> {
    source: &'a dyn Store,
    report: &'a Report,
    /// Greater than this, and no greater than that.
    after: String,
    upto: Option<&'a str>,
    is_ordered: bool,
    listing: Option<Listing>,
    retries: Retries,
    /// Since when it breaks without a further name, and how often it did.
    broken: Option<(Instant, u32)>,
}

impl<'a> Feed<'a> {
    pub(super) fn new(
        source: &'a dyn Store,
        after: &str,
        upto: Option<&'a str>,
        is_ordered: bool,
        retries: Retries,
        report: &'a Report,
    ) -> Self {
        let listing = Some(source.list(if is_ordered { after } else { "" }));
        let after = after.to_owned();
        Self { source, report, after, upto, is_ordered, listing, retries, broken: None }
    }

    /// The next object of the shard. What cannot be listed is reported.
    pub(super) fn next(&mut self) -> Option<Found> {
        loop {
            match self.listing.as_mut()?.next() {
                None => self.listing = None,
                Some(Ok(found)) if found.name.as_str() <= self.after.as_str() => {}
                Some(Ok(found)) if self.upto.is_some_and(|upto| found.name.as_str() > upto) => {
                    if self.is_ordered {
                        self.listing = None;
                    }
                }
                Some(Ok(found)) => {
                    self.broken = None;
                    if self.is_ordered {
                        self.after.clone_from(&found.name);
                    }
                    return Some(found);
                }
                // A folder that could not be read may begin before this shard.
                Some(Err(Unlisted { name: Some(name), failure })) => {
                    if self.upto.is_none_or(|upto| name.as_str() <= upto) {
                        let name = if name.is_empty() { "." } else { &name };
                        self.report.object(name, &Ended::Failed(failure));
                    }
                }
                Some(Err(Unlisted { name: None, failure })) => self.broke(failure),
            }
        }
    }

    /// Takes a listing up again behind the last name, or reports why not.
    fn broke(&mut self, failure: Failure) {
        let (start, tries) = self.broken.unwrap_or_else(|| (Instant::now(), 0));
        let may_come = failure.kind == Kind::Transient && self.is_ordered;
        if let Some(pause) = self.retries.pause(start, tries).filter(|_| may_come) {
            self.broken = Some((start, tries + 1));
            self.report.tried_again();
            thread::sleep(pause);
            self.listing = Some(self.source.list(&self.after));
            return;
        }
        // There is no such bucket, or it cannot be listed now.
        let kind = if failure.kind == Kind::Absent { Kind::Never } else { failure.kind };
        self.report.object(LISTING, &Ended::Failed(Failure { kind, ..failure }));
        self.listing = None;
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use bytes::Bytes;

    use super::*;
    use crate::outcome::Exit;
    use crate::store::{Making, Standing, Upload};

    /// A store whose listings have these names, one after the other, and then break, but for the last one.
    struct Breaking(Mutex<Vec<Option<&'static str>>>);

    impl Store for Breaking {
        fn list(&self, _: &str) -> Listing {
            let mut listings = self.0.lock().unwrap();
            let name = listings.remove(0);
            let found =
                name.map(|name| Ok(Found { name: name.to_owned(), bytes: 0, version: String::new() }));
            let busy = || Err(Unlisted { name: None, failure: Failure::new(Kind::Transient, "busy") });
            Box::new(found.into_iter().chain((!listings.is_empty()).then(busy)))
        }

        fn read(&self, _: &Found, _: Range<u64>) -> Result<Bytes, Failure> {
            unreachable!()
        }

        fn standing(&self, _: &str) -> Result<Option<Standing>, Failure> {
            unreachable!()
        }

        fn put(&self, _: &Making, _: Bytes) -> Result<(), Failure> {
            unreachable!()
        }

        fn begin(&self, _: &Making) -> Result<Arc<dyn Upload>, Failure> {
            unreachable!()
        }
    }

    #[test]
    fn a_listing_that_breaks_is_taken_up_for_as_long_as_was_said_from_then_on() {
        let listings = [Some("a"), None, Some("b"), None, None, None, None];
        let (source, report) = (Breaking(Mutex::new(listings.into())), Report::new(0, None, true).unwrap());
        let retries = Retries { timeout: Duration::from_millis(500) };
        let mut feed = Feed::new(&source, "", None, true, retries, &report);
        assert_eq!(feed.next().unwrap().name, "a");
        // Work on large objects takes longer than a listing may be broken.
        thread::sleep(retries.timeout + Duration::from_millis(100));
        assert_eq!(feed.next().unwrap().name, "b");
        // Pauses of 100, 200 and 400 ms are more than half a second.
        assert_eq!(feed.next(), None);
        assert!(!source.0.lock().unwrap().is_empty(), "it was not asked for ever");
        drop(feed);
        assert_eq!(report.finish().unwrap(), Exit::Again);
    }
}
