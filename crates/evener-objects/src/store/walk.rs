//! A listing that is taken up behind its last name where it breaks, and has no notes of machines.

use std::time::Duration;

use super::sharing::is_reserved;
use super::{Found, Listing, Store, Unlisted};
use crate::outcome::{Breaks, Failure, Kind, Retries};

/// A listing from a name on.
pub(crate) struct Walk<'a> {
    store: &'a dyn Store,
    /// Whether the names are in the order of bytes, so that there is a last one.
    is_ordered: bool,
    retries: Retries,
    breaks: Breaks,
    last: String,
    /// What came before the listing under way began, until it is past this.
    before: Option<String>,
    listing: Option<Listing>,
}

/// What came next.
pub(crate) enum Step {
    Found(Found),
    /// What stands under this name or below it could not be listed.
    Unlisted(String, Failure),
    /// The listing broke, and goes on after this pause, which the caller keeps.
    Pause(Duration),
    /// It cannot be gone on with.
    Broken(Failure),
    End,
}

impl<'a> Walk<'a> {
    /// Begins behind `after`.
    pub(crate) fn new(store: &'a dyn Store, after: &str, is_ordered: bool, retries: Retries) -> Self {
        let (last, breaks) = (after.to_owned(), Breaks::default());
        Self { store, is_ordered, retries, breaks, before: None, last, listing: None }
    }

    pub(crate) fn next(&mut self) -> Step {
        loop {
            let listing = self.listing.get_or_insert_with(|| {
                self.before = Some(self.last.clone());
                self.store.list(&self.last)
            });
            match listing.next() {
                None => {
                    self.listing = Some(Box::new(std::iter::empty()));
                    return Step::End;
                }
                // Stores may give others besides, first.
                Some(Ok(found)) if self.before.as_ref().is_some_and(|before| found.name <= *before) => {}
                Some(Ok(found)) if is_reserved(&found.name) => {}
                Some(Ok(found)) => {
                    self.breaks.end();
                    self.before = None;
                    if self.is_ordered {
                        self.last.clone_from(&found.name);
                    }
                    return Step::Found(found);
                }
                Some(Err(Unlisted { name: Some(name), failure })) => return Step::Unlisted(name, failure),
                Some(Err(Unlisted { name: None, failure })) => return self.broke(failure),
            }
        }
    }

    fn broke(&mut self, failure: Failure) -> Step {
        let may_come = failure.kind == Kind::Transient && self.is_ordered;
        let pause = if may_come { self.breaks.pause(self.retries) } else { None };
        if let Some(pause) = pause {
            self.listing = None;
            return Step::Pause(pause);
        }
        // There is no such bucket, or it cannot be listed now.
        let kind = if failure.kind == Kind::Absent { Kind::Never } else { failure.kind };
        Step::Broken(Failure { kind, ..failure })
    }
}
