//! The names of a shard, as its part of the listing has them.

use std::thread;
use std::time::Duration;

use crate::outcome::{Failure, Kind};
use crate::report::{Ended, Report};
use crate::store::{Found, Listing, Store, Unlisted};

/// How often a listing that broke is taken up again without a further name, and the first pause, which doubles.
const TRIES_MAX: u32 = 8;
/// What stands for a name where the listing failed.
const LISTING: &str = "(listing)";
const PAUSE: Duration = Duration::from_millis(100);

/// A listing from one name to another.
pub(super) struct Feed<'a> {
    source: &'a dyn Store,
    report: &'a Report,
    /// Greater than this, and no greater than that.
    after: String,
    upto: Option<&'a str>,
    is_ordered: bool,
    listing: Option<Listing>,
    /// Since the last name.
    tries: u32,
}

impl<'a> Feed<'a> {
    pub(super) fn new(
        source: &'a dyn Store,
        after: &str,
        upto: Option<&'a str>,
        is_ordered: bool,
        report: &'a Report,
    ) -> Self {
        let listing = Some(source.list(if is_ordered { after } else { "" }));
        Self { source, report, after: after.to_owned(), upto, is_ordered, listing, tries: 0 }
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
                    self.tries = 0;
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
        if failure.kind == Kind::Transient && self.is_ordered && self.tries < TRIES_MAX {
            self.report.tried_again();
            thread::sleep(PAUSE * 2_u32.pow(self.tries));
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
