//! What all threads of a shard are to do, and what decides about an output: its name, its mark, and what stands there.

use std::sync::OnceLock;

use evener_files::Task;
use evener_files::object::mark;
use evener_shards::{Direction, Existing, Plan, Portion, Ranged};

use crate::outcome::{Failure, Kind, Retries};
use crate::report::{Ended, Report};
use crate::store::{Found, Making, Sharing, Standing, Store, is_reserved};

/// What all threads of a shard are to do, with what they do it.
pub(super) struct Order<'a> {
    pub(super) plan: &'a Plan,
    pub(super) portion: Portion<'a>,
    /// The range that is done beside those of other machines.
    pub(super) shared: Option<(&'a Ranged, u32)>,
    pub(super) task: &'a Task,
    pub(super) source: &'a dyn Store,
    pub(super) destination: &'a dyn Store,
    pub(super) existing: Existing,
    pub(super) retries: Retries,
    pub(super) report: &'a Report,
    /// What every output meets, where one has met it: the run ends.
    pub(super) ended: OnceLock<Failure>,
}

impl<'a> Order<'a> {
    /// What several machines need to make one output.
    pub(super) fn sharing(&self) -> Result<&'a dyn Sharing, Failure> {
        let none = || Failure::never("this store takes an output from one machine only");
        self.destination.sharing().ok_or_else(none)
    }

    /// Whether an object is in no shard of names, of which this is one.
    pub(super) fn is_of_others(&self, found: &Found) -> bool {
        matches!(self.portion, Portion::Names(..)) && self.plan.is_ranged(&found.name)
    }

    /// Says how an object ended. One that the plan has in one state only is not listed again by another run of the shard.
    pub(super) fn report(&self, name: &str, ended: Ended) {
        let ended = match (self.portion, ended) {
            (_, Ended::Failed(failure)) if failure.kind == Kind::EndsRun => {
                self.ended.set(failure).ok();
                return;
            }
            (Portion::Range(..), Ended::Failed(Failure { kind: Kind::Changed | Kind::Absent, .. })) => {
                Ended::Failed(Failure::never(
                    "it has changed since the plan was made, or is gone: plan again",
                ))
            }
            (_, ended) => ended,
        };
        self.report.object(name, &ended);
    }

    /// Tries while it fails for the moment only.
    pub(super) fn patiently<T>(&self, work: impl FnMut() -> Result<T, Failure>) -> Result<T, Failure> {
        self.retries.until_done(|| self.report.tried_again(), work)
    }

    /// The output of an object: its name, and its mark, which tells of what it was made.
    pub(super) fn making(&self, found: &Found) -> Result<Making, Failure> {
        let suffix = &self.plan.suffix;
        let name = match self.plan.direction {
            Direction::Encrypt => format!("{}{suffix}", found.name),
            Direction::Decrypt => {
                let stem = found.name.strip_suffix(suffix.as_str());
                let is_name = |stem: &&str| !stem.is_empty() && !stem.ends_with('/');
                let no_suffix = || Failure::never(format_args!("its name does not end in {suffix}"));
                stem.filter(is_name).ok_or_else(no_suffix)?.to_owned()
            }
        };
        if is_reserved(&name) {
            return Err(Failure::never("its output would have the name of a note of evener's own"));
        }
        let about: [&[u8]; 2] = [found.version.as_bytes(), &found.bytes.to_le_bytes()];
        let mark =
            mark(self.task, &self.plan.salt, &about).ok_or_else(|| Failure::never("keys have no mark"))?;
        Ok(Making { name, mark, replaces: false })
    }

    fn standing(&self, making: &Making) -> Result<Option<Standing>, Failure> {
        self.patiently(|| self.destination.standing(&making.name))
    }

    /// Whether the finished output stands there.
    pub(super) fn is_finished(&self, making: &Making) -> Result<bool, Failure> {
        let is_it = |standing: Standing| standing.mark.as_ref() == Some(&making.mark) && !standing.is_changed;
        Ok(self.standing(making)?.is_some_and(is_it))
    }

    /// The output if it is to be made, replacing what stands there where that may be replaced.
    pub(super) fn unless_finished(&self, making: Making) -> Result<Option<Making>, Failure> {
        let Some(Standing { mark, is_changed }) = self.standing(&making)? else { return Ok(Some(making)) };
        let refused = |what: &str| {
            Err(Failure::never(format_args!("output exists and is not the finished result: {what}")))
        };
        match (mark, self.existing) {
            (Some(mark), _) if mark == making.mark && !is_changed => Ok(None),
            (_, Existing::Replace) | (Some(_), Existing::Update) => {
                Ok(Some(Making { replaces: true, ..making }))
            }
            (Some(_), Existing::Keep) if is_changed => {
                refused("it was written to after it was made (--update makes it again)")
            }
            (Some(_), Existing::Keep) => {
                refused("its source has changed since, or it is for another key (--update makes it again)")
            }
            (None, _) => refused("it was not made by evener (--force replaces it)"),
        }
    }
}
