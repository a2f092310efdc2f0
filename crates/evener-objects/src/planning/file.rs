//! The file of a plan. It takes the place of a plan of the same places, whose random number it keeps, so that outputs are known again; of another file
//! only where that is wished; and of no key and no object ever.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use evener_fd::{Named, atomic_file};
use evener_shards::{Plan, SALT_BYTES};
use rustix::fs::{AtFlags, Mode, OFlags, PROC_SUPER_MAGIC, fstatfs, openat, renameat, unlinkat};

use crate::keys;
use crate::outcome::Failure;
use crate::spared::{self, Spared};
use crate::store;

/// Longest text that is read as a plan. Assumed, not measured: 1 GiB, for a million shards take some dozen bytes each.
const PLAN_BYTES_MAX: u64 = 1 << 30;

/// Where a plan goes.
pub(super) struct PlanFile<'p> {
    path: &'p Path,
    places: [&'p str; 2],
    /// Whether another file is replaced.
    is_forced: bool,
    spared: Spared,
}

/// What stands there.
enum There {
    Nothing,
    /// A device or a pipe, that is written to.
    Device,
    /// A plan of the same places.
    Earlier(Box<Plan>),
    /// Another file, which is to be replaced.
    Other,
}

impl<'p> PlanFile<'p> {
    pub(super) fn new(path: &'p Path, places: [&'p str; 2], is_forced: bool) -> Self {
        let mut spared = Spared::default();
        spared.add_places(places);
        Self { path, places, is_forced, spared }
    }

    /// Whether a plan may go there.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.is_standard_output() { Ok(()) } else { self.there().map(drop) }
    }

    /// The random number of the plan: that of the plan that stands there, if it is of the same places.
    pub(super) fn salt(&self) -> Result<[u8; SALT_BYTES], Failure> {
        if !self.is_standard_output() {
            if let There::Earlier(plan) = self.there()?.1 {
                return Ok(plan.salt);
            }
        }
        let mut salt = [0; SALT_BYTES];
        getrandom::getrandom(&mut salt).map_err(Failure::never)?;
        Ok(salt)
    }

    /// Writes it, whole or not at all, and durably: what follows from a lost plan is that outputs are not known again.
    pub(super) fn write(&self, text: &[u8]) -> Result<(), Failure> {
        if self.is_standard_output() {
            let written = io::stdout().write_all(text);
            return written.map_err(|error| Failure::never(format_args!("standard output: {error}")));
        }
        let written = match self.there()? {
            (_, There::Device) => atomic_file::write_named(self.path, text),
            (named, _) => replace(&named, text),
        };
        written.map_err(|error| self.failed(&error))
    }

    fn is_standard_output(&self) -> bool {
        self.path == Path::new("-")
    }

    fn failed(&self, error: &io::Error) -> Failure {
        Failure::never(format_args!("cannot write {}: {error}", self.path.display()))
    }

    /// Looks what stands there. It is an error where it is not to be replaced.
    fn there(&self) -> Result<(Named, There), Failure> {
        let failed = |error: io::Error| self.failed(&error);
        let refused = |what: &str| Failure::never(format_args!("{} {what}", self.path.display()));
        let named = Named::find(self.path).map_err(failed)?;
        let stat = spared::standing(&named).map_err(failed)?;
        // An open file by way of /proc, as /dev/stdout, has no place that could be taken.
        let is_open = fstatfs(named.dir()).is_ok_and(|found| found.f_type == PROC_SUPER_MAGIC);
        if is_open || stat.is_some_and(|stat| !spared::is_file(&stat)) {
            return Ok((named, There::Device));
        }
        if self.spared.has_below(&named) {
            return Err(refused("lies among the objects of SOURCE or DEST: the plan goes elsewhere"));
        }
        if stat.is_none() {
            return Ok((named, There::Nothing));
        }
        let mut text = Vec::new();
        let file = File::from(named.open(OFlags::RDONLY, Mode::empty()).map_err(failed)?);
        file.take(PLAN_BYTES_MAX).read_to_end(&mut text).map_err(failed)?;
        if keys::is_key(&text) {
            return Err(refused("holds a key, and no plan takes its place"));
        }
        let plan = Plan::read(&String::from_utf8_lossy(&text));
        let there = match plan {
            Ok(plan) if store::are_same([&plan.source, &plan.destination], self.places) => {
                There::Earlier(Box::new(plan))
            }
            _ if self.is_forced || text.is_empty() => There::Other,
            Ok(_) => return Err(refused("is a plan of other places (--force replaces it)")),
            Err(error) => return Err(refused(&format!("is not replaced: {error} (--force replaces it)"))),
        };
        Ok((named, there))
    }
}

/// Writes a draft, which no other process has, and gives it its name.
fn replace(named: &Named, text: &[u8]) -> io::Result<()> {
    let mut random = [0; 8];
    getrandom::getrandom(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
    let draft = format!(".evener-plan-{:016x}", u64::from_ne_bytes(random));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(named.dir(), &draft, flags, Mode::from_raw_mode(0o666))?);
    let written = file
        .write_all(text)
        .and_then(|()| file.sync_all())
        .and_then(|()| Ok(renameat(named.dir(), &draft, named.dir(), named.name())?));
    if written.is_err() {
        unlinkat(named.dir(), &draft, AtFlags::empty()).ok();
    }
    written?;
    let directory = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    File::from(openat(named.dir(), ".", directory, Mode::empty())?).sync_all()
}
