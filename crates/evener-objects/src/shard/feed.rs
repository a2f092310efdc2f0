//! The names of a shard, as its part of the listing has them; or the one object of which it has a range.

use std::time::Duration;

use evener_shards::Shard;

use crate::outcome::{Failure, Kind, Retries};
use crate::report::{Ended, Report};
use crate::store::{Found, Step, Store, Walk};

/// What stands for a name where the listing failed.
const LISTING: &str = "(listing)";

/// What a shard has.
pub(super) enum Feed<'a> {
    Names(Box<Names<'a>>),
    /// At most one object, which no listing is asked for.
    One(Option<Found>),
}

/// A listing from one name to another.
pub(super) struct Names<'a> {
    walk: Walk<'a>,
    source: &'a dyn Store,
    retries: Retries,
    report: &'a Report,
    /// Greater than this, and no greater than that.
    after: String,
    upto: Option<&'a str>,
    is_ordered: bool,
    /// Whether objects are missed: the plan had some, and nothing was listed yet.
    is_missing: bool,
}

/// What a listing has next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Object(Found),
    /// Nothing before this pause is over.
    Pause(Duration),
    End,
}

impl<'a> Feed<'a> {
    pub(super) fn new(
        source: &'a dyn Store,
        shard: &Shard,
        upto: Option<&'a str>,
        is_ordered: bool,
        retries: Retries,
        report: &'a Report,
    ) -> Self {
        let (after, is_missing) = (shard.after.clone(), shard.objects > 0);
        let walk = Walk::new(source, if is_ordered { &after } else { "" }, is_ordered, retries);
        let names = Names { walk, source, retries, report, after, upto, is_ordered, is_missing };
        Self::Names(names.into())
    }

    /// The next object of the shard. What cannot be listed is reported.
    pub(super) fn next(&mut self) -> Next {
        match self {
            Self::Names(names) => names.next(),
            Self::One(found) => found.take().map_or(Next::End, Next::Object),
        }
    }
}

impl Names<'_> {
    fn next(&mut self) -> Next {
        loop {
            match self.walk.next() {
                Step::End => return self.end(),
                Step::Found(found) if found.name <= self.after => self.look_at_late(&found),
                Step::Found(found) if self.is_behind(&found.name) => {
                    if self.is_ordered {
                        return self.end();
                    }
                }
                Step::Found(found) => {
                    self.is_missing = false;
                    if self.is_ordered {
                        self.after.clone_from(&found.name);
                    }
                    return Next::Object(found);
                }
                // A folder that could not be read may begin before this shard.
                Step::Unlisted(name, failure) => {
                    if !self.is_behind(&name) {
                        self.failed(if name.is_empty() { "." } else { &name }, failure);
                    }
                }
                Step::Pause(pause) => {
                    self.report.tried_again();
                    return Next::Pause(pause);
                }
                Step::Broken(failure) => {
                    self.failed(LISTING, failure);
                    return Next::End;
                }
            }
        }
    }

    fn end(&mut self) -> Next {
        if self.is_missing {
            let text = "nothing is there, and the plan had objects: a mount may be missing; if they were removed, plan again";
            self.failed(LISTING, Failure::new(Kind::Transient, text));
        }
        Next::End
    }

    /// A name that is not greater than the last one, in a listing that is to be in order, is a marker of a folder; else what would follow may be
    /// anywhere, and this object in no shard.
    fn look_at_late(&mut self, found: &Found) {
        if !self.is_ordered {
            return;
        }
        let is_marker =
            self.retries.until_done(|| self.report.tried_again(), || self.source.is_marker(found));
        match is_marker {
            Ok(true) => {}
            Ok(false) => {
                let text =
                    "it is not listed in order of names, as others were when the plan was made: plan again";
                self.failed(&found.name, Failure::never(text));
            }
            Err(failure) => self.failed(&found.name, failure),
        }
    }

    /// Reports what was not listed; it says why nothing is there, too.
    fn failed(&mut self, name: &str, failure: Failure) {
        self.is_missing = false;
        self.report.object(name, &Ended::Failed(failure));
    }

    /// Whether a name belongs to shards behind this one.
    fn is_behind(&self, name: &str) -> bool {
        self.upto.is_some_and(|upto| name > upto)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use evener_testing::Folder;
    use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};

    use super::*;
    use crate::outcome::Exit;
    use crate::store::breaking::Breaking;
    use crate::store::open;

    #[test]
    fn a_listing_that_breaks_is_taken_up_for_as_long_as_was_said_from_then_on() {
        let (source, report) =
            (Breaking::new([Some("a"), None, Some("b"), None, None, None, None]), Report::new(0, None, true));
        let retries = Retries { timeout: Duration::from_millis(500) };
        let mut feed = Feed::new(&source, &Shard::default(), None, true, retries, &report);
        let mut next = || {
            loop {
                match feed.next() {
                    Next::Object(found) => return Some(found.name),
                    Next::Pause(pause) => thread::sleep(pause),
                    Next::End => return None,
                }
            }
        };
        assert_eq!(next().unwrap(), "a");
        // Work on large objects takes longer than a listing may be broken.
        thread::sleep(retries.timeout + Duration::from_millis(100));
        assert_eq!(next().unwrap(), "b");
        // Pauses of 100, 200 and 400 ms are more than half a second.
        assert_eq!(next(), None);
        assert!(source.left() > 0, "it was not asked for ever");
        assert_eq!(report.finish().unwrap(), Exit::Again);
    }

    #[test]
    fn a_folder_that_cannot_be_read_is_a_failure_of_each_shard_that_may_have_names_below_it() {
        let folder = Folder::temporary();
        // Its whole name is longer than the system takes, also for root.
        let own = "d".repeat(250);
        let mut above = openat(CWD, folder.path(), OFlags::DIRECTORY, Mode::empty()).unwrap();
        for _ in 0..17 {
            mkdirat(&above, &own, Mode::RWXU).unwrap();
            above = openat(&above, &own, OFlags::DIRECTORY, Mode::empty()).unwrap();
        }
        let source =
            open(&format!("file://{}", folder.path().display()), Retries { timeout: Duration::ZERO });
        let (source, deep) = (source.unwrap(), vec![own; 17].join("/"));
        let below = |last: &str| format!("{deep}/{last}");
        for (after, upto, exit) in [
            (below("5"), Some(below("6")), Exit::Never),
            (String::new(), Some("d".to_owned()), Exit::Done),
            ("e".to_owned(), None, Exit::Done),
        ] {
            let report = Report::new(0, None, true);
            let retries = Retries { timeout: Duration::ZERO };
            let shard = Shard { after: after.clone(), ..Shard::default() };
            let mut feed = Feed::new(&*source, &shard, upto.as_deref(), true, retries, &report);
            assert_eq!(feed.next(), Next::End);
            drop(feed);
            assert_eq!(report.finish().unwrap(), exit, "{after:?} {upto:?}");
        }
    }
}
