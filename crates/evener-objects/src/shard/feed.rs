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
    /// Since the last name: when it came, and how often the listing has broken.
    last: Instant,
    tries: u32,
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
        let (after, last) = (after.to_owned(), Instant::now());
        Self { source, report, after, upto, is_ordered, listing, retries, last, tries: 0 }
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
                    (self.last, self.tries) = (Instant::now(), 0);
                    if self.is_ordered {
                        self.after.clone_from(&found.name);
                    }
                    return Some(found);
                }
                Some(Err(Unlisted { name: Some(name), failure })) => {
                    let is_before = |upto: &str| name.as_str() <= upto;
                    if name.as_str() > self.after.as_str() && self.upto.is_none_or(is_before) {
                        self.report.object(&name, &Ended::Failed(failure));
                    }
                }
                Some(Err(Unlisted { name: None, failure })) => self.broke(failure),
            }
        }
    }

    /// Takes a listing up again behind the last name, or reports why not.
    fn broke(&mut self, failure: Failure) {
        let may_come = failure.kind == Kind::Transient && self.is_ordered;
        if let Some(pause) = self.retries.pause(self.last, self.tries).filter(|_| may_come) {
            self.report.tried_again();
            thread::sleep(pause);
            self.tries += 1;
            self.listing = Some(self.source.list(&self.after));
            return;
        }
        // There is no such bucket, or it cannot be listed now.
        let kind = if failure.kind == Kind::Absent { Kind::Never } else { failure.kind };
        self.report.object(LISTING, &Ended::Failed(Failure { kind, ..failure }));
        self.listing = None;
    }
}
