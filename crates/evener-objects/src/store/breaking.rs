//! A store for tests: its listings break.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use bytes::Bytes;

use super::{Found, Listing, Making, Standing, Store, Unlisted, Upload};
use crate::outcome::{Failure, Kind};

/// A store whose listings have these names, one after the other, and then break, but for the last one.
pub(crate) struct Breaking {
    listings: Mutex<Vec<Option<&'static str>>>,
    after: Mutex<Vec<String>>,
}

impl Breaking {
    pub(crate) fn new<const N: usize>(listings: [Option<&'static str>; N]) -> Self {
        Self { listings: Mutex::new(listings.into()), after: Mutex::default() }
    }

    /// Listings that it was not asked for yet.
    pub(crate) fn left(&self) -> usize {
        self.listings.lock().unwrap().len()
    }

    /// Behind what it was asked to list, each time.
    pub(crate) fn after(&self) -> Vec<String> {
        self.after.lock().unwrap().clone()
    }
}

impl Store for Breaking {
    fn list(&self, after: &str) -> Listing {
        self.after.lock().unwrap().push(after.to_owned());
        let mut listings = self.listings.lock().unwrap();
        let name = listings.remove(0);
        let found = name.map(|name| Ok(Found { name: name.to_owned(), bytes: 0, version: String::new() }));
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
